/*
 * Functions of libraries that are loaded already, read from the loader's own list and the libraries' symbol tables. No
 * function is called: another preload may wrap any of them, and its wrapper may call us.
 */
#ifndef SPILL_LOADED_H
#define SPILL_LOADED_H

/*
 * The default version of the function `name` in the library of that DT_SONAME. NULL if there is none, if the loader's
 * list cannot be read, or if we are in another namespace (dlmopen). pre: at load, or the library cannot be unloaded
 */
void *spill_loaded_function(const char *soname, const char *name);

#endif
