/* The ranks of a job together: on which hosts they ran, and whose clock is wrong. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "job.h"

#define HOSTS 300
#define SECOND_US ((int64_t)1000000)
#define BEGAN_US (1000000 * SECOND_US)

static struct cli_names names;
static struct cli_summary runs[2 * HOSTS];
static struct cli_summaries summaries = {.runs = runs, .names = &names};

static int forget(void **state)
{
	cli_names_free(&names);
	memset(runs, 0, sizeof(runs));
	summaries.count = 0;
	return 0;
}

/* One more run of ten seconds. */
static struct cli_summary *add(char *job, char *rank, char *host, int64_t wall_us)
{
	struct cli_summary *run = &runs[summaries.count];

	*run = (struct cli_summary){.number = summaries.count++,
	                            .job = job,
	                            .rank = rank,
	                            .host = host,
	                            .wall_us = wall_us,
	                            .run_us = (uint64_t)(10 * SECOND_US)};
	return run;
}

/* More of them than there were names before: each host comes once, in the order of the ranks. */
TEST_WITH(many_hosts_of_a_job, NULL, forget)
{
	static char ranks[2 * HOSTS][16], hosts[2 * HOSTS][16];
	struct cli_job job;

	for (unsigned i = 0; i < 2 * HOSTS; i++) {
		sprintf(ranks[i], "%u", i);
		sprintf(hosts[i], "node%u", i % HOSTS);
		add("17", ranks[i], hosts[i], BEGAN_US);
	}
	job = cli_job_of(&summaries);
	assert_true(job.ranks);
	assert_int_equal(job.host_count, HOSTS);
	for (unsigned i = 0; i < HOSTS; i++) {
		assert_string_equal(job.hosts[i].name, hosts[i]);
		assert_int_equal(job.hosts[i].runs, 2);
		assert_int_equal(job.hosts[i].ahead_us, 0);
	}
	cli_job_free(&job);
}

TEST_WITH(a_run_whose_log_tells_no_host_is_on_none, NULL, forget)
{
	struct cli_job job;

	add("17", "0", NULL, BEGAN_US);
	add("17", "1", "node1", BEGAN_US);
	add("17", "2", NULL, BEGAN_US);
	job = cli_job_of(&summaries);
	assert_int_equal(job.host_count, 1);
	assert_string_equal(job.hosts[0].name, "node1");
	assert_int_equal(job.hosts[0].runs, 1);
	cli_job_free(&job);
}

/* A clock may be set wrong between two jobs of one folder. The first estimate of a host is told. */
TEST_WITH(a_clock_that_is_wrong_in_later_jobs, NULL, forget)
{
	const int64_t ahead[] = {0, 3600 * SECOND_US, 7200 * SECOND_US};
	static char *const names_of_jobs[] = {"17", "18", "19"};
	struct cli_job job;

	for (unsigned i = 0; i < 3; i++) {
		add(names_of_jobs[i], "0", "node1", BEGAN_US);
		add(names_of_jobs[i], "1", "node2", BEGAN_US + ahead[i]);
	}
	job = cli_job_of(&summaries);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(runs[2 * i].clock_ahead_us, 0);
		assert_int_equal(runs[2 * i + 1].clock_ahead_us, ahead[i]);
	}
	assert_int_equal(job.host_count, 2);
	assert_int_equal(job.hosts[0].ahead_us, 0);
	assert_int_equal(job.hosts[1].runs, 3);
	assert_int_equal(job.hosts[1].ahead_us, ahead[1]);
	cli_job_free(&job);
}

/* Without a rank for each, or of one run alone, nothing is compared. */
TEST_WITH(runs_that_are_no_ranks_have_no_hosts, NULL, forget)
{
	struct cli_job job;

	add("17", "0", "node1", BEGAN_US);
	job = cli_job_of(&summaries);
	assert_false(job.ranks);
	assert_int_equal(job.host_count, 0);
	add("17", NULL, "node2", BEGAN_US);
	job = cli_job_of(&summaries);
	assert_false(job.ranks);
	assert_int_equal(job.host_count, 0);
	assert_null(job.longest);
	cli_job_free(&job);
}

