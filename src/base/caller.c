#include "caller.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "glob.h"
#include "loaded_objects.h"
#include "text.h"

static _Atomic unsigned unloads;

unsigned spill_unloads(void)
{
	return atomic_load(&unloads);
}

void spill_unloads_count(void)
{
	atomic_fetch_add(&unloads, 1);
}

struct search {
	uintptr_t address;
	struct spill_loaded_object *object;
	unsigned seen;
};

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;
		if (segment->p_type == PT_LOAD && address >= start && address - start < segment->p_memsz)
			return true;
	}
	return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	bool first = search->seen++ == 0; /* the main program comes first, dl_iterate_phdr(3) */
	if (!holds(info, search->address))
		return 0;
	struct spill_loaded_object *object = search->object;
	object->base = info->dlpi_addr;
	object->main_program = first;
	object->path[0] = '\0';
	if (!first && info->dlpi_name)
		snprintf(object->path, sizeof(object->path), "%s", info->dlpi_name);
	return 1;
}

bool spill_loaded_object_of(const void *address, struct spill_loaded_object *object)
{
	struct search search = {.address = (uintptr_t)address, .object = object};
	return spill_loaded_objects_visit(visit, &search) == 1;
}

/*
 * Two tables: names by address, forgotten at an unload, and the names themselves, each kept once and for ever
 * because the ledger points at them.
 */
#define SITES 4096
#define PROBES 64
#define NAMES 1024

struct site {
	const void *address;
	const char *name;
};

struct name {
	struct name *next;
	char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_CALLER */
static struct site sites[SITES];
static unsigned sites_unloads;
static struct name *names[NAMES];

/* The address's slot, or a free one for it, or NULL: a table this full means generated code, not call sites. */
static struct site *slot(const void *address)
{
	size_t start = (uintptr_t)address * 0x9e3779b97f4a7c15ull >> 52;
	for (size_t i = 0; i < PROBES; i++) {
		struct site *site = &sites[(start + i) % SITES];
		if (!site->address || site->address == address)
			return site;
	}
	return NULL;
}

static const char *find(const void *address)
{
	pthread_mutex_lock(&lock);
	if (sites_unloads != spill_unloads()) {
		memset(sites, 0, sizeof(sites));
		sites_unloads = spill_unloads();
	}
	const struct site *site = slot(address);
	const char *name = site && site->address ? site->name : NULL;
	pthread_mutex_unlock(&lock);
	return name;
}

/* pre: locked */
static const char *intern(const char *text)
{
	size_t hash = 5381;
	for (const char *c = text; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	struct name **head = &names[hash % NAMES];
	for (const struct name *name = *head; name; name = name->next)
		if (strcmp(name->text, text) == 0)
			return name->text;
	struct name *name = malloc(sizeof(*name) + strlen(text) + 1);
	if (!name)
		return "?";
	strcpy(name->text, text);
	name->next = *head;
	*head = name;
	return name->text;
}

/* The object's short name, and where in it the address is. Not inlined: a path is room on the program's stack. */
static __attribute__((noinline)) bool locate(const void *address, char *name, size_t size, uintptr_t *offset)
{
	struct spill_loaded_object object;
	if (!spill_loaded_object_of(address, &object))
		return false;
	*offset = (uintptr_t)address - object.base;
	if (object.main_program) {
		spill_program_name(name, size);
	} else {
		struct spill_text text = spill_text_begin(name, size);
		spill_text_add(&text, spill_file_name(object.path));
	}
	return true;
}

static void describe(const void *address, char *text, size_t size)
{
	char name[257];
	uintptr_t offset;
	if (locate(address, name, sizeof(name), &offset))
		snprintf(text, size, "%s+0x%lx", name, (unsigned long)offset);
	else
		snprintf(text, size, "%p", address);
}

const char *spill_caller_name(const void *address)
{
	const char *known = find(address);
	if (known)
		return known;
	char text[320];
	describe(address, text, sizeof(text)); /* outside the lock: dl_iterate_phdr takes the loader's */
	pthread_mutex_lock(&lock);
	const char *name = intern(text);
	struct site *site = slot(address);
	if (site)
		*site = (struct site){address, name};
	pthread_mutex_unlock(&lock);
	return name;
}

void spill_caller_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void spill_caller_fork_done(void)
{
	pthread_mutex_unlock(&lock);
}
