/*
 * Stream capture: which streams record their work now. In a capture nothing is placed, waited for or given back by
 * us, because the vendor would end the capture with an error (pitfall 11; docs/measurements.md).
 */
#ifndef SPILL_CAPTURE_H
#define SPILL_CAPTURE_H

#include "backend.h"
#include "context_end.h"

struct spill_capture;

/* The stream by the name that the table knows: a thread's own default stream has one of its own. */
void *spill_capture_stream(void *stream, bool per_thread);

/* The vendor has begun a capture on `stream` (a name as above), in the vendor's `mode`. */
void spill_capture_begun(const struct spill_backend *backend, void *stream, unsigned mode);

/*
 * Takes the capture of a stream out of the table, before the vendor is asked to end it or the stream: behind that call another
 * thread's stream may have the same address, and capture. NULL: none is known.
 */
struct spill_capture *spill_capture_take(const struct spill_backend *backend, const void *stream);

/* The vendor's answer to a call that ends the capture, or its stream. A capture that stays goes back into the table. */
void spill_capture_ended(struct spill_capture *capture, int result);
void spill_capture_stream_ended(struct spill_capture *capture, int result);

/* The calling thread has exchanged its capture mode for this one. */
void spill_capture_thread_mode(unsigned mode);

/* A call that we would make, or that the program makes. */
struct spill_capture_call {
	bool on_stream; /* it is in the order of `stream`, and part of its capture */
	void *stream;
	bool per_thread;
	bool safe; /* allowed in a capture of any mode */
};

/*
 * True if the call is part of a capture, or would break one: its stream captures; it has no stream and this thread has begun a
 * capture; or this thread may make no call that is unsafe in a capture.
 *
 * Making and mapping physical memory is safe in any mode. Plain, pinned and managed memory, pools and advice are not, and
 * their failure ends the capture (measured, H200: docs/measurements.md).
 */
bool spill_capture_forbids(const struct spill_backend *backend, const struct spill_capture_call *call);

/* The calling thread's number, never given twice (a tid is). */
uint64_t spill_capture_thread(void);

/* True if any stream of the process captures: waiting for a device or context breaks it, whatever its mode. One load. */
bool spill_capture_any(void);

/* All captures of a context end with it. */
void spill_capture_context_ended(const struct spill_context_end *end);

void spill_capture_fork_prepare(void);
void spill_capture_fork_done(bool child);

#endif
