/* spill log: a log's records for people, or as one JSON array. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

struct reading {
	const char *path;
	bool json;
	unsigned long line, records;
	int status;
	bool ended; /* the last record is an exit line */
};

static const char *kind_of(const cJSON *record)
{
	const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "kind"));

	return kind ? kind : "";
}

/* A line that ends without a newline is one that the program was writing when it was killed. */
static void take_line(struct reading *reading, const char *line, size_t length, bool whole)
{
	cJSON *record = cJSON_ParseWithLength(line, length);

	reading->line++;
	if (cJSON_IsObject(record))
		reading->ended = !strcmp(kind_of(record), "exit");
	if (!cJSON_IsObject(record)) {
		fprintf(stderr, "spill log: %s:%lu: %s\n", reading->path, reading->line,
		        whole ? "not a record" : "the last line is cut");
		if (whole)
			reading->status = CLI_FINDINGS;
	} else if (reading->json) {
		/* As it stands in the file: printing numbers anew could round them. */
		fputs(reading->records++ ? ",\n" : "[", stdout);
		fwrite(line, 1, length, stdout);
	} else {
		reading->records++;
		cli_print_record(stdout, record);
	}
	cJSON_Delete(record);
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
	if (ferror(file)) {
		fprintf(stderr, "spill log: %s: %s\n", reading->path, strerror(errno));
		return CLI_FINDINGS;
	}
	if (reading->json)
		puts(reading->records ? "]" : "[]");
	else if (!reading->records)
		printf("%s: no records\n", reading->path);
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
		return cli_usage(argv[0], optind == argc ? "which file?" : "one file at a time");
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