/* A launcher takes a minute. A host whose ranks began later than that, and ended as much later, has another clock. */
TEST_WITH(clocks_that_differ_by_a_minute, NULL, forget)
{
	static const struct {
		int64_t begins, ends, ahead; /* how much later than those of the first rank */
	} cases[] = {{60 * SECOND_US, 60 * SECOND_US, 0},
	             {60 * SECOND_US + 1, 60 * SECOND_US + 1, 60 * SECOND_US + 1},
	             {-60 * SECOND_US, -60 * SECOND_US, 0},
	             {-60 * SECOND_US - 1, -60 * SECOND_US - 1, -60 * SECOND_US - 1},
	             {200 * SECOND_US, 260 * SECOND_US, 200 * SECOND_US},
	             {200 * SECOND_US, 260 * SECOND_US + 1, 0},
	             {200 * SECOND_US, 140 * SECOND_US, 200 * SECOND_US},
	             {200 * SECOND_US, 140 * SECOND_US - 1, 0}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cli_job job;

		summaries.count = 0;
		add("17", "0", "node1", BEGAN_US)->run_us = (uint64_t)(1000 * SECOND_US);
		add("17", "1", "node2", BEGAN_US + cases[i].begins)->run_us =
		    (uint64_t)(1000 * SECOND_US + cases[i].ends - cases[i].begins);
		job = cli_job_of(&summaries);
		assert_int_equal(job.hosts[1].ahead_us, cases[i].ahead);
		assert_int_equal(runs[1].begin_us - runs[0].begin_us, cases[i].begins - cases[i].ahead);
		cli_job_free(&job);
	}
}

/* The middle one of a host's begins decides, and the middle one of its ends, whatever their order. */
TEST_WITH(most_ranks_of_a_host_tell_its_clock, NULL, forget)
{
	static const struct {
		int64_t begins[3], last[3], ahead; /* in seconds */
	} cases[] = {{{3600, 0, 1}, {10, 10, 10}, 0},
	             {{3600, 0, 3601}, {10, 10, 10}, 3600},
	             {{0, 3600, 3700}, {3610, 10, 10}, 3600},
	             {{0, 3600, 3700}, {3610, 10, 4000}, 3600},
	             {{0, 3600, 3700}, {6000, 10, 4000}, 0}};
	static char *const ranks[] = {"1", "2", "3"};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cli_job job;

		summaries.count = 0;
		add("17", "0", "node1", BEGAN_US);
		for (unsigned rank = 0; rank < 3; rank++)
			add("17", ranks[rank], "node2", BEGAN_US + cases[i].begins[rank] * SECOND_US)
			    ->run_us = (uint64_t)(cases[i].last[rank] * SECOND_US);
		job = cli_job_of(&summaries);
		assert_int_equal(job.hosts[1].runs, 3);
		assert_int_equal(job.hosts[1].ahead_us, cases[i].ahead * SECOND_US);
		cli_job_free(&job);
	}
}

/* An end is the begin and what the run took: of these ranks it is not that of the one that began in the middle. */
TEST_WITH(ends_of_ranks_that_began_at_other_times, NULL, forget)
{
	static const int64_t begins[] = {0, 3600, 3700}, took[] = {6600, 100, 2900};
	static char *const ranks[] = {"1", "2", "3"};
	struct cli_job job;

	add("17", "0", "node1", BEGAN_US)->run_us = (uint64_t)(3000 * SECOND_US);
	for (unsigned rank = 0; rank < 3; rank++)
		add("17", ranks[rank], "node2", BEGAN_US + begins[rank] * SECOND_US)->run_us =
		    (uint64_t)(took[rank] * SECOND_US);
	job = cli_job_of(&summaries);
	assert_int_equal(job.hosts[1].ahead_us, 3600 * SECOND_US);
	cli_job_free(&job);
}

/* Of a run that does not tell its time, its host or its job, or of a rank that is there twice, no clock is judged. */
TEST_WITH(clocks_that_cannot_be_compared, NULL, forget)
{
	for (unsigned lacks = 0; lacks < 5; lacks++) {
		struct cli_job job;

		summaries.count = 0;
		add(lacks == 1 ? NULL : "17", "0", "node1", BEGAN_US);
		add(lacks == 1 ? NULL : "17", "1", lacks == 2 ? NULL : "node2", BEGAN_US + 3600 * SECOND_US);
		add(lacks == 1 ? NULL : "17", lacks == 3 ? "1" : "2", "node1", lacks == 4 ? 0 : BEGAN_US);
		job = cli_job_of(&summaries);
		assert_int_equal(runs[1].clock_ahead_us, lacks ? 0 : 3600 * SECOND_US);
		assert_int_equal(runs[1].begin_told, lacks != 4);
		assert_int_equal(runs[1].begin_us, lacks == 0 || lacks == 4 ? 0 : 3600 * SECOND_US);
		cli_job_free(&job);
	}
}

