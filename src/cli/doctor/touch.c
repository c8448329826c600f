/* Tries a small piece of each kind of memory, because offered features may fail. */
#include <stdio.h>
#include <string.h>

#include "doctor_driver.h"

/* False if the call failed; writes the error into `touch`. */
static bool succeeded(const struct spill_backend *backend, struct driver_touch *touch, const char *call,
                      int error)
{
	touch->error = error;
	if (!error)
		return true;
	touch->full = error == backend->out_of_memory;
	snprintf(touch->call, sizeof(touch->call), "%s", call);
	snprintf(touch->name, sizeof(touch->name), "%s", backend->error_name(error));
	return false;
}

/*
 * Makes a chunk, maps it and gives the device access. spill_probe moves bytes through both kinds.
 */
static void touch_chunk(const struct spill_backend *backend, int device, bool on_host,
                        struct driver_touch *touch)
{
	uint64_t unit, va, handle;

	touch->tried = true;
	if (!succeeded(backend, touch, "granularity",
	               backend->physical->granularity(device, on_host, &unit)) ||
	    !succeeded(backend, touch, "reserve", backend->vmm->reserve(unit, unit, &va)))
		return;
	if (succeeded(backend, touch, "create", backend->physical->create(device, on_host, unit, &handle))) {
		if (succeeded(backend, touch, "map", backend->vmm->map(va, unit, handle))) {
			succeeded(backend, touch, "set access", backend->vmm->allow(va, unit, device));
			backend->vmm->unmap(va, unit);
		}
		backend->physical->release(handle);
	}
	backend->vmm->unreserve(va, unit);
}

/* The host writes it, which is always allowed while no kernel runs. */
static void touch_managed(const struct spill_backend *backend, struct driver_touch *touch)
{
	uint64_t ptr;

	touch->tried = true;
	if (!succeeded(backend, touch, "allocate", backend->memory->managed_alloc(4096, &ptr)))
		return;
	memset((void *)(uintptr_t)ptr, 1, 4096);
	succeeded(backend, touch, "free", backend->memory->managed_free(ptr));
}

static void touch_host(const struct spill_backend *backend, struct driver_touch *touch)
{
	uint64_t ptr;
	void *host;

	touch->tried = true;
	if (!succeeded(backend, touch, "allocate", backend->memory->host_alloc(4096, &ptr, &host)))
		return;
	memset(host, 1, 4096);
	succeeded(backend, touch, "free", backend->memory->host_free(host));
}

void driver_touch(const struct spill_backend *backend, int device, struct driver_device *facts)
{
	struct driver_touch *context = &facts->touch[TOUCH_CONTEXT];
	uint64_t total;
	void *before;

	context->tried = true;
	if (!succeeded(backend, context, "make a context", backend->devices->enter(device, &before)))
		return;
	backend->devices->memory(device, &facts->free, &total);
	if (facts->capabilities & SPILL_CAN_SPLIT) {
		touch_chunk(backend, device, false, &facts->touch[TOUCH_DEVICE_CHUNK]);
		touch_chunk(backend, device, true, &facts->touch[TOUCH_HOST_CHUNK]);
	}
	if (facts->capabilities & SPILL_CAN_MANAGED)
		touch_managed(backend, &facts->touch[TOUCH_MANAGED]);
	if (facts->capabilities & SPILL_CAN_HOST)
		touch_host(backend, &facts->touch[TOUCH_HOST]);
	if (facts->capabilities & SPILL_CAN_MOVE) {
		facts->probed = true;
		facts->move = spill_probe(backend, device);
	}
	backend->devices->leave(before);
}
