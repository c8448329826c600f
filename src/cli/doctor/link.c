/* Measures copies. A kernel reads in place nearly as fast, but needs code for each device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "doctor_driver.h"

#define MIB ((uint64_t)1 << 20)
#define MOST_BYTES (64 * MIB) /* takes over 1 ms at 55 GB/s, so a call's own cost does not count */
#define LEAST_BYTES (4 * MIB)
#define ROUNDS 7
/* The link of an idle device sleeps and needs time to wake. */
#define WARM_NS 100000000u

static bool succeeded(const struct spill_backend *backend, struct driver_link *link, const char *action,
                      int error)
{
	if (error)
		snprintf(link->problem, sizeof(link->problem), "%s: %s", action, backend->error_name(error));
	return !error;
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* GB/s of the median copy; 0: a copy failed. */
static double measure_rate(const struct driver_vendor *vendor, struct driver_link *link, uint64_t to,
                           uint64_t from)
{
	uint64_t times[ROUNDS], median, begin = spill_clock_ns();

	do {
		if (!succeeded(vendor->backend, link, "copy", vendor->copy(to, from, link->bytes)))
			return 0;
	} while (!link->simulated && spill_clock_ns() - begin < WARM_NS);
	for (unsigned i = 0; i < ROUNDS; i++) {
		begin = spill_clock_ns();
		if (!succeeded(vendor->backend, link, "copy", vendor->copy(to, from, link->bytes)))
			return 0;
		times[i] = spill_clock_ns() - begin;
	}
	qsort(times, ROUNDS, sizeof(times[0]), compare_times);
	median = times[ROUNDS / 2];
	return median ? (double)link->bytes / (double)median : 0;
}

static void copy_there_and_back(const struct driver_vendor *vendor, struct driver_link *link)
{
	const struct spill_backend *backend = vendor->backend;
	uint64_t on_device, seen;
	void *on_host;

	if (!succeeded(backend, link, "device memory",
	               backend->memory->device_alloc(link->bytes, &on_device)))
		return;
	if (succeeded(backend, link, "pinned host memory",
	              backend->memory->host_alloc(link->bytes, &seen, &on_host))) {
		memset(on_host, 1, link->bytes);
		link->to_device = measure_rate(vendor, link, on_device, (uint64_t)(uintptr_t)on_host);
		link->from_device = measure_rate(vendor, link, (uint64_t)(uintptr_t)on_host, on_device);
		backend->memory->host_free(on_host);
	}
	backend->memory->device_free(on_device);
}

void driver_link(const struct driver_vendor *vendor, int device, struct driver_device *facts)
{
	struct driver_link *link = &facts->link;
	uint64_t free = 0, total;
	void *before;

	/* The simulator (tests/sim) has this name and no link. */
	link->simulated = !strncmp(facts->identity.name, "Simulated GPU", 13);
	link->bytes = MOST_BYTES;
	if (facts->capabilities & SPILL_IS_INTEGRATED) {
		strcpy(link->problem, "its memory is the host's, there is no link");
		return;
	}
	if (!succeeded(vendor->backend, link, "context", vendor->backend->devices->enter(device, &before)))
		return;
	vendor->backend->devices->memory(device, &free, &total);
	while (link->bytes > free / 4)
		link->bytes /= 2;
	if (link->bytes < LEAST_BYTES)
		strcpy(link->problem, "the device is full");
	else
		copy_there_and_back(vendor, link);
	vendor->backend->devices->leave(before);
}
