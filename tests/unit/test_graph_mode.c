/* Whether a graph is launched as a whole or node by node: a model of a graph whose launches take known times. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "graph_mode.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

static struct spill_graph_mode mode;
static struct {
	uint64_t whole_ns, nodes_ns, copy_ns, now_ns;
	const void *stream;
	unsigned by_nodes, timed; /* launches so far */
	bool lost;                /* no sample arrives */
} model;

static int begin(void **state)
{
	memset(&mode, 0, sizeof(mode));
	memset(&model, 0, sizeof(model));
	model.now_ns = SECOND;
	model.stream = &model;
	model.copy_ns = 50 * MS;
	return 0;
}

/* True: it was made node by node. */
static bool launch(void)
{
	bool by_nodes = spill_graph_mode_by_nodes(&mode, model.now_ns);
	bool timed = by_nodes || spill_graph_mode_whole(&mode, model.stream, model.copy_ns, model.now_ns);
	uint64_t ns = by_nodes ? model.nodes_ns : model.whole_ns;
	model.now_ns += ns;
	model.by_nodes += by_nodes;
	model.timed += timed;
	if (timed && !model.lost)
		spill_graph_mode_sample(&mode, by_nodes, ns, model.now_ns);
	return by_nodes;
}

/* Of so many launches, those node by node. */
static unsigned launch_often(unsigned count)
{
	unsigned before = model.by_nodes;
	for (unsigned i = 0; i < count; i++)
		launch();
	return model.by_nodes - before;
}

static void times(uint64_t whole_ms, uint64_t nodes_ms)
{
	model.whole_ns = whole_ms * MS;
	model.nodes_ns = nodes_ms * MS;
}

TEST(what_is_read_again_and_again_is_launched_node_by_node)
{
	times(212, 125);
	assert_int_equal(launch_often(1), 0); /* its time is clear */
	assert_int_equal(launch_often(100), 100);
	assert_int_equal(mode.phase, SPILL_GRAPH_NODES);
}

/* Where it is not so clear, three launches tell, so that a slow one does not. */
TEST(a_slow_launch_alone_tells_nothing)
{
	times(140, 90);
	launch();
	model.whole_ns = 60 * MS;
	model.copy_ns = 45 * MS; /* a first time of 140 ms would be clear now */
	assert_int_equal(launch_often(20), 0);
	assert_int_equal(mode.phase, SPILL_GRAPH_WHOLE);
}

/* Decoding: the memory is read once, which takes as long as copying it. */
TEST(what_is_read_once_is_launched_whole)
{
	times(52, 53);
	assert_int_equal(launch_often(200), 0);
	/* Then it is measured seldom. */
	model.timed = 0;
	launch_often(1000);
	assert_in_range(model.timed, 3, 30);
}

TEST(a_trial_needs_three_halves_of_the_copies)
{
	times(75, 40);
	assert_int_equal(launch_often(3), 0);
	assert_int_equal(launch_often(20), 20);
	begin(NULL);
	times(74, 40);
	assert_int_equal(launch_often(20), 0);
}

TEST(a_short_launch_is_not_worth_a_trial)
{
	model.copy_ns = 0;
	model.whole_ns = 5 * MS - 1;
	assert_int_equal(launch_often(20), 0);
	begin(NULL);
	model.copy_ns = 0;
	times(5, 1);
	assert_int_equal(launch_often(20), 19);
}

/* A trial that gains less than a quarter ends after its launches. The next comes later, each time. */
TEST(a_trial_without_gain_is_undone)
{
	times(200, 151);
	assert_int_equal(launch_often(40), 9);
	uint64_t first = mode.wait_ns;
	assert_int_equal(first, 64 * model.whole_ns);
	while (mode.wait_ns == first)
		launch();
	assert_int_equal(model.by_nodes, 18);
	assert_int_equal(mode.wait_ns, 2 * first);
	begin(NULL);
	times(200, 149);
	launch_often(40);
	assert_int_equal(mode.phase, SPILL_GRAPH_NODES);
}

/* The first launches node by node teach what each kernel costs. The last three count. */
TEST(the_first_launches_of_a_trial_may_be_slow)
{
	times(200, 500);
	launch_often(3);
	model.nodes_ns = 100 * MS;
	launch_often(20);
	assert_int_equal(mode.phase, SPILL_GRAPH_NODES);
}

TEST(a_bad_trial_ends_early)
{
	times(200, 601);
	assert_int_equal(launch_often(20), 2);
	begin(NULL);
	times(200, 600);
	assert_int_equal(launch_often(20), 9);
}

TEST(a_trial_without_samples_ends)
{
	times(200, 100);
	launch_often(1);
	model.lost = true;
	assert_int_equal(launch_often(100), 40);
	assert_int_equal(mode.phase, SPILL_GRAPH_WHOLE);
}

/* A sample can arrive when the phase is over. */
TEST(a_late_sample_counts_for_nothing)
{
	times(200, 100);
	launch_often(2);
	assert_int_equal(mode.phase, SPILL_GRAPH_TRIES);
	unsigned sampled = mode.sampled;
	spill_graph_mode_sample(&mode, false, 1, model.now_ns);
	assert_int_equal(mode.sampled, sampled);
	begin(NULL);
	spill_graph_mode_sample(&mode, true, 1, model.now_ns);
	assert_int_equal(mode.sampled, 0);
	/* No trial is worth it for now. */
	times(52, 53);
	launch_often(3);
	spill_graph_mode_sample(&mode, false, SECOND, mode.next_ns - 1);
	assert_int_equal(mode.phase, SPILL_GRAPH_WHOLE);
	assert_int_equal(mode.sampled, 0);
	spill_graph_mode_sample(&mode, false, 52 * MS, mode.next_ns);
	assert_int_equal(mode.sampled, 1);
}

