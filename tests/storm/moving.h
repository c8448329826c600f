/*
 * The moving storm: a seeded random program on the CUDA driver API that uses more memory than the
 * device has. Chunks leave the device and come back all the time, while kernels and copies run on
 * several threads and streams. The program knows the right value of every byte of its memory. It
 * checks them at random times and before each free.
 *
 * With two devices, each thread works on one of them. It also has blocks on the other device. Both
 * devices work on blocks of both: by kernels where they have access, and by copies.
 *
 * The seed alone gives the order of calls. Their times, and how far the program gets, vary.
 */
#ifndef MOVING_H
#define MOVING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_api.h"

#define MOVING_THREADS 4
#define MOVING_DEVICES 2 /* at most */
#define MOVING_STREAMS 2 /* of each thread, on each device */
#define MOVING_BLOCKS 20
#define MOVING_GRAPHS 2
#define MOVING_CHECKS 512
#define MOVING_READBACKS 4
#define MOVING_MEMPOOLS 2 /* of each thread */
#define MOVING_ARRAYS 200

/* Contents are known by piece. */
#define MOVING_PIECE ((uint64_t)256 << 10)
#define MOVING_WORDS (MOVING_PIECE / 8)

enum moving_kind {
	MOVING_NONE,
	MOVING_PLAIN,   /* cuMemAlloc or cuMemAllocPitch, of any size */
	MOVING_POOL,    /* addresses that grow by cuMemCreate */
	MOVING_ORDERED, /* in stream order, from a device's default pool or a pool of the thread */
	MOVING_PLUGGED, /* spill_malloc */
	MOVING_MANAGED, /* cuMemAllocManaged */
	MOVING_KINDS
};

/* A piece has the words of the kernel `fill` with `seed`, or one word everywhere. */
struct moving_content {
	uint64_t seed;
	bool constant; /* the word is `seed` */
};

/* A memory pool of one thread. */
struct moving_mempool {
	CUmemoryPool handle; /* NULL: none */
	int device;
	atomic_bool shared; /* the other device has access */
	uint64_t used;      /* bytes of its blocks */
	uint64_t freed;     /* bytes freed by cuMemFree: a driver may count them as used for ever */
};

struct moving_block {
	enum moving_kind kind;
	int device;                     /* that has it */
	const atomic_bool *shared;      /* the other device has access; see moving_reaches */
	struct moving_mempool *mempool; /* ORDERED: the thread's pool that it counts in, if it still exists */
	int taken_on;                   /* ORDERED: the device of the stream that it was taken on */
	CUdeviceptr address;
	uint64_t bytes;         /* a multiple of 8; the last piece may be short */
	uint64_t room;          /* POOL: addresses that are reserved */
	uint64_t part[32];      /* POOL: bytes of each mapping, in order */
	unsigned parts, stream; /* stream: of its last work. Work on another stream waits for that. */
	unsigned graphs;        /* that have its address in them */
	struct moving_content *content;
};

/* A kernel that counts wrong words into counters[i] has been submitted. */
struct moving_check {
	CUdeviceptr address;
	uint64_t words, seed, step;
};

/* A copy to the program has been submitted, with this content. */
struct moving_readback {
	uint64_t bytes, step;
	struct moving_content content[4];
	char *host; /* pinned, 4 pieces */
};

/* Fills `from`, then copies it to `to`; each time it is launched. */
struct moving_graph {
	CUgraphExec exec;
	bool node; /* the first two pieces are memory of the graph, and not `from` */
	struct moving_block *from, *to;
	uint64_t from_piece, to_piece, seed;
	uint32_t word; /* of the piece behind the copy */
};

/* The kernels, as one device knows them. */
struct moving_code {
	CUfunction fill, fill_all, verify, copy, hold_fill, read_until, read_loop;
};

