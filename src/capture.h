/*
 * Stream capture: which streams record their work now. In a capture nothing is placed, waited for or given back by
 * us, because the vendor would end the capture with an error (pitfall 11; docs/measurements.md).
 */
#ifndef SPILL_CAPTURE_H
#define SPILL_CAPTURE_H

#include "backend.h"
#include "context_end.h"

/* Steps CAPTURE_BEGIN, CAPTURE_END, CAPTURE_MODE and STREAM_END. */
bool spill_engine_capture(struct spill_request *request);

/*
 * True if the request is part of a capture, or what we would do for it would break one: it is on a stream that captures,
 * it has no stream and this thread has begun a capture, or this thread may make no call that is unsafe in a capture.
 */
bool spill_capture_here(const struct spill_request *request);

/* The calling thread's number, never given twice (a tid is). */
uint64_t spill_capture_thread(void);

/* True if any stream of the process captures: waiting for a device or context breaks it, whatever its mode. One load. */
bool spill_capture_any(void);

/* All captures of a context end with it. */
void spill_capture_context_ended(const struct spill_context_end *end);

void spill_capture_fork_prepare(void);
void spill_capture_fork_done(bool child);

#endif