static void want(struct cli_summary *run, struct cli_device *device, int number, uint64_t wanted,
                 uint64_t bytes)
{
	*device = (struct cli_device){.device = number, .bytes = bytes, .fit = {.wanted = wanted}};
	run->devices = device;
	run->device_count = 1;
}

static void hold_up(struct cli_summary *run, uint64_t moves_us)
{
	run->story.away.moves_us = moves_us;
}

/* Of equal ones the first is told. */
TEST_WITH(ranks_that_stand_out, NULL, forget)
{
	static struct cli_device devices[6];
	struct spill_record_oom ooms[3] = {
	    {.time_us = 50, .refused_by = "host.limit"},
	    {.time_us = 51, .refused_by = "host.limit"},
	    {.time_us = 50, .refused_by = "host.limit"},
	};
	struct cli_job job;

	for (unsigned i = 0; i < 6; i++)
		add("17", (char *[]){"0", "1", "2", "3", "4", "5"}[i], "node1", BEGAN_US);
	job = cli_job_of(&summaries);
	assert_null(job.full);
	assert_null(job.held_up);
	assert_null(job.failed);
	assert_ptr_equal(job.longest, &runs[0]);
	cli_job_free(&job);

	want(&runs[0], &devices[0], -1, 900, 1);
	want(&runs[1], &devices[1], 0, 0, 1000);
	want(&runs[2], &devices[2], 1, 700, 0);
	job = cli_job_of(&summaries);
	assert_ptr_equal(job.full, &devices[2]);
	cli_job_free(&job);

	want(&runs[3], &devices[3], 0, 500, 1000);
	want(&runs[4], &devices[4], 0, 1000, 2000);
	want(&runs[5], &devices[5], 0, 400, 1000);
	hold_up(&runs[1], 70);
	hold_up(&runs[2], 80);
	hold_up(&runs[3], 80);
	hold_up(&runs[4], 60);
	runs[3].run_us = runs[4].run_us = runs[3].run_us + 1;
	for (unsigned i = 1; i < 6; i++)
		runs[i].ooms = (struct cli_ooms){.count = i == 1   ? 1
		                                          : i == 2 ? 2
		                                                   : 0,
		                                 .list = ooms + (i == 1 ? 2 : 0)};
	runs[4].ooms = (struct cli_ooms){.count = 2, .list = ooms + 1};
	job = cli_job_of(&summaries);
	assert_ptr_equal(job.full, &devices[3]);
	assert_ptr_equal(job.fullest, &runs[3]);
	assert_ptr_equal(job.held_up, &runs[2]);
	assert_ptr_equal(job.longest, &runs[3]);
	assert_ptr_equal(job.failed, &runs[1]);
	assert_int_equal(job.failed_us, 50);
	cli_job_free(&job);

	/* What is refused on purpose is no failure; what comes earlier is the first. */
	runs[1].ooms = (struct cli_ooms){.honest = 1, .honest_first_us = 1, .honest_last_us = 1};
	ooms[0].time_us = 49;
	job = cli_job_of(&summaries);
	assert_ptr_equal(job.failed, &runs[2]);
	assert_int_equal(job.failed_us, 49);
	cli_job_free(&job);
}

/* By job, step and rank, with numbers as numbers and what is not told first; of the same, as they were read. */
TEST_WITH(the_order_of_ranks, NULL, forget)
{
	static char *const known[][3] = {{NULL, NULL, "3"}, {"2", NULL, "5"}, {"2", "0", "9"},
	                                 {"2", "0", "10"},  {"2", "1", "1"},  {"2", "1", "1"},
	                                 {"10", "0", "0"}};
	static const unsigned orders[][7] = {
	    {0, 1, 2, 3, 4, 5, 6}, {6, 4, 3, 5, 1, 2, 0}, {3, 6, 0, 2, 4, 1, 5}};

	for (unsigned i = 0; i < 3; i++) {
		struct cli_job job;

		summaries.count = 0;
		for (unsigned at = 0; at < 7; at++) {
			char *const *of = known[orders[i][at]];

			add(of[0], of[2], "node1", BEGAN_US)->step = of[1];
		}
		job = cli_job_of(&summaries);
		for (unsigned at = 0; at < 7; at++) {
			assert_ptr_equal(runs[at].job, known[at][0]);
			assert_ptr_equal(runs[at].step, known[at][1]);
			assert_string_equal(runs[at].rank, known[at][2]);
		}
		assert_true(runs[4].number < runs[5].number);
		cli_job_free(&job);
	}
}
