/*
 * Managed memory. Its bytes stay in host memory and never move. Only the residency of each page of
 * 2 MiB changes. A page on a device takes capacity of that device, which reaches it.
 * A kernel that touches a page elsewhere faults, and the fault brings the page. As in a real
 * driver, advice or a full device can map the page in place. The program may touch a page at any
 * time, which does not move it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core_internal.h"

#define NOWHERE (-2)

struct prefetch {
	uint64_t address, bytes;
	int device;
};

static uint64_t pages_of(const struct range *range)
{
	return range->bytes / SIM_GRANULE;
}

static bool set_reach(struct range *range, uint64_t i, int device, bool on)
{
	struct page *page = &range->page[i];
	uint32_t bit = 1u << device;
	char *alias = va_alias(range->address + i * SIM_GRANULE, device);

	if (on == (bool)(page->mapped & bit))
		return true;
	if (!on)
		va_hide(alias, SIM_GRANULE);
	else if (!va_show(alias, range->physical, i * SIM_GRANULE, SIM_GRANULE, PROT_READ | PROT_WRITE))
		return false;
	page->mapped ^= bit;
	return true;
}

/* Devices that reach a page without faults: its own device, and those that the advice names. */
static void settle_page(struct range *range, uint64_t i)
{
	const struct page *page = &range->page[i];

	for (int device = 0; device < sim_config()->devices; device++)
		set_reach(range, i, device, page->resident == device || page->accessed_by & 1u << device);
}

static bool move_page(struct range *range, uint64_t i, int to, bool in_fault)
{
	struct page *page = &range->page[i];

	if (page->resident == to)
		return true;
	if (to >= 0 && (in_fault ? device_charge_in_fault : device_charge)(to, SIM_GRANULE))
		return false;
	if (page->resident >= 0)
		device_discharge(page->resident, SIM_GRANULE);
	page->resident = (int8_t)to;
	settle_page(range, i);
	return true;
}

bool managed_init(struct range *range)
{
	bool whole = !sim_config()->concurrent;

	range->page = calloc(pages_of(range), sizeof(*range->page));
	if (!range->page)
		return false;
	for (uint64_t i = 0; i < pages_of(range); i++) {
		struct page *page = &range->page[i];

		page->resident = (int8_t)(whole ? range->device : SIM_CPU);
		page->preferred = page->last_prefetch = NOWHERE;
		for (int device = 0; whole && device < sim_config()->devices; device++)
			set_reach(range, i, device, true);
	}
	return true;
}

void managed_gone(struct range *range)
{
	for (uint64_t i = 0; range->page && i < pages_of(range); i++) {
		if (range->page[i].resident >= 0)
			device_discharge(range->page[i].resident, SIM_GRANULE);
		for (int device = 0; device < sim_config()->devices; device++)
			set_reach(range, i, device, false);
	}
	free(range->page);
	range->page = NULL;
}

void managed_evict(int device, uint64_t bytes)
{
	struct range *range = sim_ranges;

	if (!sim_config()->concurrent)
		return;
	while (range && range->next)
		range = range->next;
	for (uint64_t moved = 0; range && moved < bytes; range = range->previous) {
		for (uint64_t i = 0; range->page && i < pages_of(range) && moved < bytes; i++) {
			if (range->page[i].resident == device && move_page(range, i, SIM_CPU, false))
				moved += SIM_GRANULE;
		}
	}
}

