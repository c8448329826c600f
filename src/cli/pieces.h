/* The logs of a folder, in the order in which they are to be read: a run whose file was rotated lies in several of them. */
#ifndef SPILL_CLI_PIECES_H
#define SPILL_CLI_PIECES_H

#include <stddef.h>

struct cli_pieces {
	char **paths;
	size_t count;
	int error; /* errno value of a folder that cannot be read; 0 */
};

/*
 * All *.jsonl, and what becomes of their names when they are rotated (x.jsonl.1, x.jsonl-20261121): by name, with numbers in their
 * order; those of one name (x.jsonl, x-2.jsonl, too) by their first start lines, so that the piece that goes on comes behind what it
 * continues.
 */
struct cli_pieces cli_pieces_find(const char *folder);

void cli_pieces_free(struct cli_pieces *pieces);

#endif
