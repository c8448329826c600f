#include "capture.h"

bool spill_engine_capture(struct spill_request *request)
{
	return request->step++ == 0;
}

bool spill_capture_here(const struct spill_request *request)
{
	return false;
}

bool spill_capture_any(void)
{
	return false;
}

void spill_capture_context_ended(const void *context)
{
}
