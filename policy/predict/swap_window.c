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
/* The wait after a look that found nothing. A look walks over the window, which takes some ms. */
#define PAUSE_NS (100 * MS)
#define PAUSE_MOST_NS (10000 * MS)

static void begin(struct spill_swap_window *window, const struct spill_access_history *history,
                  uint64_t now_ns, uint64_t in_place_ns)
{
	window->first = history->count;
	window->begin_ns = now_ns;
	window->unforeseen = history->unforeseen;
	window->in_place_ns = in_place_ns;
	window->moves_ns = 0;
}

bool spill_swap_window_tells(struct spill_swap_window *window, const struct spill_access_history *history,
                             uint64_t now_ns, uint64_t in_place_ns)
{
	uint64_t count = history->count, period = count - history->next;

	if (!window->begin_ns)
		begin(window, history, now_ns, in_place_ns);
	if (!period || now_ns < window->next_ns || count - window->looked_at < period ||
	    count - window->first < PERIODS * period || now_ns - window->begin_ns < LEAST_NS)
		return false;
	if (UNFORESEEN_SHARE * (history->unforeseen - window->unforeseen) <= count - window->first &&
	    MOVES_SHARE * window->moves_ns < in_place_ns - window->in_place_ns)
		return true;
	begin(window, history, now_ns, in_place_ns);
	return false;
}

uint64_t spill_swap_window_first(const struct spill_swap_window *window,
                                 const struct spill_access_history *history)
{
	return spill_max(window->first, spill_minus(history->count, SPILL_ACCESS_USES));
}

void spill_swap_window_looked(struct spill_swap_window *window, const struct spill_access_history *history,
                              uint64_t now_ns, bool found)
{
	window->pause_ns = found ? 0 : spill_min(spill_max(2 * window->pause_ns, PAUSE_NS), PAUSE_MOST_NS);
	window->next_ns = now_ns + window->pause_ns;
	window->looked_at = history->count;
}
