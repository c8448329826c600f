/*
 * unknown LIBRARY NAME…: looks the names up in the library by dlsym, and prints `NAME found` or `NAME missing`; then makes one
 * real allocation, so that there is a log. Built with -DDRIVER it is such a library: a driver that is newer than the table.
 */
#ifdef DRIVER

__attribute__((visibility("default"))) int cuLaunchTomorrow(void);
__attribute__((visibility("default"))) int cuTomorrow(void);

int cuLaunchTomorrow(void)
{
	return 0;
}

int cuTomorrow(void)
{
	return 0;
}

#else

#include <dlfcn.h>
#include <stdio.h>

#include "rows.h"

int main(int count, char **arguments)
{
	void *library = count > 1 ? dlopen(arguments[1], RTLD_LAZY) : NULL;
	if (!library)
		return 64;
	for (int i = 2; i < count; i++)
		printf("%s %s\n", arguments[i], dlsym(library, arguments[i]) ? "found" : "missing");
	return rows_begin();
}

#endif
