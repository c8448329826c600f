#include "caller.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glob.h"
#include "process.h"
#include "symbol_table.h"
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

/*
 * There are two tables. One maps addresses to names and is cleared at an unload. The other one
 * holds each name once, for ever, because the ledger points at names.
 */
#define SITES 4096
#define PROBES 64
#define NAMES 1024
#define KEPT 4096 /* texts of spill_caller_keep. */

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

/* Files in the order in which they came. They stay, so that a child can name them in its own log. */
#define FILES 256

struct file {
	struct file *next;
	struct spill_caller_file is;
};

static struct file *files, **files_end = &files;
static unsigned file_count;
static struct file *_Atomic new_files; /* from here on they were not returned yet */

/* The address's slot or a free one; NULL if the table is full, as with generated code. */
static struct site *site_slot(const void *address)
{
	size_t start = (uintptr_t)address * 0x9e3779b97f4a7c15ull >> 52;
	for (size_t i = 0; i < PROBES; i++) {
		struct site *site = &sites[(start + i) % SITES];
		if (!site->address || site->address == address)
			return site;
	}
	return NULL;
}

static const char *find_cached_name(const void *address)
{
	pthread_mutex_lock(&lock);
	if (sites_unloads != spill_unloads()) {
		memset(sites, 0, sizeof(sites));
		sites_unloads = spill_unloads();
	}
	const struct site *site = site_slot(address);
	const char *name = site && site->address ? site->name : NULL;
	pthread_mutex_unlock(&lock);
	return name;
}

/* pre: locked */
static const char *find_name(const char *text)
{
	for (const struct name *name = names[spill_elf_hash(text) % NAMES]; name; name = name->next)
		if (strcmp(name->text, text) == 0)
			return name->text;
	return NULL;
}

/* NULL without memory. pre: locked */
static const char *intern_name(const char *text)
{
	const char *known = find_name(text);
	if (known)
		return known;
	struct name **head = &names[spill_elf_hash(text) % NAMES];
	struct name *name = malloc(sizeof(*name) + strlen(text) + 1);
	if (!name)
		return NULL;
	strcpy(name->text, text);
	name->next = *head;
	*head = name;
	return name->text;
}

static bool is_file(const struct file *file, const char *path, const struct spill_loaded_object *object)
{
	return strcmp(file->is.path, path) == 0 && strcmp(file->is.build_id, object->build_id) == 0;
}

/* A name that cannot be kept. */
static const char *or_unknown(const char *name)
{
	return name ? name : "?";
}

/* pre: locked */
static void add_file(const char *name, const char *path, const struct spill_loaded_object *object)
{
	struct file *file = file_count < FILES ? malloc(sizeof(*file)) : NULL;
	if (!file)
		return;
	*file = (struct file){
	    .is = {.name = or_unknown(intern_name(name)), .path = or_unknown(intern_name(path))}};
	memcpy(file->is.build_id, object->build_id, sizeof(file->is.build_id));
	*files_end = file;
	files_end = &file->next;
	file_count++;
	if (!atomic_load(&new_files))
		atomic_store(&new_files, file);
}

static void keep_file(const char *name, const char *path, const struct spill_loaded_object *object)
{
	pthread_mutex_lock(&lock);
	const struct file *file = files;
	while (file && !is_file(file, path, object))
		file = file->next;
	if (!file)
		add_file(name, path, object);
	pthread_mutex_unlock(&lock);
}

bool spill_caller_has_new_file(void)
{
	return atomic_load_explicit(&new_files, memory_order_relaxed) != NULL;
}

const struct spill_caller_file *spill_caller_next_file(void)
{
	pthread_mutex_lock(&lock);
	const struct file *file = atomic_load(&new_files);
	if (file)
		atomic_store(&new_files, file->next);
	pthread_mutex_unlock(&lock);
	return file ? &file->is : NULL;
}

/*
 * The short name of the object that holds the address, and the offset in it. Not inlined, because
 * its path takes 4 KiB of the program's stack.
 */
static __attribute__((noinline)) bool locate_address(const void *address, char *name, size_t size,
                                                     uintptr_t *offset)
{
	struct spill_loaded_object object;
	if (!spill_loaded_object_of(address, &object))
		return false;
	*offset = (uintptr_t)address - object.base;
	if (object.main_program) {
		spill_program_name(name, size);
		spill_program_path(object.path, sizeof(object.path));
	} else {
		struct spill_text text = spill_text_begin(name, size);
		spill_text_add(&text, spill_file_name(object.path));
	}
	if (object.path[0])
		keep_file(name, object.path, &object);
	return true;
}

static void describe_address(const void *address, char *text, size_t size)
{
	char name[257];
	uintptr_t offset;
	if (locate_address(address, name, sizeof(name), &offset))
		snprintf(text, size, "%s+0x%lx", name, (unsigned long)offset);
	else
		snprintf(text, size, "%p", address);
}

const char *spill_caller_name(const void *address)
{
	const char *known = find_cached_name(address);
	if (known)
		return known;
	char text[320];
	/* Outside our lock, because dl_iterate_phdr takes the loader's. */
	describe_address(address, text, sizeof(text));
	pthread_mutex_lock(&lock);
	const char *name = or_unknown(intern_name(text));
	struct site *site = site_slot(address);
	if (site)
		*site = (struct site){address, name};
	pthread_mutex_unlock(&lock);
	return name;
}

const char *spill_caller_keep(const char *text)
{
	static unsigned kept;
	pthread_mutex_lock(&lock);
	const char *name = find_name(text);
	if (!name && kept < KEPT) {
		name = intern_name(text);
		kept++;
	}
	pthread_mutex_unlock(&lock);
	return name;
}

/* The child has a log of its own. */
static void forget_returned(void)
{
	atomic_store(&new_files, files);
}

const struct spill_fork_lock spill_caller_fork_lock = {&lock, forget_returned};
