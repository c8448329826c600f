/* Recorded runs are told whole, in the order in which they happened, and never mixed. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lines.h"
#include "live.h"
#include "names.h"
#include "sorter.h"
#include "story.h"
#include "summary.h"
#include "trace.h"
#include "roll.h"

#define START "{\"v\":1,\"kind\":\"start\",\"t\":0.0,\"pid\":%d,\"program\":\"p\"}"

static char folder[] = "/tmp/spill-unit-XXXXXX";
static char path[64];

static FILE *begin_file(const char *name)
{
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	return file;
}

static void note(FILE *file, size_t length)
{
	fputs("{\"v\":1,\"kind\":\"note\",\"t\":1.0,\"tid\":1,\"code\":\"c\",\"text\":\"", file);
	for (size_t i = 0; i < length; i++)
		fputc('a' + (int)(i % 26), file);
	fputs("\"}\n", file);
}

/* Lines of all lengths, so that some end just before, at and behind the end of a block, and some are longer than one. */
TEST(lines_across_blocks)
{
	static const size_t extra[] = {(1 << 20) - 60, (1 << 20), 3 << 20, 1, 2};
	struct cli_lines lines;
	struct spill_record record;
	FILE *file = begin_file("blocks.jsonl");
	unsigned count = 4000;

	for (unsigned i = 0; i < count; i++)
		note(file, i % 997);
	for (unsigned i = 0; i < 5; i++)
		note(file, extra[i]);
	fclose(file);
	assert_true(cli_lines_open(&lines, path, CLI_REGULAR));
	for (unsigned i = 0; i < count + 5; i++) {
		assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_RECORD);
		assert_int_equal(strlen(record.note.text), i < count ? i % 997 : extra[i - count]);
		assert_int_equal(lines.number, i + 1);
	}
	assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_END);
	assert_int_equal(lines.error, 0);
	cli_lines_close(&lines);
}

/* A newline just before, at and behind where one block ends and the next begins. */
TEST(lines_that_end_with_a_block)
{
	struct cli_lines lines;
	struct spill_record record;
	long empty;

	for (int away = -2; away <= 2; away++) {
		FILE *file = begin_file("blocks.jsonl");

		note(file, 0);
		empty = ftell(file);
		note(file, (size_t)((1 << 20) - 2 * empty + 1 + away));
		note(file, 5);
		fclose(file);
		assert_true(cli_lines_open(&lines, path, CLI_REGULAR));
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_RECORD);
		assert_int_equal(strlen(record.note.text), 5);
		assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_END);
		cli_lines_close(&lines);
	}
}

static enum cli_line only_line(const char *text, struct cli_lines *lines)
{
	static struct spill_record record;
	FILE *file = begin_file("one.jsonl");

	fputs(text, file);
	fclose(file);
	assert_true(cli_lines_open(lines, path, CLI_REGULAR));
	return cli_lines_next(lines, &record);
}

TEST(a_cut_line_and_a_broken_one)
{
	struct cli_lines lines;
	struct spill_record record;

	assert_int_equal(only_line("{\"v\":1,\"kind\":\"no", &lines), CLI_LINE_CUT);
	cli_lines_close(&lines);
	assert_int_equal(only_line("{\"v\":1,\"kind\":\"no\n", &lines), CLI_LINE_BAD);
	cli_lines_close(&lines);
	/* One that was not ended, but is all there. */
	assert_int_equal(only_line("{\"v\":1,\"kind\":\"later\",\"t\":1.0}", &lines), CLI_LINE_RECORD);
	cli_lines_close(&lines);
	assert_int_equal(
	    only_line("{\"v\":1,\"kind\":\"no{\"v\":1,\"kind\":\"start\",\"t\":0.0,\"pid\":7}\nx\n", &lines),
	    CLI_LINE_CUT);
	assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_RECORD);
	assert_int_equal(record.start.pid, 7);
	assert_int_equal(lines.number, 1);
	assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_BAD);
	assert_int_equal(lines.number, 2);
	cli_lines_close(&lines);
	/* The start that came behind is cut itself. */
	assert_int_equal(only_line("{\"v\":1,{\"v\":1,\"kind\":\"start\",\"t\":", &lines), CLI_LINE_CUT);
	assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_CUT);
	assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_END);
	cli_lines_close(&lines);
	assert_false(cli_lines_open(&lines, "/nowhere/x.jsonl", CLI_REGULAR));
	assert_int_not_equal(lines.error, 0);
	assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_END);
	cli_lines_close(&lines);
}

