/*
 * Lock order, in one place: a thread may take a lock only of a higher rank than those it holds, and holds none across
 * a vendor call. fork takes them in this order and gives them back in reverse (runtime.c).
 */
#ifndef SPILL_LOCK_H
#define SPILL_LOCK_H

enum spill_lock_rank {
	SPILL_RANK_MOVER,       /* chunked.c: moves chunks; the one that is held across vendor calls */
	SPILL_RANK_DEFERRED,    /* deferred.c: frees that wait for the device */
	SPILL_RANK_MEMPOOL,     /* vendor_pool.c: the vendor's pools */
	SPILL_RANK_POOL,        /* pool.c: free blocks of shared chunks */
	SPILL_RANK_CHUNKED,     /* chunked.c: what may be moved */
	SPILL_RANK_GROWING,     /* growth_state.c: pools that grow */
	SPILL_RANK_HOST_CHUNKS, /* host_chunks.c: host memory for it */
	SPILL_RANK_USES,        /* access_model.c: the order of use, and what it costs */
	SPILL_RANK_GRAPHS,      /* graph_access.c: what executable graphs use */
	SPILL_RANK_CONTEXTS,    /* contexts.c: contexts that there are */
	SPILL_RANK_CONTEXT_END, /* context_end.c: the latest ends of contexts */
	SPILL_RANK_GATE,        /* gate.c: threads that submit work */
	SPILL_RANK_VMM,         /* vmm.c: the program's own physical memory and its mappings */
	SPILL_RANK_LEDGER,      /* ledger.c: what is allocated */
	SPILL_RANK_PEER,        /* peer.c: who may use whose memory */
	SPILL_RANK_CAPTURE,     /* capture.c: streams that capture */
	SPILL_RANK_CALLER,      /* caller.c: names of call sites */
	SPILL_RANK_HOST_SHARE,  /* host_share.c: what other processes hold */
	SPILL_RANK_NOTE,        /* note.c: notes waiting for the log */
	SPILL_RANK_LOG,         /* src/log*.c: the file and its buffer */
	SPILL_RANK_OBJECTS,     /* loaded_objects.c: what is loaded */
};

#endif
