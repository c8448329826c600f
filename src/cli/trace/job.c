#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Within this time a launcher starts all ranks, and all ranks of a job end. */
#define LAUNCH_US ((int64_t)60 * 1000000)

/* -- order ----------------------------------------------------------------------------------- */

/* Compares numbers in texts as numbers, so that 10 follows 9. No text comes first. */
static int compare_texts(const char *left, const char *right)
{
	return left && right ? strverscmp(left, right) : (left != NULL) - (right != NULL);
}

/* By job and step, then by rank. A job may have run several times. */
static int compare_runs(const void *left, const void *right)
{
	const struct cli_summary *a = left, *b = right;
	int order = compare_texts(a->job, b->job);

	if (!order)
		order = compare_texts(a->step, b->step);
	if (!order)
		order = compare_texts(a->rank, b->rank);
	return order ? order : (a->number > b->number) - (a->number < b->number);
}

static bool have_ranks(const struct cli_summaries *summaries)
{
	for (size_t i = 0; i < summaries->count; i++) {
		if (!summaries->runs[i].rank)
			return false;
	}
	return summaries->count > 1;
}

static bool is_same_job(const struct cli_summary *a, const struct cli_summary *b)
{
	return !compare_texts(a->job, b->job) && !compare_texts(a->step, b->step);
}

/* -- clocks ---------------------------------------------------------------------------------- */

static int64_t distance(int64_t a, int64_t b)
{
	return a < b ? b - a : a - b;
}

static int compare_times(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* The medians of the begins and ends of a host's runs, by its clock. */
struct span {
	int64_t begin, end;
};

static struct span span_of(struct cli_summary *const *runs, size_t count)
{
	int64_t *begins = cli_realloc(NULL, count, sizeof(*begins)),
	        *ends = cli_realloc(NULL, count, sizeof(*ends));
	struct span span;

	for (size_t i = 0; i < count; i++) {
		begins[i] = runs[i]->wall_us;
		ends[i] = runs[i]->wall_us + (int64_t)runs[i]->run_us;
	}
	qsort(begins, count, sizeof(*begins), compare_times);
	qsort(ends, count, sizeof(*ends), compare_times);
	span = (struct span){begins[count / 2], ends[count / 2]};
	free(begins);
	free(ends);
	return span;
}

/* Can the clocks be compared? See the header. pre: the runs are of one job, and sorted */
static bool is_one_launch(const struct cli_summary *runs, size_t count)
{
	if (!runs[0].job)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!runs[i].host || !runs[i].wall_us || (i && !strcmp(runs[i].rank, runs[i - 1].rank)))
			return false;
	}
	return true;
}

/* The microseconds that the first clock seems to be ahead of the second; 0: it is believed. */
static int64_t clock_ahead(struct span host, struct span first)
{
	int64_t begins = host.begin - first.begin, ends = host.end - first.end;

	return distance(begins, 0) > LAUNCH_US && distance(begins, ends) <= LAUNCH_US ? begins : 0;
}

static int compare_hosts(const void *left, const void *right)
{
	const struct cli_summary *const *a = left, *const *b = right;

	return strcmp((*a)->host, (*b)->host);
}

/* The end of a host's runs, which begin at `from`. */
static size_t end_of_host(struct cli_summary *const *by_host, size_t from, size_t count)
{
	size_t to = from + 1;

	while (to < count && !strcmp(by_host[to]->host, by_host[from]->host))
		to++;
	return to;
}

/* pre: the runs are of one job, and sorted */
static void set_clocks(struct cli_summary *runs, size_t count)
{
	struct cli_summary **by_host;
	struct span first = {0, 0};

	if (!is_one_launch(runs, count))
		return;
	by_host = cli_realloc(NULL, count, sizeof(struct cli_summary *));
	for (size_t i = 0; i < count; i++)
		by_host[i] = &runs[i];
	qsort(by_host, count, sizeof(struct cli_summary *), compare_hosts);
	for (size_t from = 0, to; from < count; from = to) {
		to = end_of_host(by_host, from, count);
		if (!strcmp(by_host[from]->host, runs[0].host))
			first = span_of(by_host + from, to - from);
	}
	for (size_t from = 0, to; from < count; from = to) {
		int64_t ahead;

		to = end_of_host(by_host, from, count);
		ahead = clock_ahead(span_of(by_host + from, to - from), first);
		for (size_t i = from; i < to; i++)
			by_host[i]->clock_ahead_us = ahead;
	}
	free(by_host);
}

