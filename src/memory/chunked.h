/*
 * Chunked placements: one reserved range, mapped chunk by chunk, each chunk its own handle on the device or on the host
 * (HOST_NUMA, pinned, read in place), because a mapping can be unmapped only whole. So a chunk can move while the program's
 * pointer stays. Two places make them: `movable` (all on the device, before the device is full) and `split` (what fits on
 * the device, the rest on host). CUDA Driver API, "Virtual Memory Management".
 */
#ifndef SPILL_CHUNKED_H
#define SPILL_CHUNKED_H

#include "gate.h"
#include "place.h"

struct spill_chunk {
	uint64_t handle, bytes;
	uint64_t offset; /* from the allocation's begin */
	uint64_t view;   /* on host: where it is mapped a second time (move.h); 0: nowhere */
	bool on_host;
	bool displaced; /* not where it would be without movable.follow (restore.h) */
	bool unmapped;  /* its mapping is lost: the vendor refused to put it back (move.c) */
	bool wrong;     /* so it is, and memory without its content is there: that mapping did not end */
};

struct spill_chunked {
	struct spill_placement base;
	uint64_t range;  /* bytes of address space reserved */
	uint64_t chunk;  /* bytes of a whole chunk */
	uint64_t mapped; /* bytes mapped from the start: all, but for one half made */
	/* Of those that may be moved, the mover's: */
	TAILQ_ENTRY(spill_chunked) all; /* in the order they were made */
	bool enlisted;
	_Atomic bool dead; /* cache of a growing pool that nothing reuses (policy/predict/growth.h) */
	bool owed;         /* came when nothing could move: others are to give way to it later (promote.h) */
	bool pinned;       /* exported: stays where it is for life */
	bool followed;     /* enlisted and not pinned: its chunks are in chunk_map.h */
	uint64_t seq;      /* of the ledger's entry: its age */
	const char *api, *caller; /* as in the ledger */
	uint64_t run;             /* of requests from its call site (growth_state.h); 0: not known */
	bool grows;               /* its request did: older ones of its run are dead once it is enlisted */
	enum spill_priority priority;
	/* From this offset on it stays on host: a rule's cap has left no more of the device. UINT64_MAX: there is no cap */
	uint64_t stays_from;
	uint64_t moved_at; /* of the mover's counter, at its last move; 0: never */
	unsigned count;
	struct spill_chunk chunks[];
};

/* -- making and releasing, for the places ------------------------------------------------------------------ */

/* Is it on host, and may come to the device? */
static inline bool spill_chunk_may_come(const struct spill_chunked *chunked, unsigned chunk)
{
	return chunked->chunks[chunk].on_host && chunked->chunks[chunk].offset < chunked->stays_from;
}

/* Bytes of all that may. */
static inline uint64_t spill_chunked_away(const struct spill_chunked *chunked)
{
	uint64_t stay = chunked->range > chunked->stays_from ? chunked->range - chunked->stays_from : 0;
	return chunked->base.held.host > stay ? chunked->base.held.host - stay : 0;
}

/*
 * Reserves addresses for want->bytes, rounded up to `unit`, with nothing mapped and nothing charged. NULL with *error, a
 * static string.
 */
struct spill_chunked *spill_chunked_reserve(const struct spill_place_ops *ops,
                                            const struct spill_place_request *want, uint64_t unit,
                                            const char **error);

/*
 * Makes and maps chunks of `bytes` in all, a multiple of the unit, behind what is mapped; the last may be smaller than the
 * others. Returns the vendor's error; what was made before it stays. Access is the caller's to allow, accounts its to charge.
 */
int spill_chunked_extend(struct spill_chunked *chunked, bool on_host, uint64_t bytes);

/* Of spill_place_ops. Chunks belong to the process, not to a context: given back whether it has ended or not. */
void spill_chunked_release(struct spill_placement *placement, bool context_ended);
void spill_chunked_range(const struct spill_placement *placement, uint64_t *va, uint64_t *bytes);

/* -- views ------------------------------------------------------------------------------------------------- */

/*
 * Maps memory a second time, for copies, with access by the device, at addresses reserved for exactly its bytes; 0 if the vendor
 * refuses. What it maps and does not undo again stays: the view is then returned without access.
 */
uint64_t spill_view_make(const struct spill_backend *backend, int device, uint64_t handle, uint64_t bytes);

/* Undoes it; 0 is allowed. Addresses whose mapping the vendor does not end are left for good. */
void spill_view_end(const struct spill_backend *backend, uint64_t view, uint64_t bytes);

/* -- moving ------------------------------------------------------------------------------------------------- */

/*
 * A new placement is in the ledger: from now on it may be moved. `seq` and names as there. Last of all, behind
 * spill_peer_placed, and for any placement once: waits for nobody.
 */
void spill_chunked_enlist(struct spill_chunked *chunked);

/*
 * The opposite, when it is freed: where its bytes are does not change any more. Waits for the mover; does nothing if it is
 * not enlisted. A release does it by itself. pre: the mover is not held by this thread
 */
void spill_chunked_delist(struct spill_chunked *chunked);

/* True if something may be moved: one load. */
bool spill_chunked_any(void);

/*
 * Bytes on host of those that may be moved: pinned ones not. One load. The observer is told after each change.
 */
uint64_t spill_chunked_on_host(void);

/* The same on a device. */
uint64_t spill_chunked_on_device(int device);

/* Walks those that may be moved, oldest first. pre: the mover is held; they stay while it is */
struct spill_chunked *spill_chunked_next(struct spill_chunked *after);

/* The one that `ptr` falls into stays where it is for life (exports). Waits for the mover. */
void spill_chunked_pin(uint64_t ptr);

/*
 * A chunk is on the other side now, by `handle`: the placement follows. Charges go with handles: that of the new home
 * becomes the placement's, that of the old one whoever has its handle returns. The ledger is told by whoever logs the move
 * (spill_ledger_moved). pre: the mover is held
 */
void spill_chunked_moved(struct spill_chunked *chunked, unsigned chunk, uint64_t handle);

/* Where a chunk is mapped. */
uint64_t spill_chunked_address(const struct spill_chunked *chunked, unsigned chunk);

/* The placement as what it is, or NULL if it is not chunked (or NULL). */
struct spill_chunked *spill_chunked_of(struct spill_placement *placement);

/* The granule of both kinds of chunk, 0 if the device cannot do this. */
uint64_t spill_chunked_granule(const struct spill_backend *backend, int device);

/*
 * `changed` is called whenever bytes of movable memory come to the host or leave it, with the list's lock held
 * (SPILL_RANK_CHUNKED), one call at a time. It takes no lock of a lower rank and walks no list. The mover need not be held: an
 * allocation can be made on the host at any time.
 */
void spill_chunked_observe(void (*changed)(void));

/*
 * Chunks go and come all the time until then (CLOCK_MONOTONIC): nothing that they need is given back, and nobody else promotes.
 * 0: no longer.
 */
void spill_chunked_hold(uint64_t until_ns);
bool spill_chunked_is_held(void);

/* The list's lock, for fork. The mover's lock is taken for itself, first of all (gate.h). */
void spill_chunked_fork_prepare(void);
void spill_chunked_fork_done(bool child);

#endif
