/*
 * Plain allocations: device, pinned host and managed memory, and the program's own memory made reachable.
 * Small ones share a block of 2 MiB with others of their kind and context, as the driver does it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

#define SMALL ((uint64_t)1 << 20)

struct registration {
	struct registration *next;
	uint64_t address, bytes, id;
	struct sim_context *context;
};

static struct registration *registrations;

/* -- one range ------------------------------------------------------------------------------------------- */

static bool show_on(struct range *range, int device)
{
	if (!va_show(va_alias(range->address, device), range->physical, 0, range->bytes,
	             PROT_READ | PROT_WRITE))
		return false;
	range->reach |= 1u << device;
	return true;
}

static bool show(struct range *range)
{
	char *program = (char *)range->address;

	if (range->kind != SIM_DEVICE &&
	    !va_show(program, range->physical, 0, range->bytes, PROT_READ | PROT_WRITE))
		return false;
	if (range->kind == SIM_MANAGED)
		return managed_init(range);
	for (int device = 0; device < sim_config()->devices; device++) {
		bool sees = range->kind == SIM_HOST || device == range->device;

		for (struct sim_context *c = sim_contexts; c && !sees; c = c->next)
			sees = c->device == device && c->peers & 1u << range->device;
		if (sees && !show_on(range, device))
			return false;
	}
	return true;
}

static void range_remove(struct range *range)
{
	if (range->kind == SIM_MANAGED)
		managed_gone(range);
	for (int device = 0; device < sim_config()->devices; device++)
		if (range->reach & 1u << device)
			va_hide(va_alias(range->address, device), range->bytes);
	if (range->kind != SIM_DEVICE)
		va_hide((char *)range->address, range->bytes);
	range->physical->references--;
	physical_drop(range->physical);
	free(range->slab);
	va_give(range);
}

static enum sim_status range_new(struct sim_context *context, enum sim_memory kind, uint64_t bytes,
                                 struct range **out)
{
	enum sim_place place = kind == SIM_DEVICE ? SIM_ON_DEVICE : SIM_ON_HOST;
	struct sim_physical *physical;

	if (bytes > UINT64_MAX / 2)
		return place == SIM_ON_DEVICE ? SIM_NO_MEMORY : SIM_NO_HOST_MEMORY;
	enum sim_status status = physical_new(place, place == SIM_ON_DEVICE ? context->device : 0,
	                                      round_up(bytes, SIM_GRANULE), &physical);
	if (status)
		return status;
	struct range *range = va_take(kind, bytes, SIM_GRANULE, 0);
	if (!range) {
		physical->references--;
		physical_drop(physical);
		return SIM_NO_HOST_MEMORY;
	}
	range->physical = physical;
	range->context = context;
	range->device = context->device;
	if (kind == SIM_MANAGED &&
	    !sim_config()->concurrent) /* no page faults there: it is on the device whole */
		status = device_charge(context->device, range->bytes);
	if (status || !show(range)) {
		bool charged = !status && kind == SIM_MANAGED && !sim_config()->concurrent && !range->page;

		if (charged)
			device_discharge(context->device, range->bytes);
		range_remove(range);
		return status ? status : SIM_NO_HOST_MEMORY;
	}
	*out = range;
	return SIM_OK;
}

/* -- slabs ----------------------------------------------------------------------------------------------- */

static bool slab_take(struct range *range, uint64_t bytes, uint64_t *address)
{
	struct slab *slab = range->slab;
	unsigned need = (unsigned)((bytes + UNIT - 1) / UNIT);

	for (unsigned pass = 0, from = slab->rover; slab->free >= need && pass < 2; pass++, from = 0) {
		for (unsigned run = 0, i = from; i < UNITS; i++) {
			run = slab->owner[i] ? 0 : run + 1;
			if (run < need)
				continue;
			unsigned first = i + 1 - need;

			for (unsigned j = first; j <= i; j++)
				slab->owner[j] = (uint16_t)(first + 1);
			slab->small[first] = (struct small){sim_next_id(), (uint32_t)bytes, (uint16_t)need};
			slab->free -= need;
			slab->rover = i + 1;
			*address = range->address + (uint64_t)first * UNIT;
			return true;
		}
	}
	return false;
}

static enum sim_status small_new(struct sim_context *context, enum sim_memory kind, uint64_t bytes,
                                 uint64_t *address)
{
	struct range *range;

	for (range = sim_ranges; range; range = range->next)
		if (range->slab && range->kind == kind && range->context == context &&
		    slab_take(range, bytes, address))
			return SIM_OK;
	enum sim_status status = range_new(context, kind, SIM_GRANULE, &range);
	if (status)
		return status;
	range->slab = calloc(1, sizeof(*range->slab));
	if (!range->slab) {
		range_remove(range);
		return SIM_NO_HOST_MEMORY;
	}
	range->slab->free = UNITS;
	slab_take(range, bytes, address);
	return SIM_OK;
}

