/* Virtual memory management: reserved addresses, physical handles, mappings, access. */
#include <stdlib.h>
#include <sys/mman.h>

#include "core_internal.h"

static bool is_whole_granules(uint64_t value)
{
	return value % SIM_GRANULE == 0;
}

enum sim_status sim_reserve(uint64_t bytes, uint64_t alignment, uint64_t hint, uint64_t *address)
{
	enum sim_status status = SIM_NO_HOST_MEMORY;

	if (!bytes || !is_whole_granules(bytes) || (alignment & (alignment - 1)))
		return SIM_INVALID;
	if (alignment < SIM_GRANULE)
		alignment = SIM_GRANULE;
	struct mapping **map = calloc(bytes / SIM_GRANULE, sizeof(*map));
	if (!map)
		return status;
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = va_take(SIM_VMM, bytes, alignment, hint);
	if (range) {
		range->map = map;
		*address = range->address;
		status = SIM_OK;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	if (status)
		free(map);
	return status;
}

/* The reservation that contains the whole range, or NULL. pre: the lock is held. */
static struct range *reservation_of(uint64_t address, uint64_t bytes)
{
	struct range *range = va_range(address);

	if (!range || range->kind != SIM_VMM || !bytes || !is_whole_granules(address) ||
	    !is_whole_granules(bytes) || bytes > range->bytes ||
	    address + bytes > range->address + range->bytes)
		return NULL;
	return range;
}

static struct mapping **mapping_slot(struct range *range, uint64_t address)
{
	return &range->map[(address - range->address) / SIM_GRANULE];
}

enum sim_status sim_unreserve(uint64_t address, uint64_t bytes)
{
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = reservation_of(address, bytes);
	bool good = range && range->address == address && range->bytes == bytes;
	for (uint64_t at = 0; good && at < bytes; at += SIM_GRANULE)
		good = !*mapping_slot(range, address + at);
	if (good) {
		free(range->map);
		va_give(range);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return good ? SIM_OK : SIM_INVALID;
}

/* -- handles ----------------------------------------------------------------------------------- */

enum sim_status sim_physical_create(enum sim_place place, int id, uint64_t bytes, struct sim_physical **out)
{
	if (!bytes || !is_whole_granules(bytes) || id < 0 ||
	    (place == SIM_ON_DEVICE && id >= sim_config()->devices))
		return SIM_INVALID;
	if (place == SIM_ON_HOST && !sim_config()->host_vmm)
		return SIM_NOT_SUPPORTED;
	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = physical_new(place, id, bytes, true, out);
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

bool sim_physical_alive(struct sim_physical *physical)
{
	return object_is(physical, OBJECT_PHYSICAL);
}

enum sim_status sim_physical_release(struct sim_physical *physical)
{
	enum sim_status status = SIM_INVALID;

