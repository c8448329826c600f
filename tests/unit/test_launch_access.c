/*
 * What happens around a launch that accesses movable memory, and when launches are reported at all. All
 * that it calls is the test's: the model, prefetch, flights, trials, rests, stopwatches.
 */
#define SETUP setup
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "access_model.h"
#include "audit.h"
#include "overlap.h"
#include "access_recording.h"
#include "chunk_map.h"
#include "chunked.h"
#include "exchange.h"
#include "fake_clock.h"
#include "mover.h"
#include "graph_access.h"
#include "graph_modes.h"
#include "host_chunks.h"
#include "in_place.h"
#include "launch_access.h"
#include "prefetch.h"
#include "process.h"
#include "registry.h"
#include "rest.h"
#include "stopwatch.h"
#include "trial.h"

#define S 1000000000ull
#define UNIT SPILL_CHUNK_MAP_UNIT
#define BASE (3ull << 40)
#define KEY (uint32_t)(BASE / UNIT)

static struct spill_policy policy;

static struct {
	struct spill_access_advice advice;
	bool comes, recording, held, mover_taken, no_device, trims;
	bool overlaps, flies, away, audits, rests;
	uint64_t on_host, kept, placement;
	bool compares;
	unsigned pending;
} world;

static struct {
	unsigned prefetched, left, trials, told, dropped, unlocked, recorded, started, flown, ahead;
	unsigned resets, changes, compared, pauses, by_nodes, moved, rest_looks, maintenance;
	uint64_t in_place; /* bytes, of one launch with .bring */
	struct spill_stopwatch_access timed;
	const void *stopped;
} seen;

static int stopwatch;

/* -- in place of the others ---------------------------------------------------------------------------------- */

struct spill_access_advice spill_access_model_learn(const struct spill_launch_access *access)
{
	errno = EDOM;
	assert_true(spill_thread.depth);
	return world.advice;
}

void spill_access_model_by_nodes(void)
{
	seen.by_nodes++;
}

void spill_access_model_left_in_place(const struct spill_access_advice *advice, uint64_t host_bytes)
{
	assert_true(advice->bring);
	seen.in_place += host_bytes;
}

bool spill_prefetch(const struct spill_launch_access *access, const struct spill_access_advice *advice)
{
	seen.prefetched++;
	return world.comes;
}

void spill_prefetch_note_pause(const struct spill_access_advice *advice)
{
	assert_int_not_equal(advice->pause_change, SPILL_PAUSE_SAME);
	seen.pauses++;
}

void spill_prefetch_left_in_place(const struct spill_launch_access *access,
                                  const struct spill_access_advice *advice)
{
	seen.left++;
}

bool spill_overlap_wanted(void)
{
	return world.overlaps;
}

bool spill_overlap_bring(const struct spill_launch_access *access, const struct spill_access_advice *advice)
{
	seen.flown++;
	return world.flies;
}

bool spill_overlap_away(void)
{
	return world.away;
}

void spill_overlap_ahead(const struct spill_launch_access *access, const struct spill_access_advice *advice)
{
	seen.ahead++;
}

bool spill_audit_wanted(void)
{
	return world.audits;
}

static int audited;

bool spill_audit_after(const void *result)
{
	return result == &audited;
}

bool spill_graph_modes_whole(const struct spill_launch_access *access, uint64_t copy_ns)
{
	assert_int_equal(copy_ns, world.advice.copy_ns);
	seen.compared++;
	return world.compares;
}

uint64_t spill_trial_before(const struct spill_launch_access *access)
{
	seen.trials++;
	return world.placement;
}

bool spill_access_recording_on(void)
{
	return world.recording;
}

uint64_t spill_access_recording_launch(const struct spill_launch_access *access, uint16_t site)
{
	assert_int_equal(site, world.advice.site);
	seen.recorded++;
	return 99;
}

void spill_in_place_tell(bool last)
{
	assert_false(last);
	seen.told++;
}

void *spill_stopwatch_start(const struct spill_backend *backend, int device, void *context, void *stream,
                            bool per_thread, const struct spill_stopwatch_access *access)
{
	seen.started++;
	seen.timed = *access;
	return &stopwatch;
}

void spill_stopwatch_stop(void *started)
{
	assert_true(spill_thread.depth);
	errno = EDOM;
	seen.stopped = started;
}

unsigned spill_stopwatch_pending(void)
{
	return world.pending;
}

bool spill_rest_on(void)
{
	return world.rests;
}

void spill_rest_moved(void)
{
	seen.moved++;
}