/* Seconds since the first run began, on one clock, if all logs tell the time. */
static void set_begins(struct cli_summary *runs, size_t count)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		if (!runs[i].wall_us)
			return;
		if (runs[i].wall_us - runs[i].clock_ahead_us < first)
			first = runs[i].wall_us - runs[i].clock_ahead_us;
	}
	for (size_t i = 0; i < count; i++) {
		runs[i].begin_told = true;
		runs[i].begin_us = (uint64_t)(runs[i].wall_us - runs[i].clock_ahead_us - first);
	}
}

/* -- what stands out ------------------------------------------------------------------------- */

/* `rows`: by the name's id, the host's index in the job + 1; 0: it is new. */
static void add_host(struct cli_job *job, struct cli_names *names, size_t *rows,
                     const struct cli_summary *run)
{
	size_t *row = &rows[cli_names_get(names, run->host)->id];
	struct cli_host *host;

	if (!*row) {
		job->hosts = cli_grow(job->hosts, job->host_count, &job->host_size, sizeof(*job->hosts));
		job->hosts[job->host_count] = (struct cli_host){.name = run->host};
		*row = ++job->host_count;
	}
	host = &job->hosts[*row - 1];
	host->runs++;
	if (!host->ahead_us)
		host->ahead_us = run->clock_ahead_us;
}

static void add_hosts(struct cli_job *job, const struct cli_summaries *summaries)
{
	size_t *rows;

	for (size_t i = 0; i < summaries->count; i++)
		cli_names_get(summaries->names, summaries->runs[i].host);
	rows = cli_realloc(NULL, summaries->names->count, sizeof(*rows));
	memset(rows, 0, summaries->names->count * sizeof(*rows));
	for (size_t i = 0; i < summaries->count; i++) {
		if (summaries->runs[i].host)
			add_host(job, summaries->names, rows, &summaries->runs[i]);
	}
	free(rows);
}

/* The share of the device that was wanted; of a device of unknown size less than of any other. */
static double share_of(const struct cli_device *device)
{
	return device->bytes ? (double)device->fit.wanted / (double)device->bytes : 0;
}

static void consider_devices(struct cli_job *job, const struct cli_summary *run)
{
	for (size_t i = 0; i < run->device_count; i++) {
		const struct cli_device *device = &run->devices[i];

		if (device->device < 0 || !device->fit.wanted ||
		    (job->full && share_of(device) <= share_of(job->full)))
			continue;
		job->full = device;
		job->fullest = run;
	}
}

static void consider_ooms(struct cli_job *job, const struct cli_summary *run)
{
	if (!run->begin_told || !run->ooms.count)
		return;
	uint64_t time_us = run->begin_us + run->ooms.list[0].time_us;

	if (!job->failed || time_us < job->failed_us) {
		job->failed = run;
		job->failed_us = time_us;
	}
}

static void consider_run(struct cli_job *job, const struct cli_summary *run)
{
	uint64_t moves_us = run->story.away.moves_us;

	consider_devices(job, run);
	consider_ooms(job, run);
	if (moves_us && (!job->held_up || moves_us > job->held_up->story.away.moves_us))
		job->held_up = run;
	if (!job->longest || run->run_us > job->longest->run_us)
		job->longest = run;
}

struct cli_job cli_job_of(struct cli_summaries *summaries)
{
	struct cli_job job = {.ranks = have_ranks(summaries)};
	struct cli_summary *runs = summaries->runs;
	size_t count = summaries->count;

	if (job.ranks) {
		qsort(runs, count, sizeof(*runs), compare_runs);
		for (size_t from = 0, to; from < count; from = to) {
			for (to = from + 1; to < count && is_same_job(&runs[from], &runs[to]); to++)
				;
			set_clocks(runs + from, to - from);
		}
	}
	set_begins(runs, count);
	if (job.ranks)
		add_hosts(&job, summaries);
	for (size_t i = 0; job.ranks && i < count; i++)
		consider_run(&job, &runs[i]);
	return job;
}

void cli_job_free(struct cli_job *job)
{
	free(job->hosts);
	*job = (struct cli_job){0};
}
