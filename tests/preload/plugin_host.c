/*
 * Loads each named plug-in with RTLD_LOCAL, runs it twice and unloads it: plugin_host FILE… The next
 * plug-in gets the same address, and its runtime gets another one.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef int run_function(void);

static int find_runtime(struct dl_phdr_info *info, size_t size, void *place)
{
	if (strstr(info->dlpi_name, "libcudart"))
		*(ElfW(Addr) *)place = info->dlpi_addr;
	return 0;
}

int main(int argc, char **argv)
{
	void *before = NULL;

	for (int i = 1; i < argc; i++) {
		void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		run_function *run;
		Dl_info place;

		if (!plugin) {
			printf("%s\n", dlerror());
			return 1;
		}
		*(void **)&run = dlsym(plugin, "plugin_run");
		if (!run || !dladdr((void *)run, &place))
			return 1;
		printf("run %d", run());
		printf(" again %d place %s", run(), place.dli_fbase == before ? "same" : "new");
		before = place.dli_fbase;

		ElfW(Addr) runtime = 0;
		dl_iterate_phdr(find_runtime, &runtime);
		printf(" unload %d\n", dlclose(plugin));
		(void)mmap((void *)runtime, 4096, PROT_NONE,
		           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	}
	return 0;
}
