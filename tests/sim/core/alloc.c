/*
 * Plain allocations: device, pinned host and managed memory, and registered memory of the program.
 * A small allocation shares a block of 2 MiB with others of its kind and context, as in a real
 * driver.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core_internal.h"

#define SMALL ((uint64_t)1 << 20)

struct registration {
	struct registration *next;
	uint64_t address, bytes, id;
	struct sim_context *context;
};

static struct registration *registrations;

/* -- one range --------------------------------------------------------------------------------- */

static bool show_on(struct range *range, int device, int protection)
{
	if (!va_show(va_alias(range->address, device), range->physical, 0, range->bytes, protection))
		return false;
	range->reach |= 1u << device;
	return true;
}

static void hide_from(struct range *range, int device)
{
	va_hide(va_alias(range->address, device), range->bytes);
	range->reach &= ~(1u << device);
}

/* Peer access covers plain memory only; a pool has an access list. */
static int protection_on(const struct range *range, int device)
{
	bool read = range->kind == SIM_HOST || device == range->device, write = true;

	if (range->imported)
		read = read || device == range->context->device;
	if (range->pool)
		pool_access(range->pool, device, &read, &write);
	else
		for (struct sim_context *c = sim_contexts; c && !read; c = c->next)
			read = c->device == device && context_reaches(c, range->context);
	return !read ? PROT_NONE : write ? PROT_READ | PROT_WRITE : PROT_READ;
}

static bool show_range(struct range *range)
{
	char *program = (char *)range->address;

	if (range->kind != SIM_DEVICE &&
	    !va_show(program, range->physical, 0, range->bytes, PROT_READ | PROT_WRITE))
		return false;
	if (range->kind == SIM_MANAGED)
		return managed_init(range);
	for (int device = 0; device < sim_config()->devices; device++) {
		int protection = protection_on(range, device);

		if (protection != PROT_NONE && !show_on(range, device, protection))
			return false;
	}
	return true;
}

void range_remove(struct range *range)
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
	free(range->imported);
	va_give(range);
}

static void drop_memory(struct sim_physical *physical)
{
	physical->references--;
	physical_drop(physical);
}

enum sim_status range_of(const struct range *like, uint64_t bytes, struct sim_physical *physical,
                         struct range **out)
{
	enum sim_memory kind = like->kind;
	enum sim_status status = SIM_OK;
	struct range *range = va_take(kind, bytes, SIM_GRANULE, 0);

	if (!range) {
		drop_memory(physical);
		return SIM_NO_HOST_MEMORY;
	}
	range->physical = physical;
	range->context = like->context;
	range->device = like->device;
	range->pool = like->pool;
	range->module = like->module;
	range->imported = like->imported;
	if (kind == SIM_MANAGED &&
	    !sim_config()->concurrent) /* without page faults the whole allocation is on the device */
		status = device_charge(range->device, range->bytes);
	if (status || !show_range(range)) {
		bool charged = !status && kind == SIM_MANAGED && !sim_config()->concurrent && !range->page;

		if (charged)
			device_discharge(range->device, range->bytes);
		range->imported = NULL; /* the caller's */
		range_remove(range);
		return status ? status : SIM_NO_HOST_MEMORY;
	}
	*out = range;
	return SIM_OK;
}

enum sim_status range_new(const struct range *like, uint64_t bytes, struct range **out)
{
	enum sim_place place = like->kind == SIM_DEVICE ? SIM_ON_DEVICE : SIM_ON_HOST;
	struct sim_physical *physical;

	if (bytes > UINT64_MAX / 2)
		return place == SIM_ON_DEVICE ? SIM_NO_MEMORY : SIM_NO_HOST_MEMORY;
	enum sim_status status = physical_new(place, place == SIM_ON_DEVICE ? like->device : 0,
	                                      round_up(bytes, SIM_GRANULE), !like->module, &physical);
	return status ? status : range_of(like, bytes, physical, out);
}

/* -- slabs ------------------------------------------------------------------------------------- */

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
	enum sim_status status =
	    range_new(&(struct range){.kind = kind, .device = context->device, .context = context},
	              SIM_GRANULE, &range);
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

