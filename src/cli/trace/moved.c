#include "moved.h"

static unsigned place_of(const struct cli_moved_list *moved, uint64_t seq)
{
	unsigned at = 0;

	while (at < moved->count && moved->list[at].seq != seq)
		at++;
	return at;
}

void cli_moved_note(struct cli_moved_list *moved, const struct cli_live_entry *entry,
                    const struct cli_name *caller)
{
	unsigned at = place_of(moved, entry->seq);

	if (at == CLI_MOVED) {
		if (moved->list[--at].moved >= entry->moved)
			return;
	} else if (at == moved->count) {
		moved->count++;
	}
	for (; at && moved->list[at - 1].moved < entry->moved; at--)
		moved->list[at] = moved->list[at - 1];
	moved->list[at] = (struct cli_moved){
	    .seq = entry->seq,
	    .bytes = entry->bytes,
	    .moves = entry->moves,
	    .moved = entry->moved,
	    .host = entry->held.host,
	    .device = entry->device,
	    .caller = caller,
	};
}

void cli_moved_free(struct cli_moved_list *moved, uint64_t seq)
{
	unsigned at = place_of(moved, seq);

	if (at < moved->count)
		moved->list[at].host = 0;
}
