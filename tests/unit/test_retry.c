/* Honest first, the pure part: patterns, the list of retriers, and which request is the repeat of which failure. */
#include <limits.h>
#include "unit.h"

#include <string.h>

#include "glob.h"
#include "retry.h"

#define WINDOW 1000u
#define TORCH "/usr/lib/python3/dist-packages/torch/lib/libc10_cuda.so"
#define CUPY \
	"/opt/v/lib/python3.12/site-packages/cupy_backends/cuda/api/runtime.cpython-312-x86_64-linux-gnu.so"

/* As the engine goes by it: what is no repeat surfaces, and is remembered. */
static bool surfaces(struct spill_failure *pending, const struct spill_failure *now, uint64_t window_us)
{
	if (spill_failure_repeats(pending, now, window_us))
		return false;
	*pending = *now;
	return true;
}

TEST(globs_are_exact)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
	    {"", "", true},
	    {"", "a", false},
	    {"a", "", false},
	    {"abc", "abc", true},
	    {"abc", "abcd", false},
	    {"abcd", "abc", false},
	    {"*", "", true},
	    {"*", "a/b", true},
	    {"a*", "ba", false},
	    {"*b", "ab", true},
	    {"*b", "ba", false},
	    {"a?c", "abc", true},
	    {"a?c", "ac", false},
	    {"?", "", false},
	    {"*aab", "aaaab", true},
	    {"a*b*c", "axxbxxbc", true},
	    {"a*b*c", "axxc", false},
	    {"**a**", "xax", true},
	    {"*.so*", "x.so.2", true},
	    {"*.so", "x.so.2", false},
	    {"[a]", "a", false},
	    {"a\\*", "a\\b", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (spill_glob(cases[i].pattern, cases[i].text) != cases[i].matches)
			fail_msg("'%s' on '%s'", cases[i].pattern, cases[i].text);
}

static bool retries(const char *path, enum spill_retry operation)
{
	return spill_retrier_find(path, operation) != NULL;
}

TEST(the_list_names_who_asks_again)
{
	assert_true(retries(TORCH, SPILL_RETRY_PLAIN));
	assert_true(retries(TORCH, SPILL_RETRY_PHYSICAL));
	assert_false(retries(TORCH, SPILL_RETRY_STREAM_ORDERED));
	assert_true(retries("libc10_cuda.so.2", SPILL_RETRY_PLAIN));
	assert_true(retries("/x/libc10_hip.so", SPILL_RETRY_PLAIN));
	assert_string_equal(spill_retrier_find(TORCH, SPILL_RETRY_PLAIN)->unless,
	                    "PYTORCH_NO_CUDA_MEMORY_CACHING");
	assert_true(retries(CUPY, SPILL_RETRY_PLAIN));
	assert_false(retries(CUPY, SPILL_RETRY_PHYSICAL));
	assert_false(retries(CUPY, SPILL_RETRY_STREAM_ORDERED));
}

