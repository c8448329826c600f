/* Where libspill.so is in this process, and which parts of its code are stubs of the vendors' functions. */
#include "faults.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STUBS 4096

struct stub {
	uintptr_t begin, end; /* offsets */
	char name[72];
};

static struct faults_object library;
static struct stub stubs[STUBS]; /* sorted */
static unsigned stub_count;

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *name = strrchr(info->dlpi_name, '/');

	(void)size;
	(void)data;
	if (!name || strcmp(name, "/libspill.so") != 0)
		return 0;
	library.base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;

		if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
			library.begin = begin;
			library.end = end;
		} else if (part->p_type == PT_DYNAMIC) {
			library.dynamic = (const void *)begin;
		} else if (part->p_type == PT_GNU_RELRO) {
			library.read_only = begin;
			library.read_only_end = end;
		}
	}
	return 1;
}

static void read_stubs(void)
{
	const char *path = getenv("FAULTS_STUBS");
	FILE *file = path ? fopen(path, "re") : NULL;
	unsigned long begin, end;

	if (!file)
		faults_die("FAULTS_STUBS is no file:", path ? path : "");
	while (stub_count < STUBS &&
	       fscanf(file, "%lx %lx %71s", &begin, &end, stubs[stub_count].name) == 3) {
		stubs[stub_count].begin = begin;
		stubs[stub_count++].end = end;
	}
	fclose(file);
	if (!stub_count || stub_count == STUBS)
		faults_die("FAULTS_STUBS has too few or too many lines:", path);
}

static const struct stub *stub_at(uintptr_t offset)
{
	unsigned low = 0, high = stub_count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (stubs[middle].end < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < stub_count && offset > stubs[low].begin ? &stubs[low] : NULL;
}

const struct faults_object *faults_library(void)
{
	return &library;
}

/* What a stub calls under another name, a function did that it called last: a tail call. */
bool faults_own(const char *symbol, const void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	if (at < library.begin || at >= library.end)
		return false;
	const struct stub *stub = stub_at(at - library.base);
	return !stub || strcmp(stub->name, symbol) != 0;
}

/* Before libspill's own, which is loaded before this library, so that its first calls are seen. */
__attribute__((constructor)) static void start(void)
{
	if (!dl_iterate_phdr(look_at, NULL))
		return; /* a child that has no libspill */
	read_stubs();
	faults_read_plan();
	faults_replace_imports();
}
