#include "fake_libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct fake_libc_plan fake_libc[FAKE_LIBC_COUNT];

void fake_libc_fail(enum fake_libc_call call, unsigned first, unsigned count, int error)
{
	struct fake_libc_plan *plan = &fake_libc[call];
	plan->calls = 0;
	plan->error = error;
	plan->first = first;
	plan->fail = count;
}

void fake_libc_reset(void)
{
	for (enum fake_libc_call call = 0; call < FAKE_LIBC_COUNT; call++) {
		fake_libc_fail(call, 0, 0, 0);
		fake_libc[call].hook = NULL;
	}
}

static bool replaced(enum fake_libc_call call, long arguments[6], long *result)
{
	struct fake_libc_plan *plan = &fake_libc[call];
	unsigned number = atomic_fetch_add(&plan->calls, 1) + 1;
	fake_libc_hook *hook = plan->hook;
	if (number - plan->first < plan->fail) {
		errno = plan->error;
		return true;
	}
	return hook && hook(arguments, result);
}

/* Libc's own function. dlsym takes no memory for a name that it finds, so malloc may ask it. */
#define REAL(name) \
	({ \
		static _Atomic(__typeof__(&name)) real; \
		if (!real) \
			real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
		atomic_load(&real); \
	})

/*
 * Defines the function. Its arguments are longs in `a`, where a hook may change them. `passed`
 * takes them from there.
 */
#define FAKE(type, name, parameters, failure, passed, ...) \
	type name parameters \
	{ \
		long a[6] = {__VA_ARGS__}, result = failure; \
		return replaced(FAKE_##name, a, &result) ? (type)result : REAL(name) passed; \
	}

FAKE(void *, malloc, (size_t size), 0, ((size_t)a[0]), (long)size)
FAKE(void *, calloc, (size_t count, size_t size), 0, ((size_t)a[0], (size_t)a[1]), (long)count, (long)size)
FAKE(void *, realloc, (void *old, size_t size), 0, ((void *)a[0], (size_t)a[1]), (long)old, (long)size)
FAKE(void *, tsearch, (const void *key, void **root, __compar_fn_t compare), 0,
     ((const void *)a[0], (void **)a[1], (__compar_fn_t)a[2]), (long)key, (long)root, (long)compare)
FAKE(ssize_t, read, (int fd, void *to, size_t size), -1, ((int)a[0], (void *)a[1], (size_t)a[2]), fd,
     (long)to, (long)size)
FAKE(ssize_t, write, (int fd, const void *from, size_t size), -1,
     ((int)a[0], (const void *)a[1], (size_t)a[2]), fd, (long)from, (long)size)
FAKE(int, mkdir, (const char *path, mode_t mode), -1, ((const char *)a[0], (mode_t)a[1]), (long)path, mode)
FAKE(ssize_t, readlinkat, (int folder, const char *name, char *to, size_t size), -1,
     ((int)a[0], (const char *)a[1], (char *)a[2], (size_t)a[3]), folder, (long)name, (long)to, (long)size)
FAKE(void *, mmap64, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
     (long)MAP_FAILED, ((void *)a[0], (size_t)a[1], (int)a[2], (int)a[3], (int)a[4], a[5]), (long)at,
     (long)size, protection, flags, fd, offset)
FAKE(int, madvise, (void *at, size_t size, int advice), -1, ((void *)a[0], (size_t)a[1], (int)a[2]), (long)at,
     (long)size, advice)
FAKE(int, memfd_create, (const char *name, unsigned flags), -1, ((const char *)a[0], (unsigned)a[1]),
     (long)name, (long)flags)
FAKE(int, fallocate64, (int fd, int mode, off_t offset, off_t size), -1, ((int)a[0], (int)a[1], a[2], a[3]),
     fd, mode, offset, size)
FAKE(int, fstat64, (int fd, struct stat64 *now), -1, ((int)a[0], (struct stat64 *)a[1]), fd, (long)now)
FAKE(int, fchmod, (int fd, mode_t mode), -1, ((int)a[0], (mode_t)a[1]), fd, mode)
FAKE(int, flock, (int fd, int operation), -1, ((int)a[0], (int)a[1]), fd, operation)
FAKE(int, poll, (struct pollfd * list, nfds_t count, int timeout), -1,
     ((struct pollfd *)a[0], (nfds_t)a[1], (int)a[2]), (long)list, (long)count, timeout)
FAKE(unsigned long, getauxval, (unsigned long type), 0, ((unsigned long)a[0]), (long)type)
FAKE(long, sysconf, (int name), -1, ((int)a[0]), name)
FAKE(int, clock_gettime, (clockid_t clock, struct timespec *now), -1,
     ((clockid_t)a[0], (struct timespec *)a[1]), clock, (long)now)
FAKE(int, dl_iterate_phdr, (int (*visit)(struct dl_phdr_info *, size_t, void *), void *data), -1,
     ((int (*)(struct dl_phdr_info *, size_t, void *))a[0], (void *)a[1]), (long)visit, (long)data)

/* With as many arguments as a system call can have. A call that has fewer ignores the rest. */
long syscall(long number, ...)
{
	long a[6] = {number}, result = -1;
	va_list rest;
	va_start(rest, number);
	for (int i = 1; i < 6; i++)
		a[i] = va_arg(rest, long);
	va_end(rest);
	return replaced(FAKE_syscall, a, &result) ? result
	                                          : REAL(syscall)(a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Functions with a third argument, which some calls leave out. */
#define FAKE_WITH_THIRD(name, type1, type2, type3) \
	int name(type1 one, type2 two, ...) \
	{ \
		va_list rest; \
		va_start(rest, two); \
		long a[6] = {(long)one, two, va_arg(rest, long)}, result = -1; \
		va_end(rest); \
		return replaced(FAKE_##name, a, &result) ? (int)result \
		                                         : REAL(name)((type1)a[0], (type2)a[1], a[2]); \
	}
FAKE_WITH_THIRD(open64, const char *, int, long)
FAKE_WITH_THIRD(fcntl64, int, int, long)

/* A fortified open without a mode, whose flags the compiler does not know. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags)
{
	return open64(path, flags, 0);
}
/* NOLINTEND(bugprone-reserved-identifier) */
