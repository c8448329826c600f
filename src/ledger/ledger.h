/*
 * ledger: what is alive: every allocation that this process made through a hooked call, by address. An entry leaves it BEFORE the
 * memory is really given back, or a racing allocation that gets the same address would be lost (pitfall 9).
 *
 * It asks no vendor and releases no memory. Begin with struct spill_allocation, then placement.h.
 */
#ifndef SPILL_LEDGER_H
#define SPILL_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "context_end.h"
#include "log.h"
#include "placement.h"
#include "record.h"

struct spill_allocation {
	const struct spill_backend *backend;
	uint64_t ptr, bytes;
	uint64_t charged; /* device bytes to return at the end; a placement keeps its own until its release */
	uint64_t charged_host; /* likewise host bytes: pinned memory that the program asked for */
	uint64_t charged_rule; /* likewise bytes of a rule's cap, and */
	unsigned rule;         /* whose */
	bool handle; /* `ptr` is one of physical memory (vmm.h): no address, and no context ends it */
	int device;
	void *context;
	uint64_t generation; /* in which it was made (context_end.h); set by spill_ledger_add */
	enum spill_place place;
	struct spill_bytes held;
	uint64_t seq;
	uint64_t order;           /* of its last event, entry or removal, among all of the ledger's */
	const char *api, *caller; /* static or interned */
	const void *site;         /* return address of the call that asked for it; NULL: not kept */
	struct spill_placement *placement; /* ours to release, or NULL: the vendor's */
	bool ordered;                      /* allocated in stream order */
	bool outlives; /* its context's end, as memory of the vendor's pools does where backend.h says so */
	struct spill_vendor_pool *mempool; /* whose live bytes it is part of, or NULL */
	void *pool;                        /* the vendor's pool that the program has asked, or NULL */
	struct spill_allocation *next;
};

/*
 * Keeps a copy of `allocation`, gives both their seq and order, and counts it in the totals. False if there is
 * no memory for it: then it is not accounted, and the caller keeps the placement.
 */
bool spill_ledger_add(struct spill_allocation *allocation);

/* Bytes of it that we have put off the device: where the program did not ask for them to be. */
static inline uint64_t spill_ledger_away(const struct spill_allocation *allocation)
{
	return allocation->placement ? allocation->held.host + allocation->held.managed : 0;
}

/* True if there are some. */
static inline bool spill_ledger_is_spill(const struct spill_allocation *allocation)
{
	return spill_ledger_away(allocation) != 0;
}

/* Removes and returns the entry whose address is exactly `ptr` (the caller owns it), or NULL. */
struct spill_allocation *spill_ledger_take(uint64_t ptr);

/* The same for the handle of that seq: values of handles come back while what had them before still lives. */
struct spill_allocation *spill_ledger_take_handle(uint64_t handle, uint64_t seq);

/* Undoes a take: the vendor refused the free. */
void spill_ledger_put_back(struct spill_allocation *allocation);

/* Ends a taken entry: counts the free in the totals, returns what a rule was charged with and frees the entry, not its placement. */
void spill_ledger_end(struct spill_allocation *allocation);

/*
 * What backs the entry at exactly `ptr`, of that seq, has moved: it holds `held` now. Stores the order of this event. False if it is
 * not in the ledger (being freed at this moment): then nobody counts it any more. Another entry at the address is of an ended context.
 */
bool spill_ledger_moved(uint64_t ptr, uint64_t seq, const struct spill_bytes *held, uint64_t *order);

/* Removes and returns some entry that the end covers, or NULL. */
struct spill_allocation *spill_ledger_take_of(const struct spill_context_end *end);

/* Copies the entry of ours (with a placement) that `ptr` falls into, interior addresses too. */
bool spill_ledger_placed(uint64_t ptr, struct spill_allocation *copy);

/* Visits every placement at an address, under the lock. */
void spill_ledger_each_placed(void (*visit)(const struct spill_placement *placement, void *data), void *data);

/* Stores what is live, and who holds what of it (holders.h), in one walk. pre: the record has its device */
void spill_ledger_holders(struct spill_record_oom *record);
/* The sums. */
void spill_ledger_totals(struct spill_totals *totals);
/* The same without waiting for ever, for the end of the process, which may come inside a lock of ours. */
bool spill_ledger_totals_now(struct spill_totals *totals);
void spill_ledger_count_oom(int device);

/*
 * Offers the log a line that log.max may leave out. If it does, the figures of the line, `bytes`, are counted in the sums of what
 * was dropped.
 */
void spill_ledger_offer(const char *line, size_t length, enum spill_log_when when, enum spill_drop kind,
                        const struct spill_bytes *bytes);

void spill_ledger_fork_prepare(void);
void spill_ledger_fork_done(bool child);

#endif