struct moving_worker {
	unsigned index;
	int device; /* its context is current, except for calls that make something on the other */
	uint64_t random, step, target, used;
	uint64_t made, refused; /* blocks; calls that had no room */
	bool failed;
	struct moving_code code[MOVING_DEVICES];
	CUstream streams[MOVING_STREAMS * MOVING_DEVICES]; /* moving_device_of */
	CUevent event[MOVING_DEVICES];
	struct moving_block blocks[MOVING_BLOCKS];
	struct moving_mempool mempools[MOVING_MEMPOOLS];
	CUarray whole;       /* of one piece, on the worker's device; NULL: none */
	uint64_t whole_seed; /* of its content */
	struct moving_graph graphs[MOVING_GRAPHS];
	unsigned checks, readbacks, arrays;
	struct moving_check check[MOVING_CHECKS];
	struct moving_readback readback[MOVING_READBACKS];
	uint64_t *counters;     /* pinned, one a check */
	_Atomic uint64_t *hold; /* pinned; a kernel waits for it while `held` */
	uint64_t held;          /* it is held until this step */
	uint64_t *sum;          /* pinned: read_loop adds up here; nobody reads it */
	uint64_t (
	    *array)[2]; /* pinned, MOVING_ARRAYS of them: addresses that a submitted kernel will find there */
	char *pageable; /* 4 pieces */
	char *staging;  /* pinned, the same */
};

/* bytes of the device, of the largest block; path of the kernels */
extern uint64_t moving_card, moving_largest;
/*
 * MOVING_NO_HOLDS in the environment is for a real GPU. There, held kernels stop this program also
 * without libspill (seen 2026-11-21, 1 run of 2). A thread waits inside the driver for a held kernel:
 * at the first launch of code, a pageable copy or cuMemFree. Meanwhile the thread that would end the
 * kernel is blocked, too (docs/measurements.md).
 */
extern bool moving_no_holds, moving_all_named;
extern const char *moving_kernels;
/* MOVING_DEVICES in the environment (1): the devices from 0 on that take part. */
extern int moving_devices;
extern CUcontext moving_context[MOVING_DEVICES];
/* MOVING_PEERS in the environment (1): 0 if no context gets access to another one's memory. */
extern atomic_bool moving_peers;
/* MOVING_SHARE in the environment (0): at some time both devices get access to the default pools. */
extern bool moving_shares_defaults;
/* The library's pools, which spill_malloc takes from. NULL: not known. */
extern _Atomic(CUmemoryPool) moving_plugged_pool[MOVING_DEVICES];

uint64_t moving_random(struct moving_worker *worker, uint64_t below);
/* Any error of the driver ends the storm; true if there was none. */
bool moving_must(struct moving_worker *worker, const char *what, CUresult result);
/* The same, but out of memory is an answer: of calls that need room while a capture forbids making it. */
bool moving_may(struct moving_worker *worker, const char *what, CUresult result);

/* Waits for the worker's streams; false, told on stderr, if any byte was wrong. Nothing is held afterwards. */
bool moving_sync(struct moving_worker *worker);
/* Lets the kernel go on that waits for the program. */
void moving_let_go(struct moving_worker *worker);

/* moving_device.c: devices. */
bool moving_open_devices(void);
bool moving_close_devices(void);
/* Streams, events and code of the worker on each device. Its own context is current afterwards. */
bool moving_open_streams(struct moving_worker *worker);
void moving_close_streams(struct moving_worker *worker);
/* Makes the device's context current. */
void moving_enter(struct moving_worker *worker, int device);

/* Streams of one worker. */
static inline unsigned moving_streams(void)
{
	return MOVING_STREAMS * (unsigned)moving_devices;
}

/* The device of a stream: those of the worker's own device are first. */
static inline int moving_device_of(const struct moving_worker *worker, unsigned stream)
{
	return (worker->device + (int)(stream / MOVING_STREAMS)) % MOVING_DEVICES;
}

/* The kernels for a stream. */
static inline const struct moving_code *moving_code(const struct moving_worker *worker, unsigned stream)
{
	return &worker->code[moving_device_of(worker, stream)];
}

/* One of the worker's streams on the device. */
unsigned moving_stream_on(struct moving_worker *worker, int device);

/* Kernels of the device may use the block. */
static inline bool moving_reaches(const struct moving_block *block, int device)
{
	return block->device == device || atomic_load(block->shared);
}

