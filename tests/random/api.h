/*
 * What operations are made of, in three groups: memory and work, graphs, other processes. Each has a
 * file for an interface: api_X.c, graph_X.c and share_X.c, where X is `driver` (CUDA's driver) or
 * `runtime` (the CUDA runtime, and HIP). Functions return the vendor's error. NULL: the interface, or
 * its simulation, has no such thing, and operations that need it are left out.
 */
#ifndef RANDOM_API_H
#define RANDOM_API_H

#include "random.h"

enum kernel { KERNEL_FILL, KERNEL_ADD, KERNEL_COPY_WORDS, KERNELS };
enum way { UPLOAD, DOWNLOAD, ON_DEVICE };

struct api {
	/* Makes the device's context with the kernels; it is current afterwards. */
	int (*open)(int device, const char *kernels);
	/* Ends it, with all that is in it. `how`: the calls that do so. */
	int (*close)(int device, unsigned how);
	int (*use)(int device);
	/* The same by calls for contexts. `n` chooses among them. */
	int (*use_by)(int device, unsigned n, uint64_t *figure);
	/* Waits for the device's work, and gives back what its default pool and its graphs keep. */
	int (*settle)(int device);
	int (*trim)(int device); /* the same without waiting */
	/* 0, or what of the thread's state is not as it was: 1 another device or context, 2 a last error
	 * (which it clears), 4 the capture mode. */
	unsigned (*changed)(int device, bool failed);
	int (*set_peers)(int device, int other, bool on);

	int (*stream_make)(void **stream);
	int (*stream_end)(void *stream);
	int (*wait)(void *stream);
	int (*event_make)(void **event);
	int (*event_end)(void *event);
	int (*order)(void *event, void *before, void *after);

	int (*pool_make)(int device, bool shared, void **pool);
	int (*pool_end)(void *pool);
	int (*pool_trim)(void *pool);
	int (*pool_keep)(void *pool, uint64_t bytes);

	/* Of block->kind, ->bytes, ->pool. Sets ->address. */
	int (*take)(struct block *block, void *stream);
	int (*give)(struct block *block, void *stream, bool other);
	bool kinds[KINDS];
	int (*prefetch)(const struct block *block, unsigned n, void *stream);

	/* Kernels have words as parameters. `way` chooses among calls that do the same. */
	int (*launch)(int device, enum kernel kernel, void *stream, void **parameters, unsigned way);
	int (*set)(uint64_t address, unsigned char byte, uint64_t bytes, void *stream, unsigned way);
	int (*copy)(uint64_t to, uint64_t from, uint64_t bytes, enum way how, void *stream, unsigned way);
	int (*copy_now)(uint64_t to, uint64_t from, uint64_t bytes, enum way how, unsigned way);
	int (*copy_peer)(uint64_t to, int to_device, uint64_t from, int from_device, uint64_t bytes,
	                 void *stream);
	/* The program's own function, in the order of a stream. */
	int (*call)(void *stream, void (*function)(void *), void *data);

	/* Memory in the order of a stream, also of one that captures. */
	int (*ordered)(uint64_t *address, uint64_t bytes, void *stream);
	int (*ordered_free)(uint64_t address, void *stream);

	int (*ask)(const struct block *block, uint64_t offset, uint64_t *figure);
	int (*info)(uint64_t *free_bytes, uint64_t *total);
	int (*nonsense)(unsigned n, void *stream, uint64_t *figure);
	/* Makes an array of `rows` rows of 1024 bytes, writes it from `from` and reads it into `to`. */
	int (*array)(uint64_t rows, const void *from, void *to);
	/* Makes a context on the device and enters it. The earlier one is current again behind context_end. */
	int (*context)(int device, void **context);
	int (*context_end)(void *context);
	bool context_has_memory; /* which ends with it */
};

/* A graph is what the vendor calls so. `exec`: its executable form. */
enum capture_mode { GLOBAL, THREAD_LOCAL, RELAXED }; /* the vendors' numbers */

/* Work of a node. */
struct node {
	enum { NODE_KERNEL, NODE_SET, NODE_COPY, NODE_CALL } type;
	int device;
	enum kernel kernel;
	void **parameters;
	uint64_t to, from, bytes; /* SET, COPY */
	unsigned char byte;
	void (*call)(void *);
	void *data;
};

struct graph_api {
	int (*capture)(void *stream, enum capture_mode mode);
	int (*capture_end)(void *stream, void **graph);
	int (*create)(void **graph);
	/* A node after `count` others. `way` chooses among calls that do the same. */
	int (*add)(void *graph, void *const *after, size_t count, const struct node *node, unsigned way,
	           void **out);
	int (*add_child)(void *graph, void *child, void **out);
	int (*add_edge)(void *graph, void *from, void *to);
	/* Memory of the graph, and its end. */
	int (*add_memory)(void *graph, int device, uint64_t bytes, uint64_t *address, void **out);
	int (*add_free)(void *graph, void *const *after, size_t count, uint64_t address, void **out);
	int (*drop)(void *graph);
	int (*make)(void **exec, void *graph);
	int (*launch)(void *exec, void *stream);
	int (*update)(void *exec, void *graph);
	/* Other parameters for a node of the graph that the exec was made of. */
	int (*change)(void *exec, void *node, const struct node *to, unsigned way);
	int (*end)(void *exec);
	int (*trim)(int device); /* what graphs keep */
};

/* What another process needs to find a block. */
struct ticket {
	enum kind kind;
	int device, descriptor; /* -1: there is none */
	uint64_t bytes;
	char handle[64];
};

struct share_api {
	bool kinds[KINDS];
	/* Sets ->handle and ->descriptor, which is the caller's. */
	int (*hand_out)(const struct block *block, struct ticket *ticket);
	/* In another process. `pool`: of the address, for its end. */
	int (*import)(const struct ticket *ticket, uint64_t *address, void **pool);
	int (*import_end)(const struct ticket *ticket, uint64_t address, void *pool);
};

extern const struct api api;
extern const struct share_api shares;
extern const struct graph_api graphs;
extern __thread uint64_t api_calls;

/* Counts a call. */
#define CALL(call) (api_calls++, (int)(call))
#define TRY(call) \
	do { \
		int tried = CALL(call); \
		if (tried) \
			return tried; \
	} while (0)

#endif
