/*
 * Chunked placements. A placement reserves one range of addresses and maps it chunk by chunk. Each
 * chunk has a handle of its own, on the device or on the host (HOST_NUMA, pinned, read in place),
 * because a mapping can be unmapped only whole. So a chunk can move while the program's pointer
 * stays. Two places make them. `movable` puts all chunks on the device, before the device is full.
 * `split` puts as many chunks on the device as fit, and the others on the host. CUDA Driver API,
 * "Virtual Memory Management".
 */
#ifndef SPILL_CHUNKED_H
#define SPILL_CHUNKED_H

#include "gate.h"
#include "place.h"

struct spill_ipc_exported;

struct spill_chunk {
	uint64_t handle, bytes;
	uint64_t offset; /* from the start of the allocation. */
	uint64_t view;   /* address of a second mapping of its memory, for copies (move.h); 0: none. */
	bool on_host;
	bool displaced; /* movable.follow put it on this side (restore.c). */
	bool unmapped;  /* it has no mapping: lost, because the vendor refused it (move.c), or in flight. */
	bool away;      /* on the host, and left without a mapping by a flight (residency/flight.h). */
	bool wrong_memory;   /* unmapped, with other memory there: not unmapped by the vendor, or parked. */
	_Atomic bool parked; /* dead, and without a mapping of its own (residency/parking.h). */
};

/* A part of a chunk. The offset is from the chunk's start. */
struct spill_span {
	uint64_t offset, bytes;
};

/*
 * Stores the parts of a chunk whose bytes count, in order, and returns their number. 0: the chunk is
 * dead. pre: the device is idle, and the gate closed
 */
#define SPILL_SPANS 8
struct spill_chunked;
typedef unsigned spill_chunked_live_fn(const struct spill_chunked *chunked, unsigned index,
                                       struct spill_span spans[SPILL_SPANS]);
spill_chunked_live_fn spill_chunked_live;

/* True: no chunk of it has live bytes. Without the precondition only a guess. */
bool spill_chunked_is_dead(const struct spill_chunked *chunked);

struct spill_chunked {
	struct spill_placement base;
	/* Its entry in the ledger: the handle of a chunk set, or a segment's number; 0: its address. */
	uint64_t name;
	bool set; /* the program maps it (chunk_set.h). */
	/* Of a mapped set: the devices to which the program has given access, a bit each. */
	uint64_t users;
	/* Where it is known which parts of a chunk are in use (ordered_pool.h, blocks.h), as spill_chunked_live. */
	spill_chunked_live_fn *_Atomic live;
	void *owner; /* for `live`; freed with the placement. */
	/* It is known where each buffer in it begins, and the chunk map has all of each: a launch names what it uses. */
	_Atomic bool exact_begins;
	/* While an exportable set is made: the vendor's properties of its memory on the device. */
	const void *properties;
	uint64_t range;       /* bytes of the reserved range. */
	uint64_t chunk_bytes; /* bytes of a whole chunk. */
	uint64_t mapped;      /* bytes mapped so far, from the start; all, once it is made. */
	/* Members of an enlisted placement. The mover's lock guards them. */
	TAILQ_ENTRY(spill_chunked) link; /* oldest first. */
	_Atomic bool enlisted;
	_Atomic bool dead; /* dead cache: a growing pool never reuses it (growth.h). */
	bool owed;         /* made when no chunk could move: older ones give way later. */
	bool pinned;       /* exported: never moves again. */
	/* What other processes may open (ipc_export.c); NULL: nothing. */
	struct spill_ipc_exported *exported;
	bool followed;            /* enlisted and not pinned: its chunks are in the chunk map. */
	bool grows;               /* once enlisted, older ones of its run become dead cache. */
	uint64_t seq;             /* the ledger's number, which is its age. */
	const char *api, *caller; /* as in the ledger. */
	uint64_t run;             /* growing requests of one call site (rules.h); 0: none. */
	enum spill_priority priority;
	uint64_t stays_from; /* by a rule's cap: chunks from this offset on stay on the host. */
	uint64_t moved_at;   /* the number of its last move; 0: never moved. */
	unsigned count;
	struct spill_chunk chunks[];
};

/* -- making and releasing, for the places ------------------------------------------------------ */

/* True: the vendor refused to map it. It stays where it is. */
static inline bool spill_chunk_is_lost(const struct spill_chunk *chunk)
{
	return chunk->unmapped && !chunk->away && !chunk->parked;
}

/* True: the chunk is on the host, and may come to the device. */
static inline bool spill_chunk_may_come(const struct spill_chunked *chunked, unsigned index)
{
	return chunked->chunks[index].on_host && chunked->chunks[index].offset < chunked->stays_from;
}

/* Bytes of all chunks on the host that may come to the device. */
static inline uint64_t spill_chunked_away(const struct spill_chunked *chunked)
{
	uint64_t stay = chunked->range > chunked->stays_from ? chunked->range - chunked->stays_from : 0;
	return chunked->base.held.host > stay ? chunked->base.held.host - stay : 0;
}

/*
 * A placement without chunks and addresses for want->bytes, rounded up to `unit`. Charges nothing.
 * NULL with *error, a static string.
 */
typedef struct spill_chunked *spill_chunked_new_fn(const struct spill_place_ops *ops,
                                                   const struct spill_place_request *want, uint64_t unit,
                                                   const char **error);
spill_chunked_new_fn spill_chunked_new;

/* The same with addresses of its own. Maps nothing. */
spill_chunked_new_fn spill_chunked_reserve;

/*
 * Makes memory of a chunk, on the device or the host, so that it can be handed to other processes
 * where that is possible (ipc.h). Charges nothing. Returns the vendor's error.
 */