/* One that is followed for days may be replaced often. No descriptor stays behind. */
TEST(a_replaced_log_is_closed)
{
	struct cli_lines lines;
	struct spill_record record;
	FILE *file;
	int before;

	assert_int_equal(only_line("{\"v\":1,\"kind\":\"later\",\"t\":1.0}\n", &lines), CLI_LINE_RECORD);
	assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_END);
	assert_false(cli_lines_is_replaced(&lines));
	before = lines.fd;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(unlink(path), 0);
		file = begin_file("one.jsonl");
		fprintf(file, START "\n", 7 + (int)i);
		fclose(file);
		assert_true(cli_lines_is_replaced(&lines));
		assert_true(cli_lines_reopen(&lines));
		assert_int_equal(lines.fd, before);
		assert_int_equal(cli_lines_next(&lines, &record), CLI_LINE_RECORD);
		assert_int_equal(record.start.pid, 7 + i);
		assert_int_equal(lines.number, 1);
	}
	cli_lines_close(&lines);
}

TEST(names_are_kept_once)
{
	struct cli_names names = {0};
	const struct cli_name *kept[2000];
	char text[CLI_NAME_MOST + 10];

	assert_null(cli_names_get(&names, NULL));
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(text, sizeof(text), "lib.so+%#x", i);
		kept[i] = cli_names_get(&names, text);
		assert_string_equal(kept[i]->text, text);
		assert_int_equal(kept[i]->id, i);
	}
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(text, sizeof(text), "lib.so+%#x", i);
		assert_ptr_equal(cli_names_get(&names, text), kept[i]);
	}
	/* One that another begins with is not the same. */
	assert_string_equal(cli_names_get(&names, "lib.so+")->text, "lib.so+");
	assert_string_equal(cli_names_get(&names, "")->text, "");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(strlen(cli_names_get(&names, text)->text), CLI_NAME_MOST);
	cli_names_free(&names);
}

/* Against a table of all. */
TEST(live_ones_by_seq)
{
	static uint64_t held[5000];
	struct cli_live live = {0};
	size_t count = 0;

	assert_null(cli_live_find(&live, 1));
	for (unsigned i = 0; i < 200000; i++) {
		uint64_t seq = 1 + roll_any() % 4999;
		struct cli_live_entry *entry = cli_live_find(&live, seq);

		assert_int_equal(entry != NULL, held[seq] != 0);
		if (!entry) {
			held[seq] = 1 + i;
			cli_live_add(&live, seq)->bytes = held[seq];
			count++;
			continue;
		}
		assert_int_equal(entry->bytes, held[seq]);
		cli_live_remove(&live, entry);
		held[seq] = 0;
		count--;
	}
	assert_int_equal(live.count, count);
	for (uint64_t seq = 1; seq < 5000; seq++)
		assert_int_equal(cli_live_find(&live, seq) != NULL, held[seq] != 0);
	cli_live_free(&live);
}

static uint64_t last_order, told_count, at_oom;

static void in_order(void *data, const struct cli_event *event)
{
	if (event->kind == CLI_EVENT_OOM) {
		at_oom = last_order;
		return;
	}
	assert_true(event->order > last_order);
	last_order = event->order;
	told_count++;
}

static void anyhow(void *data, const struct cli_event *event)
{
	(void)event;
	told_count++;
}

/* Each at most 500 places from where it belongs; every hundredth order is told by no line. */
TEST(events_are_sorted)
{
	enum { COUNT = 100000, WITHIN = 500 };
	static uint64_t orders[COUNT];
	struct cli_sorter sorter = {.deliver = in_order};
	size_t count = 0;

	for (uint64_t order = 1; count < COUNT; order++) {
		if (order % 100)
			orders[count++] = order;
	}
	for (size_t i = 0; i < COUNT; i += WITHIN) {
		for (size_t left = WITHIN; left > 1; left--) {
			size_t at = i + roll_any() % left;
			uint64_t swapped = orders[i + left - 1];

			orders[i + left - 1] = orders[at];
			orders[at] = swapped;
		}
	}
	last_order = told_count = 0;
	for (size_t i = 0; i < COUNT; i++) {
		cli_sorter_put(&sorter, &(struct cli_event){.kind = CLI_EVENT_FREE, .order = orders[i]});
		assert_true(sorter.count < CLI_SORTER_MOST);
	}
	cli_sorter_flush(&sorter);
	assert_int_equal(told_count, COUNT);
	assert_int_equal(sorter.late, 0);
	cli_sorter_reset(&sorter);
}

