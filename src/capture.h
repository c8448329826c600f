/*
 * Stream capture: which streams record their work now. In a capture nothing is placed, waited for or given back by
 * us, because the vendor would end the capture with an error (pitfall 11; docs/measurements.md).
 */
#ifndef SPILL_CAPTURE_H
#define SPILL_CAPTURE_H

#include "request.h"

/* Steps CAPTURE_BEGIN, CAPTURE_END, CAPTURE_MODE and STREAM_END. */
bool spill_engine_capture(struct spill_request *request);

/* True if the request is part of a capture: on a stream that captures, or by a thread that has begun a capture. */
bool spill_capture_here(const struct spill_request *request);

/* True if any stream of the process captures: waiting for the device may break it. */
bool spill_capture_any(void);

/* All captures of a context end with it. */
void spill_capture_context_ended(const void *context);

#endif
