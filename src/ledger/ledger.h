/*
 * ledger: the live allocations: every allocation that this process made through a hooked call, by
 * address. An entry leaves the ledger BEFORE the memory is released. Otherwise another thread could
 * get the same address, and its entry would be lost (pitfall 9).
 *
 * The ledger calls no vendor and releases no memory. Begin with struct spill_allocation, then
 * placement.h.
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
	/* Bytes to return to the accounts at the end. A placement keeps its own. */
	uint64_t charged;      /* of the device. */
	uint64_t charged_host; /* of the host, for pinned memory that the program asked for. */
	uint64_t charged_rule; /* of the cap of a rule. */
	unsigned rule;         /* that rule. */
	bool handle;           /* `ptr` is a handle (vmm.h), which no context ends. */
	int device;
	void *context;
	uint64_t generation; /* of the context (context_end.h). Set by spill_ledger_add. */
	enum spill_place place;
	struct spill_bytes held;
	uint64_t seq;
	/* Of its last event: entry, move or removal. An event that is summed has no order. */
	uint64_t order;
	struct spill_level level;
	/* Sums its events by call site under this rule (site_sums.h). NULL: they have lines. */
	const char *sum_rule;
	unsigned sum;             /* its call site's sums. Set by spill_ledger_add. 0: it has lines. */
	const char *api, *caller; /* static or interned. */
	const char *requester;    /* who asked the caller (requester.h); NULL: not looked for. */
	const void *site;         /* return address of the call; NULL: not kept. */
	struct spill_placement *placement; /* ours to release; NULL: the vendor's memory. */
	bool ordered;                      /* allocated in stream order. */
	bool part;     /* a range of a segment (ordered_pool.h). That is counted, and the range is not. */
	bool outlives; /* no context's end ends it, as in the vendor's pools (backend.h). */
	bool in_tree;  /* for ledger.c. */
	struct spill_vendor_pool *mempool; /* the pool that counts its live bytes, or NULL. */
	void *pool;                        /* the vendor's pool that the program named, or NULL. */
	struct spill_allocation *next;
};

/*
 * Adds a copy of `allocation`, and counts it in the totals. Sets seq, sum, order and level of both.
 * False if there is no memory for the entry: then nothing is counted, and the caller keeps the
 * placement.
 */
bool spill_ledger_add(struct spill_allocation *allocation);

/* Bytes that we put off the device, although the program did not ask for that. */
static inline uint64_t spill_ledger_away(const struct spill_allocation *allocation)
{
	return allocation->placement ? allocation->held.host + allocation->held.managed : 0;
}

static inline bool spill_ledger_is_spill(const struct spill_allocation *allocation)
{
	return spill_ledger_away(allocation) != 0;
}

/* Removes and returns the entry whose address is exactly `ptr` (the caller owns it), or NULL. */
struct spill_allocation *spill_ledger_take(uint64_t ptr);

/* The same for the handle with that seq: the vendor may reuse values of released handles. */
struct spill_allocation *spill_ledger_take_handle(uint64_t handle, uint64_t seq);

/* Undoes a take, after the vendor refused the free. */
void spill_ledger_put_back(struct spill_allocation *allocation);

/* Ends a taken entry: counts the free, returns a rule's charge, frees it. Keeps its placement. */
void spill_ledger_end(struct spill_allocation *allocation);

/*
 * The memory of the entry at exactly `ptr` (or of that handle) with that seq has moved, and it
 * holds `held` now. Stores the order and the level of this event. False if the entry is being freed
 * in another thread: then the move is not counted. Another entry at that address belongs to an
 * ended context.
 */
bool spill_ledger_moved(uint64_t ptr, uint64_t seq, const struct spill_bytes *held, uint64_t *order,
                        struct spill_level *level);

/* Removes and returns any one entry that ends with the context, or NULL. */
struct spill_allocation *spill_ledger_take_of(const struct spill_context_end *end);

/* Copies the entry that has a placement and contains the address `ptr`. */
bool spill_ledger_placed(uint64_t ptr, struct spill_allocation *copy);

/* Visits every placement that has an address, under the lock. */
void spill_ledger_each_placed(void (*visit)(const struct spill_placement *placement, void *data), void *data);

/* Stores the live bytes and holders (ledger_totals.h), in one walk. pre: record->device is set */
void spill_ledger_holders(struct spill_record_oom *record);
void spill_ledger_totals(struct spill_totals *totals);
/* Bytes that we have put off the device, now. */
uint64_t spill_ledger_away_now(void);
/* The totals at the end of the process. Waits a limited time: this thread may hold the lock. */
bool spill_ledger_totals_now(struct spill_totals *totals);
/* The same for the first `count` devices. */
struct spill_device_totals;
bool spill_ledger_device_totals_now(struct spill_device_totals *totals, unsigned count);
void spill_ledger_count_oom(int device);
/* A move of the device's memory held the program up for so long. */
void spill_ledger_held_up(int device, uint64_t us);
/* Memory that launches have used in place so far. Waits a limited time, as above. */
void spill_ledger_in_place(int device, const struct spill_in_place *now);

/* Offers the log a line that log.max may leave out. Its drop line then counts `bytes`. */
void spill_ledger_offer(const char *line, size_t length, enum spill_log_when when, enum spill_drop kind,
                        const struct spill_bytes *bytes);

/*
 * Writes a line for each call site with sums that the log does not have yet. `due` does that at most
 * once a second of the log's time `now_us`.
 */
void spill_ledger_write_sums(void);
void spill_ledger_write_due_sums(uint64_t now_us);

extern const struct spill_fork_lock spill_ledger_fork_lock;

#endif
