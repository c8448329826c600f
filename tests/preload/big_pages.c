/* A machine with pages of 64 KiB, as far as programs ask for their size. */
#include <dlfcn.h>
#include <unistd.h>

__attribute__((visibility("default"))) long sysconf(int name)
{
	static long (*real)(int);
	if (name == _SC_PAGESIZE)
		return 64 << 10;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sysconf");
	return real ? real(name) : -1;
}
