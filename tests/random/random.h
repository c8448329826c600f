/*
 * Random programs: a list of operations, one a line, that threads carry out with memory of every kind.
 *
 *	THREAD OPERATION ARGUMENT…
 *
 * THREAD is a number. With `*` all threads wait for each other before and behind the line, and the
 * first one carries it out. Threads share no block, stream or graph, so the result of a line does
 * not depend on the others' speed. Arguments have no wrong values: an operation takes them modulo
 * what there is. A line that finds nothing to do is left out (`-`). So a program stays one when
 * lines are taken away.
 *
 * The bytes that each block should have are known (its shadow). A line prints what an address or the
 * room on a device cannot change, so two runs can be compared line by line.
 *
 * operations.def is the table of operations, api.h what they are made of.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICES 2
#define THREADS 8 /* at most */
#define SLOTS 8   /* blocks of each thread */
#define STREAMS 2 /* of each thread, on each device */
#define GRAPHS 3  /* of each thread */
#define ACTIONS 16
#define ARGUMENTS 6
#define LARGEST ((uint64_t)4 << 20) /* bytes of a block */
#define GRANULE ((uint64_t)2 << 20) /* of cuMemCreate */

/* Of the last two, the program may hand descriptors to other processes. */
enum kind {
	NONE,
	PLAIN,
	PITCHED,
	MANAGED,
	PINNED,
	REGISTERED,
	ORDERED,
	POOLED,
	CREATED,
	CREATED_SHARED,
	POOLED_SHARED,
	KINDS
};

struct block {
	enum kind kind;
	int device;
	unsigned stream; /* of its last work */
	uint64_t address, bytes;
	void *pool; /* POOLED, POOLED_SHARED */
	unsigned char *shadow;
};

/* Work that changes blocks, on the device and in their shadows. Offsets and bytes are multiples of 8. */
struct action {
	enum { FILL, ADD, SET, COPY, KERNEL_COPY, CALL_FILL } what; /* CALL_FILL: by the program's own code */
	struct block *to, *from;
	uint64_t offset, from_offset, bytes, value;
};

struct graph {
	void *exec; /* NULL: there is none */
	int device;
	unsigned count;
	struct action actions[ACTIONS];
	/* build.c: what is made node by node. The nodes are of `made`, and NULL in its child graphs. */
	void *made, *nodes[ACTIONS];
	uint16_t after[ACTIONS]; /* earlier actions, a bit each, that come first */
	uint16_t children;       /* bit i: the actions before i become a child graph */
	uint16_t late;           /* bit i: the edges to i are made after the node */
};

struct worker {
	unsigned index;
	int device; /* its thread's current one */
	struct block blocks[SLOTS];
	struct graph graphs[GRAPHS];
	void *streams[DEVICES][STREAMS], *event[DEVICES], *pool[DEVICES], *shared_pool[DEVICES];
	unsigned char *staging[DEVICES]; /* pinned, of LARGEST */
	unsigned char *copy;             /* of LARGEST */
	/* A capture: the stream that captures, and what it has until now. NULL: none. */
	void *capturing;
	struct graph captured;
	/* Of a capture that has ended, until it is made executable: its graph, and the error of its end. */
	void *ended;
	int end_error;
	uint64_t calls;
};

/* What became of a line. */
struct outcome {
	enum { DONE, LEFT_OUT, WRONG } how;
	int error;
	uint64_t figure; /* the same in each run; WRONG: the first byte that is */
};

struct operation {
	const char *name;
	unsigned weight; /* how often it is drawn */
	/* One letter each: s slot, z bytes, o l a thousandth (of a block, of the rest of it), v value, t stream,
	 * g graph, d device, n small number. */
	const char *arguments;
	bool alone; /* of a line with `*` */
	/* Also while its thread captures. Others are left out then. Those of a line with `*` end the captures. */
	bool captured;
	/* Also while threads capture in the global mode, which forbids other threads most calls. */
	bool beside;
	struct outcome (*run)(struct worker *worker, const uint64_t *arguments);
};

struct line {
	const struct operation *operation;
	int thread; /* -1: all wait */
	uint64_t arguments[ARGUMENTS];
};

struct program {
	struct line *lines;
	size_t count;
	unsigned threads;
};

extern const struct operation operations[]; /* the last has no name */
extern struct worker workers[THREADS];
extern const char *kernels_path, *plugin_path; /* "": it has none */
extern bool peers;                             /* each device reaches the other's memory */
/* Captures are in the global mode, until the next line with `*`. Other operations are left out. */
extern bool global_captures;

/* program.c. Both end the process with a message if they cannot. */
struct program program_read(const char *path);
void program_draw(uint64_t seed, size_t count, unsigned threads);

/* share.c: what the other process does. Returns its exit status. */
int share_child(void);

/* block.c */
#define DONE_WITH(error_, figure_) ((struct outcome){DONE, (error_), (figure_)})
#define NOTHING_TO_DO ((struct outcome){.how = LEFT_OUT})
void use_device(struct worker *worker, int device);
/* Streams and memory of a worker on a device. Return the vendor's error. */
int worker_open(struct worker *worker, int device);
int worker_close(struct worker *worker, int device);
int block_take(struct worker *worker, struct block *block, enum kind kind, uint64_t bytes, unsigned stream,
               unsigned char value);
/* Ends the graphs that use it, too. `other`: by the call for the other order, where there are two. */
int block_give(struct worker *worker, struct block *block, bool other);
/* Forgets it: its context ended. */
void block_lose(struct block *block);
/* Memory in stream order: a free comes in that order. */
bool block_is_in_order(const struct block *block);
/* The first one from a slot on that fits. NULL: there is none. */
struct block *block_from(struct worker *worker, uint64_t first, bool (*fits)(const struct block *block));
/* Lets work on a stream of the block's device come behind all earlier work on the block. */
int block_order(struct worker *worker, struct block *block, unsigned stream);

/* work.c */
bool block_is_on_host(const struct block *block);
/* Sets the part of the block that the letters o and l name. */
void work_part(const struct block *block, uint64_t o, uint64_t l, struct action *action);
/* The function and its argument of a CALL_FILL. The argument stays: nobody knows when work has ended. */
void work_call(const struct action *action, void (**function)(void *), void **argument);
int work_submit(struct worker *worker, const struct action *action, void *stream, int device, unsigned way);
void work_apply(const struct action *action);
/* Compares `bytes` of what a block should have with `found`. */
struct outcome compare(const struct block *block, const unsigned char *found);

/* graph.c */
void graph_end(struct worker *worker, struct graph *graph);
/* Ends the capture, and keeps its graph. */
void capture_keep(struct worker *worker);
/* Ends the capture, without a graph. */
void capture_drop(struct worker *worker);
/* The first one from a number on that does something; `built`: node by node. NULL: there is none. */
struct graph *graph_from(struct worker *worker, uint64_t first, bool built);
bool graph_has(const struct graph *graph, const struct block *block);

/* build.c */
/* Makes the graph of its actions anew, with the nodes. */
int graph_assemble(const struct graph *graph, void **made, void **nodes);

#define OPERATION(name, weight, arguments, alone, captured, beside) \
	struct outcome run_##name(struct worker *worker, const uint64_t *a);
#include "operations.def"
#undef OPERATION

#endif