/* What is in order is told at once; an out of memory after what stood before it. */
TEST(nothing_waits_without_need)
{
	struct cli_sorter sorter = {.deliver = in_order};
	const struct cli_event oom = {.kind = CLI_EVENT_OOM};

	last_order = told_count = at_oom = 0;
	cli_sorter_put(&sorter, &(struct cli_event){.order = 1});
	cli_sorter_put(&sorter, &oom);
	assert_int_equal(at_oom, 1);
	cli_sorter_put(&sorter, &(struct cli_event){.order = 4});
	cli_sorter_put(&sorter, &oom);
	cli_sorter_put(&sorter, &(struct cli_event){.order = 3});
	assert_int_equal(told_count, 1);
	assert_int_equal(at_oom, 1);
	cli_sorter_put(&sorter, &(struct cli_event){.order = 2});
	assert_int_equal(told_count, 4);
	assert_int_equal(at_oom, 4);
	assert_int_equal(sorter.count, 0);
	cli_sorter_reset(&sorter);
}

TEST(one_that_comes_too_late_is_counted)
{
	struct cli_sorter sorter = {.deliver = anyhow};

	told_count = 0;
	for (uint64_t order = 2; order <= CLI_SORTER_MOST + 1; order++)
		cli_sorter_put(&sorter, &(struct cli_event){.order = order});
	assert_int_equal(told_count, CLI_SORTER_MOST);
	cli_sorter_put(&sorter, &(struct cli_event){.order = 1});
	assert_int_equal(sorter.late, 1);
	assert_int_equal(told_count, CLI_SORTER_MOST + 1);
	/* Of a log without orders none is late. */
	cli_sorter_put(&sorter, &(struct cli_event){.order = 0});
	assert_int_equal(sorter.late, 1);
	assert_int_equal(told_count, CLI_SORTER_MOST + 2);
	cli_sorter_reset(&sorter);
}

static struct cli_summaries summaries;
static struct cli_trace trace;

static bool read_all(const char *from)
{
	trace = (struct cli_trace){.command = "test", .visitor = &cli_summary_visitor, .data = &summaries};
	summaries.names = &trace.names;
	return cli_trace_read(&trace, from);
}

static void forget_all(void)
{
	cli_summaries_free(&summaries);
	cli_trace_free(&trace);
}

static void alloc(FILE *file, unsigned seq, unsigned order, const char *place, const char *rest)
{
	fprintf(file,
	        "{\"v\":1,\"kind\":\"alloc\",\"t\":%u.0,\"seq\":%u,\"order\":%u,\"tid\":1,\"dev\":0,"
	        "\"bytes\":100,"
	        "\"ptr\":\"0x1\",\"place\":\"%s\",%s,\"reason\":\"fits\",\"us\":1}\n",
	        order, seq, order, place, rest);
}

/* Two threads: the free and the move are told before the alloc, and the peak is what was really there at once. */
TEST(peaks_follow_the_order_not_the_lines)
{
	FILE *file = begin_file("order.jsonl");

	fprintf(file, START "\n", 1);
	alloc(file, 1, 1, "movable", "\"device_bytes\":100");
	alloc(file, 2, 4, "device", "\"device_bytes\":100");
	fputs("{\"v\":1,\"kind\":\"free\",\"t\":3.0,\"seq\":1,\"order\":3,\"tid\":2,\"dev\":0,\"bytes\":100,"
	      "\"ptr\":\"0x1\","
	      "\"place\":\"movable\",\"us\":1}\n"
	      "{\"v\":1,\"kind\":\"move\",\"t\":2.0,\"seq\":1,\"order\":2,\"what\":\"demote\",\"tid\":2,"
	      "\"dev\":0,\"bytes\":40,"
	      "\"chunks\":1,\"device_bytes\":60,\"host_bytes\":40,\"reason\":\"oom\",\"us\":1}\n",
	      file);
	fclose(file);
	assert_true(read_all(path));
	assert_int_equal(summaries.count, 1);
	assert_int_equal(summaries.runs[0].totals.peak.device, 100);
	assert_int_equal(summaries.runs[0].totals.peak.host, 40);
	assert_int_equal(summaries.runs[0].totals.live.device, 100);
	assert_int_equal(summaries.runs[0].totals.live.host, 0);
	assert_int_equal(summaries.runs[0].unknown_frees, 0);
	forget_all();
}

