/*
 * Stream capture: the table of streams that record a graph instead of running their work. During a
 * capture libspill does not wait, because the vendor would end the capture with an error. It
 * allocates only where the vendor allows the program's own call, too (docs/adr/0037,
 * docs/measurements.md).
 */
#ifndef SPILL_CAPTURE_H
#define SPILL_CAPTURE_H

#include "backend.h"
#include "context_end.h"

struct spill_capture;

/* The name of a stream in the table. The per-thread default stream has a name of its own. */
void *spill_capture_stream(void *stream, bool per_thread);

/* The vendor has begun a capture on `stream` (a name as above), in the vendor's `mode`. */
void spill_capture_begun(const struct spill_backend *backend, void *stream, unsigned mode);

/*
 * Removes a stream's capture from the table, before the vendor is asked to end the capture or the
 * stream. After that call another thread's stream may have the same address and capture, too. NULL:
 * the table has none.
 */
struct spill_capture *spill_capture_take(const struct spill_backend *backend, const void *stream);

/*
 * The vendor's result of ending the capture, or its stream. A capture that stays returns to the
 * table.
 */
void spill_capture_ended(struct spill_capture *capture, int result);
void spill_capture_stream_ended(struct spill_capture *capture, int result);

/* The calling thread has set its capture mode to `mode`. */
void spill_capture_thread_mode(unsigned mode);

/* A call that libspill or the program is about to make. */
struct spill_capture_call {
	bool on_stream; /* the call is ordered in `stream`, and is part of its capture */
	void *stream;
	bool per_thread;
	bool safe; /* allowed in a capture of any mode */
};

/*
 * True if the call is part of a capture, or would break one. A call on a stream is part of the
 * stream's capture. A call without a stream is part of none: a graph does not record it. A call that
 * is not safe breaks a capture if this thread may not make unsafe calls.
 *
 * Making and mapping physical memory is safe in every mode. Plain, pinned and managed memory, pools
 * and advice are not: the call fails, and the capture ends (measured, H200: docs/measurements.md).
 */
bool spill_capture_forbids(const struct spill_backend *backend, const struct spill_capture_call *call);

/* The calling thread's number. Unlike a tid, it is never used again. */
uint64_t spill_capture_thread(void);

/*
 * True if any stream of the process captures. Waiting for a device or context breaks a capture of
 * any mode. Costs one load.
 */
bool spill_capture_any(void);

/* The vendor's error of a call that a capture forbids. */
bool spill_capture_refused(int result);

/* All captures of a context end with the context. */
void spill_capture_context_ended(const struct spill_context_end *end);

extern const struct spill_fork_lock spill_capture_fork_lock;

#endif
