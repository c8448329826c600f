#include "exchange_pause.h"

#include <string.h>

#include "minmax.h"
#include "swap_window.h"

#define MS 1000000ull

/* A window has at least a period of the program, and this time. */
#define LEAST_NS (500 * MS)
/*
 * A trial settles for so many periods before its window begins: memory goes back to where it was allocated
 * (residency/restore.c), and chunks swap (placement_swap.h), which takes three periods to begin. Then it goes on until
 * nothing has swapped for a period, but not for ever.
 */
#define SETTLES 4
#define SETTLES_MOST 12
/* A period of the program is one that so many of its accesses had. Now and then an older step is more alike. */
#define PERIOD_SHARE 16
/* At most this part of a window's accesses was not predicted. Else the program does something new. */
#define UNFORESEEN_SHARE 8
/* Two windows differ by at most this part of the first. Else the program is not steady, and a trial tells nothing. */
#define STEADY_SHARE 8
/* A trial is worth its time if exchanges keep chunks from swapping, and take at least this part of all time. */
#define MOVES_SHARE 32
/* If memory at home would cost more than they do by now, kernels may become many times slower. The next question is so much later. */
#define ASK_NS (2000 * MS)
/* The other way has to take this part less. Times of windows differ by some per cent. */
#define BETTER_SHARE 25
/* A trial ends early if it takes a quarter more. The way home of memory, and the time before chunks swap, took up to 16 % (measured). */
#define SLOWER_PERCENT 125
/* Without exchanges, the program has become so much slower: something has changed. */
#define CHANGED_PERCENT 125
/* A window is over by then. Else the program has become one without periods, of which no window tells anything. */
#define LOST_PERIODS 16
/* So many times as long as a trial took there is none, and twice as long each time. */
#define WAITS 32
#define WAIT_MOST_NS (600000 * MS)

static void begin_window(struct spill_pause_window *window, const struct spill_access_point *at)
{
	*window = (struct spill_pause_window){.first = at->history->count,
	                                      .begin_ns = at->now_ns,
	                                      .unforeseen = at->history->unforeseen,
	                                      .in_place_ns = at->in_place_ns};
}

static uint64_t accesses_in(const struct spill_pause_window *window, const struct spill_access_point *at)
{
	return at->history->count - window->first;
}

static uint64_t time_in(const struct spill_pause_window *window, const struct spill_access_point *at)
{
	return at->now_ns - window->begin_ns;
}

/* What its accesses in place have cost. */
static uint64_t in_place_in(const struct spill_pause_window *window, const struct spill_access_point *at)
{
	return at->in_place_ns - window->in_place_ns;
}

/* ns of 1,024 accesses. */
static uint64_t pace_in(const struct spill_pause_window *window, const struct spill_access_point *at)
{
	return 1024 * time_in(window, at) / spill_max(accesses_in(window, at), 1);
}

static uint64_t time_at(uint64_t pace, uint64_t accesses)
{
	return pace * accesses / 1024;
}

static void add_period(struct spill_pause_window *window, uint64_t period)
{
	unsigned size = spill_min(spill_size_class(period), SPILL_PAUSE_SIZES - 1);

	window->seen++;
	window->periods[size].seen++;
	window->periods[size].longest = spill_max(window->periods[size].longest, period);
}

/* The longest period of the program, which may have shorter ones in it. 0: unknown */
static uint64_t period_of(const struct spill_pause_window *window)
{
	for (unsigned size = SPILL_PAUSE_SIZES - 1; size; size--)
		if (PERIOD_SHARE * window->periods[size].seen > window->seen)
			return window->periods[size].longest;
	return 0;
}

static bool is_whole(const struct spill_pause_window *window, const struct spill_access_point *at)
{
	return time_in(window, at) >= LEAST_NS && period_of(window) &&
	       accesses_in(window, at) >= period_of(window);
}

static bool is_foreseen(const struct spill_pause_window *window, const struct spill_access_point *at)
{
	return UNFORESEEN_SHARE * (at->history->unforeseen - window->unforeseen) <= accesses_in(window, at);
}

static bool is_steady(uint64_t before, uint64_t pace)
{
	return STEADY_SHARE * (spill_max(before, pace) - spill_min(before, pace)) <= before;
}

/* A window of the way that is kept has ended. True: it is time to try the other way. */
static bool keep_window(struct spill_exchange_pause *pause, const struct spill_access_point *at,
                        bool foreseen, uint64_t pace)
{
	const struct spill_pause_window *window = &pause->window;
	bool steady = pause->pace && foreseen && is_steady(pause->pace, pace);

	/* The first windows with exchanges are slow, because the program and the model begin. */
	pause->pace = steady ? spill_min(pause->pace, pace) : pace;
	pause->period = period_of(window);
	pause->cost_ns = (window->moves_ns + in_place_in(window, at)) * pause->period /
	                 spill_max(accesses_in(window, at), 1);
	return steady && at->now_ns >= pause->next_ns;
}

static void begin_trial(struct spill_exchange_pause *pause, const struct spill_access_point *at)
{
	pause->tries = true;
	pause->asks = pause->settled = false;
	pause->tried = at->history->count;
	pause->tried_ns = at->now_ns;
	begin_window(&pause->window, at);
}