bool managed_touch(uint64_t address, int device)
{
	bool again = false;

	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = va_range(address);
	if (range && range->page) {
		uint64_t i = (address - range->address) / SIM_GRANULE;
		struct page *page = &range->page[i];
		bool stays =
		    page->preferred == SIM_CPU || (page->preferred >= 0 && page->preferred != device);

		if (!stays)
			move_page(range, i, device, true);
		again = set_reach(range, i, device, true);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return again;
}

/* The pages that the bytes touch. NULL: not in one managed allocation. pre: the lock is held. */
static struct range *managed_pages(uint64_t address, uint64_t bytes, uint64_t *first, uint64_t *last)
{
	struct range *range = va_range(address);

	if (!range || !range->page || !bytes || bytes > range->bytes ||
	    address + bytes > range->address + range->bytes)
		return NULL;
	*first = (address - range->address) / SIM_GRANULE;
	*last = (address + bytes - 1 - range->address) / SIM_GRANULE;
	return range;
}

static void advise_page(struct page *page, enum sim_advice advice, bool set, int device)
{
	uint32_t bit = device == SIM_CPU ? 1u << 31 : 1u << device;

	if (advice == SIM_READ_MOSTLY)
		page->read_mostly = set;
	else if (advice == SIM_PREFERRED_LOCATION)
		page->preferred = (int8_t)(set ? device : NOWHERE);
	else
		page->accessed_by = set ? page->accessed_by | bit : page->accessed_by & ~bit;
}

enum sim_status sim_advise(uint64_t address, uint64_t bytes, enum sim_advice advice, bool set, int device)
{
	uint64_t first, last;

	if (advice != SIM_READ_MOSTLY && (device < SIM_CPU || device >= sim_config()->devices) &&
	    !(advice == SIM_PREFERRED_LOCATION && !set))
		return SIM_INVALID;
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = managed_pages(address, bytes, &first, &last);
	for (uint64_t i = first; range && i <= last; i++) {
		advise_page(&range->page[i], advice, set, device);
		if (sim_config()->concurrent)
			settle_page(range, i);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return range ? SIM_OK : SIM_INVALID;
}

static void prefetch_now(void *data)
{
	const struct prefetch *ask = data;
	uint64_t first, last;

	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = managed_pages(ask->address, ask->bytes, &first, &last);
	for (uint64_t i = first; range && i <= last; i++) {
		struct page *page = &range->page[i];

		page->last_prefetch = (int8_t)ask->device;
		/* A read-mostly page has a copy on either side: going to the host drops none. */
		if (!(page->read_mostly && ask->device == SIM_CPU))
			move_page(range, i, ask->device, false);
	}
	pthread_mutex_unlock(&sim_memory_lock);
}

enum sim_status sim_prefetch(struct sim_stream *stream, uint64_t address, uint64_t bytes, int device)
{
	uint64_t first, last;

	if (device < SIM_CPU || device >= sim_config()->devices)
		return SIM_INVALID;
	pthread_mutex_lock(&sim_memory_lock);
	bool managed = managed_pages(address, bytes, &first, &last);
	pthread_mutex_unlock(&sim_memory_lock);
	if (!managed)
		return SIM_INVALID;
	struct prefetch *ask = malloc(sizeof(*ask));
	if (!ask)
		return SIM_NO_HOST_MEMORY;
	*ask = (struct prefetch){address, bytes, device};
	return stream_submit(stream, SIM_NODE_NONE, prefetch_now, ask, false, false);
}

enum sim_status sim_managed_query(uint64_t address, uint64_t bytes, struct sim_managed *out)
{
	uint64_t first, last;

	pthread_mutex_lock(&sim_memory_lock);
	const struct range *range = managed_pages(address, bytes, &first, &last);
	for (uint64_t i = first; range && i <= last; i++) {
		const struct page *page = &range->page[i];
		uint64_t start = range->address + i * SIM_GRANULE, end = start + SIM_GRANULE;

		if (i == first)
			*out = (struct sim_managed){page->read_mostly, page->preferred, page->accessed_by,
			                            page->last_prefetch, 0};
		out->read_mostly &= page->read_mostly;
		out->accessed_by &= page->accessed_by;
		if (page->preferred != out->preferred)
			out->preferred = NOWHERE;
		if (page->last_prefetch != out->last_prefetch)
			out->last_prefetch = NOWHERE;
		if (page->resident >= 0)
			out->resident += (end < address + bytes ? end : address + bytes) -
			                 (start > address ? start : address);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return range ? SIM_OK : SIM_INVALID;
}
