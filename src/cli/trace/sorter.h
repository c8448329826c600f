/*
 * What happened, in the order in which it did: lines of several threads may be in another one (docs/log-format.md). Events
 * wait for those before them, at most CLI_SORTER_MOST, because an order may be missing for good (the driver refused a free, or
 * its line was lost).
 */
#ifndef SPILL_CLI_SORTER_H
#define SPILL_CLI_SORTER_H

#include <stddef.h>
#include <stdint.h>

#include "names.h"
#include "policy.h"
#include "record.h"

enum cli_event_kind { CLI_EVENT_ALLOC, CLI_EVENT_FREE, CLI_EVENT_DEMOTE, CLI_EVENT_PROMOTE, CLI_EVENT_OOM };

struct cli_event {
	enum cli_event_kind kind;
	int device;             /* -1: none is known */
	enum spill_place place; /* of ALLOC and FREE; SPILL_PLACES: one that we do not know */
	uint64_t time_us, seq;  /* seq: not of OOM */
	uint64_t order; /* 0: of a log without; it is told as it came. OOM: that of what was told before it */
	uint64_t bytes; /* asked; what moved */
	struct spill_bytes held; /* of ALLOC and moves: all of the allocation from now on */
	const struct cli_name *api, *caller, *rule; /* NULL: not told */
	const struct cli_name *reason;              /* of OOM: refused_by */
};

#define CLI_SORTER_MOST 16384

struct cli_sorter_item;

struct cli_sorter {
	void (*tell)(void *data, const struct cli_event *event);
	void *data;
	uint64_t told, seen; /* orders: the last that was told, the highest that came */
	unsigned long late;  /* came when a later one had been told: peaks may be wrong */
	uint64_t arrivals;
	struct cli_sorter_item *heap;
	size_t count, size;
};

void cli_sorter_put(struct cli_sorter *sorter, const struct cli_event *event);

/* Tells all that wait. */
void cli_sorter_flush(struct cli_sorter *sorter);

/* Forgets all, for another run; `tell` and `data` stay. */
void cli_sorter_reset(struct cli_sorter *sorter);

#endif