static void end_trial(struct spill_exchange_pause *pause, const struct spill_access_point *at)
{
	uint64_t took_ns = at->now_ns - pause->tried_ns;

	pause->tries = false;
	pause->wait_ns = spill_longer_wait(pause->wait_ns, WAITS * took_ns, WAIT_MOST_NS);
	pause->next_ns = at->now_ns + pause->wait_ns;
	begin_window(&pause->window, at);
}

static enum spill_pause_change end_in_vain(struct spill_exchange_pause *pause,
                                           const struct spill_access_point *at)
{
	pause->was_ns = time_at(pause->pace, at->history->count - pause->tried);
	pause->is_ns = at->now_ns - pause->tried_ns;
	end_trial(pause, at);
	return pause->pauses ? SPILL_PAUSE_GOES_ON : SPILL_PAUSE_IN_VAIN;
}

/* True: the trial takes far longer than the way that is kept, or than all its accesses were to take. */
static bool is_much_slower(const struct spill_exchange_pause *pause, uint64_t accesses, uint64_t ns)
{
	return 100 * ns > SLOWER_PERCENT * time_at(pause->pace, spill_max(accesses, pause->period));
}

static bool is_settled(const struct spill_exchange_pause *pause, uint64_t count)
{
	uint64_t accesses = count - pause->tried;
	bool swaps = count - pause->swapped < pause->period;

	return accesses >= SETTLES * pause->period && (!swaps || accesses >= SETTLES_MOST * pause->period);
}

/* The trial's window has ended. */
static enum spill_pause_change judge_trial(struct spill_exchange_pause *pause,
                                           const struct spill_access_point *at)
{
	const struct spill_pause_window *window = &pause->window;
	uint64_t pace = pace_in(window, at);

	if (!is_foreseen(window, at) || pace + pause->pace / BETTER_SHARE > pause->pace)
		return end_in_vain(pause, at);
	pause->was_ns = time_at(pause->pace, pause->period);
	pause->is_ns = time_at(pace, pause->period);
	pause->pauses = !pause->pauses;
	pause->pace = pause->tried_pace = pace;
	end_trial(pause, at);
	return pause->pauses ? SPILL_PAUSE_BEGINS : SPILL_PAUSE_ENDS;
}

static enum spill_pause_change follow_trial(struct spill_exchange_pause *pause,
                                            const struct spill_access_point *at)
{
	struct spill_pause_window *window = &pause->window;
	uint64_t accesses = at->history->count - pause->tried;

	if (is_much_slower(pause, accesses, at->now_ns - pause->tried_ns))
		return end_in_vain(pause, at);
	if (!pause->settled) {
		pause->settled = is_settled(pause, at->history->count);
		if (pause->settled)
			begin_window(window, at);
	} else if (is_whole(window, at)) {
		return judge_trial(pause, at);
	}
	return SPILL_PAUSE_SAME;
}

static enum spill_pause_change forget(struct spill_exchange_pause *pause)
{
	enum spill_pause_change change = pause->pauses ? SPILL_PAUSE_ENDS : SPILL_PAUSE_SAME;

	memset(pause, 0, sizeof(*pause));
	return change;
}

/* A window of the way that is kept has ended. */
static enum spill_pause_change judge_window(struct spill_exchange_pause *pause,
                                            const struct spill_access_point *at)
{
	const struct spill_pause_window *window = &pause->window;
	uint64_t pace = pace_in(window, at);
	bool foreseen = is_foreseen(window, at);
	bool costly = MOVES_SHARE * window->moves_ns >= time_in(window, at) &&
	              spill_moves_keep_from_swaps(window->moves_ns, in_place_in(window, at));

	if (pause->pauses && (!foreseen || 100 * pace > CHANGED_PERCENT * pause->tried_pace))
		return forget(pause);
	bool due = keep_window(pause, at, foreseen, pace);
	pause->asks = due && costly;
	if (due && pause->pauses)
		begin_trial(pause, at);
	else
		begin_window(&pause->window, at);
	return SPILL_PAUSE_SAME;
}

/* True: exchanges pause, or are tried again, in a program that is not the one for which that was decided. */
static bool is_lost(const struct spill_exchange_pause *pause, uint64_t count)
{
	return (pause->pauses || pause->tries) && count - pause->window.first > LOST_PERIODS * pause->period;
}

enum spill_pause_change spill_exchange_pause_access(struct spill_exchange_pause *pause,
                                                    const struct spill_access_point *at)
{
	struct spill_pause_window *window = &pause->window;

	if (!window->begin_ns)
		begin_window(window, at);
	add_period(window, at->history->count - at->history->next);
	if (is_lost(pause, at->history->count))
		return forget(pause);
	if (pause->tries)
		return follow_trial(pause, at);
	return is_whole(window, at) ? judge_window(pause, at) : SPILL_PAUSE_SAME;
}

void spill_exchange_pause_told(struct spill_exchange_pause *pause, const struct spill_access_point *at,
                               uint64_t home_ns)
{
	pause->asks = false;
	if (home_ns <= pause->cost_ns)
		begin_trial(pause, at);
	else
		pause->next_ns = at->now_ns + ASK_NS;
}
