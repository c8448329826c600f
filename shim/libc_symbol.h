/*
 * libc's own functions behind those that we export too (dlsym, dlclose, abort, _exit …). Safe before our constructor
 * has run; never goes through our exports.
 */
#ifndef SPILL_LIBC_SYMBOL_H
#define SPILL_LIBC_SYMBOL_H

typedef void *spill_dlsym_fn(void *handle, const char *name);

/*
 * The C library's own dlsym, whatever other preloads wrap. Never NULL: until it is found, the
 * answer is a function that finds nothing.
 */
spill_dlsym_fn *spill_real_dlsym(void);

/* The next dlclose after ours, called: ours also watches for unloads, which our own handles never cause. */
int spill_real_dlclose(void *handle);

/* The next definition of `name` after ours, or NULL. */
void *spill_libc_symbol(const char *name);

#endif
