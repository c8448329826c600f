/*
 * Trials of placements with chunks that really change sides: two allocations in one list, a launch that
 * names all of it, and an exchange of the test's that moves what was added. What trials decide:
 * test_placement_trial.c.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chunk_list.h"
#include "chunk_map.h"
#include "exchange.h"
#include "fake_clock.h"
#include "mover.h"
#include "movable.h"
#include "note.h"
#include "prefetch.h"
#include "process.h"
#include "trial.h"

#define MS 1000000ull
#define MIB ((uint64_t)1 << 20)
#define UNIT SPILL_CHUNK_MAP_UNIT
#define CHUNK (64 * MIB)
#define CHUNKS 4
#define BASE (3ull << 40)
#define KEY(chunk) ((uint32_t)((BASE + (chunk)*CHUNK) / UNIT))
#define RESIDENT_NS (10 * MS)

static struct spill_policy policy;
static struct spill_chunked *memory[2]; /* the second is on the host at first */
static const struct spill_backend backend;

static struct {
	unsigned reads[CHUNKS]; /* how often the launch reads each: 1 ms a time on the host */
	bool busy, mover_taken, gone, fixed, no_host_memory, stuck; /* stuck: an exchange moves nothing */
	void (*on_hold)(void);
} world;

static struct {
	unsigned made, freed, carried, locked, displaced, notes, holds;
	uint64_t hold_until;
	unsigned added[2 * CHUNKS], added_count;
	char note[256];
} seen;

static struct spill_chunk *chunk_at(unsigned index)
{
	return &memory[index / 2]->chunks[index % 2];
}

/* -- in place of the others ---------------------------------------------------------------------------------- */

bool spill_chunk_list_make(struct spill_chunk_list *list, int device,
                           const struct spill_launch_access *access)
{
	assert_int_equal(device, 3);
	seen.made++;
	*list =
	    (struct spill_chunk_list){.chunks = calloc(CHUNKS + 1, sizeof(*list->chunks)), .count = CHUNKS};
	for (unsigned i = 0; i < CHUNKS; i++)
		list->chunks[i] = (struct spill_exchange_chunk){.key = KEY(i),
		                                                .bytes = CHUNK,
		                                                .on_host = chunk_at(i)->on_host,
		                                                .fixed = world.fixed,
		                                                .needed = i % 2,
		                                                .maybe = i % 2 == 0,
		                                                .data = memory[i / 2],
		                                                .index = i % 2};
	return true;
}

void spill_chunk_list_free(struct spill_chunk_list *list)
{
	seen.freed += list->chunks != NULL;
	free(list->chunks);
}

struct spill_chunked *spill_chunk_list_allocation(const struct spill_launch_access *access)
{
	return world.gone ? NULL : memory[0];
}

void spill_chunked_hold(uint64_t until_ns)
{
	seen.holds++;
	seen.hold_until = until_ns;
	if (world.on_hold)
		world.on_hold();
}

bool spill_exchange_add(struct spill_exchange *exchange, struct spill_chunked *chunked, unsigned index)
{
	assert_int_equal(seen.locked, 1);
	if (world.no_host_memory && !chunked->chunks[index].on_host)
		return false;
	*(chunked->chunks[index].on_host ? &exchange->comes.count : &exchange->goes.count) += 1;
	seen.added[seen.added_count++] = index + (chunked == memory[1] ? 2 : 0);
	return true;
}

static void put(unsigned index, bool on_host)
{
	chunk_at(index)->on_host = on_host;
	assert_true(spill_chunk_map_set(BASE + index * CHUNK, CHUNK, on_host, true));
}

void spill_exchange_carry_out(struct spill_exchange *exchange, uint64_t deadline_ns)
{
	assert_int_equal(exchange->comes.count + exchange->goes.count, seen.added_count);
	assert_int_equal(deadline_ns, fake_clock.ns + 7 * MS);
	seen.carried++;
	if (world.stuck)
		seen.added_count = 0;
	/* What leaves makes room for what comes. */
	for (unsigned i = 1; i < seen.added_count; i++)
		assert_true(chunk_at(seen.added[i])->on_host || !chunk_at(seen.added[i - 1])->on_host);
	for (unsigned i = 0; i < seen.added_count; i++) {
		put(seen.added[i], !chunk_at(seen.added[i])->on_host);
		chunk_at(seen.added[i])->displaced = true;
	}
	seen.added_count = 0;
	fake_clock.ns += MS;
}

bool spill_movable_may_move(const struct spill_backend *of, int device)
{
	return true;
}

bool spill_mover_trylock(void)
{
	seen.locked += !world.mover_taken;
	return !world.mover_taken;
}