/* The allocation that contains `address`. False: none. pre: range is not VMM. */
static bool range_allocation(const struct range *range, uint64_t address, uint64_t *start, uint64_t *bytes,
                             uint64_t *id)
{
	if (range->pool)
		return pool_allocation(range, address, start, bytes, id);
	if (range->graph)
		return graph_memory_at(range->graph, address, start, bytes, id);
	if (!range->slab) {
		*start = range->imported ? range->imported->start : range->address;
		*bytes = range->asked;
		*id = range->id;
		return !range->leaving && address - *start < range->asked;
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

/* Frees one allocation. pre: sim_memory_lock is held, and no work uses the memory. */
static void alloc_remove(struct range *range, uint64_t start)
{
	struct slab *slab = range->slab;

	if (range->graph) {
		graph_memory_free(range->graph, start);
		return;
	}
	if (!slab) {
		share_forget(range->id);
		range_remove(range);
		return;
	}
	unsigned first = (unsigned)((start - range->address) / UNIT);
	share_forget(slab->small[first].id);
	unsigned units = slab->small[first].units;
	memset(&slab->owner[first], 0, units * sizeof(*slab->owner));
	slab->free += units;
	if (first < slab->rover)
		slab->rover = first;
	if (slab->free == UNITS)
		range_remove(range);
}

/* -- the interface ----------------------------------------------------------------------------- */

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

		status =
		    range_new(&(struct range){.kind = kind, .device = context->device, .context = context},
		              bytes, &range);
		if (!status)
			*address = range->address;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

enum sim_status alloc_for_module(struct sim_context *context, uint64_t bytes, struct range **out)
{
	struct range like = {
	    .kind = SIM_DEVICE, .device = context->device, .context = context, .module = true};

	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = range_new(&like, bytes, out);
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

void alloc_module_gone(struct range *range)
{
	pthread_mutex_lock(&sim_memory_lock);
	range_remove(range);
	pthread_mutex_unlock(&sim_memory_lock);
}

/* The range whose allocation starts exactly at `address`. */
static struct range *start_of(uint64_t address, unsigned kinds, uint64_t *id)
{
	struct range *range = va_range(address);
	uint64_t start, bytes;

	if (!range || range->pool || range->module || range->imported || range->kind == SIM_VMM ||
	    !(kinds & 1u << range->kind))
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

static bool identify_allocation(uint64_t address, unsigned kinds, uint64_t *id, struct sim_context **context)
{
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = start_of(address, kinds, id);
	if (range)
		*context = range->graph ? graph_memory_context(range->graph, address) : range->context;
	pthread_mutex_unlock(&sim_memory_lock);
	return range;
}

enum sim_status sim_free(uint64_t address, unsigned kinds)
{
	struct sim_context *context;
	uint64_t id;

	enum sim_status status = kinds & 1u << SIM_DEVICE ? pool_free(address) : SIM_NOT_FOUND;
	if (status == SIM_NOT_FOUND && kinds & 1u << SIM_DEVICE)
		status = share_free(address, NULL);
	if (status != SIM_NOT_FOUND)
		return status;
	if (!identify_allocation(address, kinds, &id, &context))
		return SIM_INVALID;
	sim_context_synchronize(context);
	return remove_if(address, kinds, id) ? SIM_OK : SIM_INVALID;
}

#define ANY (1u << SIM_DEVICE | 1u << SIM_HOST | 1u << SIM_MANAGED)

struct ordered {
	uint64_t address, id;
};

/* The program loses the address at once. The memory is freed when the stream gets there. */
static bool take_from_program(uint64_t address, uint64_t *id)
{
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = start_of(address, ANY, id);
	if (range)
		share_forget(*id);
	if (range && range->slab)
		range->slab->small[(address - range->address) / UNIT].bytes = 0;
	else if (range)
		range->leaving = true;
	pthread_mutex_unlock(&sim_memory_lock);
	return range;
}

static void free_ordered(void *data)
{
	const struct ordered *ordered = data;

	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = va_range(ordered->address);
	/* Its context may have ended since, and another allocation may have the address. */
	if (range && range->slab) {
		unsigned first = (unsigned)((ordered->address - range->address) / UNIT);

		if (range->slab->owner[first] == first + 1 && range->slab->small[first].id == ordered->id)
			alloc_remove(range, ordered->address);
	} else if (range && range->id == ordered->id) {
		alloc_remove(range, ordered->address);
	}
	pthread_mutex_unlock(&sim_memory_lock);
}

enum sim_status sim_free_ordered(uint64_t address, struct sim_stream *stream)
{
	enum sim_status status = pool_free_ordered(address, stream);
	if (status == SIM_NOT_FOUND)
		status = share_free(address, stream);
	if (status == SIM_NOT_FOUND)
		status = graph_memory_free_ordered(address, stream);
	if (status != SIM_NOT_FOUND)
		return status;
	struct ordered *ordered = malloc(sizeof(*ordered));
	if (!ordered)
		return SIM_NO_HOST_MEMORY;
	ordered->address = address;
	if (!sim_stream_alive(stream) || !take_from_program(address, &ordered->id)) {
		free(ordered);
		return SIM_INVALID;
	}
	return stream_submit(stream, SIM_NODE_NONE, free_ordered, ordered, false, true);
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

void alloc_peers_changed(const struct sim_context *owner)
{
	for (struct range *range = sim_ranges; range; range = range->next) {
		if (range->kind != SIM_DEVICE || range->pool || range->context != owner)
			continue;
		for (int device = 0; device < sim_config()->devices; device++) {
			int protection = protection_on(range, device);
			bool seen = range->reach & 1u << device;

			if (!seen && protection != PROT_NONE)
				show_on(range, device, protection);
			else if (seen && protection == PROT_NONE)
				hide_from(range, device);
		}
	}
}

void alloc_pool_changed(struct range *chunk, int device)
{
	int protection = protection_on(chunk, device);

	if (chunk->kind == SIM_MANAGED)
		return; /* its pages come when they are touched */
	if (chunk->reach & 1u << device)
		hide_from(chunk, device);
	if (protection != PROT_NONE)
		show_on(chunk, device, protection);
}

/* -- the program's own memory ------------------------------------------------------------------ */

static const struct registration *registration_of(uint64_t address)
{
	const struct registration *one = registrations;

	while (one && !(address >= one->address && address - one->address < one->bytes))
		one = one->next;
	return one;
}

/* True if the program has memory there. */
static bool is_mapped(uint64_t address, uint64_t bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = address / page * page;

	return msync((void *)start, address + bytes - start, MS_ASYNC) == 0;
}

enum sim_status sim_register(struct sim_context *context, void *memory, uint64_t bytes)
{
	uint64_t address = (uint64_t)memory;

	if (!sim_context_alive(context))
		return SIM_BAD_CONTEXT;
	if (!memory || !bytes || address + bytes < address || va_contains(address) ||
	    !is_mapped(address, bytes))
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
	const struct registration *known = registration_of((uint64_t)memory);
	bool inside = known && known->address != (uint64_t)memory;
	if (known && !inside)
		context = known->context;
	pthread_mutex_unlock(&sim_memory_lock);
	if (!memory || inside)
		return SIM_INVALID;
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

void *registered(uint64_t address)
{
	pthread_mutex_lock(&sim_memory_lock);
	bool known = registration_of(address);
	pthread_mutex_unlock(&sim_memory_lock);
	return known ? (void *)address : NULL;
}

/* -- queries ----------------------------------------------------------------------------------- */

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
	out->map_base = range->address;
	out->map_size = range->bytes;
	out->on_host = range->kind == SIM_HOST;
	out->device = range->device;
	out->context = range->context;
	out->host_access = range->kind != SIM_DEVICE;
	out->access =
	    range->kind == SIM_DEVICE || (range->pool && range->kind == SIM_HOST) ? range->reach : all;
	out->access_write = out->access;
	out->pool = range->imported ? range->imported->pool : range->pool;
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
		uint64_t left = about.kind == SIM_VMM ? about.map_base + about.map_size - address
		                                      : about.base + about.size - address;

		if (bytes <= left)
			return true;
		if (about.kind != SIM_VMM)
			return false;
		address += left;
		bytes -= left;
	}
	return false;
}