void spill_rest_maintain(void)
{
	seen.rest_looks++;
}

void spill_gate_want_maintenance(void)
{
	seen.maintenance++;
}

uint64_t spill_chunked_on_host(void)
{
	return world.on_host;
}

bool spill_chunked_is_held(void)
{
	return world.held;
}

bool spill_host_chunks_trim(void)
{
	return world.trims;
}

uint64_t spill_exchange_kept(void)
{
	return world.kept;
}

uint64_t spill_exchange_drop(void)
{
	seen.dropped++;
	return 0;
}

bool spill_mover_trylock(void)
{
	return !world.mover_taken;
}

void spill_mover_unlock(void)
{
	seen.unlocked++;
}

static bool current(int *device, void **context)
{
	*device = 0;
	*context = NULL;
	return !world.no_device;
}

static const struct spill_vendor_devices devices = {.current = current};
static const struct spill_backend backend = {.devices = &devices};

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	return &backend;
}

#define RESET(number, name) \
	void name(void) \
	{ \
		seen.resets |= 1u << (number); \
	}
RESET(0, spill_exchange_reset)
RESET(1, spill_graph_access_reset)
RESET(2, spill_stopwatch_reset)
RESET(3, spill_prefetch_reset)
RESET(4, spill_trial_reset)
RESET(5, spill_access_model_reset)
RESET(6, spill_in_place_reset)
RESET(7, spill_access_recording_reset)
RESET(8, spill_overlap_reset)
RESET(9, spill_audit_reset)
RESET(10, spill_graph_modes_reset)
RESET(11, spill_rest_reset)

void spill_chunked_tell(void)
{
	seen.changes++;
	spill_launch_access_moved();
}

static int setup(void **state)
{
	fake_clock_use(S);
	spill_launch_access_reset();
	memset(&world, 0, sizeof(world));
	memset(&seen, 0, sizeof(seen));
	world.advice = (struct spill_access_advice){.learned = true, .site = 4, .work_ns = 5};
	spill_policy_default(&policy);
	policy.movable_follow = SPILL_FOLLOW_AUTO;
	policy.mode = SPILL_MODE_SPILL;
	spill_process_use_policy(&policy);
	assert_true(spill_chunk_map_set(BASE, 2 * UNIT, true, true));
	assert_true(spill_chunk_map_set(BASE + 2 * UNIT, UNIT, false, true));
	return 0;
}

/* A launch of two chunks, of which the first is on the host; or of the second alone. */
static struct spill_launch_access access_of(bool on_host)
{
	struct spill_launch_access access = {.site = 1,
	                                     .count = 2,
	                                     .sure = 2,
	                                     .keys = {KEY, KEY + 2, KEY /* behind the last */},
	                                     .host_keys = {KEY},
	                                     .bytes = 3 * UNIT};
	access.on_host = on_host;
	access.host_bytes = on_host ? 2 * UNIT : 0;
	if (!on_host) {
		access.count = access.sure = 1;
		access.keys[0] = KEY + 2;
	}
	return access;
}

static void *launch(bool on_host)
{
	struct spill_launch_access access = access_of(on_host);
	errno = ERANGE;
	void *started = spill_before_launch(&access);
	assert_int_equal(errno, ERANGE);
	assert_int_equal(spill_thread.depth, 0);
	return started;
}

/* -- a launch ------------------------------------------------------------------------------------------------ */

TEST(without_advice_nothing_moves)
{
	assert_null(launch(true));
	assert_int_equal(seen.prefetched + seen.started + seen.trials + seen.told, 0);
	assert_int_equal(seen.left, 1);
	assert_int_equal(seen.recorded, 1);
	assert_int_equal(seen.in_place, 0);
	assert_int_equal(seen.pauses, 0);
	world.advice.pause_change = SPILL_PAUSE_ENDS;
	launch(true);
	assert_int_equal(seen.pauses, 1);
}

/* What comes is not timed, and counts in place only as far as it is still on the host. */
TEST(memory_that_came_is_not_left_in_place)
{
	world.advice.bring = world.advice.timed = world.comes = true;
	assert_null(launch(true));
	assert_int_equal(seen.prefetched, 1);
	assert_int_equal(seen.left + seen.started, 0);
	assert_int_equal(seen.in_place, 2 * UNIT); /* the test's prefetch moved nothing */
	assert_true(spill_chunk_map_set(BASE, 2 * UNIT, false, true));
	launch(true);
	assert_int_equal(seen.in_place, 2 * UNIT);
}

