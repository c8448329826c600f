#include "loaded_objects.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "symbol_table.h"

/*
 * Walks are readers of this lock: they exclude a fork, and never each other. A walk may begin
 * inside another one, in a callback of the program's own dl_iterate_phdr. It would deadlock if it
 * had to wait for the other. Default attributes let a new walk pass a fork that waits.
 */
#define FREE PTHREAD_RWLOCK_INITIALIZER
static pthread_rwlock_t lock = FREE; /* SPILL_RANK_LOADED_OBJECTS */

/* Set while this thread walks. A signal handler in between may walk again, or fork. */
static __thread volatile bool looking __attribute__((tls_model("initial-exec")));
static bool fork_took_lock;

bool spill_loaded_objects_hold(void)
{
	if (looking)
		return false;
	looking = true;
	pthread_rwlock_rdlock(&lock);
	return true;
}

void spill_loaded_objects_release(bool held)
{
	if (!held)
		return;
	pthread_rwlock_unlock(&lock);
	looking = false;
}

int spill_loaded_objects_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	bool held = spill_loaded_objects_hold();
	int result = dl_iterate_phdr(visit, data);
	spill_loaded_objects_release(held);
	return result;
}

bool spill_loaded_objects_looking(void)
{
	return looking;
}

struct address_search {
	uintptr_t address;
	struct spill_loaded_object *object;
	unsigned seen;
};

static bool holds_address(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;
		if (segment->p_type == PT_LOAD && address >= start && address - start < segment->p_memsz)
			return true;
	}
	return false;
}

/* True if a readable segment has the bytes from the file. Others may be no memory at all. */
static bool is_mapped(const struct dl_phdr_info *info, const ElfW(Phdr) * part)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t into = part->p_vaddr - segment->p_vaddr;
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_R &&
		    part->p_vaddr >= segment->p_vaddr && into <= segment->p_filesz &&
		    part->p_filesz <= segment->p_filesz - into)
			return true;
	}
	return false;
}

/* By the notes in memory: the file at the path may have been replaced since it was loaded. */
static void get_build_id(const struct dl_phdr_info *info, char build_id[SPILL_BUILD_ID])
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *notes = &info->dlpi_phdr[i];
		uintptr_t address = info->dlpi_addr + notes->p_vaddr;
		if (notes->p_type == PT_NOTE && is_mapped(info, notes) &&
		    spill_build_id_find((const void *)address, notes->p_filesz, build_id))
			return;
	}
	build_id[0] = '\0';
}

static int match_address(struct dl_phdr_info *info, size_t size, void *data)
{
	struct address_search *search = data;
	bool first = search->seen++ == 0; /* the main program comes first, dl_iterate_phdr(3) */
	if (!holds_address(info, search->address))
		return 0;
	struct spill_loaded_object *object = search->object;
	object->base = info->dlpi_addr;
	object->main_program = first;
	object->path[0] = '\0';
	if (!first && info->dlpi_name)
		snprintf(object->path, sizeof(object->path), "%s", info->dlpi_name);
	get_build_id(info, object->build_id);
	return 1;
}

bool spill_loaded_object_of(const void *address, struct spill_loaded_object *object)
{
	struct address_search search = {.address = (uintptr_t)address, .object = object};
	return spill_loaded_objects_visit(match_address, &search) == 1;
}

struct unwind_search {
	uintptr_t address;
	struct spill_unwind_table *found;
};

static int match_unwind(struct dl_phdr_info *info, size_t size, void *data)
{
	struct unwind_search *search = data;
	struct spill_unwind_table found = {.table = NULL};
	if (!holds_address(info, search->address))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr);
		if (segment->p_type == PT_GNU_EH_FRAME)
			found.table = at;
		if (segment->p_type == PT_LOAD && (!found.begin || at < (const char *)found.begin))
			found.begin = at;
		if (segment->p_type == PT_LOAD && at + segment->p_memsz > (const char *)found.end)
			found.end = at + segment->p_memsz;
	}
	*search->found = found;
	return found.table ? 1 : 2;
}

bool spill_loaded_object_unwind(const void *address, struct spill_unwind_table *found)
{
	struct unwind_search search = {.address = (uintptr_t)address, .found = found};
	return spill_loaded_objects_visit(match_unwind, &search) == 1;
}

struct function_search {
	const char *name;
	const void *own; /* found only behind this one; NULL: anywhere */
	void *found;
};

static int match_function(struct dl_phdr_info *info, size_t size, void *data)
{
	struct function_search *search = data;
	struct spill_symbol_table table;
	void *found = spill_symbol_table_of(info, &table)
	                  ? spill_symbol_table_find(&table, search->name, STT_FUNC)
	                  : NULL;
	if (!search->own)
		search->found = found;
	else if (found == search->own)
		search->own = NULL;
	return search->found != NULL;
}

void *spill_loaded_objects_function(const char *name, const void *own)
{
	struct function_search search = {.name = name, .own = own};
	spill_loaded_objects_visit(match_function, &search);
	return search.found;
}

/* 1: the object with the address; 2: the C library came first. */
static int match_first(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	if (holds_address(info, *(uintptr_t *)data))
		return 1;
	return slash && !strncmp(slash, "/libc.", 6) ? 2 : 0;
}

bool spill_loaded_object_interposes(const void *address)
{
	uintptr_t searched = (uintptr_t)address;
	return spill_loaded_objects_visit(match_first, &searched) == 1;
}

/* Walks are short. A longer one may wait for the forking thread: do not wait for it. */
#define FORK_WAIT_NS 100000000

void spill_loaded_objects_fork_prepare(void)
{
	struct timespec until = spill_clock_in(FORK_WAIT_NS);
	fork_took_lock = !looking && pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &until) == 0;
}

void spill_loaded_objects_fork_parent(void)
{
	if (fork_took_lock)
		pthread_rwlock_unlock(&lock);
}

/* If a signal handler forked inside a walk, that walk ends in the child too and unlocks there. */
void spill_loaded_objects_fork_child(void)
{
	lock = (pthread_rwlock_t)FREE;
	if (looking)
		pthread_rwlock_rdlock(&lock);
}