int spill_chunk_create(const struct spill_backend *backend, int device, bool on_host, uint64_t bytes,
                       uint64_t *handle);

/*
 * Makes and maps more chunks, `bytes` in all, a multiple of the unit. The last one may be smaller.
 * On an error of the vendor, which is returned, the chunks made so far stay. The caller allows
 * access and charges the accounts. Chunks of a set are made only.
 */
int spill_chunked_extend(struct spill_chunked *chunked, bool on_host, uint64_t bytes);

/* Gives the device access to all of it; not to a set, for which the program does that. The vendor's error. */
int spill_chunked_allow(const struct spill_chunked *chunked);

/*
 * For spill_place_ops. Where chunks belong to the process (CUDA), they are released even if the
 * context has ended.
 */
void spill_chunked_release(struct spill_placement *placement, bool context_ended);
void spill_chunked_range(const struct spill_placement *placement, uint64_t *va, uint64_t *bytes);

/* -- views ------------------------------------------------------------------------------------- */

/*
 * Maps memory a second time, for copies, with access by the device. Reserves addresses of exactly
 * that size. 0: the vendor refuses. If it also refuses to undo the mapping, the view is returned
 * without access.
 */
uint64_t spill_view_make(const struct spill_backend *backend, int device, uint64_t handle, uint64_t bytes);

/* Ends a view; 0 is allowed. If the vendor does not unmap it, its addresses are lost. */
void spill_view_end(const struct spill_backend *backend, uint64_t view, uint64_t bytes);

/* -- device memory of a chunk ------------------------------------------------------------------ */

/*
 * Makes device memory of exactly `bytes` for a chunk that comes to the device, charged to the
 * device's account within device.limit. host_chunks.h makes host memory. False: the limit or the
 * vendor refuses; *handle keeps its value.
 */
bool spill_device_chunk_get(const struct spill_backend *backend, int device, uint64_t bytes,
                            uint64_t *handle);

/*
 * Releases device memory that a chunk has left, or does not need, with its view and its charge. view: 0:
 * none
 */
void spill_device_chunk_put(const struct spill_backend *backend, int device, uint64_t bytes, uint64_t handle,
                            uint64_t view);

/* -- moving ------------------------------------------------------------------------------------ */

/*
 * Enlists a placement: from now on it may move. Called last of all, after the ledger has it and
 * after spill_peer_placed. Does nothing if it is enlisted. Waits for no mover.
 */
void spill_chunked_enlist(struct spill_chunked *chunked);

/*
 * Delists a placement when it is freed: from now on its chunks stay where they are. Waits for the
 * mover. Does nothing if it is not enlisted. A release delists by itself. pre: this thread does not
 * hold the mover
 */
void spill_chunked_delist(struct spill_chunked *chunked);

/* True if any placement is enlisted. Costs one load. */
bool spill_chunked_any(void);

/*
 * Bytes on the host of all enlisted placements that are not pinned. Costs one load. The observer is
 * called after each change.
 */
uint64_t spill_chunked_on_host(void);

/* The same on a device. */
uint64_t spill_chunked_on_device(int device);

/*
 * Walks the enlisted placements, oldest first. pre: the mover is held; they stay while it is held
 */
struct spill_chunked *spill_chunked_next(struct spill_chunked *after);

/* The enlisted placement that `ptr` is in, or NULL. pre: as spill_chunked_next */
struct spill_chunked *spill_chunked_at(uint64_t ptr);

/*
 * Pins a placement: it never moves again. Where others may keep what is mapped, it is unparked, too (residency/unpark.h). pre:
 * the mover is held
 */
void spill_chunked_pin_held(struct spill_chunked *chunked);

/*
 * Notes that a chunk has moved to the other side, with the memory `handle`. The charge of the new
 * memory is now the placement's. The charge of the old memory goes with its handle, to the caller.
 * The caller logs the move and tells the ledger (spill_ledger_moved). pre: the mover is held
 */
void spill_chunked_moved(struct spill_chunked *chunked, unsigned index, uint64_t handle);

/* The address of a chunk. */
uint64_t spill_chunked_address(const struct spill_chunked *chunked, unsigned index);

/* The chunked placement. NULL: the placement is not chunked, or NULL. */
struct spill_chunked *spill_chunked_of(struct spill_placement *placement);

/* The name of its entry in the ledger. */
static inline uint64_t spill_chunked_name(const struct spill_chunked *chunked)
{
	return chunked->name ? chunked->name : chunked->base.ptr;
}

/* The granularity of chunks on both sides. 0: the device cannot do this. */
uint64_t spill_chunked_granularity(const struct spill_backend *backend, int device);
/* The same for a request. 0 with *error: the device cannot do this, or the request is too large. */
uint64_t spill_chunked_unit(const struct spill_place_request *want, const char **error);

/*
 * Sets the observer. It is called when movable bytes are made, move or go, one call at a time, with
 * the list's lock held (SPILL_RANK_CHUNKED). It takes no lock of a lower rank and walks no list.
 * The mover need not be held, because an allocation can be made at any time.
 */
void spill_chunked_observe(void (*changed)(void));
/* Calls the observer, as after a change. */
void spill_chunked_tell(void);

/*
 * Until this time (CLOCK_MONOTONIC) exchanges follow each other: the memory that they need is kept,
 * and promotion pauses. 0: no longer.
 */
void spill_chunked_hold(uint64_t until_ns);
bool spill_chunked_is_held(void);

/* The list's lock, for fork. The mover's lock is taken before it (gate.h). */
extern const struct spill_fork_lock spill_chunked_fork_lock;

#endif
