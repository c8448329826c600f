/*
 * Trials of placements: a model of a launch that names all memory and reads each chunk a known number of times. The trials see
 * only its time.
 */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "placement_trial.h"
#include "roll.h"

#define MIB ((uint64_t)1 << 20)
#define MS 1000000ull
#define US 1000ull
#define READ_US 20 /* a MiB over the link, once */
#define CHUNK 64
#define CHUNKS 2048
#define SITE 7
#define CODE 3

static struct spill_placement_trial trial;
static struct {
	struct spill_trial_chunk chunks[CHUNKS];
	unsigned reads[CHUNKS]; /* of each byte, in hundredths */
	unsigned count;
	uint64_t resident_ns, now_ns, placement;
	uint64_t spent_ns; /* by launches and exchanges */
	uint64_t trials;
	unsigned noise;      /* thousandths */
	uint64_t host_bytes; /* at least */
	bool busy;           /* every second time the device is, or the mover */
	bool untimed;        /* no sample arrives */
} model;

static int begin(void **state)
{
	memset(&trial, 0, sizeof(trial));
	memset(&model, 0, sizeof(model));
	model.resident_ns = 4 * MS;
	model.placement = 1;
	roll_state = ROLL_BEGIN;
	return 0;
}

static void add_allocation(unsigned count, unsigned on_host, unsigned hundredths, bool named)
{
	uint64_t owner = model.count ? model.chunks[model.count - 1].owner + 1 : 1;
	for (unsigned i = 0; i < count; i++) {
		model.reads[model.count] = hundredths;
		model.chunks[model.count] = (struct spill_trial_chunk){.key = 100 + 32 * model.count,
		                                                       .owner = owner,
		                                                       .bytes = CHUNK * MIB,
		                                                       .named = named,
		                                                       .on_host = i >= count - on_host};
		model.count++;
	}
}

static uint64_t launch_ns(void)
{
	uint64_t ns = model.resident_ns;
	for (unsigned i = 0; i < model.count; i++)
		if (model.chunks[i].on_host)
			ns += model.chunks[i].bytes / MIB * READ_US * US * model.reads[i] / 100;
	return ns;
}

static uint64_t host_bytes(void)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < model.count; i++)
		bytes += model.chunks[i].on_host ? model.chunks[i].bytes : 0;
	return bytes;
}

static uint64_t with_noise(uint64_t ns)
{
	return model.noise ? ns + ns * (roll_any() >> 20) % (ns * model.noise / 1000 + 1) : ns;
}

/* The exchange takes the link's time, and as much again to map. A busy device does nothing. */
static uint64_t move_chosen(void)
{
	uint64_t mib = 0, ns = 50 * MS;
	bool busy = model.busy && roll_any() >> 20 & 1;
	for (unsigned i = 0; i < model.count && !busy; i++) {
		struct spill_trial_chunk *chunk = &model.chunks[i];
		chunk->moved = chunk->chosen;
		assert_false(chunk->chosen && chunk->fixed);
		mib += chunk->chosen && chunk->on_host ? chunk->bytes / MIB : 0;
	}
	if (!busy) {
		model.placement++;
		ns = mib * 40 * US;
	}
	model.now_ns += ns;
	model.spent_ns += ns;
	return ns;
}

/* Those that have moved are on the other side now. */
static void change_sides(void)
{
	for (unsigned i = 0; i < model.count; i++) {
		struct spill_trial_chunk *chunk = &model.chunks[i];
		chunk->on_host ^= chunk->moved;
		chunk->chosen = chunk->moved = false;
	}
}

static void undo(void)
{
	bool left = false;
	for (unsigned i = 0; i < model.count; i++)
		model.chunks[i].chosen =
		    spill_trial_moved(&trial, model.chunks[i].key, model.chunks[i].on_host);
	uint64_t ns = move_chosen();
	for (unsigned i = 0; i < model.count; i++)
		left |= model.chunks[i].chosen && !model.chunks[i].moved;
	spill_trial_undone(&trial, !left, model.placement, model.now_ns, ns);
	change_sides();
}

static void propose(void)
{
	if (!spill_trial_choose(&trial, model.chunks, model.count, model.now_ns))
		return;
	uint64_t ns = move_chosen();
	spill_trial_begun(&trial, model.chunks, model.count, model.placement, model.now_ns, ns);
	model.trials += trial.phase == SPILL_TRIAL_TRIES;
	change_sides();
}

static void take_step(enum spill_trial_step step)
{
	if (model.busy && roll_any() >> 20 & 1)
		return; /* another thread has the mover */
	if (step == SPILL_TRIAL_UNDO)
		undo();
	else if (step == SPILL_TRIAL_PROPOSE)
		propose();
	else if (step == SPILL_TRIAL_KEEP)
		spill_trial_kept(&trial);
}