/* What copying would take is that of the last launch. */
TEST(a_trial_is_judged_by_the_memory_that_is_away_now)
{
	times(90, 40);
	launch_often(2);
	model.copy_ns = 61 * MS;
	assert_int_equal(launch_often(20), 0);
	begin(NULL);
	times(90, 40);
	model.copy_ns = 61 * MS;
	launch_often(2);
	model.copy_ns = 60 * MS;
	assert_int_equal(launch_often(20), 19);
}

TEST(nodes_that_take_longer_than_the_whole_did_are_launched_whole)
{
	times(200, 100);
	launch_often(20);
	model.nodes_ns = 201 * MS;
	launch();
	assert_int_equal(mode.phase, SPILL_GRAPH_NODES);
	assert_true(launch());
	assert_false(launch());
	assert_int_equal(mode.phase, SPILL_GRAPH_WHOLE);
}

/* At the bounds: what is exactly so much is not more, and a wait ends at its moment. */
TEST(bounds_are_exact)
{
	times(150, 90);
	launch(); /* three times what copying takes */
	assert_int_equal(mode.phase, SPILL_GRAPH_WHOLE);
	begin(NULL);
	times(200, 150);
	launch_often(10);
	assert_int_equal(mode.phase, SPILL_GRAPH_WHOLE);
	assert_false(spill_graph_mode_whole(&mode, model.stream, model.copy_ns, mode.next_ns - 1));
	assert_true(spill_graph_mode_whole(&mode, model.stream, model.copy_ns, mode.next_ns));
	begin(NULL);
	times(200, 100);
	launch_often(10);
	assert_true(spill_graph_mode_by_nodes(&mode, mode.next_ns - 1));
	assert_false(spill_graph_mode_by_nodes(&mode, mode.next_ns));
}

TEST(three_launches_tell_that_the_whole_is_better)
{
	times(200, 100);
	launch_often(10);
	model.nodes_ns = 200 * MS;
	launch_often(5);
	assert_int_equal(mode.phase, SPILL_GRAPH_NODES);
	begin(NULL);
	times(200, 100);
	launch_often(10);
	model.nodes_ns = 201 * MS;
	launch_often(2);
	assert_int_equal(mode.phase, SPILL_GRAPH_NODES);
	launch();
	assert_int_equal(mode.phase, SPILL_GRAPH_WHOLE);
}

/* Launches of a graph in several streams wait for each other, and a trial compares those of one. */
TEST(a_trial_begins_in_one_stream)
{
	times(90, 40);
	for (unsigned i = 0; i < 20; i++) {
		model.stream = i % 2 ? &model : (void *)&mode;
		assert_false(launch());
	}
	assert_int_equal(launch_often(20), 18);
}

/* Whole launches are 1/10 faster by now. A look finds that; before, all are made node by node. */
TEST(a_look_finds_better_whole_launches)
{
	times(305, 109);
	launch_often(20);
	uint64_t since = model.now_ns;
	model.whole_ns = 98 * MS;
	while (launch())
		;
	/* 24 launches that lose 196 ms each are 1/32 of the time */
	assert_in_range(model.now_ns - since, 31 * 24 * 196 * MS, 33 * 24 * 196 * MS);
	assert_int_equal(launch_often(20), 0);
	assert_int_equal(mode.phase, SPILL_GRAPH_WHOLE);
	/* 98 is less than 3/2 of what copies take */
	model.copy_ns = 66 * MS;
	model.by_nodes = 0;
	launch_often(10000);
	assert_int_equal(model.by_nodes, 0);
}

TEST(a_look_in_vain_ends_and_the_next_is_later)
{
	times(305, 109);
	launch_often(20);
	while (launch())
		;
	uint64_t first = mode.look_ns, since = model.now_ns;
	unsigned whole = 1;
	while (!launch())
		whole++;
	assert_int_equal(whole, 25);
	assert_int_equal(mode.phase, SPILL_GRAPH_NODES);
	since = model.now_ns;
	while (launch())
		;
	assert_int_equal(mode.look_ns, 2 * first);
	assert_in_range(model.now_ns - since, 2 * first - SECOND, 2 * first + SECOND);
}

TEST(a_look_needs_a_thirty_second_less)
{
	times(320, 96);
	launch_often(20);
	model.whole_ns = 93 * MS;
	while (launch())
		;
	launch_often(30);
	assert_int_equal(mode.phase, SPILL_GRAPH_NODES);
	while (launch())
		;
	model.whole_ns = 93 * MS - 1;
	model.copy_ns = 63 * MS;
	launch_often(30);
	assert_int_equal(mode.phase, SPILL_GRAPH_WHOLE);
}

TEST(after_a_refusal_it_is_whole_for_a_while)
{
	times(200, 100);
	launch_often(2);
	assert_true(spill_graph_mode_wants_nodes(&mode, model.now_ns));
	spill_graph_mode_refused(&mode, model.now_ns);
	assert_false(spill_graph_mode_wants_nodes(&mode, model.now_ns + 64 * model.whole_ns - 1));
	assert_true(spill_graph_mode_wants_nodes(&mode, model.now_ns + 64 * model.whole_ns));
	assert_int_equal(launch_often(64), 0);
}
