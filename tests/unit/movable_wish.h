/* In place of what decides whether a request gets movable memory: as a test says. */
#ifndef SPILL_TEST_MOVABLE_WISH_H
#define SPILL_TEST_MOVABLE_WISH_H

#include "engine.h"
#include "exporting.h"
#include "movable.h"

static bool wanted, plain, captures;

bool spill_movable_wanted(const struct spill_backend *vendor, int device, uint64_t bytes,
                          enum spill_switch chunks)
{
	return wanted;
}

bool spill_exporting_stays_plain(const struct spill_request *request)
{
	return plain;
}

bool spill_engine_in_capture(const struct spill_request *request)
{
	return captures;
}

#endif
