#include "shared_blocks.h"

#include "cli.h"

/* Most blocks examined: with odd rests in blocks the search would dominate. */
#define LOOKS 256

size_t cli_shared_find(struct cli_shared *shared, uint64_t bytes)
{
	size_t none = shared->count;

	while (shared->from < shared->count && shared->left[shared->from] == 0)
		shared->from++;
	for (size_t i = shared->from; i < shared->count && i < shared->from + LOOKS; i++) {
		if (shared->left[i] == CLI_SHARED_NONE)
			none = none < i ? none : i;
		else if (shared->left[i] >= bytes)
			return i;
	}
	if (none < shared->count)
		return none;
	shared->left = cli_grow(shared->left, shared->count, &shared->size, sizeof(*shared->left));
	shared->left[shared->count] = CLI_SHARED_NONE;
	return shared->count++;
}

int cli_shared_is_made(const struct cli_shared *shared, size_t block)
{
	return shared->left[block] != CLI_SHARED_NONE;
}

void cli_shared_take(struct cli_shared *shared, size_t block, uint64_t bytes, uint64_t usable)
{
	if (!cli_shared_is_made(shared, block)) {
		shared->left[block] = usable;
		shared->made++;
	} else if (shared->left[block] == usable) {
		shared->empty--;
	}
	shared->left[block] -= bytes;
}

void cli_shared_give(struct cli_shared *shared, size_t block, uint64_t bytes, uint64_t usable, size_t keep)
{
	shared->left[block] += bytes;
	if (shared->left[block] == usable) {
		if (shared->empty == keep) {
			shared->left[block] = CLI_SHARED_NONE;
			shared->made--;
		} else {
			shared->empty++;
		}
	}
	if (block < shared->from)
		shared->from = block;
}

size_t cli_shared_trim(struct cli_shared *shared, uint64_t usable)
{
	size_t empty = shared->empty;

	for (size_t i = 0; i < shared->count && shared->empty; i++) {
		if (shared->left[i] != usable)
			continue;
		shared->left[i] = CLI_SHARED_NONE;
		shared->empty--;
		shared->made--;
	}
	return empty;
}

void cli_shared_reset(struct cli_shared *shared)
{
	shared->count = shared->from = shared->made = shared->empty = 0;
}
