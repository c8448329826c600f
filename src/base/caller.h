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

/* The number of dlclose calls so far. A cache by address is valid while it stays the same. */
unsigned spill_unloads(void);
void spill_unloads_count(void);

extern const struct spill_fork_lock spill_caller_fork_lock;

#endif