void spill_mover_unlock(void)
{
	seen.locked--;
}

void spill_note(const char *code, const char *text)
{
	seen.notes++;
	snprintf(seen.note, sizeof(seen.note), "%s: %s", code, text);
}

bool spill_prefetch_await_idle(const struct spill_backend *of, int device, uint64_t expected_ns)
{
	assert_true(of == &backend && device == 3);
	return !world.busy;
}

void spill_prefetch_displaced(void)
{
	seen.displaced++;
}

/* -- a launch ------------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	memset(&world, 0, sizeof(world));
	memset(&seen, 0, sizeof(seen));
	spill_policy_default(&policy);
	policy.movable_wait_us = 7000;
	spill_process_use_policy(&policy);
	fake_clock_use(100000 * MS);
	spill_trial_reset();
	for (unsigned i = 0; i < 2; i++) {
		memory[i] = calloc(1, sizeof(*memory[i]) + 2 * sizeof(memory[i]->chunks[0]));
		memory[i]->base.backend = &backend;
		memory[i]->base.device = 3;
		memory[i]->range = 2 * CHUNK + i * UNIT;
		memory[i]->count = 2;
	}
	for (unsigned i = 0; i < CHUNKS; i++)
		put(i, i >= 2);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(seen.made, seen.freed);
	assert_int_equal(seen.locked, 0);
	free(memory[0]);
	free(memory[1]);
	return 0;
}

static struct spill_launch_access launch_of_all(void)
{
	struct spill_launch_access access = {.site = 1, .count = CHUNKS, .sure = CHUNKS, .graph = true};
	for (unsigned i = 0; i < CHUNKS; i++)
		access.keys[i] = KEY(i);
	return access;
}

/* True: it was timed. */
static bool launch(void)
{
	struct spill_launch_access access = launch_of_all();
	struct spill_stopwatch_access timed = {.placement = spill_trial_before(&access)};
	uint64_t ns = RESIDENT_NS;
	for (unsigned i = 0; i < CHUNKS; i++)
		ns += chunk_at(i)->on_host ? world.reads[i] * MS : 0;
	fake_clock.ns += ns;
	spill_trial_measured(&timed, ns);
	return timed.placement;
}

static void read_of_each(unsigned first, unsigned second, unsigned third, unsigned fourth)
{
	world.reads[0] = first;
	world.reads[1] = second;
	world.reads[2] = third;
	world.reads[3] = fourth;
}

static void check_sides(const char *expected)
{
	for (unsigned i = 0; i < CHUNKS; i++)
		assert_int_equal(chunk_at(i)->on_host, expected[i] == 'h');
}

static void run(unsigned launches)
{
	while (launches--)
		launch();
}

TEST(what_is_read_little_leaves_for_what_is_read_more)
{
	read_of_each(0, 0, 4, 4);
	run(40);
	check_sides("hhdd");
	/* Its new place is home. */
	for (unsigned i = 0; i < CHUNKS; i++)
		assert_false(chunk_at(i)->displaced);
	assert_true(seen.carried >= 1);
	assert_int_equal(seen.notes, 1);
	assert_non_null(strstr(seen.note, "follow: "));
	assert_non_null(strstr(seen.note, "takes 10000 us, before it took 18000 "));
}

TEST(what_was_right_stays)
{
	read_of_each(9, 9, 1, 1);
	run(60);
	check_sides("ddhh");
	assert_int_equal(seen.carried, 2); /* there and back */
	/* That took little time, so another trial was looked for soon, but nothing promised a gain. */
	assert_true(seen.made >= 3);
	assert_int_equal(seen.notes, 0);
}

/* Three samples, and then the first trial. */
TEST(a_launch_is_timed_before_a_trial)
{
	read_of_each(0, 0, 4, 4);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(launch());
		assert_int_equal(seen.carried, 0);
	}
	launch();
	assert_int_equal(seen.carried, 1);
}

/* A time without a placement is of another launch. */
/* Three samples of each placement: the second trial begins with the launch that ends the first. */
TEST(a_trial_follows_another_at_once)
{
	read_of_each(0, 0, 4, 4);
	run(6);
	check_sides("hddh");
	run(1);
	check_sides("hhdd");
}

TEST(other_times_do_not_count)
{
	struct spill_launch_access access = launch_of_all();
	read_of_each(0, 0, 4, 4);
	for (unsigned i = 0; i < 10; i++) {
		assert_true(spill_trial_before(&access) != 0);
		spill_trial_measured(&(struct spill_stopwatch_access){0}, MS);
	}
	assert_int_equal(seen.carried, 0);
}

