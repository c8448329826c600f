/* Which graphs are launched node by node: several graphs, and what the log says. */
#define SETUP begin
#include "unit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_clock.h"
#include "graph_modes.h"
#include "note.h"

#define MIB ((uint64_t)1 << 20)
#define MS 1000000ull
#define COPY_NS 30000 /* a MiB */

static unsigned notes;
static char said[512];
static bool forks; /* with the next note, while the lock is held */

/* A child of a process of several threads begins like this. It ends by a signal if it waits for the lock. */
static int child(void)
{
	static struct spill_launch_access access = {.site = 7, .host_bytes = 1000 * MIB};
	alarm(10);
	spill_graph_modes_reset();
	return !spill_graph_modes_whole(&access, COPY_NS);
}

void spill_note(const char *code, const char *text)
{
	assert_string_equal(code, "follow");
	notes++;
	strcpy(said, text);
	if (!forks)
		return;
	forks = false;
	int status = -1;
	pid_t pid = fork();
	if (!pid)
		_exit(child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int begin(void **state)
{
	spill_graph_modes_reset();
	notes = 0;
	*said = 0;
	fake_clock_use(1000 * MS);
	return 0;
}

static void measure(uint64_t site, bool by_nodes, uint64_t ms)
{
	spill_graph_modes_measured(
	    &(const struct spill_stopwatch_access){.graph = site, .by_nodes = by_nodes}, ms * MS);
}

/* A launch of a graph with 1,000 MiB on the host, so that 90 ms and more are clear. True: node by node. */
static bool launch(uint64_t site, uint64_t whole_ms, uint64_t nodes_ms)
{
	static struct spill_launch_access access;
	access.site = site;
	access.host_bytes = 1000 * MIB;
	bool by_nodes = spill_graph_modes_by_nodes(site);
	bool timed = by_nodes || spill_graph_modes_whole(&access, COPY_NS);
	uint64_t ms = by_nodes ? nodes_ms : whole_ms;
	fake_clock.ns += ms * MS;
	if (timed)
		measure(site, by_nodes, ms);
	return by_nodes;
}

TEST(each_graph_has_its_own_way)
{
	unsigned by_nodes = 0, others = 0;
	assert_false(spill_graph_modes_used);
	for (unsigned i = 0; i < 20; i++)
		by_nodes += launch(7, 200, 100);
	for (unsigned i = 0; i < 20; i++)
		others += launch(8, 31, 10); /* nearly what copies take */
	assert_true(spill_graph_modes_used); /* from the first launch on */
	assert_int_equal(by_nodes, 19);
	assert_int_equal(others, 0);
	assert_int_equal(notes, 1);
	assert_string_equal(said, "the nodes of a graph are launched one by one, and memory comes before "
	                          "those that use it: a launch takes "
	                          "100000 us, as a whole it took 200000 (movable.follow)");
	assert_true(spill_graph_modes_wants_nodes(7));
	assert_false(spill_graph_modes_wants_nodes(8));
	assert_true(spill_graph_modes_wants_nodes(9)); /* not known */
}

TEST(one_copy_is_dearer_where_more_is_on_the_host)
{
	static struct spill_launch_access access = {.site = 7, .host_bytes = 3000 * MIB};
	for (unsigned i = 0; i < 8; i++)
		if (spill_graph_modes_whole(&access, COPY_NS))
			measure(7, false, 130);
	assert_false(spill_graph_modes_by_nodes(7));
}

TEST(the_log_says_when_it_is_whole_again)
{
	for (unsigned i = 0; i < 20; i++)
		launch(7, 200, 100);
	for (unsigned i = 0; i < 3; i++)
		launch(7, 200, 300);
	assert_int_equal(notes, 2);
	assert_string_equal(said, "a graph is launched as a whole again, because its nodes one by one take "
	                          "longer by now (movable.follow)");
	assert_false(launch(7, 200, 100));
	/* No more than four in all. */
	for (uint64_t site = 100; site < 110; site++)
		for (unsigned i = 0; i < 20; i++)
			launch(site, 200, 100);
	assert_int_equal(notes, 4);
}

TEST(a_look_in_vain_is_not_worth_a_note)
{
	unsigned whole = 0;
	for (unsigned i = 0; i < 1000; i++)
		whole += !launch(7, 200, 100);
	assert_int_equal(whole, 26); /* the first, 24 of a look, and the one that ends it */
	assert_int_equal(notes, 1);
	for (unsigned i = 0; i < 3000; i++)
		launch(7, 90, 100);
	assert_int_equal(notes, 2); /* a look that found whole launches better is */
}

TEST(a_trial_in_vain_is_not_worth_a_note)
{
	unsigned by_nodes = 0;
	for (unsigned i = 0; i < 30; i++)
		by_nodes += launch(7, 200, 190);
	assert_int_equal(by_nodes, 9);
	assert_int_equal(notes, 0);
}

TEST(a_refused_graph_is_whole)
{
	launch(7, 200, 100);
	launch(7, 200, 100);
	assert_true(spill_graph_modes_by_nodes(7));
	spill_graph_modes_refused(9);
	assert_true(spill_graph_modes_by_nodes(7));
	spill_graph_modes_refused(7);
	assert_false(spill_graph_modes_by_nodes(7));
	launch(8, 200, 100);
	assert_true(launch(8, 200, 100));
}

/* Other launches are measured, too. */
TEST(what_is_no_graph_counts_for_nothing)
{
	measure(0, false, 1000);
	measure(0, true, 1000);
	assert_false(spill_graph_modes_by_nodes(0));
}

/* Of very many graphs, the ones that were launched last are known. */
TEST(many_graphs)
{
	for (uint64_t site = 2; site < 2000; site++)
		for (unsigned i = 0; i < 3; i++)
			launch(site << 32 | site * 7, 200, 100);
	assert_true(launch((uint64_t)1999 << 32 | 1999 * 7, 200, 100));
	assert_false(launch((uint64_t)2 << 32 | 2 * 7, 200, 100));
}

/* A set is chosen by both halves of a site, combined by XOR. Where they are equal, it is the same. It has four places. */
static uint64_t in_one_set(uint64_t number)
{
	return number << 32 | number;
}

TEST(four_graphs_of_a_set_are_known_at_once)
{
	for (uint64_t number = 1; number <= 4; number++)
		for (unsigned i = 0; i < 3; i++)
			launch(in_one_set(number), 200, 100);
	for (uint64_t number = 1; number <= 4; number++)
		assert_true(launch(in_one_set(number), 200, 100));
}

TEST(a_new_graph_pushes_out_the_one_that_was_launched_least_recently)
{
	for (uint64_t number = 1; number <= 4; number++)
		for (unsigned i = 0; i < 3; i++)
			launch(in_one_set(number), 200, 100);
	launch(in_one_set(1), 200, 100);
	launch(in_one_set(5), 200, 100);
	assert_false(spill_graph_modes_by_nodes(in_one_set(2)));
	for (uint64_t number = 1; number <= 4; number++)
		assert_int_equal(spill_graph_modes_by_nodes(in_one_set(number)), number != 2);
	/* A first launch counts, even if its time does not arrive. */
	static struct spill_launch_access access = {.host_bytes = 1000 * MIB};
	access.site = in_one_set(6);
	spill_graph_modes_whole(&access, COPY_NS);
	launch(in_one_set(7), 200, 100);
	assert_false(spill_graph_modes_by_nodes(in_one_set(1)));
	assert_true(spill_graph_modes_by_nodes(in_one_set(3)));
}

TEST(a_forked_child_knows_nothing)
{
	for (unsigned i = 0; i < 3; i++)
		launch(7, 200, 100);
	assert_true(spill_graph_modes_by_nodes(7));
	spill_graph_modes_reset();
	assert_false(spill_graph_modes_used);
	assert_false(spill_graph_modes_by_nodes(7));
}

TEST(a_child_that_was_forked_meanwhile_does_not_wait)
{
	forks = true;
	for (unsigned i = 0; i < 20 && forks; i++)
		launch(7, 200, 100);
	assert_false(forks);
}