/* Its alloc is in the sums, with all its bytes: they are not counted twice, whatever the order. */
TEST(what_moved_before_log_max_took_its_alloc)
{
	FILE *file = begin_file("moved.jsonl");

	fprintf(file, START "\n", 1);
	fputs("{\"v\":1,\"kind\":\"move\",\"t\":2.0,\"seq\":1,\"order\":2,\"what\":\"demote\",\"tid\":2,"
	      "\"dev\":0,\"bytes\":40,"
	      "\"chunks\":1,\"device_bytes\":60,\"host_bytes\":40,\"reason\":\"oom\",\"us\":1}\n"
	      "{\"v\":1,\"kind\":\"drop\",\"t\":3.0,\"alloc\":{\"count\":1,\"device_bytes\":100,\"host_"
	      "bytes\":0,\"managed_bytes\":0},"
	      "\"peak\":{\"device_bytes\":100,\"host_bytes\":40,\"managed_bytes\":0}}\n",
	      file);
	fclose(file);
	assert_true(read_all(path));
	assert_int_equal(summaries.runs[0].totals.allocs, 1);
	assert_int_equal(summaries.runs[0].totals.live.device, 60);
	assert_int_equal(summaries.runs[0].totals.live.host, 40);
	assert_int_equal(summaries.runs[0].totals.peak.device, 100);
	forget_all();
}

#define DEVICE_BYTES "{\"count\":1,\"device_bytes\":%u,\"host_bytes\":0,\"managed_bytes\":0}"

static void sum(FILE *file, unsigned order, unsigned allocated, unsigned freed, unsigned live, unsigned peak)
{
	fprintf(file,
	        "{\"v\":1,\"kind\":\"sum\",\"t\":%u.0,\"order\":%u,\"held\":{\"device_bytes\":%u,\"device_"
	        "peak\":%u,\"all_bytes\":%u,\"all_peak\":%u},\"dev\":0,\"api\":\"cuMemAllocAsync\","
	        "\"caller\":\"p+0x1\",\"rule\":\"default\",\"alloc\":" DEVICE_BYTES ",\"free\":" DEVICE_BYTES
	        ",\"live_bytes\":%u,\"peak_bytes\":%u,\"largest\":{\"seq\":1,\"bytes\":1}}\n",
	        order, order, live, peak, live, peak, allocated, freed, live, peak);
}

/* One page has the charts of all runs: each run that comes makes those of the earlier ones smaller. */
TEST(charts_of_many_runs_share_a_page)
{
	struct cli_stories stories = {.summaries = &summaries};
	FILE *file = begin_file("moved.jsonl");

	for (int run = 1; run <= 20; run++) {
		fprintf(file, START "\n", run);
		for (unsigned i = 1; i <= 3000; i++)
			alloc(file, i, i, "device", "\"device_bytes\":100");
	}
	fclose(file);
	trace = (struct cli_trace){.command = "test", .visitor = &cli_story_visitor, .data = &stories};
	summaries.names = &trace.names;
	assert_true(cli_trace_read(&trace, path));
	assert_int_equal(stories.count, 20);
	for (size_t run = 0; run < 20; run++) {
		assert_int_equal(stories.runs[run].lane_count, 1);
		assert_in_range(stories.runs[run].lanes[0].line.count, 2, CLI_STORY_BUCKETS_IN_ALL / 20);
	}
	cli_stories_free(&stories);
	forget_all();
}

/* A later piece alone frees what an earlier one allocated. That was there, and nothing is below 0. */
TEST(what_is_freed_was_there)
{
	const struct cli_summary *run;
	const struct cli_row *row;
	FILE *file = begin_file("moved.jsonl");

	fprintf(file, START "\n", 1);
	sum(file, 1, 0, 300, 500, 800);
	sum(file, 2, 50, 100, 450, 500);
	alloc(file, 7, 3, "device", "\"device_bytes\":100");
	fputs("{\"v\":1,\"kind\":\"drop\",\"t\":4.0,\"free\":{\"count\":1,\"device_bytes\":400,\"host_"
	      "bytes\":7,"
	      "\"managed_bytes\":8},\"demote\":{\"count\":1,\"device_bytes\":0,\"host_bytes\":5,\"managed_"
	      "bytes\":0},"
	      "\"peak\":{\"device_bytes\":800,\"host_bytes\":0,\"managed_bytes\":0}}\n"
	      "{\"v\":1,\"kind\":\"free\",\"t\":5.0,\"seq\":7,\"order\":4,\"tid\":2,\"dev\":0,\"bytes\":100,"
	      "\"ptr\":\"0x1\",\"place\":\"device\",\"us\":1}\n",
	      file);
	fclose(file);
	assert_true(read_all(path));
	run = &summaries.runs[0];
	assert_memory_equal(&run->totals.live, &(struct spill_bytes){0}, sizeof(run->totals.live));
	assert_int_equal(run->totals.peak.device, 800);
	assert_int_equal(run->devices[0].live.device, 0);
	assert_int_equal(run->devices[0].peak.device, 800);
	row = cli_table_find(&run->views[CLI_BY_CALLER], "p+0x1");
	assert_non_null(row);
	assert_int_equal(row->live, 0);
	assert_in_range(row->peak, 0, 800);
	forget_all();
}

