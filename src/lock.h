/*
 * Lock order, in one place: a thread may take a lock only of a higher rank than those it holds, and holds none across
 * a vendor call. fork takes them in this order and gives them back in reverse (src/runtime.c).
 */
#ifndef SPILL_LOCK_H
#define SPILL_LOCK_H

enum spill_lock_rank {
	SPILL_RANK_MOVER,    /* src/place/chunked.c: moves chunks; the one that is held across vendor calls */
	SPILL_RANK_DEFERRED, /* src/deferred.c: frees that wait for the device */
	SPILL_RANK_MEMPOOL,  /* src/mempool.c: the vendor's pools */
	SPILL_RANK_POOL,     /* src/place/pool.c: free blocks of shared chunks */
	SPILL_RANK_CHUNKED,  /* src/place/chunked.c: what may be moved */
	SPILL_RANK_GROWING,  /* src/growing.c: pools that grow */
	SPILL_RANK_HOST_CHUNKS, /* src/host_chunks.c: host memory for it */
	SPILL_RANK_USES,        /* src/uses.c: the order of use, and what it costs */
	SPILL_RANK_GRAPHS,      /* src/graph_uses.c: what executable graphs use */
	SPILL_RANK_CONTEXTS,    /* src/contexts.c: contexts that there are */
	SPILL_RANK_CONTEXT_END, /* src/context_end.c: the latest ends of contexts */
	SPILL_RANK_GATE,        /* src/gate.c: threads that submit work */
	SPILL_RANK_VMM,         /* src/vmm.c: the program's own physical memory and its mappings */
	SPILL_RANK_LEDGER,      /* src/ledger.c: what is allocated */
	SPILL_RANK_PEER,        /* src/peer.c: who may use whose memory */
	SPILL_RANK_CAPTURE,     /* src/capture.c: streams that capture */
	SPILL_RANK_CALLER,      /* src/caller.c: names of call sites */
	SPILL_RANK_HOST_SHARE,  /* src/host_share.c: what other processes hold */
	SPILL_RANK_NOTE,        /* src/note.c: notes waiting for the log */
	SPILL_RANK_LOG,         /* src/log*.c: the file and its buffer */
	SPILL_RANK_OBJECTS,     /* src/objects.c: what is loaded */
};

#endif
