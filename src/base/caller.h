/* Names of call sites for the log, by return address: "libfoo.so+0x1a2b". */
#ifndef SPILL_CALLER_H
#define SPILL_CALLER_H

#include "loaded_objects.h"
#include "lock.h"

/*
 * "libfoo.so+0x1a2b", interned: valid for the life of the process. The name is cached by address.
 * An unload empties the cache, because another library may be loaded at the same address.
 */
const char *spill_caller_name(const void *address);

/*
 * Interns another text than a caller's. NULL if there is no memory, or if thousands are kept: a
 * program may have new ones for ever.
 */
const char *spill_caller_keep(const char *text);

/* The file of a program or library that names begin with. */
struct spill_caller_file {
	const char *name; /* the part of the names before the offset */
	const char *path;
	char build_id[SPILL_BUILD_ID]; /* "" without one */
};

/* True if names were made of a file that spill_caller_next_file has not returned. */
bool spill_caller_has_new_file(void);

/*
 * The next file, each once: a path with another build id is another file. NULL: there is no further
 * one. Valid for the life of the process. In the child of a fork it begins again with the first one.
 */
const struct spill_caller_file *spill_caller_next_file(void);

/* The number of dlclose calls so far. A cache by address is valid while it stays the same. */
unsigned spill_unloads(void);
void spill_unloads_count(void);

extern const struct spill_fork_lock spill_caller_fork_lock;

#endif