/* One of the worker's streams, on a device that reaches the block. */
unsigned moving_stream_for(struct moving_worker *worker, const struct moving_block *block);

/* moving_memory.c: blocks. */
uint64_t moving_pieces(const struct moving_block *block);
static inline CUdeviceptr moving_at(const struct moving_block *block, uint64_t piece)
{
	return block->address + piece * MOVING_PIECE;
}

/* Bytes of `count` pieces from `first` on. */
uint64_t moving_span(const struct moving_block *block, uint64_t first, uint64_t count);
struct moving_block *moving_some(struct moving_worker *worker); /* NULL: there is none */
/* Asks what the driver knows of an address of the block. That does not change while its memory moves. */
void moving_ask(struct moving_worker *worker, const struct moving_block *block);
void moving_make(struct moving_worker *worker);
void moving_grow(struct moving_worker *worker, struct moving_block *block);
/* Verifies it, and frees it while the kernels that verify may still run. */
void moving_give(struct moving_worker *worker, struct moving_block *block);

/* moving_ordered.c: memory in stream order, and its pools. */
CUresult moving_make_ordered(struct moving_worker *worker, struct moving_block *block);
void moving_give_ordered(struct moving_worker *worker, struct moving_block *block);
/* Frees the block behind work that reads it, and takes as much again on the same stream. */
void moving_again(struct moving_worker *worker, struct moving_block *block);
/* Memory in stream order on a stream that ends before its work. */
void moving_fleeting(struct moving_worker *worker);
/* Makes a pool, ends it, or asks something of it. */
void moving_mempool(struct moving_worker *worker);
void moving_end_mempools(struct moving_worker *worker);
/* NULL: the library is not there. */
void *spill_malloc(size_t bytes, int device, void *stream) __attribute__((weak));
void spill_free(void *pointer, size_t bytes, int device, void *stream) __attribute__((weak));

/* moving_array.c: an array, which stays on the device. Made, or compared and given back. */
void moving_array(struct moving_worker *worker);
void moving_end_array(struct moving_worker *worker);

/* moving_content.c: what is in them. */
/* The word at `index` of a piece. */
uint64_t moving_word(const struct moving_content *content, uint64_t index);
void moving_expect(struct moving_block *block, uint64_t first, uint64_t count, uint64_t seed);
void moving_verify(struct moving_worker *worker, struct moving_block *block);
/* At most four pieces: compared when the streams are waited for next, or now. */
void moving_read_back(struct moving_worker *worker, struct moving_block *block, uint64_t first,
                      uint64_t count);
/*
 * For a while, copies pieces by one function only. If a closed gate does not stop that function,
 * the thread runs through a whole move. With other calls mixed in, one of them would stop the
 * thread first.
 */
void moving_read_on(struct moving_worker *worker, struct moving_block *block);
/* Compares the bytes that were read back with the expected ones. */
bool moving_compare(struct moving_worker *worker, const struct moving_readback *readback);

/* moving_work.c: work on them. */
bool moving_launch(struct moving_worker *worker, CUfunction function, unsigned stream, void **parameters);
/* The stream's next work on the block comes after all work on it so far. */
void moving_use(struct moving_worker *worker, struct moving_block *block, unsigned stream);
/* The same, on any stream of the device. */
void moving_use_on(struct moving_worker *worker, struct moving_block *block, int device);
/* Before calls without a stream, which wait for none of ours and for which none of ours waits. */
void moving_alone(struct moving_worker *worker, struct moving_block *block);
void moving_fill(struct moving_worker *worker, struct moving_block *block, uint64_t first, uint64_t count);
void moving_work(struct moving_worker *worker, struct moving_block *block);

/* moving_other.c: graphs, captures, streams, code, a kernel that waits for the program. */
void moving_other(struct moving_worker *worker);
/*
 * A kernel of one device reads a block of the other until the program lets it go. Large blocks leave
 * first. So a move that does not wait for the kernel takes the memory from under it.
 */
void moving_across(struct moving_worker *worker);
/* Ends the graphs that have the block's address in them; NULL: all. */
void moving_end_graphs(struct moving_worker *worker, const struct moving_block *block);

#endif
