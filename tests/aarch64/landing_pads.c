/*
 * For aarch64: makes the processor insist on landing pads (BTI) in the code of one library, which
 * LANDING_PADS names. An indirect call or jump to anything else in it then ends the program with
 * SIGILL. Debian's start files have no landing pads, so the linked library is not marked, and
 * nobody else would notice one that is missing.
 *
 * It is preloaded before that library, so that it starts after it.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef NAKED

/* A library without landing pads, to see that the processor insists. */
__attribute__((visibility("default"))) int landing_pads_naked(void);
int landing_pads_naked(void)
{
	return 0;
}

#else

#pragma weak landing_pads_naked
extern int landing_pads_naked(void);

static int protect_code(struct dl_phdr_info *info, size_t size, void *protection)
{
	const char *name = strrchr(info->dlpi_name, '/'), *wanted = getenv("LANDING_PADS");
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

	if (!name || !wanted || strcmp(name + 1, wanted) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t begin = (info->dlpi_addr + part->p_vaddr) & ~page,
		          end = (info->dlpi_addr + part->p_vaddr + part->p_memsz + page) & ~page;

		if (part->p_type == PT_LOAD && (part->p_flags & PF_X) &&
		    mprotect((void *)begin, end - begin, *(const int *)protection))
			return -1;
	}
	return 1;
}

static void say(const char *what)
{
	fprintf(stderr, "landing_pads: %s\n", what);
}

/* For DT_FINI, which is of Debian's start files. */
static void relax(void)
{
	const int protection = PROT_READ | PROT_EXEC;
	dl_iterate_phdr(protect_code, (void *)&protection);
}

__attribute__((constructor)) static void insist(void)
{
	const int protection = PROT_READ | PROT_EXEC | PROT_BTI;

	if (!(getauxval(AT_HWCAP2) & HWCAP2_BTI)) {
		say("this processor does not know them");
		_exit(77);
	}
	if (dl_iterate_phdr(protect_code, (void *)&protection) != 1 || atexit(relax)) {
		say("the code of the library cannot be protected");
		_exit(1);
	}
	int (*volatile naked)(void) = landing_pads_naked;
	if (naked)
		naked();
}

#endif
