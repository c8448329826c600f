/* Blocks of one size that small requests share, first fit: of the driver's on the device, of ours on the host (shared_chunks.c). */
#ifndef SPILL_CLI_SHARED_BLOCKS_H
#define SPILL_CLI_SHARED_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

struct cli_shared {
	uint64_t *left; /* bytes that are left of each; CLI_SHARED_NONE: it is not there */
	size_t count, size;
	size_t from;  /* those before it are full */
	size_t made;  /* how many are there, */
	size_t empty; /* and of these nobody uses */
};

#define CLI_SHARED_NONE UINT64_MAX

/* Where so many bytes have room; one that is not there yet if none has. */
size_t cli_shared_find(struct cli_shared *shared, uint64_t bytes);

/* Is it there? False: to take from it makes it. */
int cli_shared_is_made(const struct cli_shared *shared, size_t block);

void cli_shared_take(struct cli_shared *shared, size_t block, uint64_t bytes, uint64_t usable);

/* Of empty ones at most `keep` stay. */
void cli_shared_give(struct cli_shared *shared, size_t block, uint64_t bytes, uint64_t usable, size_t keep);

/* All that are empty go. Returns how many those were. */
size_t cli_shared_trim(struct cli_shared *shared, uint64_t usable);

/* As at the beginning. */
void cli_shared_reset(struct cli_shared *shared);

#endif
