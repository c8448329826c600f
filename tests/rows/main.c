/* A program of its own; without DIRECT, one that loads the library FILE RTLD_LOCAL and is otherwise the same. */
#include <dlfcn.h>
#include <stdio.h>

#include "rows.h"

int main(int count, char **arguments)
{
#ifdef DIRECT
	return rows_run(count, arguments);
#else
	rows_run_function *run = NULL;
	void *plugin = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (plugin)
		*(void **)&run = dlsym(plugin, "rows_run");
	if (!run) {
		fprintf(stderr, "no plug-in: %s\n", dlerror());
		return 1;
	}
	return run(count - 1, arguments + 1);
#endif
}
