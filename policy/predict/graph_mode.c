#include "graph_mode.h"

#include "minmax.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

/* A launch that takes less is not worth a trial. */
#define LEAST_NS (5 * MS)
/*
 * A trial begins where a whole launch takes this much longer than exchanging its memory on the host: 3/2. Where
 * memory is read once, as in decoding, reading it in place takes as long as copying it.
 */
#define WORTH_THIRDS 2
/* Where it takes so many times as long, one launch tells that. */
#define CLEAR_TIMES 3
/*
 * Launches of a trial, of which the last three count. The first ones teach what each kernel costs. It ends early
 * with a launch after the first that takes so many times what a whole one takes.
 */
#define TRIED 9
#define BAD_TIMES 3
/* They are kept if they take less than 3/4 of a whole launch. */
#define KEPT_QUARTERS 3
/* Most launches of a trial: samples may not arrive. */
#define LAUNCHES_MOST 40
/*
 * Whole launches of a look, in which trials of placements go on. What they are likely to lose is a part of
 * LOOK_SHARE of the time until then. They stay if they take less by a part of BETTER_SHARE.
 */
#define LOOK_LAUNCHES 24
#define LOOK_SHARE 32
#define BETTER_SHARE 32
/* The first wait after a trial in vain, or where none is worth it: at least so many launches. It doubles. */
#define WAIT_NS (2 * SECOND)
#define WAIT_LAUNCHES 64
#define WAIT_MOST_NS (600 * SECOND)

_Static_assert(SPILL_GRAPH_MODE_SAMPLES == 3, "spill_median_of_three takes as many");

static void enter(struct spill_graph_mode *mode, enum spill_graph_phase phase)
{
	mode->phase = phase;
	mode->sampled = mode->launches = 0;
}

static void wait_whole(struct spill_graph_mode *mode, uint64_t now_ns)
{
	uint64_t first = spill_max(WAIT_NS, WAIT_LAUNCHES * mode->whole_ns);
	mode->wait_ns = spill_longer_wait(mode->wait_ns, first, WAIT_MOST_NS);
	mode->next_ns = now_ns + mode->wait_ns;
	enter(mode, SPILL_GRAPH_WHOLE);
}

static bool is_whole(const struct spill_graph_mode *mode)
{
	return mode->phase == SPILL_GRAPH_WHOLE || mode->phase == SPILL_GRAPH_LOOKS;
}

/* The nodes one by one take less than a whole launch. The next look comes later each time. */
static void keep_nodes(struct spill_graph_mode *mode, uint64_t now_ns)
{
	uint64_t first = LOOK_SHARE * LOOK_LAUNCHES * spill_minus(mode->whole_ns, mode->nodes_ns);
	mode->look_ns = spill_longer_wait(mode->look_ns, first, UINT64_MAX / 4);
	mode->next_ns = now_ns + mode->look_ns;
	enter(mode, SPILL_GRAPH_NODES);
}

bool spill_graph_mode_whole(struct spill_graph_mode *mode, const void *stream, uint64_t copy_ns,
                            uint64_t now_ns)
{
	if (mode->phase == SPILL_GRAPH_LOOKS) {
		if (++mode->launches > LOOK_LAUNCHES)
			keep_nodes(mode, now_ns);
		return true;
	}
	if (mode->phase != SPILL_GRAPH_WHOLE || now_ns < mode->next_ns)
		return false;
	/* Launches of a graph in several streams wait for each other. So each way is compared in one. */
	if (mode->stream != stream)
		mode->sampled = 0;
	mode->stream = stream;
	mode->copy_ns = copy_ns;
	return true;
}

/* A whole launch was measured. The samples may tell whether a trial is worth it. */
static void consider_trial(struct spill_graph_mode *mode, uint64_t now_ns)
{
	bool clear = mode->sampled == 1 && mode->samples[0] > CLEAR_TIMES * mode->copy_ns;
	if (!clear && mode->sampled < SPILL_GRAPH_MODE_SAMPLES)
		return;
	mode->whole_ns = clear ? mode->samples[0] : spill_median_of_three(mode->samples);
	if (mode->whole_ns < LEAST_NS || WORTH_THIRDS * mode->whole_ns < (WORTH_THIRDS + 1) * mode->copy_ns)
		wait_whole(mode, now_ns);
	else
		enter(mode, SPILL_GRAPH_TRIES);
}

bool spill_graph_mode_by_nodes(struct spill_graph_mode *mode, uint64_t now_ns)
{
	if (mode->phase == SPILL_GRAPH_NODES && now_ns >= mode->next_ns)
		enter(mode, SPILL_GRAPH_LOOKS);
	if (is_whole(mode))
		return false;
	if (mode->phase == SPILL_GRAPH_TRIES && ++mode->launches > LAUNCHES_MOST) {
		wait_whole(mode, now_ns);
		return false;
	}
	return true;
}

/* Of a trial. */
static void judge(struct spill_graph_mode *mode, uint64_t ns, uint64_t now_ns)
{
	if (mode->sampled > 1 && ns > BAD_TIMES * mode->whole_ns) {
		wait_whole(mode, now_ns);
	} else if (mode->sampled >= TRIED) {
		mode->nodes_ns = spill_median_of_three(mode->samples);
		if ((KEPT_QUARTERS + 1) * mode->nodes_ns < KEPT_QUARTERS * mode->whole_ns)
			keep_nodes(mode, now_ns);
		else
			wait_whole(mode, now_ns);
	}
}

/* True: whole launches are better. `ns`: what the last launches of the phase took. */
static bool is_left(const struct spill_graph_mode *mode, uint64_t ns)
{
	return (mode->phase == SPILL_GRAPH_NODES && ns > mode->whole_ns) ||
	       (mode->phase == SPILL_GRAPH_LOOKS && ns < mode->nodes_ns - mode->nodes_ns / BETTER_SHARE);
}

void spill_graph_mode_sample(struct spill_graph_mode *mode, bool by_nodes, uint64_t ns, uint64_t now_ns)
{
	/* It may be of a phase before. */
	if (by_nodes == is_whole(mode) || (mode->phase == SPILL_GRAPH_WHOLE && now_ns < mode->next_ns))
		return;
	mode->samples[mode->sampled++ % SPILL_GRAPH_MODE_SAMPLES] = ns;
	if (mode->phase == SPILL_GRAPH_WHOLE)
		consider_trial(mode, now_ns);
	else if (mode->phase == SPILL_GRAPH_TRIES)
		judge(mode, ns, now_ns);
	else if (mode->sampled >= SPILL_GRAPH_MODE_SAMPLES &&
	         is_left(mode, spill_median_of_three(mode->samples)))
		wait_whole(mode, now_ns);
}

void spill_graph_mode_refused(struct spill_graph_mode *mode, uint64_t now_ns)
{
	wait_whole(mode, now_ns);
}

bool spill_graph_mode_wants_nodes(const struct spill_graph_mode *mode, uint64_t now_ns)
{
	return mode->phase != SPILL_GRAPH_WHOLE || now_ns >= mode->next_ns;
}
