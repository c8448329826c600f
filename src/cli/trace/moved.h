/* Which allocations were moved to the host most: who looks for what made way wants these, be they large or not. */
#ifndef SPILL_CLI_MOVED_H
#define SPILL_CLI_MOVED_H

#include "live.h"
#include "names.h"

#define CLI_MOVED 10

struct cli_moved {
	uint64_t seq, bytes;
	uint64_t moves, moved;         /* to the host: how often, and in all */
	uint64_t host;                 /* on the host at the end; 0 if it was freed */
	int device;                    /* -1: none */
	const struct cli_name *caller; /* who asked for it; NULL: not told */
};

/* Most first, of equal ones those that were there first. */
struct cli_moved_list {
	unsigned count;
	struct cli_moved list[CLI_MOVED];
};

/*
 * To be called after each move of an allocation. What was moved of one only grows, and it is looked at whenever it does:
 * so the list is exact, however many there are.
 */
void cli_moved_note(struct cli_moved_list *moved, const struct cli_live_entry *entry,
                    const struct cli_name *caller);

/* It is freed. */
void cli_moved_free(struct cli_moved_list *moved, uint64_t seq);

#endif
