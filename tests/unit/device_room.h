/* In place of what is known of a device's memory: so much is free, so much is kept, and nothing is held or limited. */
#ifndef SPILL_TEST_DEVICE_ROOM_H
#define SPILL_TEST_DEVICE_ROOM_H

#include "account.h"
#include "device_memory.h"
#include "memory_limit.h"
#include "reserve.h"

static uint64_t device_room, device_reserve;

int spill_device_memory(const struct spill_backend *backend, int device, uint64_t *free, uint64_t *total)
{
	*free = device_room;
	return 0;
}

struct spill_seen spill_device_seen(int device)
{
	return (struct spill_seen){0};
}

uint64_t spill_device_limit(const struct spill_backend *backend, int device)
{
	return UINT64_MAX;
}

uint64_t spill_account_device_held(int device)
{
	return 0;
}

uint64_t spill_reserve_size(int device)
{
	return device_reserve;
}

#endif
