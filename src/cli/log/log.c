/* spill log: prints records for people, or as one JSON array. */
#include "log_reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"
#include "cli.h"
#include "find_log.h"
#include "put.h"
#include "summary.h"

static void print_heading(struct log_output *output, const struct log_reading *reading)
{
	if (output->many && !output->json && output->last != reading->lines.path) {
		fputs(output->last ? "\n" : "", stdout);
		cli_printf("==> %s <==\n", reading->lines.path);
	}
	output->last = reading->lines.path;
}

static void note_start(struct log_reading *reading, const struct spill_record_start *start)
{
	reading->pid = start->pid;
	reading->gone = cli_writer_is_gone(start, reading->lines.path);
	reading->where = !cli_is_this_machine(start) ? LOG_OTHER_HOST
	                 : cli_is_this_boot(start)   ? LOG_HERE
	                                             : LOG_OTHER_BOOT;
}

static void count_rules(const struct log_reading *reading, const struct spill_record *record)
{
	if (record->kind == SPILL_KIND_START && record->start.continues && reading->records)
		return; /* the run continues in this file */
	if (record->kind == SPILL_KIND_START)
		cli_rules_print(stdout);
	cli_rules_take(record);
}

static void print_record(struct log_output *output, struct log_reading *reading,
                         const struct spill_record *record)
{
	print_heading(output, reading);
	if (output->json) {
		/* The line itself, so that unknown members are kept. */
		fputs(output->records ? ",\n" : "[", stdout);
		cli_put_json_line(stdout, reading->lines.text, reading->lines.length);
	} else {
		if (output->counting)
			count_rules(reading, record);
		cli_print_record(stdout, record, &reading->files, reading->follow_off);
	}
	output->records++;
}

/* Needed for later lines, also if this one is not shown. A piece of a run begins it anew. */
static void take_files(struct log_reading *reading, const struct spill_record *record)
{
	if (record->kind == SPILL_KIND_START)
		reading->follow_off = cli_follow_is_off(&record->start);
	if (record->kind == SPILL_KIND_START && !(record->start.continues && reading->records))
		cli_run_files_begin(&reading->files, &record->start);
	else if (record->kind == SPILL_KIND_FILE)
		cli_run_files_add(&reading->files, &record->file);
}

/* People see the start line of each run, whatever they ask for, because it names the program. */
static void take_next(struct log_output *output, struct log_reading *reading,
                      const struct spill_record *record)
{
	bool start = record->kind == SPILL_KIND_START;
	reading->ended = record->kind == SPILL_KIND_EXIT;
	reading->later += record->version > SPILL_RECORD_VERSION;
	take_files(reading, record);
	bool shows = log_filter_shows(&output->filter, record);
	output->matched |= shows;
	if ((start && !output->json) || shows)
		print_record(output, reading, record);
	if (start)
		note_start(reading, &record->start);
	reading->records++;
}

bool log_begin(struct log_reading *reading, const char *path, enum cli_files files)
{
	*reading = (struct log_reading){0};
	return cli_lines_open(&reading->lines, path, files);
}

void log_read(struct log_output *output, struct log_reading *reading)
{
	struct cli_lines *lines = &reading->lines;
	struct spill_record record;
	enum cli_line line;

	while ((line = cli_lines_next(lines, &record)) != CLI_LINE_END) {
		if (line == CLI_LINE_RECORD)
			take_next(output, reading, &record);
		else
			cli_lines_complain("log", lines, line);
		if (line == CLI_LINE_BAD)
			output->status = CLI_FINDINGS;
	}
}

static enum cli_life life_of(const struct log_output *output, const struct log_reading *reading)
{
	return cli_life_of(reading->lines.path, output->pid ? output->pid : reading->pid, reading->gone);
}

void log_end(struct log_output *output, struct log_reading *reading)
{
	if (reading->lines.error) {
		cli_complain("log", reading->lines.path, cli_open_text(reading->lines.error));
		output->status = CLI_FINDINGS;
	} else if (!reading->records) {
		cli_complain("log", reading->lines.path, "no records");
		output->status = CLI_FINDINGS;
	} else if (!output->json) {
		print_heading(output, reading);
		if (output->counting)
			cli_rules_print(stdout);
		if (reading->later)
			cli_printf("not shown: %s of a later version of spill\n",
			           cli_count(reading->later, "record").text);
		else if (!reading->ended)
			cli_printf("no exit line: %s\n", cli_life_words(life_of(output, reading)));
	}
	cli_run_files_free(&reading->files);
	cli_lines_close(&reading->lines);
}

static void print_log(struct log_output *output, const char *path, enum cli_files files)
{
	struct log_reading reading;

	if (log_begin(&reading, path, files))
		log_read(output, &reading);
	log_end(output, &reading);
}

static void print_folder(struct log_output *output, const char *path)
{
	struct cli_pieces pieces = cli_pieces_find(path);
	const char *problem = cli_pieces_problem(&pieces);

	output->many = pieces.count > 1;
	cli_pieces_complain("log", path, &pieces);
	if (problem) {
		cli_complain("log", path, problem);
		output->status = CLI_FINDINGS;
	}
	for (size_t i = 0; i < pieces.count; i++)
		print_log(output, pieces.paths[i], CLI_REGULAR);
	cli_pieces_free(&pieces);
}

int cli_log(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	struct log_output output = {0};
	bool follow = false, folder;
	char found[PATH_MAX];
	const char *path;
	struct stat status;

	while (cli_call_next(&call)) {
		output.json |= call.option == CLI_log_json;
		follow |= call.option == CLI_log_follow;
		log_filter_take(&output.filter, &call);
	}
	if (call.over)
		return call.status;
	output.counting = !log_filter_any(&output.filter); /* sums of a part would mislead */
	if (call.count > 1)
		return cli_usage(argv[0], "one log, folder or process at a time");
	output.many = !call.count; /* which one it is */
	path = cli_find_log("log", call.count ? call.operand[0] : NULL, &output.pid, found);
	if (!path)
		return CLI_FINDINGS;
	folder = !stat(path, &status) && S_ISDIR(status.st_mode);
	if (follow)
		log_follow(&output, path, folder);
	else if (folder)
		print_folder(&output, path);
	else
		print_log(&output, path, CLI_REGULAR_OR_PIPE);
	if (output.json)
		puts(output.records ? "]" : "[]");
	else if (!output.matched && output.status == CLI_FINE)
		puts("no record is of that kind, caller and time");
	return cli_finish(output.status);
}