TEST(runs_are_never_mixed)
{
	FILE *file = begin_file("runs.jsonl");

	fprintf(file, START "\n", 1);
	alloc(file, 1, 1, "device", "\"device_bytes\":100");
	alloc(file, 2, 3, "device", "\"device_bytes\":100"); /* waits for order 2 */
	fprintf(file, "{\"v\":1,\"kind\":\"al" START "\n", 2);
	alloc(file, 1, 1, "host", "\"host_bytes\":100");
	fclose(file);
	assert_true(read_all(path));
	assert_int_equal(summaries.count, 2);
	assert_int_equal(summaries.runs[0].pid, 1);
	assert_int_equal(summaries.runs[0].totals.live.device, 200);
	assert_true(summaries.runs[0].end.cut);
	assert_int_equal(summaries.runs[1].pid, 2);
	assert_int_equal(summaries.runs[1].line, 4);
	assert_int_equal(summaries.runs[1].totals.live.device, 0);
	assert_int_equal(summaries.runs[1].totals.live.host, 100);
	assert_int_equal(summaries.runs[1].totals.allocs, 1);
	assert_false(summaries.runs[1].end.cut);
	forget_all();
}

/* A program that runs into it a million times: the first and the last are kept, all are counted. Those on purpose are only counted. */
TEST(the_first_and_last_out_of_memory)
{
	FILE *file = begin_file("ooms.jsonl");
	const struct cli_ooms *ooms;

	fprintf(file, START "\n", 1);
	for (unsigned i = 0; i < 1000; i++)
		fprintf(file,
		        "{\"v\":1,\"kind\":\"oom\",\"t\":%u.0,\"tid\":1,\"dev\":0,\"bytes\":%u,\"free\":0,"
		        "\"total\":1,\"live\":"
		        "{\"device_bytes\":0,\"host_bytes\":0,\"managed_bytes\":0},\"refused_by\":\"%s\"}\n",
		        i + 1, i, i % 4 ? "host.limit" : "oom.honest_first");
	fclose(file);
	assert_true(read_all(path));
	ooms = &summaries.runs[0].ooms;
	assert_int_equal(ooms->count, 750);
	assert_int_equal(ooms->honest, 250);
	assert_int_equal(ooms->honest_first_us, 1000000);
	assert_int_equal(ooms->honest_last_us, 997000000);
	assert_int_equal(summaries.runs[0].totals.ooms, 1000);
	static const unsigned first[CLI_OOMS_EACH] = {1, 2, 3, 5, 6, 7, 9, 10, 11, 13},
	                      last[CLI_OOMS_EACH] = {987, 989, 990, 991, 993, 994, 995, 997, 998, 999};
	for (unsigned i = 0; i < CLI_OOMS_EACH; i++) {
		assert_int_equal(ooms->list[i].bytes, first[i]);
		assert_int_equal(ooms->list[CLI_OOMS_EACH + i].bytes, last[i]);
	}
	assert_ptr_equal(cli_summary_cause(&summaries.runs[0]), &ooms->list[2 * CLI_OOMS_EACH - 1]);
	assert_int_equal(summaries.runs[0].devices[0].fit.refused, 999);
	forget_all();
}

