/*
 * libc's functions behind those that we export ourselves (dlsym, dlclose, abort, _exit …). These
 * work before our constructor has run, and never go through our exports.
 */
#ifndef SPILL_LIBC_SYMBOL_H
#define SPILL_LIBC_SYMBOL_H

typedef void *spill_dlsym_fn(void *handle, const char *name);

/* The C library's own dlsym. Never NULL: until it is found, a function that finds nothing. */
spill_dlsym_fn *spill_real_dlsym(void);

/*
 * Calls the next dlclose after ours. Ours also counts unloads, which our own handles never cause.
 */
int spill_real_dlclose(void *handle);

/* The next definition of `name` after ours, or NULL. */
void *spill_libc_symbol(const char *name);

/*
 * The default version of function `name` in the loaded library with this DT_SONAME. Reads the
 * loader's list and the library's symbol table, and calls no function: another preload may wrap it,
 * and its wrapper may call us. NULL if there is none, the list cannot be read, or we are in another
 * namespace (dlmopen). pre: at load, or single-threaded, because another thread's dlclose may
 * change the list
 */
void *spill_loaded_function(const char *soname, const char *name);

#endif
