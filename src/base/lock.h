/*
 * The lock order. A thread takes a lock only of a higher rank than those it holds. It holds none
 * but the mover's, and the one of trials that is only tried, across a vendor call. Fork takes the
 * locks in this order and releases them in reverse (runtime.c), so that the child finds their data
 * whole.
 */
#ifndef SPILL_LOCK_H
#define SPILL_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

/* For each lock: its file, and the data that it protects. */
enum spill_lock_rank {
	SPILL_RANK_TRIAL,          /* trial.c: trials of placements. It is only tried. */
	SPILL_RANK_MOVER,          /* mover.c: moves of chunks. */
	SPILL_RANK_ORDERED_POOL,   /* ordered_pool.c: ranges of segments, in stream order. */
	SPILL_RANK_BLOCKS,         /* blocks.c: blocks of a framework's allocator. */
	SPILL_RANK_DEFERRED,       /* deferred.c: frees that wait for the device. */
	SPILL_RANK_VENDOR_POOL,    /* vendor_pool.c: the vendor's pools. */
	SPILL_RANK_SHARED_CHUNKS,  /* shared_chunks.c: free blocks of shared chunks. */
	SPILL_RANK_CHUNKED,        /* chunked.c: allocations that can be moved. */
	SPILL_RANK_RULES,          /* rules.c: pools that grow. */
	SPILL_RANK_HOST_CHUNKS,    /* host_chunks.c: host memory for moved chunks. */
	SPILL_RANK_IPC_EXPORT,     /* ipc_export.c: memory that other processes may open. */
	SPILL_RANK_IPC_IMPORT,     /* ipc_import.c: memory of other processes. */
	SPILL_RANK_ACCESS_MODEL,   /* access_model.c: the order of use and its costs. */
	SPILL_RANK_RECORDING,      /* access_recording.c: the file of movable.record. */
	SPILL_RANK_GRAPH_ACCESS,   /* graph_access.c: memory that executable graphs use. */
	SPILL_RANK_GRAPH_MODES,    /* graph_modes.c: how graphs are launched. It is only tried. */
	SPILL_RANK_METRICS,        /* metrics.c: the file of log.metrics. */
	SPILL_RANK_CONTEXTS,       /* contexts.c: living contexts. */
	SPILL_RANK_CONTEXT_END,    /* context_end.c: the latest ends of contexts. */
	SPILL_RANK_VMM,            /* vmm.c: the program's own physical memory and its mappings. */
	SPILL_RANK_LEDGER,         /* ledger.c: live allocations. */
	SPILL_RANK_PEER,           /* peer.c: access between devices. */
	SPILL_RANK_CAPTURE,        /* capture.c: streams that capture. */
	SPILL_RANK_CALLER,         /* caller.c: names of call sites. */
	SPILL_RANK_HOST_SHARE,     /* host_share.c: host memory of the user's other processes. */
	SPILL_RANK_NOTE,           /* note.c: notes that wait for the log. */
	SPILL_RANK_LOG,            /* log.c: the log's file and queue. */
	SPILL_RANK_LOADED_OBJECTS, /* loaded_objects.c: walks through the loaded objects. */
};

/* A lock that fork takes. */
struct spill_fork_lock {
	pthread_mutex_t *lock;
	void (*forget_parent)(void); /* in the child, with the lock held. NULL: the data stay. */
};

/* Before and after fork; `child`: in the child. */
void spill_fork_lock_take(const struct spill_fork_lock *fork);
void spill_fork_lock_release(const struct spill_fork_lock *fork, bool child);

#endif
