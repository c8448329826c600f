#include "idle_window.h"

#include "access_history.h"
#include "minmax.h"

#define MS 1000000ull

/*
 * A window has at least so many steps, and at most. Two would tell sooner, and by replay some programs took longer with them.
 * Memory that costs less than a copy in the most is left to other swaps.
 */
#define STEPS 3
#define STEPS_MOST 8
/* And this many accesses. A buffer that some launches in a row use is no step. */
#define LEAST 128
/* A chunk that is used again within this part of the window is used several times a step, and tells no step. */
#define GAP_SHARE 4
/* Where half of so many uses are of chunks that the window has not seen, something else has begun. */
#define GROUP 16
/* Moves cost less than this part of what memory in place costs. Else exchanges pay, and a placement is only for a moment. */
#define MOVES_SHARE 16
/* The wait after a look by which nothing swapped. A look walks over the window, which takes up to some ms. */
#define PAUSE_NS (10 * MS)
#define PAUSE_MOST_NS (1000 * MS)
/* So many times as long as swaps in vain lasted there is no look. */
#define WAITS 32
#define WAIT_MOST_NS (600000 * MS)

static void begin(struct spill_idle_window *window, struct spill_idle_point at)
{
	window->first = at;
	window->fresh = window->again = window->step = window->moves_ns = 0;
	window->paid /= 2;
	window->vain /= 2;
}

/* The older half is forgotten. */
static void age(struct spill_idle_window *window, struct spill_idle_point now)
{
	struct spill_idle_point *first = &window->first;

	first->access += (now.access - first->access) / 2;
	first->use += (now.use - first->use) / 2;
	first->in_place_ns += (now.in_place_ns - first->in_place_ns) / 2;
	window->moves_ns /= 2;
}

static void add_to_group(struct spill_idle_window *window, struct spill_idle_point at, bool fresh)
{
	if (!window->group.uses || at.use - window->group.begin > window->step) {
		window->group.begin = at.use;
		window->group.uses = window->group.fresh = 0;
	}
	if (fresh && !window->group.fresh)
		window->group.fresh_at = at;
	window->group.uses++;
	window->group.fresh += fresh;
}

static void end_group(struct spill_idle_window *window)
{
	if (window->step && 2 * window->group.fresh >= GROUP) {
		begin(window, window->group.fresh_at);
		window->fresh = window->group.fresh;
	}
	window->group.uses = window->group.fresh = 0;
}

void spill_idle_window_use(struct spill_idle_window *window, struct spill_idle_point at, uint64_t gap)
{
	uint64_t length = at.use - window->first.use, silence = at.use - window->last;
	bool fresh = gap > length;

	/* The first use, or nothing was used in place for longer than the window, and now it is something else. */
	if (!window->fresh || (fresh && window->fresh >= GROUP && silence > length - silence)) {
		begin(window, at);
		length = 0;
		fresh = true;
	}
	window->last = at.use;
	add_to_group(window, at, fresh);
	window->fresh += fresh;
	window->again += !fresh && GAP_SHARE * gap >= length;
	if (!window->step && at.access - window->first.access >= LEAST &&
	    window->again >= (STEPS - 1) * window->fresh)
		window->step = length / STEPS + 1;
	if (window->group.uses == GROUP)
		end_group(window);
	if (at.access - window->first.access > SPILL_ACCESS_USES)
		begin(window, at);
	else if (window->step && length > STEPS_MOST * window->step)
		age(window, at);
}

bool spill_idle_window_is_due(const struct spill_idle_window *window, struct spill_idle_point at,
                              uint64_t now_ns)
{
	return window->step && now_ns >= window->next_ns &&
	       MOVES_SHARE * window->moves_ns < at.in_place_ns - window->first.in_place_ns;
}

void spill_idle_window_looked(struct spill_idle_window *window, struct spill_idle_point at, bool whole,
                              bool swapped, uint64_t now_ns)
{
	if (!whole)
		begin(window, at);
	window->pause_ns = swapped ? 0 : spill_longer_wait(window->pause_ns, PAUSE_NS, PAUSE_MOST_NS);
	window->next_ns = now_ns + window->pause_ns;
}

uint64_t spill_idle_window_pays_at(const struct spill_idle_window *window, struct spill_idle_point at,
                                   uint64_t copies_ns, uint64_t cost_ns)
{
	uint64_t accesses = at.access - window->first.access;
	uint64_t steps = STEPS * window->step * accesses / spill_max(at.use - window->first.use, 1);

	return at.access + steps + accesses * copies_ns / cost_ns;
}

void spill_idle_window_swapped(struct spill_idle_window *window, uint64_t paid, uint64_t vain,
                               uint64_t vain_ns, uint64_t now_ns)
{
	window->paid += paid;
	window->vain += vain;
	if (window->vain > window->paid) {
		window->barred_ns =
		    spill_min(spill_max(WAITS * vain_ns, 2 * window->barred_ns), WAIT_MOST_NS);
		window->next_ns = now_ns + window->barred_ns;
		window->paid = window->vain = 0;
	} else if (window->paid) {
		window->barred_ns = 0;
	}
}
