/* Blocks that small requests share: the driver's, or libspill's on the host (shared_chunks.h). */
#ifndef SPILL_CLI_SHARED_BLOCKS_H
#define SPILL_CLI_SHARED_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

struct cli_shared {
	uint64_t *left; /* free bytes of each block; CLI_SHARED_NONE: it does not exist */
	size_t count, size;
	size_t from;  /* all blocks before it are full */
	size_t made;  /* number of existing blocks */
	size_t empty; /* number of unused blocks */
};

#define CLI_SHARED_NONE UINT64_MAX

/* Finds a block with room for `bytes`, or one that does not exist yet. */
size_t cli_shared_find(struct cli_shared *shared, uint64_t bytes);

/* True if the block exists. Else cli_shared_take makes it. */
int cli_shared_is_made(const struct cli_shared *shared, size_t block);

void cli_shared_take(struct cli_shared *shared, size_t block, uint64_t bytes, uint64_t usable);

/* Frees bytes. At most `keep` unused blocks stay. */
void cli_shared_give(struct cli_shared *shared, size_t block, uint64_t bytes, uint64_t usable, size_t keep);

size_t cli_shared_trim(struct cli_shared *shared, uint64_t usable);

void cli_shared_reset(struct cli_shared *shared);

#endif
