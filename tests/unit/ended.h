/* The end of a context as the engine tells it, at this moment. */
#ifndef TEST_ENDED_H
#define TEST_ENDED_H

#include "context_end.h"

#define ENDED(backend, device, context) \
	(&(struct spill_context_end[]){spill_context_end_begin(backend, device, context)}[0])

#endif
