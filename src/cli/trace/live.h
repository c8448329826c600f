/* The live allocations of a recorded run, by seq. */
#ifndef SPILL_CLI_LIVE_H
#define SPILL_CLI_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* Each view is a table in the run's summary. */
enum cli_view { CLI_BY_CALLER, CLI_BY_PLACE, CLI_BY_RULE, CLI_BY_REASON, CLI_VIEWS };

struct cli_live_entry {
	uint64_t seq; /* from 1 on; 0: an empty entry */
	uint64_t bytes;
	struct spill_bytes held;
	uint64_t moves, moved; /* moves to the host, and their bytes */
	int device;
	union { /* used by a summary, or by a recording (recording.h) */
		unsigned rows[CLI_VIEWS];
		struct {
			uint32_t number, slot;
		};
	};
	bool known; /* its alloc line was read, so it counts in the rows */
	bool asked; /* host memory that the program itself asked for; it belongs on no device */
	bool ours;  /* what it has on host or managed is there because libspill put it there */
};

/* A table with open addressing; {0} is empty. */
struct cli_live {
	struct cli_live_entry *entries;
	size_t size, count;
};

/* NULL: not live. Valid until an entry is added or removed. */
struct cli_live_entry *cli_live_find(const struct cli_live *live, uint64_t seq);

/* Adds an entry, zeroed except for seq. pre: seq is not 0 and not live */
struct cli_live_entry *cli_live_add(struct cli_live *live, uint64_t seq);

void cli_live_remove(struct cli_live *live, struct cli_live_entry *entry);
void cli_live_free(struct cli_live *live);

#endif
