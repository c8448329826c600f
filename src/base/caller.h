/*
 * Who called: from a return address to the loaded object it is in, and to a name for the log. Uses
 * dl_iterate_phdr(3), because dladdr(3) also searches the symbol table, which takes 0.1 ms in a library of
 * libtorch's size.
 */
#ifndef SPILL_CALLER_H
#define SPILL_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spill_loaded_object {
	uintptr_t base;
	bool main_program;
	char path[4096]; /* "" for the main program */
};

/* False if no loaded object holds the address (generated code). */
bool spill_loaded_object_of(const void *address, struct spill_loaded_object *object);

/*
 * "libfoo.so+0x1a2b", interned: valid for the life of the process. Cached by address; the cache is forgotten when
 * a library is unloaded, as another may come to stand at the same address.
 */
const char *spill_caller_name(const void *address);

/* Counts dlclose calls: whoever caches by address compares it. */
unsigned spill_unloads(void);
void spill_unloads_count(void);

void spill_caller_fork_prepare(void);
void spill_caller_fork_done(void);

#endif