static void launch(void)
{
	model.host_bytes = model.host_bytes ? model.host_bytes : host_bytes();
	enum spill_trial_step step = spill_trial_next(&trial, CODE, SITE, model.placement, model.now_ns);
	take_step(step);
	if (step == SPILL_TRIAL_KEEP)
		take_step(spill_trial_next(&trial, CODE, SITE, model.placement, model.now_ns));
	/* No more comes than leaves, and what leaves more is less than a chunk each time. */
	assert_in_range(host_bytes(), model.host_bytes, model.host_bytes + (1 + trial.kept) * CHUNK * MIB);
	uint64_t took = launch_ns();
	if (spill_trial_wants_sample(&trial, SITE) && !model.untimed)
		spill_trial_sample(&trial, model.placement, with_noise(took));
	model.now_ns += took;
	model.spent_ns += took;
}

static uint64_t run(unsigned launches)
{
	uint64_t before = model.spent_ns;
	while (launches--)
		launch();
	return (model.spent_ns - before) / 1000;
}

/* llama-server with a large context and short conversations: 5 % of a cache of 2 GiB is read, four times. */
static void with_idle_cache(void)
{
	add_allocation(113, 62, 100, true);
	add_allocation(32, 0, 20, true);
	add_allocation(5, 0, 400, true);
}

TEST(memory_that_is_not_used_leaves_for_weights)
{
	with_idle_cache();
	uint64_t before = launch_ns();
	run(50);
	/* 32 chunks of weights have come. */
	assert_int_equal(launch_ns(), before - 32 * (CHUNK * READ_US * US * 80 / 100));
}

TEST(noise_of_a_percent_does_not_mislead)
{
	with_idle_cache();
	model.noise = 10;
	uint64_t before = launch_ns(), gain = 32 * (CHUNK * READ_US * US * 80 / 100);
	run(200);
	assert_true(launch_ns() <= before - gain * 9 / 10);
}

/* All is read once: there is nothing to gain, and looking for it costs at most a twentieth, and less and less. */
TEST(where_nothing_is_to_gain_trials_become_rare)
{
	add_allocation(113, 40, 100, true);
	add_allocation(4, 0, 5000, true);
	model.noise = 3;
	uint64_t in_place = launch_ns();
	run(300);
	assert_int_equal(launch_ns(), in_place);
	assert_true(model.spent_ns < 300 * in_place * 106 / 100);
	uint64_t trials = model.trials;
	run(3000);
	assert_true(model.trials <= trials + 6);
	assert_int_equal(launch_ns(), in_place);
}

/* Activations that are read again and again: one sample is enough to undo it. */
TEST(a_bad_trial_ends_at_once)
{
	add_allocation(113, 40, 100, true);
	add_allocation(8, 0, 20000, true);
	uint64_t in_place = launch_ns();
	for (unsigned i = 0; i < 100 && launch_ns() <= in_place; i++)
		launch();
	assert_true(launch_ns() > in_place);
	assert_true(launch_ns() <= in_place + CHUNK * READ_US * US * 200);
	launch();
	assert_int_equal(launch_ns(), in_place);
}

/* Memory of other phases, which the launch does not name, leaves without a trial of it. */
TEST(memory_that_is_not_named_leaves_first)
{
	add_allocation(113, 40, 100, true);
	add_allocation(8, 0, 0, false);
	add_allocation(8, 0, 300, true);
	run(30);
	for (unsigned i = 113; i < 121; i++)
		assert_true(model.chunks[i].on_host);
}

/* The conversation grows, until all of the cache is read four times a token: it comes back. */
TEST(what_is_used_again_comes_back)
{
	with_idle_cache();
	run(100);
	assert_true(model.chunks[113].on_host);
	for (unsigned percent = 20; percent <= 400; percent += 5) {
		for (unsigned i = 113; i < 145; i++)
			model.reads[i] = percent;
		run(100);
	}
	run(2000);
	unsigned away = 0;
	for (unsigned i = 113; i < 145; i++)
		away += model.chunks[i].on_host;
	print_message("%u chunks of the cache are still on the host\n", away);
	assert_true(away <= 3);
}

/* The newest allocation is smaller than what comes, so others leave with it. */
TEST(a_small_allocation_does_not_end_the_search)
{
	with_idle_cache();
	add_allocation(1, 0, 100, true);
	model.chunks[model.count - 1].bytes = 8 * MIB;
	uint64_t before = launch_ns();
	run(100);
	assert_true(launch_ns() < before * 2 / 3);
}

static void add_small(unsigned mib, unsigned hundredths, bool named)
{
	add_allocation(1, 0, hundredths, named);
	model.chunks[model.count - 1].bytes = mib * MIB;
	model.chunks[model.count - 1].owner = mib;
}

/* PyTorch: each weight is an allocation, of which a third is on the host, and workspaces are not named. */
TEST(weights_in_many_allocations_are_alike)
{
	for (unsigned i = 0; i < 28; i++) {
		add_allocation(4, i < 11 ? 4 : 0, 100, true);
		for (unsigned j = 0; j < 4; j++)
			model.chunks[model.count - 1 - j].owner = 256;
	}
	add_allocation(32, 2, 20, true);
	add_small(2, 10, true);
	add_small(32, 0, false);
	add_small(32, 0, false);
	add_small(2, 0, false);
	uint64_t before = launch_ns();
	run(50);
	assert_true(launch_ns() < before - 28 * (CHUNK * READ_US * US * 80 / 100));
	assert_true(model.trials < 12);
}

