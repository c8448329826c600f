#include "live.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Fibonacci hashing spreads consecutive numbers. */
static size_t home_slot(const struct cli_live *live, uint64_t seq)
{
	return (size_t)((seq * 0x9e3779b97f4a7c15u) >> 32) & (live->size - 1);
}

static struct cli_live_entry *find_slot(const struct cli_live *live, uint64_t seq)
{
	size_t index = home_slot(live, seq);

	while (live->entries[index].seq && live->entries[index].seq != seq)
		index = (index + 1) & (live->size - 1);
	return &live->entries[index];
}

struct cli_live_entry *cli_live_find(const struct cli_live *live, uint64_t seq)
{
	struct cli_live_entry *entry = live->count ? find_slot(live, seq) : NULL;

	return entry && entry->seq && seq ? entry : NULL;
}

/* At most half full, so that a failed search is short. */
static void grow_table(struct cli_live *live)
{
	struct cli_live old = *live;

	live->size = old.size ? old.size * 2 : 1024;
	live->entries = cli_realloc(NULL, live->size, sizeof(*live->entries));
	memset(live->entries, 0, live->size * sizeof(*live->entries));
	for (size_t i = 0; i < old.size; i++) {
		if (old.entries[i].seq)
			*find_slot(live, old.entries[i].seq) = old.entries[i];
	}
	free(old.entries);
}

struct cli_live_entry *cli_live_add(struct cli_live *live, uint64_t seq)
{
	struct cli_live_entry *entry;

	if (2 * (live->count + 1) > live->size)
		grow_table(live);
	live->count++;
	entry = find_slot(live, seq);
	entry->seq = seq;
	return entry;
}

/* Moves later entries into the hole, so that no search ends too early. */
void cli_live_remove(struct cli_live *live, struct cli_live_entry *entry)
{
	size_t mask = live->size - 1, hole = (size_t)(entry - live->entries), index = hole;

	live->count--;
	for (;;) {
		index = (index + 1) & mask;
		if (!live->entries[index].seq)
			break;
		if (((index - home_slot(live, live->entries[index].seq)) & mask) < ((index - hole) & mask))
			continue;
		live->entries[hole] = live->entries[index];
		hole = index;
	}
	live->entries[hole] = (struct cli_live_entry){0};
}

void cli_live_free(struct cli_live *live)
{
	free(live->entries);
	*live = (struct cli_live){0};
}
