/*
 * A preloaded library that wraps functions of the loader, as profilers and overlays do. WRAP_… says
 * which. Each wrapper finds its real function at the first call, by functions that may be wrapped.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libc_symbol.h"

#define EXPORTED __attribute__((visibility("default")))

#ifdef WRAP_DLVSYM
EXPORTED void *dlvsym(void *restrict handle, const char *restrict name, const char *restrict version);

void *dlvsym(void *restrict handle, const char *restrict name, const char *restrict version)
{
	static void *(*real)(void *, const char *, const char *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "dlvsym");
	return real ? real(handle, name, version) : NULL;
}
#endif

#ifdef WRAP_DLSYM
EXPORTED void *dlsym(void *restrict handle, const char *restrict name);

/* By version, which finds the C library's. With a dlvsym of its own it reads the loader's list. */
static void *find_dlsym(void)
{
#ifdef WRAP_DLVSYM
	return spill_loaded_function("libc.so.6", "dlsym");
#else
	void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");

	found = found ? found : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
	return found ? found : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
#endif
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	static void *(*real)(void *, const char *);

	if (!real)
		*(void **)&real = find_dlsym();
	return real(handle, name);
}
#endif

#if defined(WRAP_PHDR) || defined(WRAP_STRNCMP)
/* The two below ask as a program may: a handle of their own, which they give back. */
static void *ask_libc(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *found = libc ? dlsym(libc, name) : NULL;

	if (libc)
		dlclose(libc);
	return found;
}
#endif

#ifdef WRAP_PHDR
EXPORTED int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);

int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	static int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

	if (!real)
		*(void **)&real = ask_libc("dl_iterate_phdr");
	return real(visit, data);
}
#endif

#ifdef WRAP_STRNCMP
EXPORTED int strncmp(const char *left, const char *right, size_t count);

int strncmp(const char *left, const char *right, size_t count)
{
	static int (*real)(const char *, const char *, size_t);

	if (!real)
		*(void **)&real = ask_libc("strncmp");
	return real(left, right, count);
}
#endif

#ifdef WRAP_MALLOC
/* As allocators do. Finding the real ones may take memory, which this has until then. */
static char first[1 << 16];
static size_t first_used;

static void *take_first(size_t size)
{
	void *taken = first + first_used;

	first_used += (size + 15) / 16 * 16;
	return first_used <= sizeof(first) ? taken : NULL;
}

static bool is_first(const void *memory)
{
	return (const char *)memory >= first && (const char *)memory < first + sizeof(first);
}

static void *(*real_malloc)(size_t), *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

static bool found_real(void)
{
	static bool asking;

	if (real_free || asking)
		return real_free;
	asking = true;
	*(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
	*(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
	*(void **)&real_free = dlsym(RTLD_NEXT, "free");
	asking = false;
	return real_free;
}

EXPORTED void *malloc(size_t size)
{
	return found_real() ? real_malloc(size) : take_first(size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
	void *memory = malloc(count * size);

	return memory ? memset(memory, 0, count * size) : NULL;
}

EXPORTED void *realloc(void *old, size_t size)
{
	if (!is_first(old) && found_real())
		return real_realloc(old, size);
	void *memory = malloc(size);
	size_t left = old ? (size_t)(first + sizeof(first) - (char *)old) : 0;
	return memory && old ? memcpy(memory, old, size < left ? size : left) : memory;
}

EXPORTED void free(void *memory)
{
	if (memory && !is_first(memory) && found_real())
		real_free(memory);
}
#endif

#ifdef WRAP_OPEN
/* As fakeroot and the like do. */
#define OPEN(name) \
	EXPORTED int name(const char *path, int flags, ...) \
	{ \
		static int (*real)(const char *, int, ...); \
		va_list rest; \
		va_start(rest, flags); \
		int mode = va_arg(rest, int); \
		va_end(rest); \
		if (!real) \
			*(void **)&real = dlsym(RTLD_NEXT, #name); \
		return real(path, flags, mode); \
	}
OPEN(open)
OPEN(open64)
#endif

#ifdef WRAP_ENDS
/* As a profiler that writes its data at the end of a process: each end says its name. */
static void say(const char *name)
{
	(void)!write(STDOUT_FILENO, name, strlen(name));
	(void)!write(STDOUT_FILENO, "\n", 1);
}

#define END(name, parameters, arguments) \
	EXPORTED _Noreturn void name parameters; \
	void name parameters \
	{ \
		void(*real) parameters; \
		say(#name); \
		*(void **)&real = dlsym(RTLD_NEXT, #name); \
		real arguments; \
		__builtin_unreachable(); \
	}
END(abort, (void), ())
END(_exit, (int status), (status))
END(_Exit, (int status), (status))
END(__assert_fail, (const char *assertion, const char *file, unsigned line, const char *function),
    (assertion, file, line, function))

/* A library's constructor ends the process, before libspill's has run: END_AT_START names the function. */
__attribute__((constructor)) static void end_at_start(void)
{
	const char *name = getenv("END_AT_START");
	if (!name)
		return;
	if (!strcmp(name, "abort"))
		((void (*)(void))dlsym(RTLD_DEFAULT, name))();
	else if (!strcmp(name, "__assert_fail"))
		((void (*)(const char *, const char *, unsigned, const char *))dlsym(RTLD_DEFAULT, name))(
		    "a", "file", 1, "f");
	else
		((void (*)(int))dlsym(RTLD_DEFAULT, name))(5);
}
#endif

#ifdef HIDE_LIST
/* It precedes the loader's own in the search order. So a look-up of the list by name finds none. */
EXPORTED struct r_debug _r_debug;
#endif
