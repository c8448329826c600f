/* Tells which ranks of a job stand out, in the text, in JSON and on the page. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "json_out.h"
#include "put.h"
#include "report.h"

#define CLOCKS 5 /* most hosts whose clocks are named */

/* "rank 3 of job 17 on node1" */
static void add_rank(struct spill_text *text, const struct cli_summary *run)
{
	spill_text_format(text, "rank %s", run->rank);
	if (run->job)
		spill_text_format(text, " of job %s", run->job);
	if (run->host)
		spill_text_format(text, " on %s", run->host);
}

static void add_fullest(struct spill_text *text, const struct cli_job *job)
{
	const struct cli_device *device = job->full;

	add_rank(text, job->fullest);
	spill_text_format(text, ": %s needed at once on device %u", spill_size(device->fit.wanted).text,
	                  (unsigned)device->device);
	if (device->bytes) {
		double percent = 100 * (double)device->fit.wanted / (double)device->bytes + 0.5;

		/* A log can tell of a device of a byte. */
		spill_text_format(text, ", %u %% of it", (unsigned)(percent < UINT_MAX ? percent : UINT_MAX));
	}
}

static void add_held_up(struct spill_text *text, const struct cli_job *job)
{
	add_rank(text, job->held_up);
	spill_text_add(text, ": ");
	spill_story_time(text, job->held_up->story.away.moves_us);
	spill_text_add(text, " by moves, of a run of ");
	spill_story_time(text, job->held_up->run_us);
}

static void add_longest(struct spill_text *text, const struct cli_job *job)
{
	add_rank(text, job->longest);
	spill_text_add(text, ": ");
	spill_story_time(text, job->longest->run_us);
}

static void add_failed(struct spill_text *text, const struct cli_job *job)
{
	add_rank(text, job->failed);
	spill_text_add(text, ": ");
	spill_story_time(text, job->failed_us);
	spill_text_add(text, " after the first rank began");
}

/* The ranks that stand out: the label, the member of JSON, and the sentence. */
struct outstanding {
	const char *label, *member;
	const struct cli_summary *run;
	void (*add)(struct spill_text *text, const struct cli_job *job);
};

#define OUTSTANDING 4

static void list_outstanding(const struct cli_job *job, struct outstanding list[OUTSTANDING])
{
	const struct outstanding all[OUTSTANDING] = {
	    {"fullest", "fullest", job->fullest, add_fullest},
	    {"held up most", "held_up_most", job->held_up, add_held_up},
	    {"longest run", "longest", job->longest, add_longest},
	    {"first oom", "first_oom", job->failed, add_failed},
	};

	for (unsigned i = 0; i < OUTSTANDING; i++)
		list[i] = all[i];
}

static void put_clock(const struct cli_host *host)
{
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));
	bool ahead = host->ahead_us > 0;

	spill_story_time(&text, (uint64_t)(ahead ? host->ahead_us : -host->ahead_us));
	cli_report_label("clock");
	cli_printf("%s is taken to be %s %s: its ranks began and ended that much %s than the first rank\n",
	           host->name, buffer, ahead ? "ahead" : "behind", ahead ? "later" : "earlier");
}

static void put_clocks(const struct cli_job *job)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < job->host_count; i++) {
		if (job->hosts[i].ahead_us && wrong++ < CLOCKS)
			put_clock(&job->hosts[i]);
	}
	if (wrong > CLOCKS) {
		cli_report_label("clock");
		printf("and those of %u more hosts\n", wrong - CLOCKS);
	}
}

void cli_report_ranks(const struct cli_report *report)
{
	struct outstanding list[OUTSTANDING];

	if (!report->job.ranks)
		return;
	list_outstanding(&report->job, list);
	for (unsigned i = 0; i < OUTSTANDING; i++) {
		char buffer[CLI_ADVICE];
		struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

		if (!list[i].run)
			continue;
		list[i].add(&text, &report->job);
		cli_report_label(list[i].label);
		cli_printf("%s\n", buffer);
	}
	put_clocks(&report->job);
}

static void put_hosts(struct spill_json *json, const struct cli_job *job)
{
	spill_json_array(cli_json_key(json, "hosts"));
	for (size_t i = 0; i < job->host_count; i++) {
		const struct cli_host *host = &job->hosts[i];

		spill_json_object(cli_json_element(json));
		cli_json_text(json, "host", host->name);
		cli_json_number(json, "runs", host->runs);
		spill_json_i64(cli_json_key(json, "clock_ahead_us"), host->ahead_us);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

void cli_report_json_ranks(struct spill_json *json, const struct cli_report *report)
{
	struct outstanding list[OUTSTANDING];

	if (!report->job.ranks) {
		cli_json_text(json, "ranks", NULL);
		return;
	}
	spill_json_object(cli_json_key(json, "ranks"));
	put_hosts(json, &report->job);
	list_outstanding(&report->job, list);
	for (unsigned i = 0; i < OUTSTANDING; i++) {
		char buffer[CLI_ADVICE];
		struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

		if (!list[i].run) {
			cli_json_text(json, list[i].member, NULL);
			continue;
		}
		list[i].add(&text, &report->job);
		spill_json_object(cli_json_key(json, list[i].member));
		cli_json_number(json, "run", (uint64_t)(list[i].run - report->summaries.runs));
		cli_json_text(json, "text", buffer);
		spill_json_object_end(json);
	}
	spill_json_object_end(json);
}