TEST(memory_that_did_not_come_is_used_in_place)
{
	world.advice.bring = true;
	assert_null(launch(true));
	assert_int_equal(seen.prefetched, 1);
	assert_int_equal(seen.left, 1);
	assert_int_equal(seen.in_place, 2 * UNIT);
}

/* The model has counted it. */
TEST(a_look_for_a_swap_does_not_count_twice)
{
	world.advice.bring = world.advice.looks = true;
	launch(true);
	assert_int_equal(seen.prefetched, 1);
	assert_int_equal(seen.in_place, 0);
}

TEST(without_follow_nothing_comes)
{
	world.advice.bring = world.comes = true;
	policy.movable_follow = SPILL_FOLLOW_OFF;
	launch(true);
	assert_int_equal(seen.prefetched, 0);
	assert_int_equal(seen.left, 1);
	policy.movable_follow = SPILL_FOLLOW_ON;
	launch(true);
	assert_int_equal(seen.prefetched, 1);
}

/* Memory flies in, and so does what comes next. Only without anything in the air a stop brings it. */
TEST(beside_running_work)
{
	world.advice.bring = world.advice.timed = world.overlaps = world.flies = true;
	assert_null(launch(true));
	assert_int_equal(seen.flown, 1);
	assert_int_equal(seen.ahead, 1);
	assert_int_equal(seen.prefetched + seen.left + seen.started, 0);
	world.flies = false;
	world.away = true;
	assert_ptr_equal(launch(true), &stopwatch);
	assert_int_equal(seen.flown, 2);
	assert_int_equal(seen.ahead, 2);
	assert_int_equal(seen.prefetched + seen.left, 0);
	world.away = false;
	launch(true);
	assert_int_equal(seen.prefetched, 1);
	assert_int_equal(seen.left, 0); /* to put chunks back takes a stop */
	/* Whoever has promised nothing. */
	world.overlaps = false;
	world.flies = world.away = true;
	launch(true);
	assert_int_equal(seen.prefetched, 2);
	assert_int_equal(seen.flown, 3);
	assert_int_equal(seen.ahead, 3);
}

TEST(an_audited_launch_has_no_stopwatch)
{
	spill_after_launch(&audited);
	assert_null(seen.stopped);
	spill_after_launch(&stopwatch);
	assert_ptr_equal(seen.stopped, &stopwatch);
}

TEST(the_sums_are_told_when_they_are_due)
{
	world.advice.tells = true;
	launch(true);
	assert_int_equal(seen.told, 1);
}

TEST(a_timed_launch_has_a_stopwatch)
{
	world.advice.timed = true;
	assert_ptr_equal(launch(true), &stopwatch);
	assert_int_equal(seen.timed.site, 4);
	assert_int_equal(seen.timed.on_host, 2 * UNIT);
	assert_int_equal(seen.timed.work_ns, 5);
	assert_int_equal(seen.timed.number, 99);
	assert_int_equal(seen.timed.count, 1);
	assert_int_equal(seen.timed.keys[0], KEY);
	assert_int_equal(seen.timed.placement, 0);
	errno = ERANGE;
	spill_after_launch(&stopwatch);
	assert_int_equal(errno, ERANGE);
	assert_int_equal(spill_thread.depth, 0);
	assert_ptr_equal(seen.stopped, &stopwatch);
	world.no_device = true;
	assert_null(launch(true));
	assert_int_equal(seen.started, 1);
}

/* Its memory is on the device by now, where it is fast. With nothing on the host, nothing can have come. */
TEST(a_launch_whose_memory_came_meanwhile_is_not_timed)
{
	world.advice.timed = true;
	assert_true(spill_chunk_map_set(BASE, 2 * UNIT, false, true));
	assert_null(launch(true));
	assert_non_null(launch(false));
	assert_true(spill_chunk_map_set(BASE, UNIT, false, true));
	assert_true(spill_chunk_map_set(BASE + UNIT, 2 * UNIT, true, true));
	assert_null(launch(true)); /* as much has left for it */
	assert_null(launch(false));
	world.recording = true;
	assert_null(launch(true));
}

/* A recording times launches in place always, and others as long as half of the stopwatches are free. */
TEST(a_recording_has_times)
{
	world.recording = true;
	world.pending = SPILL_STOPWATCHES / 2 - 1;
	assert_non_null(launch(false));
	world.pending++;
	assert_null(launch(false));
	assert_non_null(launch(true));
	world.recording = false;
	world.pending = 0;
	assert_null(launch(false));
}

