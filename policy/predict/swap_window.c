#include "swap_window.h"

#include "minmax.h"

#define MS 1000000ull

/* A window has at least so many periods of the program, in which the costs in place become known, and this time. */
#define PERIODS 3
#define LEAST_NS (250 * MS)
/*
 * Moves cost less than this part of what memory in place costs. In a chat (a prompt, then some tokens) exchanges for the
 * prompts cost a tenth of it. Swaps there were undone by the next prompt, and did not pay (docs/adr/0043-swaps.md).
 */
#define MOVES_SHARE 16
/* At most this part of its accesses was not predicted. While the program does something for the first time, most are not. */
#define UNFORESEEN_SHARE 8
/* So many eighths of a period between looks: not always at the same place of the program, where the same chunks are needed. */
#define LOOK_EIGHTHS 9
/* The history keeps so many accesses. A longer window forgets this part of itself. */
#define AGED_SHARE 8
#define OFFER_NS (10 * MS)
/* The wait after a look by which nothing swapped. A look walks over the window, which takes some ms. */
#define PAUSE_NS (100 * MS)
#define PAUSE_MOST_NS (10000 * MS)

static void begin(struct spill_swap_window *window, const struct spill_access_point *at)
{
	window->first = at->history->count;
	window->begin_ns = at->now_ns;
	window->unforeseen = at->history->unforeseen;
	window->in_place_ns = at->in_place_ns;
	window->moves_ns = 0;
}

/* A part of what was added since then is forgotten. */
static void age(uint64_t *since, uint64_t now)
{
	*since += (now - *since) / AGED_SHARE;
}

static void age_window(struct spill_swap_window *window, const struct spill_access_point *at)
{
	age(&window->first, at->history->count);
	age(&window->begin_ns, at->now_ns);
	age(&window->unforeseen, at->history->unforeseen);
	age(&window->in_place_ns, at->in_place_ns);
	window->moves_ns -= window->moves_ns / AGED_SHARE;
}

static bool is_long_enough(const struct spill_swap_window *window, uint64_t count, uint64_t period,
                           uint64_t now_ns)
{
	return count - window->first >= PERIODS * period && now_ns - window->begin_ns >= LEAST_NS;
}

bool spill_moves_keep_from_swaps(uint64_t moves_ns, uint64_t in_place_ns)
{
	return MOVES_SHARE * moves_ns >= in_place_ns;
}

/* True: the program does what it did, and little was moved. */
static bool is_steady(const struct spill_swap_window *window, const struct spill_access_point *at)
{
	uint64_t unforeseen = at->history->unforeseen - window->unforeseen;

	return UNFORESEEN_SHARE * unforeseen <= at->history->count - window->first &&
	       !spill_moves_keep_from_swaps(window->moves_ns, at->in_place_ns - window->in_place_ns);
}

bool spill_swap_window_tells(struct spill_swap_window *window, const struct spill_access_point *at)
{
	uint64_t count = at->history->count, period = count - at->history->next;

	if (!window->begin_ns)
		begin(window, at);
	while (count - window->first > SPILL_ACCESS_USES)
		age_window(window, at);
	if (!period || at->now_ns < window->next_ns ||
	    8 * (count - window->looked_at) < LOOK_EIGHTHS * period ||
	    !is_long_enough(window, count, period, at->now_ns))
		return false;
	if (is_steady(window, at))
		return true;
	begin(window, at);
	return false;
}

bool spill_swap_window_is_due(struct spill_swap_window *window, const struct spill_access_point *at)
{
	if (at->now_ns - window->offered_ns < OFFER_NS || !spill_swap_window_tells(window, at))
		return false;
	window->offered_ns = at->now_ns;
	return true;
}

uint64_t spill_swap_window_first(const struct spill_swap_window *window,
                                 const struct spill_access_history *history)
{
	uint64_t period = history->count - history->next;

	return period ? window->first + (history->count - window->first) % period : window->first;
}

void spill_swap_window_looked(struct spill_swap_window *window, const struct spill_access_history *history,
                              uint64_t now_ns)
{
	window->pause_ns = spill_longer_wait(window->pause_ns, PAUSE_NS, PAUSE_MOST_NS);
	window->next_ns = now_ns + window->pause_ns;
	window->looked_at = history->count;
}

void spill_swap_window_swapped(struct spill_swap_window *window, uint64_t now_ns)
{
	window->pause_ns = 0;
	window->next_ns = now_ns;
}