TEST(promotion_pauses_while_launches_are_compared)
{
	read_of_each(0, 0, 4, 4);
	launch();
	assert_int_equal(seen.hold_until, fake_clock.ns - 18 * MS + 500 * MS);
	run(3);
	/* By now a launch is known to take 18 ms. */
	struct spill_launch_access access = launch_of_all();
	uint64_t now = fake_clock.ns;
	spill_trial_before(&access);
	assert_in_range(seen.hold_until, now + 500 * MS + 36 * MS, fake_clock.ns + 500 * MS + 36 * MS);
	run(40);
	unsigned holds = seen.holds;
	launch(); /* at rest */
	assert_int_equal(seen.holds, holds);
}

TEST(nothing_moves_while_the_device_is_busy)
{
	read_of_each(0, 0, 4, 4);
	world.busy = true;
	run(40);
	assert_int_equal(seen.carried, 0);
	check_sides("ddhh");
}

TEST(nothing_moves_while_another_has_the_mover)
{
	read_of_each(0, 0, 4, 4);
	world.mover_taken = true;
	run(40);
	assert_int_equal(seen.made, 0);
	world.mover_taken = false;
	run(40);
	check_sides("hhdd");
}

/* Then what comes may find room on the device. */
TEST(without_memory_of_the_host_nothing_leaves)
{
	read_of_each(0, 0, 4, 4);
	world.no_host_memory = true;
	run(4);
	assert_int_equal(seen.carried, 1);
	run(40);
	check_sides("dddd");
}

/*
 * An exchange that moved nothing is no trial. After 100 ms the launch is measured again, and then the next
 * one follows.
 */
TEST(an_exchange_in_vain_is_tried_later)
{
	read_of_each(0, 0, 4, 4);
	world.stuck = true;
	run(24); /* 18 ms each */
	assert_int_equal(seen.carried, 2);
	check_sides("ddhh");
}

TEST(memory_that_is_gone_is_not_tried)
{
	read_of_each(0, 0, 4, 4);
	world.gone = true;
	run(40);
	assert_int_equal(seen.made, 0);
	check_sides("ddhh");
}

TEST(fixed_chunks_stay)
{
	read_of_each(0, 0, 4, 4);
	world.fixed = true;
	run(40);
	assert_int_equal(seen.carried, 0);
}

/* A trial that can never be undone: the chunks are left to the end of the phase, which is told once. */
TEST(what_cannot_be_undone_counts_as_displaced)
{
	read_of_each(9, 9, 1, 1);
	run(4);
	assert_int_equal(seen.carried, 1);
	world.busy = true;
	for (unsigned i = 0; i < 300; i++) {
		launch();
		fake_clock.ns += 1000 * MS;
	}
	assert_int_equal(seen.displaced, 1);
	assert_int_equal(seen.carried, 1);
}

TEST(what_is_undone_is_not_displaced)
{
	read_of_each(9, 9, 1, 1);
	run(60);
	assert_int_equal(seen.displaced, 0);
}

/* Memory that the launch does not name may change sides. */
TEST(keys_behind_the_last_are_not_the_launchs)
{
	struct spill_launch_access access = launch_of_all();
	read_of_each(0, 0, 4, 4);
	for (unsigned i = 0; i < 3; i++) {
		access.keys[CHUNKS] = KEY(CHUNKS + i);
		assert_true(spill_chunk_map_set(BASE + (CHUNKS + i) * CHUNK, CHUNK, i % 2, true));
		struct spill_stopwatch_access timed = {.placement = spill_trial_before(&access)};
		spill_trial_measured(&timed, 18 * MS);
	}
	spill_trial_before(&access);
	assert_int_equal(seen.carried, 1);
}

static unsigned nested;

static void launch_meanwhile(void)
{
	struct spill_launch_access access = launch_of_all();
	world.on_hold = NULL;
	nested++;
	assert_int_equal(spill_trial_before(&access), 0);
	spill_trial_measured(&(struct spill_stopwatch_access){.placement = 1}, MS);
}

/* A launch waits for no other. */
TEST(a_launch_during_another_is_not_tried)
{
	world.on_hold = launch_meanwhile;
	launch();
	assert_int_equal(nested, 1);
	launch();
}

/* Others take all back again and again. */
TEST(the_log_has_four_notes)
{
	read_of_each(0, 0, 4, 4);
	for (unsigned turn = 1; turn < 8; turn++) {
		if (turn == 7)
			spill_trial_reset();
		for (unsigned i = 0; i < CHUNKS; i++)
			put(i, i >= 2);
		fake_clock.ns += 300000 * MS; /* longer than any pause */
		run(200);
		check_sides("hhdd");
		assert_int_equal(seen.notes, turn == 7 ? 5 : turn < 4 ? turn : 4);
	}
}