/* Others move memory meanwhile: the trial's samples count no more. */
TEST(what_others_move_ends_a_trial)
{
	with_idle_cache();
	while (trial.phase != SPILL_TRIAL_TRIES)
		launch();
	model.placement++;
	launch();
	assert_int_equal(trial.kept, 0);
	assert_int_equal(trial.undone, 1);
	for (unsigned i = 0; i < model.count; i++)
		assert_int_equal(model.chunks[i].on_host, i >= 113 - 62 && i < 113);
}

/* An undo that finds the device busy is tried again, and so is a step that finds the mover taken. */
TEST(a_busy_device_delays_and_loses_nothing)
{
	add_allocation(113, 40, 100, true);
	add_allocation(8, 0, 20000, true);
	model.busy = true;
	uint64_t in_place = launch_ns();
	run(2000);
	for (unsigned i = 0; i < 200 && launch_ns() > in_place; i++)
		launch();
	assert_int_equal(launch_ns(), in_place);
	assert_true(trial.undone < 60);
}

/* A chunk that can never go back stays. Others may move memory meanwhile, and trials go on. */
TEST(an_undo_that_never_succeeds_ends)
{
	with_idle_cache();
	while (trial.phase != SPILL_TRIAL_TRIES)
		launch();
	unsigned held = 0, asked = 0;
	model.placement++;
	for (unsigned i = 0; i < 1000 && trial.phase != SPILL_TRIAL_RESTS; i++) {
		enum spill_trial_step step =
		    spill_trial_next(&trial, CODE, SITE, model.placement, model.now_ns);
		asked += step == SPILL_TRIAL_UNDO;
		if (step == SPILL_TRIAL_UNDO)
			spill_trial_undone(&trial, false, model.placement, model.now_ns, MS);
		held += spill_trial_compares(&trial, SITE);
		model.now_ns += 100 * MS;
	}
	assert_int_equal(trial.phase, SPILL_TRIAL_RESTS);
	assert_in_range(asked, 5, 10);
	assert_true(held <= 1);
}

/* Another graph of the same kernels gets the turn: first the trial is undone, and what was learned stays. */
TEST(a_trial_of_a_site_that_is_gone_is_undone)
{
	with_idle_cache();
	while (trial.phase != SPILL_TRIAL_TRIES)
		launch();
	model.now_ns += 3000 * MS;
	assert_int_equal(spill_trial_next(&trial, CODE, SITE + 1, 1, model.now_ns), SPILL_TRIAL_UNDO);
	undo();
	uint64_t spent = trial.spent_ns;
	assert_true(spent);
	assert_int_equal(spill_trial_next(&trial, CODE, SITE + 1, 1, model.now_ns), SPILL_TRIAL_NOTHING);
	assert_int_equal(trial.site, SITE + 1);
	assert_int_equal(trial.spent_ns, spent);
	spill_trial_next(&trial, CODE + 1, SITE + 2, 1, model.now_ns + 3000 * MS);
	assert_int_equal(trial.spent_ns, 0);
}

/* Nothing is held, and nothing moves. */
TEST(without_samples_there_is_no_trial)
{
	with_idle_cache();
	model.untimed = true;
	unsigned compared = 0;
	for (unsigned i = 0; i < 1000; i++) {
		launch();
		compared += spill_trial_compares(&trial, SITE);
	}
	assert_int_equal(model.trials, 0);
	assert_true(compared < 300);
}

/* Two graphs of the same kernels, which the caller could not tell apart. */
TEST(placements_that_take_turns_make_trials_rare)
{
	with_idle_cache();
	uint64_t in_place = launch_ns();
	for (unsigned i = 0; i < 2000; i++) {
		model.placement ^= i % 5 == 0;
		launch();
	}
	assert_true(model.trials < 12);
	assert_true(model.spent_ns < 2000 * in_place * 105 / 100);
}

/* 2 GiB of cache in chunks of 64 MiB, and weights in chunks of 2 MiB: one that leaves makes room for 32. */
TEST(sizes_that_mix_stay_within_the_list)
{
	static const unsigned resident_ms[] = {20, 100, 200};
	for (unsigned turn = 0; turn < 3; turn++) {
		begin(NULL);
		model.resident_ns = resident_ms[turn] * MS;
		add_allocation(32, 0, 20, true);
		for (unsigned i = 0; i < 1500; i++) {
			add_small(2, 100, true);
			model.chunks[model.count - 1].on_host = i < 700;
		}
		run(60);
		assert_true(model.trials);
	}
}

