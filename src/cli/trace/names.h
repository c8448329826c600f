/* Texts that come again in a log's lines (callers, functions, rules), each kept once: equal texts are equal pointers. */
#ifndef SPILL_CLI_NAMES_H
#define SPILL_CLI_NAMES_H

#include <stddef.h>

struct cli_name {
	struct cli_name *next;
	unsigned id;     /* from 0 on: an index for what is counted by name */
	unsigned length; /* of the text */
	char text[];
};

/* Longer ones are cut, and then may be the same. */
#define CLI_NAME_MOST 1024

struct cli_names {
	struct cli_name **buckets;
	size_t bucket_count;
	unsigned count;
};

/* Lives until cli_names_free. NULL of NULL. */
const struct cli_name *cli_names_get(struct cli_names *names, const char *text);

void cli_names_free(struct cli_names *names);

#endif
