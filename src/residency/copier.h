/*
 * What copies of chunks need: streams of ours on each device, and addresses for temporary mappings.
 */
#ifndef SPILL_COPIER_H
#define SPILL_COPIER_H

#include <stdatomic.h>

#include "backend.h"
#include "context_end.h"

#define SPILL_COPIER_VIEWS 4
#define SPILL_COPIER_VIEW (64ull << 20) /* bytes of a view, until a chunk is larger. */

/*
 * The streams and addresses for moves of one device. The mover's lock guards all but the atomics.
 */
struct spill_copier {
	_Atomic bool ready;
	_Atomic(void *) marked; /* the context prepared last */
	const struct spill_backend *backend;
	int device;
	/*
	 * Streams to the host and to the device; NULL: not made, refused, or their context has
	 * ended.
	 */
	void *context, *streams[2];
	uint64_t generation;                 /* when they were made (context_end.h) */
	uint64_t view_addresses, view_bytes; /* of SPILL_COPIER_VIEWS views; 0: none */
};

/*
 * The copier of a device, with views of `view` bytes. NULL: it cannot be made. pre: the mover is
 * held; `context` is a live context of the device
 */
struct spill_copier *spill_copier_of(const struct spill_backend *backend, int device, void *context,
                                     uint64_t view);

/* The stream for copies that way. Both ways can have the same one. */
void *spill_copier_stream(const struct spill_copier *copier, bool to_device);

/*
 * Waits for all copies by the wait that frees use (backend.h). False: the error stays, which means that the
 * context is dead, and no copy runs in it. pre: the device does no other work, or the time does not matter
 */
bool spill_copier_wait(const struct spill_copier *copier);

/*
 * Waits for the copies before the event, and destroys it. Without an event (NULL), or if it has not passed in
 * `patience_ns` and never will, the context is asked. That waits for the program's work, too, which may wait for
 * a thread that waits for the mover. False: as spill_copier_wait.
 */
#define SPILL_COPIER_PATIENCE_NS 2000000000ull
bool spill_copier_wait_for(const struct spill_copier *copier, void *event, uint64_t patience_ns);

/*
 * Makes the stream, events and addresses that moves need on a device and in a context, while there
 * is memory for them and the program does not wait. False: the device cannot move. Costs two loads
 * if they exist. pre: this thread does not hold the mover, nothing captures
 */
bool spill_copier_prepare(const struct spill_backend *backend, int device, void *context);

/*
 * The context is about to end, and with it our streams. Waits for the mover, so call it before the
 * vendor's call. If that call fails, the streams are made again.
 */
void spill_copier_give_up(const struct spill_backend *backend, int device, const void *context);

/* The context has ended. Streams that were made in it since are gone, too. */
void spill_copier_context_ended(const struct spill_context_end *end);

/* In a forked child: forgets all. */
void spill_copier_reset(void);

#endif