/* The last chunk that comes finds too little that may leave. What was chosen for it stays, not what left for others. */
TEST(what_was_chosen_in_vain_stays)
{
	struct spill_trial_chunk chunks[] = {
	    {.key = 1, .owner = 9, .bytes = 16 * MIB, .on_host = true, .named = true},
	    {.key = 2, .owner = 8, .bytes = 64 * MIB, .on_host = true, .named = true},
	    {.key = 3, .owner = 7, .bytes = 16 * MIB}, /* leaves first: of two alike, the larger owner */
	    {.key = 4, .owner = 6, .bytes = 16 * MIB},
	};
	assert_true(spill_trial_choose(&trial, chunks, 4, 0));
	assert_true(chunks[0].chosen);
	assert_false(chunks[1].chosen);
	assert_true(chunks[2].chosen);
	assert_false(chunks[3].chosen);
}

TEST(another_site_gets_its_turn_when_the_first_is_gone)
{
	with_idle_cache();
	run(3);
	assert_int_equal(spill_trial_next(&trial, CODE + 1, SITE + 1, 1, model.now_ns), SPILL_TRIAL_NOTHING);
	assert_int_equal(trial.site, SITE);
	spill_trial_next(&trial, CODE + 1, SITE + 1, 1, model.now_ns + 3000 * MS);
	assert_int_equal(trial.site, SITE + 1);
}

/* -- each limit, at its value ---------------------------------------------------------------------------- */

static enum spill_trial_step next_at(uint64_t now_ns)
{
	return spill_trial_next(&trial, CODE, SITE, 1, now_ns);
}

/* Launches of the same time until all samples are there. */
static void measure(uint64_t ns)
{
	while (spill_trial_wants_sample(&trial, SITE))
		spill_trial_sample(&trial, 1, ns);
}

/* Chunk 1 comes and chunk 2 leaves, of 16 MiB each. A MiB of what comes is thought to cost 10 ns. */
static void begin_trial(uint64_t base_ns, uint64_t now_ns)
{
	const struct spill_trial_chunk chunks[] = {
	    {.key = 1, .bytes = 16 * MIB, .on_host = true, .chosen = true, .moved = true, .guess_ns = 10},
	    {.key = 2, .bytes = 16 * MIB, .chosen = true, .moved = true, .guess_ns = 1000},
	    {.key = 3, .bytes = 16 * MIB, .chosen = true},
	    {.key = 4, .bytes = 16 * MIB, .moved = true},
	};
	assert_int_equal(next_at(now_ns), SPILL_TRIAL_NOTHING);
	measure(base_ns);
	assert_int_equal(next_at(now_ns), SPILL_TRIAL_PROPOSE);
	spill_trial_begun(&trial, chunks, 4, 1, now_ns, 7);
	assert_int_equal(trial.phase, SPILL_TRIAL_TRIES);
}

static uint64_t cost_of(uint32_t key)
{
	const struct spill_trial_cost *cost = spill_trial_find_cost(&trial, key);
	return cost ? cost->ns : UINT64_MAX;
}

TEST(the_median_of_three_samples_is_the_measure)
{
	static const uint64_t orders[][3] = {{5, 7, 9}, {5, 9, 7}, {7, 5, 9},
	                                     {7, 9, 5}, {9, 5, 7}, {9, 7, 5}};
	for (unsigned i = 0; i < 6; i++) {
		begin(NULL);
		assert_int_equal(next_at(0), SPILL_TRIAL_NOTHING);
		spill_trial_sample(&trial, 2, 1); /* memory was elsewhere */
		for (unsigned k = 0; k < 3; k++) {
			assert_true(spill_trial_wants_sample(&trial, SITE));
			assert_false(spill_trial_wants_sample(&trial, SITE + 1));
			assert_int_equal(next_at(0), SPILL_TRIAL_NOTHING);
			spill_trial_sample(&trial, 1, orders[i][k]);
		}
		assert_false(spill_trial_wants_sample(&trial, SITE));
		spill_trial_sample(&trial, 1, 100);
		assert_int_equal(next_at(0), SPILL_TRIAL_PROPOSE);
		assert_int_equal(trial.base_ns, 7);
	}
}

/* A gain is more than a 200th. */
TEST(a_gain_is_more_than_noise)
{
	for (uint64_t ns = 1989; ns <= 1990; ns++) {
		begin(NULL);
		begin_trial(2000, 0);
		measure(ns);
		assert_int_equal(next_at(0), ns == 1989 ? SPILL_TRIAL_KEEP : SPILL_TRIAL_UNDO);
		assert_int_equal(trial.kept, ns == 1989);
		assert_int_equal(trial.undone, ns == 1990);
		assert_int_equal(trial.base_ns, ns == 1989 ? 1989 : 2000);
		assert_int_equal(trial.first_ns, 2000);
	}
}

