/*
 * Functions of loaded libraries, read from the loader's list and the libraries' symbol tables. No
 * function is called, because another preload may wrap it, and its wrapper may call us.
 */
#ifndef SPILL_LOADED_H
#define SPILL_LOADED_H

/*
 * The default version of the function `name` in the library of that DT_SONAME. NULL if there is
 * none, if the loader's list cannot be read, or if we are in another namespace (dlmopen).
 * pre: at load, or single-threaded: another thread's dlclose may change the list
 */
void *spill_loaded_function(const char *soname, const char *name);

#endif