/* Only graphs are, which have memory on the host, and where libspill decides what moves. */
TEST(which_launches_are_tried)
{
	struct spill_launch_access access = access_of(true);
	world.placement = 7;
	access.graph = true;
	assert_non_null(spill_before_launch(&access));
	assert_int_equal(seen.trials, 1);
	assert_int_equal(seen.timed.placement, 7);
	assert_int_equal(seen.timed.count, 0); /* the trial may have moved them */
	world.placement = 0;
	assert_null(spill_before_launch(&access));
	assert_int_equal(seen.trials, 2);
	assert_int_equal(seen.compared, 2);
	world.compares = true;
	access.site = 17;
	world.advice.copy_ns = 29000;
	assert_non_null(spill_before_launch(&access));
	assert_true(seen.timed.graph == 17 && !seen.timed.by_nodes && !seen.timed.placement);
	seen.trials = seen.compared = 2;
	policy.movable_follow = SPILL_FOLLOW_ON;
	spill_before_launch(&access);
	policy.movable_follow = SPILL_FOLLOW_AUTO;
	access.on_host = 0;
	spill_before_launch(&access);
	access.on_host = 1;
	access.graph = false;
	spill_before_launch(&access);
	access.graph = true;
	world.advice.learned = false;
	spill_before_launch(&access);
	world.advice.learned = world.advice.bring = world.comes = true;
	spill_before_launch(&access);
	assert_int_equal(seen.trials, 2);
	assert_int_equal(seen.compared, 2);
}

/* Nothing is learned of it: each of its nodes is a launch of its own. */
TEST(launches_of_all_nodes_are_timed)
{
	errno = ERANGE;
	assert_ptr_equal(spill_before_nodes(17, &world), &stopwatch);
	assert_int_equal(seen.by_nodes, 1);
	assert_true(seen.timed.graph == 17 && seen.timed.by_nodes && !seen.timed.count);
	assert_int_equal(seen.recorded, 0);
	assert_int_equal(errno, ERANGE);
	world.no_device = true;
	assert_null(spill_before_nodes(17, &world));
}

static const void *stood_in[2];

static void *stand_in_before(const struct spill_launch_access *access)
{
	stood_in[0] = access;
	return &world;
}

static void stand_in_after(void *started)
{
	stood_in[1] = started;
}

TEST(a_test_can_take_the_place_of_all_this)
{
	struct spill_launch_access access = access_of(true);
	spill_launch_access_use(&(struct spill_launch_calls){stand_in_before, stand_in_after});
	assert_ptr_equal(spill_before_launch(&access), &world);
	spill_after_launch(&stopwatch);
	spill_launch_access_use(NULL);
	assert_ptr_equal(stood_in[0], &access);
	assert_ptr_equal(stood_in[1], &stopwatch);
	assert_int_equal(seen.recorded, 0);
	assert_null(seen.stopped);
}

/* -- whether launches are reported ------------------------------------------------------------------------- */

static bool wanted(void)
{
	spill_launch_access_moved();
	return spill_launch_access_wanted;
}

/* Some time after the first movable memory. */
static void later(void)
{
	wanted();
	fake_clock.ns += 60 * S;
}

TEST(launches_are_reported_while_memory_is_on_the_host)
{
	later();
	assert_false(wanted());
	world.on_host = 1;
	assert_true(wanted());
	assert_true(wanted());
	policy.movable_follow = SPILL_FOLLOW_OFF;
	assert_false(wanted());
	policy.movable_follow = SPILL_FOLLOW_ON;
	assert_true(wanted());
	world.on_host = 0;
	assert_false(wanted());
}

/* The first ones are, too: what they teach serves the first exchanges. */
TEST(the_first_launches_are_reported)
{
	assert_false(spill_launch_access_wanted);
	assert_true(wanted());
	for (unsigned i = 0; i < 19999; i++)
		launch(false);
	assert_true(spill_launch_access_wanted);
	assert_true(wanted());
	world.on_host = 1;
	launch(true); /* it does not count */
	world.on_host = 0;
	assert_int_equal(seen.changes, 0);
	launch(false);
	assert_int_equal(seen.changes, 1);
	assert_false(spill_launch_access_wanted);
	launch(false);
	assert_int_equal(seen.changes, 1);
	assert_false(wanted());
	world.on_host = 1;
	assert_true(wanted());
}

