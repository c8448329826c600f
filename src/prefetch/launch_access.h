/*
 * prefetch: residency follows accesses. A launch that accesses chunks on the host gets them
 * promoted first, if that pays, together with the chunks that are predicted next. Chunks whose next
 * access is furthest in the future leave for them (policy/predict/exchange_choice.h). The
 * parameters of a launch tell its accesses (shim/hints.h). They are hints, so only speed depends on
 * them. Chunks move as always: on an idle device, with the gate closed. Memory that was not
 * predicted is accessed in place (docs/adr/0021-stop-exchange-go.md).
 *
 * This room never refuses or changes a call of the program. Begin with this header, then
 * access_model.h and prefetch.h.
 */
#ifndef SPILL_LAUNCH_ACCESS_H
#define SPILL_LAUNCH_ACCESS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "access_history.h"
#include "stopwatch.h"

/* The memory that one launch (a call that submits work) is going to access. */
#define SPILL_LAUNCH_ACCESS_KEYS 1024
/* The parameters of a kernel have at most 4,096 bytes before CUDA 12.1, and more are rare. */
#define SPILL_LAUNCH_ACCESS_RANGES 512
#define SPILL_LAUNCH_ACCESS_HOST_KEYS SPILL_STOPWATCH_KEYS
struct spill_launch_access {
	uint64_t site;        /* hash of function, grid and block; never 0. */
	const void *function; /* of a kernel; NULL: it is something else. */
	void *stream;
	bool per_thread; /* the stream is the per-thread default stream. */
	/* of keys; the first `sure` keys are certain, the others likely (param_extent.h). */
	unsigned count, sure;
	bool once;                  /* accesses each byte once (copies, sets): no promotion. */
	bool unknown;               /* nobody knows what it accesses beyond the keys. */
	bool graph;                 /* an executable graph, which names the memory of all its kernels. */
	unsigned on_host;           /* number of chunks on the host. */
	uint64_t host_bytes, bytes; /* bytes of chunks on the host, of all chunks. */
	uint32_t host_keys[SPILL_LAUNCH_ACCESS_HOST_KEYS]; /* the first few chunks on the host. */
	unsigned range_count;                              /* of ranges. */
	uint32_t keys[SPILL_LAUNCH_ACCESS_KEYS];           /* of chunks, each once (chunk_map.h). */
	/* The buffers, in the order of the parameters. Of a graph, its chunks in the order of its nodes; neighbours are one. */
	struct spill_access_range ranges[SPILL_LAUNCH_ACCESS_RANGES];
};

/* The number of host_keys. */
static inline unsigned spill_launch_access_host_keys(const struct spill_launch_access *access)
{
	return access->on_host < SPILL_LAUNCH_ACCESS_HOST_KEYS ? access->on_host
	                                                       : SPILL_LAUNCH_ACCESS_HOST_KEYS;
}

/*
 * True while movable memory is on the host and movable.follow is not off, at first also before (launch_access.c),
 * or once there was movable memory if accesses are recorded (movable.record). False if libspill only
 * observes, and in a rest (rest.h). Only then are accesses reported.
 */
extern _Atomic bool spill_launch_access_wanted;

/*
 * Called before the launch, outside of the gate. May wait, and move chunks. Returns a stopwatch for
 * spill_after_launch, or NULL. Keeps errno. pre: the launch accesses a chunk, nothing captures,
 * this thread is in no call of ours (spill_thread.depth is 0) and not inside the gate
 */
void *spill_before_launch(const struct spill_launch_access *access);
void spill_after_launch(void *stopwatch);

/*
 * Called before the nodes of a graph are launched one by one (graph_modes.h), each with the calls above. Returns a
 * stopwatch of all, as above. `site`: the graph's. `stream`: a name of spill_capture_stream. pre: as
 * spill_before_launch
 */
void *spill_before_nodes(uint64_t site, void *stream);

/*
 * For tests: `other` is called in place of the two functions above; NULL: none. It must live until
 * the next call.
 */
struct spill_launch_calls {
	void *(*before)(const struct spill_launch_access *access);
	void (*after)(void *stopwatch);
};
void spill_launch_access_use(const struct spill_launch_calls *other);

/* Movable bytes were made, have moved, or have gone: the observer of spill_chunked_observe. */
void spill_launch_access_moved(void);

/*
 * Maintenance (engine.h): releases the memory kept for exchanges, if there was none for a while, ends
 * the early reports, and begins and ends rests. False: there is nothing to do later.
 */
bool spill_launch_access_maintain(void);

/* In a forked child: forgets all. */
void spill_launch_access_reset(void);

#endif
