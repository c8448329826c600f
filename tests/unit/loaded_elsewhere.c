/* loaded.c in a library that a test loads twice: beside the program, and in a namespace of its own. */
#include "libc_symbol.h"

__attribute__((visibility("default"))) void *find_in_libc(const char *name);

void *find_in_libc(const char *name)
{
	return spill_loaded_function("libc.so.6", name);
}