	pthread_mutex_lock(&sim_memory_lock);
	if (sim_physical_alive(physical) && physical->references) {
		physical->references--;
		physical_drop(physical);
		status = SIM_OK;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

enum sim_status sim_physical_retain(uint64_t address, struct sim_physical **out)
{
	enum sim_status status = SIM_INVALID;

	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = va_range(address);
	struct mapping *mapping = range && range->kind == SIM_VMM ? *mapping_slot(range, address) : NULL;
	if (mapping) {
		mapping->physical->references++;
		*out = mapping->physical;
		status = SIM_OK;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

enum sim_status sim_physical_reference(struct sim_physical *physical)
{
	enum sim_status status = SIM_INVALID;

	pthread_mutex_lock(&sim_memory_lock);
	if (sim_physical_alive(physical) && physical->references) {
		physical->references++;
		status = SIM_OK;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

void *sim_physical_face(struct sim_physical *physical)
{
	return physical->face;
}

void sim_physical_about(struct sim_physical *physical, enum sim_place *place, int *id, uint64_t *bytes)
{
	*place = physical->place;
	*id = physical->id;
	*bytes = physical->bytes;
}

/* -- mappings ---------------------------------------------------------------------------------- */

enum sim_status sim_map(uint64_t address, uint64_t bytes, uint64_t offset, struct sim_physical *physical)
{
	struct mapping *mapping = calloc(1, sizeof(*mapping));
	enum sim_status status = mapping ? SIM_INVALID : SIM_NO_HOST_MEMORY;

	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = reservation_of(address, bytes);
	bool good = mapping && range && sim_physical_alive(physical) && physical->references;
	for (uint64_t at = 0; good && at < bytes; at += SIM_GRANULE)
		good = !*mapping_slot(range, address + at);
	if (good && (offset || bytes != physical->bytes)) {
		good = false; /* as an H200's driver answers, which maps whole handles only */
		status = SIM_NOT_SUPPORTED;
	}
	if (good) {
		*mapping = (struct mapping){.address = address, .bytes = bytes, .physical = physical};
		physical->mappings++;
		for (uint64_t at = 0; at < bytes; at += SIM_GRANULE)
			*mapping_slot(range, address + at) = mapping;
		status = SIM_OK;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	if (status)
		free(mapping);
	return status;
}

/* True if the range is made of whole mappings. pre: the lock is held. */
static bool whole_mappings(struct range *range, uint64_t address, uint64_t bytes)
{
	for (uint64_t at = address; at < address + bytes;) {
		const struct mapping *mapping = *mapping_slot(range, at);

		if (!mapping || mapping->address != at || mapping->bytes > address + bytes - at)
			return false;
		at += mapping->bytes;
	}
	return true;
}

static void remove_mapping(struct range *range, struct mapping *mapping)
{
	for (int device = 0; device < sim_config()->devices; device++)
		if (mapping->read & 1u << device)
			va_hide(va_alias(mapping->address, device), mapping->bytes);
	if (mapping->host_read)
		va_hide((char *)mapping->address, mapping->bytes);
	for (uint64_t at = 0; at < mapping->bytes; at += SIM_GRANULE)
		*mapping_slot(range, mapping->address + at) = NULL;
	mapping->physical->mappings--;
	physical_drop(mapping->physical);
	free(mapping);
}

/* True if no mapping crosses an end of the range. pre: the lock is held. */
static bool nothing_cut(struct range *range, uint64_t address, uint64_t bytes)
{
	const struct mapping *first = *mapping_slot(range, address),
	                     *last = *mapping_slot(range, address + bytes - SIM_GRANULE);

	return (!first || first->address == address) &&
	       (!last || last->address + last->bytes == address + bytes);
}

enum sim_status sim_unmap(uint64_t address, uint64_t bytes)
{
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = reservation_of(address, bytes);
	bool good = range && nothing_cut(range, address, bytes);
	for (uint64_t at = address; good && at < address + bytes;) {
		struct mapping *mapping = *mapping_slot(range, at);

		at += mapping ? mapping->bytes : SIM_GRANULE;
		if (mapping)
			remove_mapping(range, mapping);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	jitter(1); /* before the next mapping there */
	return good ? SIM_OK : SIM_INVALID;
}

static bool set_access(struct mapping *mapping, int device, bool read, bool write)
{
	char *where = device == SIM_CPU ? (char *)mapping->address : va_alias(mapping->address, device);
	unsigned bit = device == SIM_CPU ? 0 : 1u << device;

	if (!read)
		va_hide(where, mapping->bytes);
	else if (!va_show(where, mapping->physical, 0, mapping->bytes,
	                  write ? PROT_READ | PROT_WRITE : PROT_READ))
		return false;
	if (device == SIM_CPU) {
		mapping->host_read = read;
		mapping->host_write = write;
	} else {
		mapping->read = read ? mapping->read | bit : mapping->read & ~bit;
		mapping->write = read && write ? mapping->write | bit : mapping->write & ~bit;
	}
	return true;
}

enum sim_status sim_set_access(uint64_t address, uint64_t bytes, int device, bool read, bool write)
{
	enum sim_status status = SIM_OK;

	if (device < SIM_CPU || device >= sim_config()->devices)
		return SIM_INVALID;
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = reservation_of(address, bytes);
	if (!range || !whole_mappings(range, address, bytes))
		status = SIM_INVALID;
	for (uint64_t at = address; !status && device == SIM_CPU && at < address + bytes;
	     at += (*mapping_slot(range, at))->bytes)
		if ((*mapping_slot(range, at))->physical->place != SIM_ON_HOST)
			status = SIM_NOT_SUPPORTED;
	for (uint64_t at = address; !status && at < address + bytes; at += (*mapping_slot(range, at))->bytes)
		if (!set_access(*mapping_slot(range, at), device, read, write))
			status = SIM_NO_HOST_MEMORY;
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

void sim_vmm_reset(int id)
{
	pthread_mutex_lock(&sim_memory_lock);
	for (struct range *range = sim_ranges; range; range = range->next)
		for (uint64_t at = 0; range->kind == SIM_VMM && at < range->bytes; at += SIM_GRANULE) {
			struct mapping *mapping = *mapping_slot(range, range->address + at);

			if (!mapping || mapping->physical->id != id)
				continue;
			mapping->physical->references = 0;
			remove_mapping(range, mapping);
		}
	pthread_mutex_unlock(&sim_memory_lock);
}