TEST(the_first_launches_are_those_of_a_minute)
{
	assert_true(wanted());
	fake_clock.ns += 60 * S - 1;
	assert_true(wanted());
	assert_true(spill_launch_access_maintain());
	fake_clock.ns++;
	assert_int_equal(seen.changes, 0);
	assert_false(spill_launch_access_maintain());
	assert_int_equal(seen.changes, 1);
	assert_false(spill_launch_access_wanted);
	assert_false(spill_launch_access_maintain());
	assert_int_equal(seen.changes, 1);
	assert_false(wanted());
}

TEST(the_first_launches_are_not_reported_without_follow)
{
	policy.movable_follow = SPILL_FOLLOW_OFF;
	assert_false(wanted());
	assert_false(spill_launch_access_maintain());
	policy.movable_follow = SPILL_FOLLOW_ON;
	assert_true(wanted());
	policy.mode = SPILL_MODE_OBSERVE;
	assert_false(wanted());
}

TEST(in_a_rest_no_launch_is_reported)
{
	later();
	world.on_host = 1;
	world.rests = true;
	unsigned before = seen.moved;
	assert_false(wanted());
	assert_int_equal(seen.moved, before + 1);
	world.rests = false;
	assert_true(wanted());
	/* Nor one of the first, if memory is on the host. */
	spill_launch_access_reset();
	world.rests = true;
	assert_false(wanted());
	world.on_host = 0;
	assert_true(wanted());
}

TEST(a_recording_wants_all_launches)
{
	later();
	world.recording = true;
	assert_true(wanted());
	policy.movable_follow = SPILL_FOLLOW_OFF;
	assert_true(wanted());
	policy.mode = SPILL_MODE_OBSERVE;
	assert_false(wanted());
	policy.movable_follow = SPILL_FOLLOW_AUTO;
	world.on_host = 1;
	assert_false(wanted());
}

/* -- maintenance ------------------------------------------------------------------------------------------- */

TEST(kept_memory_is_dropped_when_exchanges_end)
{
	later();
	assert_false(spill_launch_access_maintain());
	assert_int_equal(seen.dropped, 0);
	world.kept = 1;
	world.held = true;
	world.on_host = 1;
	assert_true(spill_launch_access_maintain()); /* exchanges go on */
	assert_int_equal(seen.dropped, 0);
	world.held = false;
	assert_true(spill_launch_access_maintain());
	assert_int_equal(seen.dropped, 1);
	world.held = true;
	world.on_host = 0;
	assert_true(spill_launch_access_maintain());
	assert_int_equal(seen.dropped, 2);
	assert_int_equal(seen.unlocked, 2);
	world.mover_taken = true;
	assert_true(spill_launch_access_maintain());
	assert_int_equal(seen.dropped, 2);
	assert_int_equal(seen.unlocked, 2);
}

/* Only where launches are reported for the sake of speed alone. */
TEST(rests_are_looked_for_while_memory_is_on_the_host)
{
	later();
	assert_false(spill_launch_access_maintain());
	assert_int_equal(seen.rest_looks + seen.maintenance, 0);
	world.on_host = 1;
	wanted();
	assert_int_equal(seen.maintenance, 1);
	assert_true(spill_launch_access_maintain());
	assert_int_equal(seen.rest_looks, 1);
	bool *others[] = {&world.recording, &world.audits};
	for (unsigned i = 0; i < 2; i++) {
		*others[i] = true;
		assert_false(spill_launch_access_maintain());
		*others[i] = false;
	}
	const enum spill_follow ways[] = {SPILL_FOLLOW_OFF, SPILL_FOLLOW_ON, SPILL_FOLLOW_OVERLAP};
	for (unsigned i = 0; i < 3; i++) {
		policy.movable_follow = ways[i];
		assert_false(spill_launch_access_maintain());
	}
	policy.movable_follow = SPILL_FOLLOW_AUTO;
	policy.mode = SPILL_MODE_OBSERVE;
	assert_false(spill_launch_access_maintain());
	wanted();
	assert_int_equal(seen.rest_looks, 1);
	assert_int_equal(seen.maintenance, 1);
}

TEST(memory_of_the_host_is_trimmed_as_well)
{
	later();
	world.trims = true;
	assert_true(spill_launch_access_maintain());
	world.trims = false;
	assert_false(spill_launch_access_maintain());
}

TEST(a_forked_child_forgets_all)
{
	world.on_host = 1;
	assert_true(wanted());
	spill_launch_access_reset();
	assert_false(spill_launch_access_wanted);
	/* Its minute of first launches begins with its first movable memory. */
	fake_clock.ns += 3600 * S;
	world.on_host = 0;
	assert_true(wanted());
	assert_int_equal(seen.resets, 4095);
}
