/*
 * libspill's calls of libc. Its imports are replaced in its own table of addresses, so nothing else
 * in the process notices.
 */
#include "faults.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum result { MINUS, NIL, CODE, DONE };

/* Each of them has up to six arguments, all integers or pointers, which the ABIs pass alike. */
typedef long any_function(long, long, long, long, long, long);

enum {
#define FAILS(name, result, ...) AT_##name,
#include "libc_calls.def"
	CALLS
};

#define FAILS(name, result, ...) static const int errors_##name[] = {__VA_ARGS__, 0};
#include "libc_calls.def"

static struct import {
	struct faults_call call;
	enum result result;
	any_function *real;
} imports[CALLS] = {
#define FAILS(name, result, ...) {{#name, false, errors_##name}, result, NULL},
#include "libc_calls.def"
};

static long failed(const struct import *import, int error)
{
	if (import->result == CODE)
		return error;
	errno = error;
	return import->result == NIL ? 0 : -1;
}

static long call_import(struct import *import, const long a[6], const void *caller)
{
	int error;

	if (!faults_now(&import->call, caller, &error))
		return import->real(a[0], a[1], a[2], a[3], a[4], a[5]);
	if (error == NOTHING)
		return 0;
	if (error == SHORT) /* the third argument is the size, of at least one byte */
		return import->real(a[0], a[1], (a[2] + 1) / 2, a[3], a[4], a[5]);
	if (import->result == DONE)
		import->real(a[0], a[1], a[2], a[3], a[4], a[5]);
	return failed(import, error);
}

/* `old`: the block that a realloc gave up. */
static void note_block(unsigned which, long old, long block, const void *caller)
{
	if (!block || (which != AT_malloc && which != AT_calloc && which != AT_realloc))
		return;
	if (which == AT_realloc && old)
		faults_block_given((uintptr_t)old);
	faults_block_taken((uintptr_t)block, caller);
}

#define FAILS(name, result, ...) \
	static long replaced_##name(long a, long b, long c, long d, long e, long f) \
	{ \
		const long arguments[6] = {a, b, c, d, e, f}; \
		long value = call_import(&imports[AT_##name], arguments, __builtin_return_address(0)); \
		note_block(AT_##name, a, value, __builtin_return_address(0)); \
		return value; \
	}
#include "libc_calls.def"

static any_function *const replacements[CALLS] = {
#define FAILS(name, result, ...) replaced_##name,
#include "libc_calls.def"
};

static void (*real_free)(void *);

static void replaced_free(void *block)
{
	if (block)
		faults_block_given((uintptr_t)block);
	real_free(block);
}

/* -- the table of addresses ---------------------------------------------------------------------- */

/* The functions that are left alone. */
static bool never_fails(const char *name)
{
	static const char *const names[] = {
#define NEVER(name, reason) #name,
#include "libc_calls.def"
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static void replace_slot(uintptr_t *slot, const char *name)
{
	for (unsigned i = 0; i < CALLS; i++) {
		if (strcmp(imports[i].call.name, name) != 0)
			continue;
		imports[i].real = (any_function *)*slot;
		*slot = (uintptr_t)replacements[i];
		return;
	}
	if (!strcmp(name, "free")) {
		real_free = (void (*)(void *)) * slot;
		*slot = (uintptr_t)replaced_free;
	} else if (!never_fails(name)) {
		faults_die("libspill.so imports a function that libc_calls.def does not name:", name);
	}
}

#ifdef __aarch64__
#define IS_ADDRESS(type) \
	((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#else
#define IS_ADDRESS(type) \
	((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#endif

struct tables {
	const ElfW(Rela) * relocation[2]; /* of functions, and others */
	size_t bytes[2];
	const ElfW(Sym) * symbols;
	const char *names;
};

static struct tables find_tables(void)
{
	struct tables tables = {0};

	for (const ElfW(Dyn) *entry = faults_library()->dynamic; entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_JMPREL:
			tables.relocation[0] = (const void *)entry->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			tables.bytes[0] = entry->d_un.d_val;
			break;
		case DT_RELA:
			tables.relocation[1] = (const void *)entry->d_un.d_ptr;
			break;
		case DT_RELASZ:
			tables.bytes[1] = entry->d_un.d_val;
			break;
		case DT_SYMTAB:
			tables.symbols = (const void *)entry->d_un.d_ptr;
			break;
		case DT_STRTAB:
			tables.names = (const void *)entry->d_un.d_ptr;
			break;
		}
	}
	if (!tables.relocation[0] || !tables.relocation[1] || !tables.symbols || !tables.names)
		faults_die("libspill.so has", "no imports");
	return tables;
}

static void protect(int protection)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	uintptr_t begin = faults_library()->read_only & ~page;

	if (mprotect((void *)begin, (faults_library()->read_only_end & ~page) - begin, protection))
		faults_die("mprotect", "failed");
}

void faults_replace_imports(void)
{
	const struct tables tables = find_tables();

	protect(PROT_READ | PROT_WRITE);
	for (unsigned table = 0; table < 2; table++) {
		for (size_t i = 0; i < tables.bytes[table] / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *one = &tables.relocation[table][i];
			const ElfW(Sym) *symbol = &tables.symbols[ELF64_R_SYM(one->r_info)];

			if (IS_ADDRESS(ELF64_R_TYPE(one->r_info)) && symbol->st_shndx == SHN_UNDEF)
				replace_slot((uintptr_t *)(faults_library()->base + one->r_offset),
				             tables.names + symbol->st_name);
		}
	}
	protect(PROT_READ);
}

const struct faults_call *faults_libc(unsigned index)
{
	return index < CALLS ? &imports[index].call : NULL;
}