/* Moved is what was chosen and has moved, to its new side. */
TEST(a_trial_knows_what_it_moved)
{
	begin_trial(2000, 0);
	assert_int_equal(trial.moved_count, 2);
	assert_true(spill_trial_moved(&trial, 1, false) && spill_trial_moved(&trial, 2, true));
	assert_false(spill_trial_moved(&trial, 1, true) || spill_trial_moved(&trial, 2, false));
	assert_false(spill_trial_moved(&trial, 3, true) || spill_trial_moved(&trial, 4, true));
}

/* What came had cost 160 ns. What left costs that, and what the launch became slower. */
TEST(a_trial_teaches_what_the_chunks_that_left_cost)
{
	static const struct {
		uint64_t ns, each;
	} cases[] = {{2032, 12}, {2000, 10}, {1995, 10}, {1984, 9}, {1840, 0}, {1500, 0}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(NULL);
		begin_trial(2000, 0);
		measure(cases[i].ns);
		next_at(0);
		assert_int_equal(cost_of(2), cases[i].each);
		assert_int_equal(cost_of(1), UINT64_MAX);
		assert_int_equal(cost_of(4), UINT64_MAX);
	}
	/* One that looks at unknown memory has no guess that it could fall short of. */
	begin(NULL);
	begin_trial(2000, 0);
	trial.probes = true;
	measure(1992);
	next_at(0);
	assert_int_equal(cost_of(2), 9);
}

/* Chunks of a trial before are not learned about again. */
TEST(a_trial_teaches_of_its_own_chunks)
{
	const struct spill_trial_chunk one = {.key = 9, .bytes = 16 * MIB, .chosen = true, .moved = true};
	begin_trial(2000, 0);
	measure(2032);
	assert_int_equal(next_at(0), SPILL_TRIAL_UNDO);
	spill_trial_undone(&trial, true, 1, 0, 7);
	spill_trial_begun(&trial, &one, 1, 1, 0, 7);
	measure(3000);
	assert_int_equal(next_at(0), SPILL_TRIAL_UNDO);
	assert_int_equal(cost_of(9), 1000 / 16);
	assert_int_equal(cost_of(2), 12);
}

/* More than half as slow again: the first sample says enough. */
TEST(a_bad_sample_is_enough)
{
	begin_trial(2000, 0);
	spill_trial_sample(&trial, 1, 3000);
	assert_true(spill_trial_wants_sample(&trial, SITE));
	spill_trial_sample(&trial, 1, 3001);
	assert_false(spill_trial_wants_sample(&trial, SITE));
	assert_int_equal(next_at(0), SPILL_TRIAL_UNDO);
	/* Two launches were 1001 slower, and the exchange takes 7 there and back. */
	assert_int_equal(trial.spent_ns, 2 * 7 + 2 * 1001);
}

/* Of 33 launches none was measured. */
TEST(a_phase_without_samples_ends)
{
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(next_at(50), SPILL_TRIAL_NOTHING);
	assert_int_equal(trial.phase, SPILL_TRIAL_MEASURES);
	assert_int_equal(next_at(50), SPILL_TRIAL_NOTHING);
	assert_int_equal(trial.phase, SPILL_TRIAL_RESTS);
	assert_int_equal(trial.failures, 5);
	assert_int_equal(trial.next_ns, 50 + 2000 * MS);
	assert_int_equal(trial.settled_ns, 0);
}

TEST(a_trial_without_samples_is_undone)
{
	begin_trial(2000, 0);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(next_at(0), SPILL_TRIAL_NOTHING);
	assert_int_equal(next_at(0), SPILL_TRIAL_UNDO);
	assert_int_equal(trial.phase, SPILL_TRIAL_UNDOES);
	assert_int_equal(trial.undone, 1);
	assert_int_equal(trial.failures, 1);
	assert_int_equal(trial.spent_ns, 2 * 7);
	assert_int_equal(next_at(0), SPILL_TRIAL_UNDO); /* until it is */
	spill_trial_undone(&trial, true, 1, 0, 10);
	assert_int_equal(trial.spent_ns, 2 * 7 + 3); /* back took longer */
	assert_int_equal(trial.phase, SPILL_TRIAL_RESTS);
	assert_int_equal(trial.settled_ns, 2000);
}

/* After the fourth failure in a row, each pause is twice as long, and no longer than 300 s. */
TEST(failures_in_a_row_make_pauses)
{
	static const unsigned seconds[] = {0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300};
	for (unsigned i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		trial.failures = i;
		spill_trial_rest(&trial, 50);
		assert_int_equal(trial.next_ns, 50 + seconds[i] * 1000 * MS);
		assert_false(trial.over_budget);
	}
	for (unsigned i = 0; i < 20; i++) {
		trial.phase = SPILL_TRIAL_MEASURES;
		trial.sampled = trial.launches = 0;
		for (unsigned k = 0; k < 33; k++)
			next_at(50);
	}
	assert_int_equal(trial.failures, 16);
}

