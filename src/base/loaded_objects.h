/*
 * The loaded objects (the executable and its libraries), and which of them holds an address.
 *
 * dl_iterate_phdr(3) holds a lock of the loader. A fork in another thread copies that lock as it
 * is, and the child would then wait for it for ever. So every walk of ours holds a lock that fork
 * takes as well. Fork does not wait long for it, because the walk may wait for the thread that
 * forks.
 *
 * dladdr(3) is not used: it also searches the symbol table, which takes 0.1 ms in a library as
 * large as libtorch.
 */
#ifndef SPILL_LOADED_OBJECTS_H
#define SPILL_LOADED_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "build_id.h"

struct spill_loaded_object {
	uintptr_t base;
	bool main_program;
	char path[4096];               /* "" for the main program */
	char build_id[SPILL_BUILD_ID]; /* "" without one */
};

/*
 * For code that may walk through the objects itself, as an unwinder does: no fork comes in between.
 * Returns the value for spill_loaded_objects_release.
 */
bool spill_loaded_objects_hold(void);
void spill_loaded_objects_release(bool held);

/* Like dl_iterate_phdr(3). pre: `visit` calls nothing that takes a lock */
int spill_loaded_objects_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);

/* True inside a walk of this thread. Its dl_iterate_phdr may be the wrapper of another library. */
bool spill_loaded_objects_looking(void);

/* False if no loaded object holds the address (generated code). */
bool spill_loaded_object_of(const void *address, struct spill_loaded_object *object);

/* The table by which code at the address is unwound (PT_GNU_EH_FRAME), and the object's extent. */
struct spill_unwind_table {
	const void *table, *begin, *end;
};

/* False if no loaded object holds the address, or it has no table. */
bool spill_loaded_object_unwind(const void *address, struct spill_unwind_table *found);

/*
 * The address of a function that some object of the process defines, in its default version; or NULL. With `own`, a definition of the
 * caller's, only of objects behind that one in the order of symbol search: those before it call it in turn.
 */
void *spill_loaded_objects_function(const char *name, const void *own);

/*
 * True if the object that holds the address comes before the C library in the order of symbol search
 * (ld.so(8)): it is the program, preloaded, or linked to it. An object that was loaded later does not
 * interpose functions.
 */
bool spill_loaded_object_interposes(const void *address);

void spill_loaded_objects_fork_prepare(void);
void spill_loaded_objects_fork_parent(void);
void spill_loaded_objects_fork_child(void);

#endif