bool range_allocation(const struct range *range, uint64_t address, uint64_t *start, uint64_t *bytes,
                      uint64_t *id)
{
	if (!range->slab) {
		*start = range->address;
		*bytes = range->asked;
		*id = range->id;
		return address - range->address < range->asked;
	}
	unsigned owner = range->slab->owner[(address - range->address) / UNIT];
	if (!owner)
		return false;
	const struct small *small = &range->slab->small[owner - 1];
	*start = range->address + (uint64_t)(owner - 1) * UNIT;
	*bytes = small->bytes;
	*id = small->id;
	return address - *start < small->bytes;
}

void alloc_remove(struct range *range, uint64_t start)
{
	struct slab *slab = range->slab;

	if (!slab) {
		range_remove(range);
		return;
	}
	unsigned first = (unsigned)((start - range->address) / UNIT);
	unsigned units = slab->small[first].units;
	memset(&slab->owner[first], 0, units * sizeof(*slab->owner));
	slab->free += units;
	if (first < slab->rover)
		slab->rover = first;
	if (slab->free == UNITS)
		range_remove(range);
}

/* -- the interface --------------------------------------------------------------------------------------- */

enum sim_status sim_alloc(struct sim_context *context, enum sim_memory kind, uint64_t bytes,
                          uint64_t *address)
{
	enum sim_status status;

	if (!sim_context_alive(context))
		return SIM_BAD_CONTEXT;
	if (bytes == 0)
		return SIM_INVALID;
	pthread_mutex_lock(&sim_memory_lock);
	if (bytes <= SMALL) {
		status = small_new(context, kind, bytes, address);
	} else {
		struct range *range;

		status = range_new(context, kind, bytes, &range);
		if (!status)
			*address = range->address;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

/* The range whose allocation starts exactly at `address`. */
static struct range *start_of(uint64_t address, unsigned kinds, uint64_t *id)
{
	struct range *range = va_range(address);
	uint64_t start, bytes;

	if (!range || range->kind == SIM_VMM || !(kinds & 1u << range->kind))
		return NULL;
	return range_allocation(range, address, &start, &bytes, id) && start == address ? range : NULL;
}

static bool remove_if(uint64_t address, unsigned kinds, uint64_t wanted)
{
	uint64_t id;

	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = start_of(address, kinds, &id);
	bool same = range && id == wanted;
	if (same)
		alloc_remove(range, address);
	pthread_mutex_unlock(&sim_memory_lock);
	return same;
}

static bool identify(uint64_t address, unsigned kinds, uint64_t *id, struct sim_context **context)
{
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = start_of(address, kinds, id);
	if (range)
		*context = range->context;
	pthread_mutex_unlock(&sim_memory_lock);
	return range;
}

enum sim_status sim_free(uint64_t address, unsigned kinds)
{
	struct sim_context *context;
	uint64_t id;

	if (!identify(address, kinds, &id, &context))
		return SIM_INVALID;
	sim_context_synchronize(context);
	return remove_if(address, kinds, id) ? SIM_OK : SIM_INVALID;
}

#define ANY (1u << SIM_DEVICE | 1u << SIM_HOST | 1u << SIM_MANAGED)

struct ordered {
	uint64_t address, id;
};

static void free_ordered(void *data)
{
	const struct ordered *ordered = data;

	remove_if(ordered->address, ANY, ordered->id);
}

enum sim_status sim_free_ordered(uint64_t address, struct sim_stream *stream)
{
	struct sim_context *context;
	struct ordered *ordered = malloc(sizeof(*ordered));

	if (!ordered)
		return SIM_NO_HOST_MEMORY;
	ordered->address = address;
	if (!identify(address, ANY, &ordered->id, &context)) {
		free(ordered);
		return SIM_INVALID;
	}
	return stream_submit(stream, free_ordered, ordered, false, true);
}

void alloc_context_gone(struct sim_context *context)
{
	pthread_mutex_lock(&sim_memory_lock);
	for (struct range *range = sim_ranges, *next; range; range = next) {
		next = range->next;
		if (range->context == context && range->kind != SIM_VMM)
			range_remove(range);
	}
	for (struct registration **link = &registrations; *link;) {
		struct registration *one = *link;

		if (one->context == context) {
			*link = one->next;
			free(one);
		} else {
			link = &one->next;
		}
	}
	pthread_mutex_unlock(&sim_memory_lock);
}

void alloc_show_peer(struct sim_context *owner, int device, bool see)
{
	for (struct range *range = sim_ranges; range; range = range->next) {
		if (range->kind != SIM_DEVICE || range->device != owner->device || device == range->device)
			continue;
		if (see && !(range->reach & 1u << device)) {
			show_on(range, device);
		} else if (!see && range->reach & 1u << device) {
			va_hide(va_alias(range->address, device), range->bytes);
			range->reach &= ~(1u << device);
		}
	}
}

/* -- the program's own memory ---------------------------------------------------------------------------- */

enum sim_status sim_register(struct sim_context *context, void *memory, uint64_t bytes)
{
	uint64_t address = (uint64_t)memory;

	if (!sim_context_alive(context))
		return SIM_BAD_CONTEXT;
	if (!memory || !bytes || address + bytes < address || va_contains(address))
		return SIM_INVALID;
	struct registration *one = malloc(sizeof(*one));
	if (!one)
		return SIM_NO_HOST_MEMORY;
	*one = (struct registration){
	    .address = address, .bytes = bytes, .id = sim_next_id(), .context = context};
	pthread_mutex_lock(&sim_memory_lock);
	bool taken = false;
	for (struct registration *r = registrations; r; r = r->next)
		taken |= address < r->address + r->bytes && r->address < address + bytes;
	if (!taken) {
		one->next = registrations;
		registrations = one;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	if (taken)
		free(one);
	return taken ? SIM_ALREADY : SIM_OK;
}

enum sim_status sim_unregister(void *memory)
{
	struct sim_context *context = NULL;

	pthread_mutex_lock(&sim_memory_lock);
	for (struct registration *r = registrations; r; r = r->next)
		if (r->address == (uint64_t)memory)
			context = r->context;
	pthread_mutex_unlock(&sim_memory_lock);
	if (!context)
		return SIM_NOT_REGISTERED;
	sim_context_synchronize(context);

	struct registration *found = NULL;
	pthread_mutex_lock(&sim_memory_lock);
	for (struct registration **link = &registrations; *link && !found; link = &(*link)->next) {
		if ((*link)->address == (uint64_t)memory) {
			found = *link;
			*link = found->next;
			break;
		}
	}
	pthread_mutex_unlock(&sim_memory_lock);
	free(found);
	return found ? SIM_OK : SIM_NOT_REGISTERED;
}

static const struct registration *registration_of(uint64_t address)
{
	const struct registration *one = registrations;

	while (one && !(address >= one->address && address - one->address < one->bytes))
		one = one->next;
	return one;
}

void *registered(uint64_t address)
{
	pthread_mutex_lock(&sim_memory_lock);
	bool known = registration_of(address);
	pthread_mutex_unlock(&sim_memory_lock);
	return known ? (void *)address : NULL;
}

/* -- what is it? ----------------------------------------------------------------------------------------- */

static void about_vmm(const struct range *range, uint64_t address, struct sim_pointer *out)
{
	const struct mapping *mapping = range->map[(address - range->address) / SIM_GRANULE];

	out->base = range->address;
	out->size = range->bytes;
	out->id = range->id;
	if (!mapping)
		return;
	out->mapped = true;
	out->map_base = mapping->address;
	out->map_size = mapping->bytes;
	out->physical = mapping->physical;
	out->on_host = mapping->physical->place == SIM_ON_HOST;
	out->access = mapping->read;
	out->access_write = mapping->write;
	out->host_access = mapping->host_read;
	out->device =
	    out->on_host ? (mapping->read ? __builtin_ctz(mapping->read) : 0) : mapping->physical->id;
}

static bool about_plain(const struct range *range, uint64_t address, struct sim_pointer *out)
{
	unsigned all = (1u << sim_config()->devices) - 1;

	if (!range_allocation(range, address, &out->base, &out->size, &out->id))
		return false;
	out->map_base = out->base;
	out->map_size = out->size;
	out->on_host = range->kind == SIM_HOST;
	out->device = range->device;
	out->context = range->context;
	out->host_access = range->kind != SIM_DEVICE;
	out->access = out->access_write = range->kind == SIM_DEVICE ? range->reach : all;
	return true;
}

bool sim_pointer(uint64_t address, struct sim_pointer *out)
{
	struct sim_pointer about = {0};
	bool found = true;

	pthread_mutex_lock(&sim_memory_lock);
	const struct range *range = va_range(address);
	const struct registration *one = va_contains(address) ? NULL : registration_of(address);
	if (range) {
		about.kind = range->kind;
		if (range->kind == SIM_VMM)
			about_vmm(range, address, &about);
		else
			found = about_plain(range, address, &about);
	} else if (one) {
		about = (struct sim_pointer){.kind = SIM_REGISTERED,
		                             .on_host = true,
		                             .device = one->context->device,
		                             .context = one->context,
		                             .base = one->address,
		                             .size = one->bytes,
		                             .map_base = one->address,
		                             .map_size = one->bytes,
		                             .id = one->id,
		                             .host_access = true};
		about.access = about.access_write = (1u << sim_config()->devices) - 1;
	} else {
		found = false;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	if (found)
		*out = about;
	return found;
}

bool sim_range_valid(uint64_t address, uint64_t bytes)
{
	struct sim_pointer about;

	while (sim_pointer(address, &about)) {
		if (about.kind == SIM_VMM && !about.mapped)
			return false;
		uint64_t left = about.map_base + about.map_size - address;

		if (bytes <= left)
			return true;
		if (about.kind != SIM_VMM)
			return false;
		address += left;
		bytes -= left;
	}
	return false;
}
