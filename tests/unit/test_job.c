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