/* Eight launches, and a twentieth of the time since the first. */
TEST(failures_have_a_budget)
{
	trial.base_ns = 100;
	trial.adopted_ns = 1000;
	trial.spent_ns = 800 + 50;
	spill_trial_rest(&trial, 2000);
	assert_int_equal(trial.next_ns, 2000);
	assert_false(trial.over_budget);
	trial.spent_ns++;
	spill_trial_rest(&trial, 2000);
	assert_int_equal(trial.next_ns, 2000 + 20);
	assert_true(trial.over_budget);
	/* The longer pause of both counts. */
	trial.failures = 5;
	spill_trial_rest(&trial, 2000);
	assert_int_equal(trial.next_ns, 2000 + 2000 * MS);
}

/* Two samples in a row that are more than a twentieth slower begin anew. */
TEST(launches_that_become_slower_are_measured_anew)
{
	trial.base_ns = 2000;
	trial.failures = 5;
	trial.site = SITE;
	trial.placement = 1;
	spill_trial_rest(&trial, 0);
	for (unsigned i = 0; i < 3; i++) {
		spill_trial_sample(&trial, 1, 2101);
		spill_trial_sample(&trial, 1, 2100);
	}
	assert_int_equal(trial.phase, SPILL_TRIAL_RESTS);
	assert_int_equal(trial.next_ns, 2000 * MS);
	spill_trial_sample(&trial, 1, 2101);
	spill_trial_sample(&trial, 1, 2101);
	assert_int_equal(trial.phase, SPILL_TRIAL_MEASURES);
	assert_int_equal(trial.slow, 0);
	/* The pause is over, and failures count anew. */
	assert_int_equal(trial.next_ns, 0);
	assert_int_equal(trial.failures, 0);
}

/* But the pause stays if trials have spent too much. */
TEST(slower_launches_do_not_end_the_pause_of_the_budget)
{
	trial.base_ns = 2000;
	trial.spent_ns = 8 * 2000 + 1;
	trial.failures = 3;
	trial.site = SITE;
	trial.placement = 1;
	spill_trial_rest(&trial, 0);
	spill_trial_sample(&trial, 1, 2101);
	spill_trial_sample(&trial, 1, 2101);
	assert_int_equal(trial.phase, SPILL_TRIAL_MEASURES);
	assert_int_equal(trial.next_ns, 20);
	assert_int_equal(trial.failures, 3);
	measure(3000);
	assert_int_equal(next_at(19), SPILL_TRIAL_NOTHING);
	assert_int_equal(trial.phase, SPILL_TRIAL_RESTS);
	assert_int_equal(trial.settled_ns, 3000);
	assert_int_equal(next_at(19), SPILL_TRIAL_NOTHING);
	assert_int_equal(trial.phase, SPILL_TRIAL_RESTS);
	assert_int_equal(next_at(20), SPILL_TRIAL_NOTHING);
	assert_int_equal(trial.phase, SPILL_TRIAL_MEASURES);
	measure(3000);
	assert_int_equal(next_at(20), SPILL_TRIAL_PROPOSE);
}

/* Others have moved memory meanwhile, so the first sample is the new measure. */
TEST(at_rest_one_launch_of_32_is_timed)
{
	unsigned timed = 0;
	trial.base_ns = 2000;
	trial.failures = 5;
	trial.site = SITE;
	trial.placement = 2;
	spill_trial_rest(&trial, 0);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(next_at(0), SPILL_TRIAL_NOTHING);
		timed += spill_trial_wants_sample(&trial, SITE);
		assert_false(spill_trial_compares(&trial, SITE));
	}
	assert_int_equal(timed, 2);
	spill_trial_sample(&trial, 1, 9000);
	assert_int_equal(trial.settled_ns, 9000);
	assert_int_equal(trial.slow, 0);
}

/* Samples of the placement before are dropped, and those of a trial make it fail. */
TEST(others_that_move_memory_spoil_samples)
{
	assert_int_equal(next_at(0), SPILL_TRIAL_NOTHING);
	spill_trial_sample(&trial, 1, 100);
	assert_int_equal(spill_trial_next(&trial, CODE, SITE, 2, 0), SPILL_TRIAL_NOTHING);
	assert_int_equal(trial.sampled, 0);
	begin(NULL);
	begin_trial(2000, 0);
	assert_int_equal(spill_trial_next(&trial, CODE, SITE, 2, 0), SPILL_TRIAL_UNDO);
	assert_int_equal(trial.spent_ns, 2 * 7);
}

/* First after 100 ms, then each time after twice as long, up to 10 s. */
TEST(a_busy_device_is_asked_more_rarely)
{
	static const unsigned pauses[] = {100, 200, 400, 800, 1600, 3200, 6400, 10000};
	uint64_t now = 0;
	begin_trial(2000, now);
	measure(4000);
	assert_int_equal(next_at(now), SPILL_TRIAL_UNDO);
	assert_true(spill_trial_compares(&trial, SITE));
	for (unsigned i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		spill_trial_undone(&trial, false, 1, now, 7);
		assert_int_equal(trial.phase, SPILL_TRIAL_UNDOES);
		assert_false(spill_trial_compares(&trial, SITE));
		assert_int_equal(next_at(now + pauses[i] * MS - 1), SPILL_TRIAL_NOTHING);
		assert_int_equal(next_at(now += pauses[i] * MS), SPILL_TRIAL_UNDO);
	}
	spill_trial_undone(&trial, false, 1, now, 7);
	assert_int_equal(trial.phase, SPILL_TRIAL_RESTS);
	assert_int_equal(trial.moved_count, 0);
	assert_int_equal(trial.settled_ns, 0);
}

