/*
 * Addresses. One reservation of inaccessible memory holds views of equal size in a row: the
 * program's view of all device addresses, then one view per device. Address A of device d is host
 * pointer A + (d + 1) * arena. Device memory is mapped in the devices' views only. So a program
 * that dereferences a device address crashes as it would with a card, and kernels reach the memory
 * of their device.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core_internal.h"

static uint64_t arena_start, arena_bytes;
static int views;
static struct space addresses;
static struct range **granules; /* range of each granule, by address */
struct range *sim_ranges;

static void *reserve_addresses(uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

bool va_open(int devices, uint64_t bytes)
{
	const uint64_t least = (uint64_t)8 << 30, smallest = bytes < least ? bytes : least;
	char *start = NULL;

	views = devices;
	while (!start && bytes >= smallest) {
		start = reserve_addresses(bytes * (uint64_t)(devices + 1) + SIM_GRANULE);
		if (!start)
			bytes /= 2;
	}
	if (!start)
		return false;
	arena_start = round_up((uint64_t)start, SIM_GRANULE);
	arena_bytes = bytes;
	granules = mmap(NULL, bytes / SIM_GRANULE * sizeof(*granules), PROT_READ | PROT_WRITE,
	                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (granules == MAP_FAILED)
		return false;
	/* The first granule is never given out: it is va_poison. */
	return space_init(&addresses, arena_start + SIM_GRANULE, bytes - SIM_GRANULE);
}

bool va_contains(uint64_t address)
{
	return arena_bytes && address >= arena_start && address - arena_start < arena_bytes;
}

char *va_alias(uint64_t address, int device)
{
	return (char *)(address + (uint64_t)(device + 1) * arena_bytes);
}

bool va_of_alias(const void *pointer, uint64_t *address, int *device)
{
	uint64_t offset = (uint64_t)pointer - arena_start;

	if ((uint64_t)pointer < arena_start || offset < arena_bytes ||
	    offset >= arena_bytes * (uint64_t)(views + 1))
		return false;
	*device = (int)(offset / arena_bytes) - 1;
	*address = arena_start + offset % arena_bytes;
	return true;
}

const void *va_poison(void)
{
	return (const void *)(arena_start + 64);
}

static struct range **granule_of(uint64_t address)
{
	return &granules[(address - arena_start) / SIM_GRANULE];
}

struct range *va_range(uint64_t address)
{
	return va_contains(address) ? *granule_of(address) : NULL;
}

struct range *va_take(enum sim_memory kind, uint64_t bytes, uint64_t alignment, uint64_t hint)
{
	struct range *range = calloc(1, sizeof(*range));

	if (!range)
		return NULL;
	range->kind = kind;
	range->bytes = round_up(bytes, SIM_GRANULE);
	if (bytes > arena_bytes || !space_take(&addresses, range->bytes, alignment, hint, &range->address)) {
		free(range);
		return NULL;
	}
	range->id = sim_next_id();
	range->asked = bytes;
	for (uint64_t at = 0; at < range->bytes; at += SIM_GRANULE)
		*granule_of(range->address + at) = range;
	range->next = sim_ranges;
	if (sim_ranges)
		sim_ranges->previous = range;
	sim_ranges = range;
	return range;
}

void va_give(struct range *range)
{
	for (uint64_t at = 0; at < range->bytes; at += SIM_GRANULE)
		*granule_of(range->address + at) = NULL;
	if (range->previous)
		range->previous->next = range->next;
	else
		sim_ranges = range->next;
	if (range->next)
		range->next->previous = range->previous;
	space_give(&addresses, range->address, range->bytes);
	free(range);
}

bool va_show(char *where, const struct sim_physical *physical, uint64_t offset, uint64_t bytes,
             int protection)
{
	if (!device_show(where, physical, offset, bytes))
		return false;
	return protection == (PROT_READ | PROT_WRITE) || mprotect(where, bytes, protection) == 0;
}

void va_hide(char *where, uint64_t bytes)
{
	if (mmap(where, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		/* no more mappings can be made: at least it is out of reach */
		mprotect(where, bytes, PROT_NONE);
}
