/*
 * Stream capture and graphs of the simulated GPU. The rules are CUDA's: cuStreamBeginCapture,
 * cuThreadExchangeStreamCaptureMode, cuGraphAddMemAllocNode and their family. Gaps in them were
 * measured on an H200 with driver 580.159. A graph runs its nodes one after the other in an order
 * that its edges allow. Branches do not overlap.
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "core.h"

/* CUDA's numbers. */
enum sim_node_type {
	SIM_NODE_NONE = -1, /* work that cannot be a node: capture refuses it */
	SIM_NODE_KERNEL = 0,
	SIM_NODE_COPY = 1,
	SIM_NODE_SET = 2,
	SIM_NODE_HOST = 3,
	SIM_NODE_CHILD = 4,
	SIM_NODE_EMPTY = 5,
	SIM_NODE_WAIT = 6, /* for an event outside of the graph */
	SIM_NODE_RECORD = 7,
	SIM_NODE_ALLOC = 10,
	SIM_NODE_FREE = 11,
	SIM_NODE_WORDS = 12,
};

struct sim_graph;
struct sim_node;
struct sim_exec;

/* -- graphs: every function is SIM_INVALID for a handle that is not alive ---------------------- */

enum sim_status sim_graph_create(struct sim_graph **out);
enum sim_status sim_graph_destroy(struct sim_graph *graph); /* executable graphs made from it stay */
bool sim_graph_alive(struct sim_graph *graph);

/* The place of a new node: after `count` nodes of `graph`, each named once. */
struct sim_spot {
	struct sim_graph *graph;
	struct sim_node *const *after;
	size_t count;
};

enum sim_status sim_node_empty(const struct sim_spot *spot, struct sim_node **out);
enum sim_status sim_node_event(const struct sim_spot *spot, enum sim_node_type record_or_wait,
                               struct sim_event *event, struct sim_node **out);

/*
 * The address is fixed now, and memory is behind it from a launch or upload on. SIM_INVALID: 0
 * bytes, or no such device. `devices`: bits of devices with access.
 */
enum sim_status sim_node_alloc(const struct sim_spot *spot, int device, unsigned devices, uint64_t bytes,
                               uint64_t *address, struct sim_node **out);
/* SIM_INVALID: not from an allocation node, or freed by another node. */
enum sim_status sim_node_free(const struct sim_spot *spot, uint64_t address, struct sim_node **out);

/* Runs a copy of `child` when its turn comes. SIM_NOT_SUPPORTED: it has memory nodes. */
enum sim_status sim_node_child(const struct sim_spot *spot, struct sim_graph *child, struct sim_node **out);

/* Until sim_node_end, work that this thread submits to any stream becomes a node at the spot. */
void sim_node_begin(const struct sim_spot *spot);
/* SIM_INVALID: the thread submitted no work. */
enum sim_status sim_node_end(struct sim_node **out);

enum sim_status sim_graph_edge(struct sim_graph *graph, struct sim_node *from, struct sim_node *to);

/* Up to `room` nodes in the order of their making; `nodes` may be NULL. *count: all nodes. */
enum sim_status sim_graph_nodes(struct sim_graph *graph, struct sim_node **nodes, size_t room, size_t *count);
/* The same for edges. */
enum sim_status sim_graph_edges(struct sim_graph *graph, struct sim_node **from, struct sim_node **to,
                                size_t room, size_t *count);
enum sim_status sim_node_about(struct sim_node *node, enum sim_node_type *type);
/* Of a kernel node; valid as long as the node. */
struct sim_kernel_node {
	struct sim_kernel *kernel;
	struct sim_shape shape;
	void **parameters; /* pointers to the values */
	struct sim_context *context;
};
enum sim_status sim_node_kernel(struct sim_node *node, struct sim_kernel_node *out);
/* Of a copy node: addresses of the first bytes, as they were given. A set node has only `to`. */
struct sim_box_node {
	struct sim_box to, from;
	bool to_host, from_host;
	uint64_t width, rows, slices; /* width of a set: in elements */
	uint32_t value;
	unsigned element;
};
enum sim_status sim_node_box(struct sim_node *node, enum sim_node_type copy_or_set, struct sim_box_node *out);
/* The node's own. */
enum sim_status sim_node_graph(struct sim_node *node, struct sim_graph **out);
/* Of an ALLOC or FREE node. `type` must be the node's. */
enum sim_status sim_node_memory(struct sim_node *node, enum sim_node_type type, uint64_t *address,
                                uint64_t *bytes, int *device);