/* Nothing has moved: that is a failure, and the next trial waits as above. */
TEST(an_exchange_in_vain_is_tried_later)
{
	const struct spill_trial_chunk chunk = {.key = 1, .bytes = MIB, .chosen = true};
	for (unsigned i = 0; i < 3; i++) {
		trial.base_ns = 2000;
		spill_trial_begun(&trial, &chunk, 1, 1, 50, 7);
		assert_int_equal(trial.phase, SPILL_TRIAL_RESTS);
		assert_int_equal(trial.undone, i + 1);
		assert_int_equal(trial.next_ns, 50 + (100 << i) * MS);
	}
}

/* 2 s after its last launch, a site gives its turn to another. */
TEST(a_site_is_gone_after_a_while)
{
	assert_int_equal(next_at(50), SPILL_TRIAL_NOTHING);
	measure(2000);
	spill_trial_next(&trial, CODE, SITE + 1, 1, 50 + 2000 * MS - 1);
	assert_int_equal(trial.site, SITE);
	spill_trial_next(&trial, CODE, SITE + 1, 1, 50 + 2000 * MS);
	assert_int_equal(trial.site, SITE + 1);
	/* Its own launches are measured, though the code is the same. */
	assert_true(spill_trial_wants_sample(&trial, SITE + 1));
	assert_int_equal(trial.launches, 1);
}

/* A site of the same code does not inherit the other one's rest. */
TEST(another_site_begins_with_a_measurement)
{
	trial.failures = 5;
	next_at(0);
	spill_trial_rest(&trial, 0);
	spill_trial_next(&trial, CODE, SITE + 1, 1, 2000 * MS);
	assert_int_equal(trial.phase, SPILL_TRIAL_MEASURES);
	assert_int_equal(trial.settled_ns, 0);
}

/* Its undo waits for a device that is busy, and then comes first. */
TEST(a_site_that_is_gone_is_undone_when_it_is_time)
{
	begin_trial(2000, 0);
	measure(4000);
	assert_int_equal(next_at(0), SPILL_TRIAL_UNDO);
	trial.busy_ns = 5000 * MS;
	spill_trial_undone(&trial, false, 1, 0, 7);
	assert_int_equal(trial.next_ns, 10000 * MS);
	assert_int_equal(spill_trial_next(&trial, CODE, SITE + 1, 1, 10000 * MS - 1), SPILL_TRIAL_NOTHING);
	assert_int_equal(trial.site, SITE);
	assert_int_equal(spill_trial_next(&trial, CODE, SITE + 1, 1, 10000 * MS), SPILL_TRIAL_UNDO);
}

/* A trial that is right moves twice as much the next time, and its samples are the next one's. */
TEST(the_next_trial_follows_a_right_one)
{
	begin_trial(2000, 0);
	trial.most = 64 * MIB;
	trial.failures = 3;
	measure(1000);
	assert_int_equal(next_at(0), SPILL_TRIAL_KEEP);
	assert_int_equal(next_at(0), SPILL_TRIAL_KEEP);
	spill_trial_kept(&trial);
	assert_int_equal(trial.most, 128 * MIB);
	assert_int_equal(trial.failures, 0);
	assert_int_equal(trial.launches, 0);
	assert_int_equal(next_at(0), SPILL_TRIAL_PROPOSE);
	assert_int_equal(trial.base_ns, 1000);
}

TEST(a_trial_is_of_as_many_chunks_as_it_remembers)
{
	for (unsigned i = 0; i < 300; i++)
		model.chunks[i] =
		    (struct spill_trial_chunk){.key = i + 1, .bytes = MIB, .chosen = true, .moved = true};
	spill_trial_begun(&trial, model.chunks, 300, 1, 0, 7);
	assert_int_equal(trial.moved_count, SPILL_TRIAL_CHUNKS);
	assert_int_equal(trial.left_mib, SPILL_TRIAL_CHUNKS);
	assert_true(spill_trial_moved(&trial, SPILL_TRIAL_CHUNKS, true));
	assert_false(spill_trial_moved(&trial, SPILL_TRIAL_CHUNKS + 1, true));
}

TEST(sixteen_failures_are_enough)
{
	next_at(0);
	trial.failures = 15;
	for (unsigned i = 0; i < 3; i++) {
		begin_trial(2000, i * 1000000 * MS);
		measure(4000);
		assert_int_equal(next_at(i * 1000000 * MS), SPILL_TRIAL_UNDO);
		assert_int_equal(trial.failures, 16);
		spill_trial_undone(&trial, true, 1, i * 1000000 * MS, 7);
		trial.phase = SPILL_TRIAL_MEASURES;
		trial.next_ns = 0;
	}
}

