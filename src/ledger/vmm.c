#include "vmm.h"

#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_VMM */
/* Trees of tsearch(3): memory by handle, and mappings by address. */
static void *names, *ranges;
static _Atomic uint64_t spilled_mappings;

static int compare_names(const void *left, const void *right)
{
	const struct spill_vmm_memory *a = left, *b = right;
	return (a->name > b->name) - (a->name < b->name);
}

/* Ranges that overlap compare equal, so a range finds a mapping that overlaps it. */
static int compare_ranges(const void *left, const void *right)
{
	const struct spill_vmm_mapping *a = left, *b = right;
	if (a->va + a->bytes <= b->va)
		return -1;
	return b->va + b->bytes <= a->va ? 1 : 0;
}

/* pre: locked */
static struct spill_vmm_memory *find_memory(uint64_t handle)
{
	struct spill_vmm_memory key = {.name = handle};
	struct spill_vmm_memory *const *node = tfind(&key, &names, compare_names);
	return node ? *node : NULL;
}

/* pre: locked. Any one mapping that overlaps the range. */
static struct spill_vmm_mapping *find_mapping(uint64_t va, uint64_t bytes)
{
	struct spill_vmm_mapping key = {.va = va, .bytes = bytes};
	struct spill_vmm_mapping *const *node = tfind(&key, &ranges, compare_ranges);
	return node ? *node : NULL;
}

/* pre: locked */
static void forget_name(struct spill_vmm_memory *memory)
{
	if (memory->named)
		tdelete(memory, &names, compare_names);
	memory->named = false;
}

/* pre: locked. Adds the memory to the list `ended` if nothing holds it any more. */
static void end_if_unused(struct spill_vmm_memory *memory, struct spill_vmm_memory **ended)
{
	if (memory->handles || memory->mappings || memory->calls)
		return;
	forget_name(memory);
	memory->next = *ended;
	*ended = memory;
}

/*
 * pre: locked. The value `handle` now means `memory`. If it meant other memory, a call that we did
 * not see has released that. False if there is no memory for the tree's node.
 */
static bool give_name(struct spill_vmm_memory *memory, uint64_t handle, struct spill_vmm_memory **ended)
{
	struct spill_vmm_memory *before = find_memory(handle);
	if (before == memory)
		return true; /* for spill_vmm_retained, which does not look at it */
	if (before) {
		forget_name(before);
		before->handles = 0;
		end_if_unused(before, ended);
	}
	forget_name(memory);
	memory->name = handle;
	memory->named = tsearch(memory, &names, compare_names) != NULL;
	return memory->named;
}

/* pre: locked */
static void remove_mapping(struct spill_vmm_mapping *mapping)
{
	tdelete(mapping, &ranges, compare_ranges);
	if (mapping->memory->spilled)
		atomic_fetch_sub(&spilled_mappings, 1);
}

/* pre: locked. False if there is no memory for the tree's node. */
static bool insert_mapping(struct spill_vmm_mapping *mapping)
{
	if (!tsearch(mapping, &ranges, compare_ranges))
		return false;
	if (mapping->memory->spilled)
		atomic_fetch_add(&spilled_mappings, 1);
	return true;
}

/* pre: locked */
static void end_mapping(struct spill_vmm_mapping *mapping, struct spill_vmm_memory **ended)
{
	mapping->memory->mappings--;
	end_if_unused(mapping->memory, ended);
	free(mapping);
}

