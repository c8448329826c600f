/* In place of what is known of a device's memory: so much is free and kept, and so much held, or only charged. */
#ifndef SPILL_TEST_DEVICE_ROOM_H
#define SPILL_TEST_DEVICE_ROOM_H

#include "account.h"
#include "device_memory.h"
#include "memory_limit.h"
#include "reserve.h"

static uint64_t device_room, device_reserve, device_held, device_charged, device_limit = UINT64_MAX;

int spill_device_memory(const struct spill_backend *backend, int device, uint64_t *free, uint64_t *total)
{
	*free = device_room;
	return 0;
}

struct spill_seen spill_device_seen(int device)
{
	return (struct spill_seen){0};
}

uint64_t spill_device_memory_held(int device)
{
	return device_held;
}

uint64_t spill_device_limit(const struct spill_backend *backend, int device)
{
	return device_limit;
}

uint64_t spill_account_device_held(int device)
{
	return device_held + device_charged;
}

uint64_t spill_reserve_size(int device)
{
	return device_reserve;
}

#endif