/* Half of a run: from its start line that says how many lines are before it; `count` allocations, and perhaps an exit line. */
static void piece(const char *name, const char *time, int pid, unsigned before, unsigned first,
                  unsigned count, bool exit)
{
	FILE *file = begin_file(name);

	if (before)
		fprintf(
		    file,
		    "{\"v\":1,\"kind\":\"start\",\"t\":0.0,\"time\":\"%s\",\"pid\":%d,\"continues\":%u}\n",
		    time, pid, before);
	else
		fprintf(file, "{\"v\":1,\"kind\":\"start\",\"t\":0.0,\"time\":\"%s\",\"pid\":%d}\n", time,
		        pid);
	for (unsigned i = first; i < first + count; i++)
		alloc(file, i, i, "device", "\"device_bytes\":100");
	if (exit)
		fprintf(file,
		        "{\"v\":1,\"kind\":\"exit\",\"t\":9.0,\"how\":\"exit\",\"allocs\":%u,\"frees\":0,"
		        "\"spills\":0,"
		        "\"ooms\":0,\"live\":{\"device_bytes\":%u,\"host_bytes\":0,\"managed_bytes\":0},"
		        "\"peak\":{\"device_bytes\":%u,\"host_bytes\":0,\"managed_bytes\":0},"
		        "\"spilled\":{\"device_bytes\":0,\"host_bytes\":0,\"managed_bytes\":0}}\n",
		        first + count - 1, (first + count - 1) * 100, (first + count - 1) * 100);
	fclose(file);
}

static unsigned differences(unsigned run)
{
	struct cli_difference list[CLI_DIFFERENCES];

	return cli_summary_differences(&summaries.runs[run], list);
}

static int remove_logs(void **data)
{
	static const char *const names[] = {"blocks.jsonl",    "one.jsonl",  "order.jsonl", "moved.jsonl",
	                                    "runs.jsonl",      "ooms.jsonl", "p.jsonl",     "q.jsonl",
	                                    "r.jsonl",         "s.jsonl",    "p.jsonl.1",   "p.jsonl.gz",
	                                    "p.jsonl-20261121"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return 0;
}

/* By name the newest comes first. Its start line says which run it continues. */
TEST_WITH(a_rotated_run_is_told_as_one, remove_logs, NULL)
{
	piece("p.jsonl", "T", 1, 7, 6, 2, true);
	piece("p.jsonl.1", "T", 1, 4, 4, 2, false);
	piece("p.jsonl-20261121", "T", 1, 0, 1, 3, false);
	fclose(begin_file("p.jsonl.gz"));
	assert_true(read_all(folder));
	assert_int_equal(summaries.count, 1);
	assert_int_equal(summaries.runs[0].totals.allocs, 7);
	assert_int_equal(summaries.runs[0].totals.peak.device, 700);
	assert_true(summaries.runs[0].exited);
	assert_int_equal(summaries.runs[0].end.missing, 0);
	assert_int_equal(differences(0), 0);
	forget_all();
}

/* What lacks lines is not told as if its sums were wrong. */
TEST(a_piece_alone_says_what_is_missing)
{
	snprintf(path, sizeof(path), "%s/p.jsonl", folder);
	assert_true(read_all(path));
	assert_int_equal(summaries.count, 1);
	assert_int_equal(summaries.runs[0].totals.allocs, 2);
	assert_int_equal(summaries.runs[0].end.missing, 7);
	assert_int_equal(differences(0), 0);
	forget_all();
	snprintf(path, sizeof(path), "%s/p.jsonl.1", folder);
	assert_int_equal(unlink(path), 0);
	assert_true(read_all(folder));
	assert_int_equal(summaries.count, 1);
	assert_int_equal(summaries.runs[0].totals.allocs, 5);
	assert_int_equal(summaries.runs[0].end.missing, 3);
	assert_int_equal(differences(0), 0);
	forget_all();
}

/* Of a run that ends as a run of another process begins: neither goes on with the other, nor does a file without a start line. */
TEST(pieces_of_others_are_not_taken)
{
	FILE *file;

	piece("p.jsonl", "T", 2, 4, 6, 1, true);
	file = begin_file("q.jsonl");
	alloc(file, 1, 1, "device", "\"device_bytes\":100");
	fclose(file);
	piece("r.jsonl", "T", 2, 7, 6, 1, false);
	piece("s.jsonl", "U", 2, 9, 6, 1, false); /* in containers all are 1 */
	assert_true(read_all(folder));
	assert_int_equal(summaries.count, 5);
	assert_int_equal(summaries.runs[0].totals.allocs, 3);
	assert_int_equal(summaries.runs[0].end.missing, 0);
	assert_false(summaries.runs[0].exited);
	assert_int_equal(summaries.runs[1].end.missing, 4);
	assert_false(summaries.runs[2].started);
	assert_int_equal(summaries.runs[2].totals.allocs, 1);
	assert_int_equal(summaries.runs[3].end.missing, 7);
	forget_all();
}

static int make_folder(void **data)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **data)
{
	remove_logs(data);
	return rmdir(folder);
}

int main(void)
{
	return run_unit_tests(make_folder, remove_folder);
}
