/* The end of a context as the engine tells it, at this moment. */
#ifndef TEST_ENDED_H
#define TEST_ENDED_H

#include "context_end.h"

static inline struct spill_context_end ended_now(const struct spill_backend *backend, int device,
                                                 const void *context)
{
	struct spill_context_end end = spill_context_end_begin(backend, device, context);
	spill_context_end_finish(&end, false);
	return end;
}

#define ENDED(backend, device, context) \
	(&(struct spill_context_end[]){ended_now(backend, device, context)}[0])

#endif