struct spill_vmm_memory *spill_vmm_add(const struct spill_vmm_memory *memory, struct spill_vmm_memory **ended)
{
	struct spill_vmm_memory *copy = malloc(sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = *memory;
	copy->named = false;
	copy->mappings = copy->calls = 0;
	copy->handles = 1;
	pthread_mutex_lock(&lock);
	bool known = give_name(copy, copy->handle, ended);
	pthread_mutex_unlock(&lock);
	if (known)
		return copy;
	free(copy);
	return NULL;
}

struct spill_vmm_memory *spill_vmm_releasing(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	struct spill_vmm_memory *memory = find_memory(handle);
	if (memory && memory->handles == 0)
		memory = NULL; /* a set that is mapped only */
	if (memory) {
		memory->calls++;
		/* A set keeps its name while it is mapped, as the vendor's handles do. */
		if (--memory->handles == 0 && !memory->set)
			forget_name(memory);
	}
	pthread_mutex_unlock(&lock);
	return memory;
}

struct spill_vmm_memory *spill_vmm_released(struct spill_vmm_memory *memory, bool done)
{
	struct spill_vmm_memory *ended = NULL;
	pthread_mutex_lock(&lock);
	memory->calls--;
	if (!done) {
		memory->handles++;
		if (!find_memory(memory->name))
			give_name(memory, memory->name, &ended);
	}
	end_if_unused(memory, &ended);
	pthread_mutex_unlock(&lock);
	return ended;
}

struct spill_vmm_memory *spill_vmm_mapping(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	struct spill_vmm_memory *memory = find_memory(handle);
	if (memory)
		memory->calls++;
	pthread_mutex_unlock(&lock);
	return memory;
}

/* pre: locked. False if there is no memory for it. */
static bool record_mapping(struct spill_vmm_memory *memory, uint64_t va, uint64_t bytes)
{
	struct spill_vmm_mapping *mapping = malloc(sizeof(*mapping));
	if (!mapping)
		return false;
	*mapping = (struct spill_vmm_mapping){.va = va, .bytes = bytes, .memory = memory};
	if (!insert_mapping(mapping)) {
		free(mapping);
		return false;
	}
	memory->mappings++;
	return true;
}

struct spill_vmm_memory *spill_vmm_mapped(struct spill_vmm_memory *memory, uint64_t va, uint64_t bytes,
                                          bool *recorded)
{
	struct spill_vmm_memory *ended = NULL;
	struct spill_vmm_mapping *before;
	pthread_mutex_lock(&lock);
	/* A mapping that we still have there was ended by a call that we did not see. */
	while (bytes && (before = find_mapping(va, bytes))) {
		remove_mapping(before);
		end_mapping(before, &ended);
	}
	*recorded = !bytes || record_mapping(memory, va, bytes);
	if (*recorded) {
		memory->calls--;
		end_if_unused(memory, &ended);
	}
	pthread_mutex_unlock(&lock);
	return ended;
}

struct spill_vmm_memory *spill_vmm_unrecorded(struct spill_vmm_memory *memory, bool undone)
{
	struct spill_vmm_memory *ended = NULL;
	pthread_mutex_lock(&lock);
	if (!undone)
		memory->mappings++;
	memory->calls--;
	end_if_unused(memory, &ended);
	pthread_mutex_unlock(&lock);
	return ended;
}

struct spill_vmm_mapping *spill_vmm_unmapping(uint64_t va, uint64_t bytes)
{
	struct spill_vmm_mapping *mapping, *all = NULL;
	pthread_mutex_lock(&lock);
	while ((mapping = find_mapping(va, bytes))) {
		remove_mapping(mapping);
		mapping->next = all;
		all = mapping;
	}
	pthread_mutex_unlock(&lock);
	return all;
}

struct spill_vmm_memory *spill_vmm_unmapped(struct spill_vmm_mapping *mappings, bool done)
{
	struct spill_vmm_memory *ended = NULL;
	pthread_mutex_lock(&lock);
	while (mappings) {
		struct spill_vmm_mapping *mapping = mappings;
		mappings = mapping->next;
		if (done)
			end_mapping(mapping, &ended);
		else if (!insert_mapping(mapping))
			free(mapping); /* it stays counted, as in spill_vmm_unrecorded */
	}
	pthread_mutex_unlock(&lock);
	return ended;
}

struct spill_vmm_memory *spill_vmm_retaining(uint64_t va)
{
	pthread_mutex_lock(&lock);
	struct spill_vmm_mapping *mapping = va ? find_mapping(va, 1) : NULL;
	if (mapping)
		mapping->memory->calls++;
	pthread_mutex_unlock(&lock);
	return mapping ? mapping->memory : NULL;
}

struct spill_vmm_memory *spill_vmm_retained(struct spill_vmm_memory *memory, uint64_t handle)
{
	struct spill_vmm_memory *ended = NULL;
	pthread_mutex_lock(&lock);
	struct spill_vmm_memory *holder = memory ? memory : handle ? find_memory(handle) : NULL;
	if (holder && handle) {
		holder->handles++;
		give_name(holder, handle, &ended);
	}
	if (memory) {
		memory->calls--;
		end_if_unused(memory, &ended);
	}
	pthread_mutex_unlock(&lock);
	return ended;
}

bool spill_vmm_spilled(uint64_t handle, void *asked)
{
	pthread_mutex_lock(&lock);
	const struct spill_vmm_memory *memory = find_memory(handle);
	bool spilled = memory && memory->spilled;
	if (spilled && asked)
		memcpy(asked, memory->asked, sizeof(memory->asked));
	pthread_mutex_unlock(&lock);
	return spilled;
}

bool spill_vmm_any_spilled(void)
{
	return atomic_load(&spilled_mappings) != 0;
}

bool spill_vmm_spilled_at(uint64_t va, struct spill_vmm_range *range)
{
	if (!atomic_load(&spilled_mappings))
		return false;
	pthread_mutex_lock(&lock);
	const struct spill_vmm_mapping *mapping = find_mapping(va, 1);
	bool spilled = mapping && mapping->memory->spilled;
	if (spilled)
		*range = (struct spill_vmm_range){mapping->va, mapping->bytes, mapping->memory->device};
	pthread_mutex_unlock(&lock);
	return spilled;
}

/* A forked child has no GPU memory, so its table is empty. The entries' memory is lost. */
static void forget_parent(void)
{
	names = ranges = NULL;
	atomic_store(&spilled_mappings, 0);
}

const struct spill_fork_lock spill_vmm_fork_lock = {&lock, forget_parent};