/* SIM_INVALID: a cycle. SIM_NOT_SUPPORTED: memory nodes, and a live executable graph. */
enum sim_status sim_graph_instantiate(struct sim_graph *graph, bool auto_free, struct sim_exec **out);
enum sim_status sim_exec_destroy(struct sim_exec *exec); /* launched work still runs */
/*
 * SIM_INVALID: memory of an earlier launch is still allocated, or memory to free is not allocated.
 * SIM_NO_MEMORY: the device loses for good the memory that the launch got so far, as with a real
 * driver.
 */
enum sim_status sim_exec_launch(struct sim_exec *exec, struct sim_stream *stream);
enum sim_status sim_exec_upload(struct sim_exec *exec, struct sim_stream *stream);

/*
 * From the next launch on it runs the work of `graph`, which has the same nodes. The update is of
 * the whole graph, or of one node of the graph that it was made from. *fits false: the nodes differ
 * or have memory, and nothing has changed.
 */
enum sim_status sim_exec_update(struct sim_exec *exec, struct sim_graph *graph, bool *fits);
enum sim_status sim_exec_replace(struct sim_exec *exec, const struct sim_node *node, struct sim_graph *graph,
                                 bool *fits);

/* Whether launches from now on run a node's work. SIM_INVALID: it is no kernel, copy or set of the graph. */
enum sim_status sim_exec_enable(struct sim_exec *exec, const struct sim_node *node, bool enabled);

/* Device bytes that graphs hold, in use or kept for the next launch. */
struct sim_graph_memory {
	uint64_t used, used_high, reserved, reserved_high;
};
void sim_graph_memory(int device, struct sim_graph_memory *out);
void sim_graph_memory_reset_high(int device, bool used); /* false: the high mark of reserved bytes */
void sim_graph_trim(int device); /* gives back memory that no launch and no live allocation needs */

/* -- capture ----------------------------------------------------------------------------------- */

enum sim_capture_mode { SIM_CAPTURE_GLOBAL, SIM_CAPTURE_THREAD_LOCAL, SIM_CAPTURE_RELAXED };
enum sim_capture_status { SIM_CAPTURE_NONE, SIM_CAPTURE_ACTIVE, SIM_CAPTURE_ENDED_BY_ERROR };

/* Without a spot, into a new graph. SIM_CAPTURE_STATE: the stream captures already. */
enum sim_status sim_capture_begin(struct sim_stream *stream, enum sim_capture_mode mode,
                                  const struct sim_spot *spot);
/* On failure *out is NULL. The caller owns the graph. */
enum sim_status sim_capture_end(struct sim_stream *stream, struct sim_graph **out);

struct sim_capture_info {
	enum sim_capture_status status;
	uint64_t id;
	struct sim_graph *graph;
	struct sim_node *const *after; /* valid until the next call on the stream */
	size_t count;
};
/* SIM_CAPTURE_IMPLICIT: it is the default stream while a blocking stream captures. */
enum sim_status sim_capture_query(struct sim_stream *stream, struct sim_capture_info *out);
enum sim_status sim_capture_depend(struct sim_stream *stream, struct sim_node *const *nodes, size_t count,
                                   bool replace);
int sim_capture_exchange_mode(int mode); /* of the calling thread; returns the mode before */

/* True if the stream is part of a capture, valid or not. */
bool sim_capturing(struct sim_stream *stream);

/*
 * A vendor's function asks before a call that a capture forbids. SIM_OK, fast, if there is no
 * capture. Else the error, and the captures concerned are invalid from then on.
 */
enum sim_status sim_capture_unsafe(void); /* cannot be replayed: allocate, free and so on */
enum sim_status sim_capture_asks(struct sim_stream *stream); /* waits for a stream or queries it */
enum sim_status sim_capture_asks_context(struct sim_context *context);
enum sim_status sim_capture_asks_event(struct sim_event *event);
enum sim_status sim_capture_refuse(struct sim_stream *stream); /* no node can represent it */

/* For a capturing stream. External: see sim_node_event. */
enum sim_status sim_capture_alloc(struct sim_stream *stream, uint64_t bytes, uint64_t *address);
enum sim_status sim_capture_free(struct sim_stream *stream, uint64_t address);
/* SIM_CAPTURE_STATE: the stream does not capture. */
enum sim_status sim_capture_external(struct sim_stream *stream, enum sim_node_type record_or_wait,
                                     struct sim_event *event);

#endif
