#include "live.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Numbers that follow each other fall far apart (Fibonacci hashing). */
static size_t home(const struct cli_live *live, uint64_t seq)
{
	return (size_t)((seq * 0x9e3779b97f4a7c15u) >> 32) & (live->size - 1);
}

static struct cli_live_entry *slot(const struct cli_live *live, uint64_t seq)
{
	size_t at = home(live, seq);

	while (live->entries[at].seq && live->entries[at].seq != seq)
		at = (at + 1) & (live->size - 1);
	return &live->entries[at];
}

struct cli_live_entry *cli_live_find(const struct cli_live *live, uint64_t seq)
{
	struct cli_live_entry *entry = live->count ? slot(live, seq) : NULL;

	return entry && entry->seq && seq ? entry : NULL;
}

/* At most half full, so that looking for what is not there stays short. */
static void grow(struct cli_live *live)
{
	struct cli_live old = *live;

	live->size = old.size ? old.size * 2 : 1024;
	live->entries = cli_realloc(NULL, live->size, sizeof(*live->entries));
	memset(live->entries, 0, live->size * sizeof(*live->entries));
	for (size_t i = 0; i < old.size; i++) {
		if (old.entries[i].seq)
			*slot(live, old.entries[i].seq) = old.entries[i];
	}
	free(old.entries);
}

struct cli_live_entry *cli_live_add(struct cli_live *live, uint64_t seq)
{
	struct cli_live_entry *entry;

	if (2 * (live->count + 1) > live->size)
		grow(live);
	live->count++;
	entry = slot(live, seq);
	entry->seq = seq;
	return entry;
}

/* Those behind it that could have had its place move up, so that no search ends too early. */
void cli_live_remove(struct cli_live *live, struct cli_live_entry *entry)
{
	size_t mask = live->size - 1, hole = (size_t)(entry - live->entries), at = hole;

	live->count--;
	for (;;) {
		at = (at + 1) & mask;
		if (!live->entries[at].seq)
			break;
		if (((at - home(live, live->entries[at].seq)) & mask) < ((at - hole) & mask))
			continue;
		live->entries[hole] = live->entries[at];
		hole = at;
	}
	live->entries[hole] = (struct cli_live_entry){0};
}

void cli_live_free(struct cli_live *live)
{
	free(live->entries);
	*live = (struct cli_live){0};
}