/* Without a promise of a gain, each further attempt is later: after 2 s at first, and 64 s at last. */
TEST(where_nothing_promises_a_gain_attempts_become_rare)
{
	for (unsigned i = 0; i < 9; i++) {
		assert_false(spill_trial_choose(&trial, model.chunks, 0, 50));
		assert_int_equal(trial.failures, i < 5 ? 5 + i : 10);
		assert_int_equal(trial.next_ns, 50 + (i < 5 ? 2000 << i : 64000) * MS);
	}
	trial.failures = 15;
	assert_false(spill_trial_choose(&trial, model.chunks, 0, 50));
	assert_int_equal(trial.failures, 15);
}

/* With both that come, 32 MiB more would leave than come: the first that is no larger stays. */
TEST(what_is_too_much_for_several_stays)
{
	struct spill_trial_chunk chunks[] = {
	    {.key = 1, .owner = 9, .bytes = 48 * MIB, .on_host = true, .named = true},
	    {.key = 2, .owner = 9, .bytes = 48 * MIB, .on_host = true, .named = true},
	    {.key = 3, .owner = 7, .bytes = 32 * MIB},
	    {.key = 4, .owner = 7, .bytes = 32 * MIB},
	    {.key = 5, .owner = 7, .bytes = 24 * MIB},
	    {.key = 6, .owner = 7, .bytes = 40 * MIB},
	};
	assert_true(spill_trial_choose(&trial, chunks, 6, 0));
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(chunks[i].chosen, i != 2);
}

/* 80 MiB leave for 64, and what is as large as the rest comes as well. */
TEST(what_fits_into_the_rest_comes)
{
	for (unsigned more = 0; more < 2; more++) {
		struct spill_trial_chunk chunks[] = {
		    {.key = 1, .owner = 9, .bytes = 64 * MIB, .on_host = true, .named = true},
		    {.key = 2, .owner = 9, .bytes = 16 * MIB + more, .on_host = true, .named = true},
		    {.key = 3, .owner = 7, .bytes = 80 * MIB},
		};
		assert_true(spill_trial_choose(&trial, chunks, 3, 0));
		assert_true(chunks[0].chosen && chunks[2].chosen);
		assert_int_equal(chunks[1].chosen, !more);
	}
}

/*
 * A named chunk on the device is taken for known if its allocation is well on the host, and no other one is. Well: large enough, and
 * more than a tenth of it.
 */
TEST(the_launch_tells_the_cost_of_one_allocation_that_is_on_the_host)
{
	static const struct {
		uint64_t host, device, other_host;
		bool untried;
	} cases[] = {
	    {64 * MIB, 64 * MIB, 0, false},
	    {64 * MIB, 64 * MIB - 1, 0, false}, /* a small one is never tried */
	    {20 * MIB, 180 * MIB, 0, true},
	    {20 * MIB + 1, 180 * MIB, 0, false},
	    {64 * MIB, 64 * MIB, 20 * MIB, false},
	    {64 * MIB, 64 * MIB, 20 * MIB + 1, true},
	    {0, 200 * MIB, 0, true},
	    {0, 200 * MIB, 64 * MIB, true},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spill_trial_chunk chunks[] = {
		    {.key = 1, .owner = 9, .bytes = cases[i].host, .on_host = true, .named = true},
		    {.key = 2, .owner = 9, .bytes = cases[i].device, .named = true},
		    {.key = 3, .owner = 8, .bytes = cases[i].other_host, .on_host = true, .named = true},
		    {.key = 4, .owner = 8, .bytes = 180 * MIB, .named = true},
		};
		trial = (struct spill_placement_trial){0};
		spill_trial_choose(&trial, chunks, 4, 0);
		assert_int_equal(chunks[1].untried, cases[i].untried);
	}
}

/* A chunk that no trial has measured costs as much as those of its allocation do, or as a read does. */
TEST(chunks_of_one_allocation_cost_alike)
{
	struct spill_trial_chunk chunks[] = {
	    {.key = 1, .owner = 9, .bytes = 64 * MIB, .on_host = true, .named = true},
	    {.key = 2, .owner = 9, .bytes = 64 * MIB, .on_host = true, .named = true},
	    {.key = 3, .owner = 9, .bytes = 64 * MIB, .on_host = true, .named = true},
	    {.key = 4, .owner = 8, .bytes = 64 * MIB, .on_host = true, .named = true},
	};
	spill_trial_set_cost(&trial, 1, 1000);
	spill_trial_set_cost(&trial, 2, 3000);
	spill_trial_choose(&trial, chunks, 4, 0);
	assert_int_equal(chunks[0].guess_ns, 1000);
	assert_int_equal(chunks[1].guess_ns, 3000);
	assert_int_equal(chunks[2].guess_ns, 2000);
	assert_int_equal(chunks[3].guess_ns, 19500); /* READ_NS_PER_MIB */
}
