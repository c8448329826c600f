/* spill log: a log's records for people, or as one JSON array. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "record_read.h"

struct reading {
	const char *path;
	bool json;
	unsigned long line, records;
	int status;
	bool ended;          /* the last record is an exit line */
	unsigned long later; /* records of a later version */
	char *scratch;
	size_t size;
};

/* NULL, or why it is no record. */
static const char *read_line(struct reading *reading, const char *line, size_t length,
                             struct spill_record *record, size_t *at)
{
	size_t size = SPILL_RECORD_SCRATCH(length);

	if (size > reading->size) {
		free(reading->scratch);
		reading->scratch = malloc(size);
		reading->size = reading->scratch ? size : 0;
	}
	*at = 0;
	if (!reading->scratch)
		return "no memory for it";
	return spill_record_read(line, length, reading->scratch, reading->size, record, at);
}

/* A line that ends without a newline is one that the program was writing when it was killed. */
static void take_line(struct reading *reading, const char *line, size_t length, bool whole)
{
	struct spill_record record;
	size_t at;
	const char *reason = read_line(reading, line, length, &record, &at);

	reading->line++;
	if (reason && whole) {
		fprintf(stderr, "spill log: %s:%lu: not a record: %s (byte %zu)\n", reading->path,
		        reading->line, reason, at + 1);
		reading->status = CLI_FINDINGS;
		return;
	}
	if (reason) {
		fprintf(stderr, "spill log: %s:%lu: the last line is cut\n", reading->path, reading->line);
		return;
	}
	reading->ended = record.kind == SPILL_KIND_EXIT;
	reading->later += record.version > SPILL_RECORD_VERSION;
	if (reading->json) {
		/* As it stands in the file: what we do not know is told too. */
		fputs(reading->records++ ? ",\n" : "[", stdout);
		fwrite(line, 1, length, stdout);
	} else {
		reading->records++;
		if (record.kind == SPILL_KIND_START)
			cli_rules_print(stdout);
		cli_rules_take(&record);
		cli_print_record(stdout, &record);
	}
}

static int read_log(struct reading *reading, FILE *file)
{
	size_t size = 0;
	char *line = NULL;
	ssize_t length;

	while ((length = getline(&line, &size, file)) > 0) {
		bool whole = line[length - 1] == '\n';

		take_line(reading, line, (size_t)length - whole, whole);
	}
	free(line);
	free(reading->scratch);
	if (ferror(file)) {
		fprintf(stderr, "spill log: %s: %s\n", reading->path, strerror(errno));
		return CLI_FINDINGS;
	}
	cli_rules_print(stdout);
	if (reading->json)
		puts(reading->records ? "]" : "[]");
	else if (!reading->records)
		printf("%s: no records\n", reading->path);
	else if (reading->later)
		printf("%lu records of a later version of spill are not shown\n", reading->later);
	else if (!reading->ended)
		puts("no exit line: the program still runs, or was killed");
	return reading->status;
}

int cli_log(int argc, char **argv)
{
	struct reading reading = {.status = CLI_FINE};
	FILE *file;
	int status;

	if (!cli_plain_options(argc, argv, &reading.json, &status))
		return status;
	if (argc - optind != 1)
		return cli_usage(argv[0], optind == argc
		                              ? "which file? by default logs are in ~/.local/state/spill"
		                              : "one file at a time");
	reading.path = argv[optind];
	file = fopen(reading.path, "re");
	if (!file) {
		fprintf(stderr, "spill log: %s: %s\n", reading.path, strerror(errno));
		return CLI_FINDINGS;
	}
	status = read_log(&reading, file);
	fclose(file);
	return cli_finish(status);
}
