#include "learning_rest.h"

#include "minmax.h"

#define MS 1000000ull

/* Next to nothing: less than this part of the time of a window. No placement can save more. */
#define LOST_SHARE 64
/* A window is so long at least, and this part of the rest before it. */
#define WINDOW_NS (100 * MS)
#define WINDOW_SHARE 8
/* Windows without a loss before the first rest. */
#define QUIET_NS (2000 * MS)
/* A rest is this part of the time without a loss, and so long at most. */
#define REST_SHARE 16
#define REST_MOST_NS (1000 * MS)
/* With fewer accesses it costs too little to learn them: about a hundredth of the time. */
#define ACCESSES_A_MS 16

static void begin_window(struct spill_learning_rest *rest, uint64_t now_ns, struct spill_learning_sums sums)
{
	rest->begin_ns = now_ns;
	rest->before = sums;
}

static void begin_anew(struct spill_learning_rest *rest, uint64_t now_ns)
{
	rest->quiet_ns = now_ns;
	rest->rest_ns = 0;
}

void spill_learning_rest_ended(struct spill_learning_rest *rest, uint64_t now_ns, uint64_t late_ns,
                               struct spill_learning_sums sums, bool disturbed)
{
	begin_window(rest, now_ns, sums);
	rest->quiet_ns += late_ns;
	if (disturbed)
		begin_anew(rest, now_ns);
}

uint64_t spill_learning_rest_due(struct spill_learning_rest *rest, uint64_t now_ns,
                                 struct spill_learning_sums sums, bool disturbed)
{
	uint64_t took_ns = now_ns - rest->begin_ns;

	if (rest->begin_ns && !disturbed && took_ns < spill_max(WINDOW_NS, rest->rest_ns / WINDOW_SHARE))
		return 0;
	bool quiet = rest->begin_ns && !disturbed &&
	             LOST_SHARE * (sums.lost_ns - rest->before.lost_ns) <= took_ns &&
	             sums.accesses - rest->before.accesses >= ACCESSES_A_MS * took_ns / MS;

	begin_window(rest, now_ns, sums);
	if (!quiet)
		begin_anew(rest, now_ns);
	if (now_ns - rest->quiet_ns < QUIET_NS)
		return 0;
	rest->rest_ns = spill_min((now_ns - rest->quiet_ns) / REST_SHARE, REST_MOST_NS);
	return rest->rest_ns;
}
