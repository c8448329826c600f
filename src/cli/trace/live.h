/* What is allocated at one moment of a recorded run, by seq. */
#ifndef SPILL_CLI_LIVE_H
#define SPILL_CLI_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* What an allocation is counted under: each a table of the run's summary. */
enum cli_view { CLI_BY_CALLER, CLI_BY_PLACE, CLI_BY_RULE, CLI_BY_REASON, CLI_VIEWS };

struct cli_live_entry {
	uint64_t seq; /* 0: none (they count from 1) */
	uint64_t bytes;
	struct spill_bytes held;
	uint64_t moves, moved; /* to the host until now: how often, and how many bytes in all */
	int device;
	union { /* of a summary; of a recording (recording.h) */
		unsigned rows[CLI_VIEWS];
		struct {
			uint32_t number, slot;
		};
	};
	bool known; /* its alloc was told: it counts in the rows */
	bool
	    asked; /* memory of the host that the program itself asked for: nothing that wants to be on a device */
};

/* A table with open addressing; {0} is an empty one. */
struct cli_live {
	struct cli_live_entry *entries;
	size_t size, count;
};

/* NULL if it is not there. Good until something is added or removed. */
struct cli_live_entry *cli_live_find(const struct cli_live *live, uint64_t seq);

/* A new entry, zeroed but for its seq. pre: seq is not there, and not 0 */
struct cli_live_entry *cli_live_add(struct cli_live *live, uint64_t seq);

void cli_live_remove(struct cli_live *live, struct cli_live_entry *entry);
void cli_live_free(struct cli_live *live);

#endif
