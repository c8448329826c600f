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
