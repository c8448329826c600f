/*
 * Puts events into the order in which they happened: lines of several threads may be in another
 * order (docs/log-format.md). Events wait for earlier ones, at most CLI_SORTER_MOST of them. An
 * order may be missing for good, because the driver refused a free or the line was lost.
 */
#ifndef SPILL_CLI_SORTER_H
#define SPILL_CLI_SORTER_H

#include <stddef.h>
#include <stdint.h>

#include "names.h"
#include "policy.h"
#include "record.h"

enum cli_event_kind {
	CLI_EVENT_ALLOC,
	CLI_EVENT_FREE,
	CLI_EVENT_DEMOTE,
	CLI_EVENT_PROMOTE,
	CLI_EVENT_SUM,
	CLI_EVENT_OOM
};

/* Allocations and frees of one call site without lines of their own. All are on the device. */
struct cli_site_sum {
	uint64_t allocs, alloc_bytes, frees, free_bytes;
	uint64_t live, peak; /* bytes of the call site: now, and the most since its last sum */
	struct spill_one largest;
};

struct cli_event {
	enum cli_event_kind kind;
	int device;             /* -1: not known */
	enum spill_place place; /* for ALLOC and FREE; SPILL_PLACES: an unknown place */
	uint64_t time_us, seq;  /* seq: not for OOM */
	/* 0: the log has no orders. OOM: that of the event before it */
	uint64_t order;
	struct spill_level level; /* of ALLOC, FREE, moves and SUM; see record.h */
	uint64_t bytes;           /* requested bytes, or moved bytes */
	struct spill_bytes held;  /* for ALLOC and moves: all bytes of the allocation from now on */
	struct spill_seen seen;   /* for ALLOC, moves and OOM: the driver's figures, if the log has them */
	uint64_t took_us;         /* for moves */
	struct cli_site_sum sum;  /* for SUM */
	const struct cli_name *api, *caller, *rule; /* NULL: not in the log */
	const struct cli_name *who;                 /* of spill_who_asked */
	const struct cli_name *reason;              /* for OOM: refused_by */
};

/*
 * 64 busy threads on two cores: one that waits for a processor between its event and its line lets
 * others write over 16,384 lines. Memory: some 30 MB, only where an order is missing for good.
 */
#define CLI_SORTER_MOST 131072

struct cli_sorter_item;

struct cli_sorter {
	void (*deliver)(void *data, const struct cli_event *event);
	void *data;
	uint64_t delivered, seen; /* the highest order delivered, and the highest seen */
	/* events that came after a later one was delivered: peaks may be wrong */
	unsigned long late;
	uint64_t arrivals;
	struct cli_sorter_item *heap;
	size_t count, size;
};

void cli_sorter_put(struct cli_sorter *sorter, const struct cli_event *event);

void cli_sorter_flush(struct cli_sorter *sorter);

/* Drops all events before another run. Keeps `deliver` and `data`. */
void cli_sorter_reset(struct cli_sorter *sorter);

#endif
