/* spill log: a log's records for people, or as one JSON array. */
#include <string.h>

#include "call.h"
#include "cli.h"
#include "lines.h"

struct reading {
	struct cli_lines lines;
	bool json;
	unsigned long records;
	int status;
	bool ended;          /* the last record is an exit line */
	unsigned long later; /* records of a later version */
};

static void take_record(struct reading *reading, const struct spill_record *record)
{
	reading->ended = record->kind == SPILL_KIND_EXIT;
	reading->later += record->version > SPILL_RECORD_VERSION;
	if (reading->json) {
		/* As it stands in the file: what we do not know is told too. */
		fputs(reading->records++ ? ",\n" : "[", stdout);
		fwrite(reading->lines.text, 1, reading->lines.length, stdout);
	} else {
		reading->records++;
		if (record->kind == SPILL_KIND_START)
			cli_rules_print(stdout);
		cli_rules_take(record);
		cli_print_record(stdout, record);
	}
}

static void read_records(struct reading *reading)
{
	struct cli_lines *lines = &reading->lines;
	struct spill_record record;
	enum cli_line line;

	while ((line = cli_lines_next(lines, &record)) != CLI_LINE_END) {
		if (line == CLI_LINE_RECORD)
			take_record(reading, &record);
		else
			cli_lines_complain("log", lines, line);
		if (line == CLI_LINE_BAD)
			reading->status = CLI_FINDINGS;
	}
}

static int read_log(struct reading *reading)
{
	read_records(reading);
	if (reading->lines.error) {
		fprintf(stderr, "spill log: %s: %s\n", reading->lines.path, strerror(reading->lines.error));
		return CLI_FINDINGS;
	}
	cli_rules_print(stdout);
	if (reading->json)
		puts(reading->records ? "]" : "[]");
	else if (!reading->records)
		printf("%s: no records\n", reading->lines.path);
	else if (reading->later)
		printf("%lu records of a later version of spill are not shown\n", reading->later);
	else if (!reading->ended)
		puts("no exit line: the program still runs, or was killed");
	return reading->status;
}

int cli_log(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	struct reading reading = {.status = CLI_FINE};
	int status;

	if (!cli_call_json(&call, &reading.json, CLI_log_json))
		return call.status;
	if (call.count != 1)
		return cli_usage(argv[0], call.count
		                              ? "one file at a time"
		                              : "which file? by default logs are in ~/.local/state/spill");
	cli_lines_open(&reading.lines, call.operand[0]);
	status = read_log(&reading);
	cli_lines_close(&reading.lines);
	return cli_finish(status);
}