/* For these a failure that surfaces is the end. */
TEST(and_nobody_else)
{
	static const char *const others[] = {
	    "",
	    "/usr/lib/libggml-cuda.so",
	    "/x/libtorch_cuda.so",
	    "/x/libc10.so",
	    "/x/notlibc10_cuda.so",
	    "/x/librmm.so",
	    "/x/libc10_cuda.so/plugin.so",
	    "/x/runtime.cpython-312-x86_64-linux-gnu.so",
	    "/x/cupy_backends/cuda/api/driver.cpython-312-x86_64-linux-gnu.so",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		for (unsigned operation = SPILL_RETRY_PLAIN; operation <= SPILL_RETRY_STREAM_ORDERED;
		     operation <<= 1)
			if (retries(others[i], (enum spill_retry)operation))
				fail_msg("%s", others[i]);
}

static const struct spill_failure first = {
    .bytes = 100, .time_us = 5, .caller = 7, .device = 1, .operation = SPILL_RETRY_PLAIN};

TEST(the_repeat_is_of_that_size_or_more_by_the_same_caller_in_time)
{
	struct spill_failure now = first;

	assert_true(spill_failure_repeats(&first, &now, WINDOW));
	now.time_us = first.time_us + WINDOW;
	assert_true(spill_failure_repeats(&first, &now, WINDOW));
	now.time_us++;
	assert_false(spill_failure_repeats(&first, &now, WINDOW));
	now = first;
	now.bytes = 101;
	assert_true(spill_failure_repeats(&first, &now, WINDOW));
	now.bytes = 99;
	assert_false(spill_failure_repeats(&first, &now, WINDOW));
	now = first;
	now.caller++;
	assert_false(spill_failure_repeats(&first, &now, WINDOW));
	now = first;
	now.device++;
	assert_false(spill_failure_repeats(&first, &now, WINDOW));
	now = first;
	now.operation = SPILL_RETRY_PHYSICAL;
	assert_false(spill_failure_repeats(&first, &now, WINDOW));
}

TEST(nothing_is_the_repeat_of_nothing)
{
	struct spill_failure none = {0}, now = {.operation = SPILL_RETRY_PLAIN};

	assert_false(spill_failure_repeats(&none, &now, UINT64_MAX));
}

TEST(the_oldest_makes_way_for_another_kind)
{
	struct spill_failure pending[SPILL_FAILURES] = {{0}}, now = first;

	for (unsigned i = 0; i < SPILL_FAILURES; i++) {
		now.caller = i;
		now.time_us = 100 - i; /* the last is the oldest */
		assert_ptr_equal(spill_failure_slot(pending, &now), &pending[i]);
		pending[i] = now;
	}
	now.caller = 1;
	assert_ptr_equal(spill_failure_slot(pending, &now), &pending[1]);
	now.device++;
	assert_ptr_equal(spill_failure_slot(pending, &now), &pending[SPILL_FAILURES - 1]);
	now.device--;
	now.operation = SPILL_RETRY_PHYSICAL;
	assert_ptr_equal(spill_failure_slot(pending, &now), &pending[SPILL_FAILURES - 1]);
	pending[2].bytes = 0; /* forgotten, whenever that was */
	pending[2].time_us = 1000;
	assert_ptr_equal(spill_failure_slot(pending, &now), &pending[2]);
	now.operation = SPILL_RETRY_PLAIN;
	now.caller = 2;
	pending[0].bytes = 0;
	assert_ptr_equal(spill_failure_slot(pending, &now), &pending[0]);
}

/*
 * Like PyTorch's expandable segments: the last of a run of creates fails. All are released, `freed`
 * more fit, and the whole run is made again, then mapped. Returns how many failures surfaced.
 */
static unsigned run_of(unsigned creates, unsigned fit, unsigned freed, struct spill_failure *pending)
{
	struct spill_failure now = {.bytes = 20, .caller = 7, .operation = SPILL_RETRY_PHYSICAL};
	unsigned surfaced = 0;

	for (unsigned attempt = 0; attempt < 2; attempt++, fit += freed) {
		unsigned made = 0;

		for (; made < creates; made++) {
			now.time_us++;
			if (made >= fit && surfaces(pending, &now, WINDOW))
				break;
			spill_failure_served(pending, &now, WINDOW);
		}
		if (made == creates) {
			spill_failure_mapped(pending, 7);
			return surfaced;
		}
		surfaced++;
	}
	return UINT_MAX; /* the second attempt failed, too: the program's end */
}

TEST(a_run_surfaces_once_wherever_it_fails)
{
	for (unsigned creates = 1; creates < 12; creates++)
		for (unsigned fit = 0; fit <= creates; fit++)
			for (unsigned freed = 0; freed < 12; freed++) {
				struct spill_failure pending = {0};

				/* And again: the run before must have left nothing. */
				for (int again = 0; again < 2; again++)
					assert_int_equal(run_of(creates, fit, freed, &pending),
					                 fit < creates);
			}
}

TEST(only_its_own_caller_ends_a_run)
{
	struct spill_failure pending = {0},
	                     now = {.bytes = 20, .caller = 7, .operation = SPILL_RETRY_PHYSICAL};

	assert_true(surfaces(&pending, &now, WINDOW));
	spill_failure_mapped(&pending, 8);
	assert_false(surfaces(&pending, &now, WINDOW));
	spill_failure_mapped(&pending, 7);
	assert_true(surfaces(&pending, &now, WINDOW));
	now.operation = SPILL_RETRY_PLAIN;
	assert_true(surfaces(&pending, &now, WINDOW));
	spill_failure_mapped(&pending, 7);
	assert_false(surfaces(&pending, &now, WINDOW));
}

/* -- random sequences, judged by their whole history ------------------------------------------------------------- */

enum { SURFACED, REPEATED, SERVED, MAPPED };

static struct event {
	int what;
	struct spill_failure request;
} history[400];

static bool of_one_kind(const struct spill_failure *a, const struct spill_failure *b)
{
	return a->caller == b->caller && a->device == b->device && a->operation == b->operation;
}

/* Is there, before `at`, a failure that surfaced and is still to be repeated by the request at `at`? */
static bool awaited(unsigned at)
{
	const struct spill_failure *now = &history[at].request;
	unsigned failed = at;

	while (failed && history[failed - 1].what != SURFACED)
		failed--;
	if (!failed--)
		return false;
	const struct spill_failure *then = &history[failed].request;

	for (unsigned i = failed + 1; i < at; i++) {
		const struct event *between = &history[i];
		bool ends_run = between->what == MAPPED && then->operation == SPILL_RETRY_PHYSICAL &&
		                between->request.caller == then->caller;
		bool succeeds = (between->what == SERVED || between->what == REPEATED) &&
		                then->operation != SPILL_RETRY_PHYSICAL &&
		                of_one_kind(&between->request, then) &&
		                between->request.bytes >= then->bytes &&
		                between->request.time_us <= then->time_us + WINDOW;

		if (ends_run || succeeds)
			return false;
	}
	return of_one_kind(now, then) && now->bytes >= then->bytes && now->time_us <= then->time_us + WINDOW;
}

static unsigned seed;

static unsigned below(unsigned limit)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % limit;
}

TEST(surfaces_exactly_once_per_window_and_failure)
{
	enum { LENGTH = sizeof(history) / sizeof(history[0]) };
	unsigned surfaced = 0, repeated = 0;

	for (unsigned sequence = 1; sequence <= 1000; sequence++) {
		struct spill_failure pending = {0};
		uint64_t time = 0;

		seed = sequence;
		for (unsigned at = 0; at < LENGTH; at++) {
			struct spill_failure now = {1 + below(3), time += below(WINDOW / 3), below(2),
			                            (int)below(2),
			                            below(2) ? SPILL_RETRY_PLAIN : SPILL_RETRY_PHYSICAL};
			struct event *event = &history[at];
			unsigned what = below(8);

			event->request = now;
			if (what == 0) {
				event->what = MAPPED;
				spill_failure_mapped(&pending, now.caller);
			} else if (what < 3) {
				event->what = SERVED;
				spill_failure_served(&pending, &now, WINDOW);
			} else {
				bool expected = !awaited(at);

				assert_int_equal(surfaces(&pending, &now, WINDOW), expected);
				event->what = expected ? SURFACED : REPEATED;
				surfaced += expected;
				repeated += !expected;
				if (!expected)
					spill_failure_served(&pending, &now, WINDOW);
			}
		}
	}
	assert_true(surfaced > 1000 && repeated > 1000);
}
