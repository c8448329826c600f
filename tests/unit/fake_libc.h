/*
 * Functions of libc that a test can let fail, count or replace. They are defined in the test
 * program itself, so they come before libc's for everything in it. Without a plan each of them
 * does as libc's does.
 *
 * A program has them if it links fake_libc (meson.build).
 */
#ifndef SPILL_TEST_FAKE_LIBC_H
#define SPILL_TEST_FAKE_LIBC_H

#include <stdatomic.h>
#include <stdbool.h>

/* By the names of 64-bit offsets where there are two: that is how the library is built. */
#define FAKE_LIBC_CALLS(X) \
	X(malloc) \
	X(calloc) \
	X(realloc) \
	X(tsearch) \
	X(open64) \
	X(read) \
	X(write) \
	X(readlinkat) \
	X(mmap64) \
	X(madvise) \
	X(memfd_create) \
	X(fallocate64) \
	X(fcntl64) \
	X(fstat64) \
	X(fchmod) \
	X(flock) \
	X(mkdir) \
	X(poll) \
	X(syscall) \
	X(getauxval) \
	X(sysconf) \
	X(clock_gettime) \
	X(dl_iterate_phdr)

#define X(name) FAKE_##name,
enum fake_libc_call { FAKE_LIBC_CALLS(X) FAKE_LIBC_COUNT };
#undef X

/*
 * In place of a call, if it returns true: with *result, which is the function's failure at first,
 * and errno. It may change the arguments, and returns false for libc's function with these.
 */
typedef bool fake_libc_hook(long arguments[6], long *result);

struct fake_libc_plan {
	_Atomic unsigned calls;       /* since the last fake_libc_fail */
	_Atomic unsigned first, fail; /* so many calls fail from the first on, which is 1 */
	_Atomic int error;
	fake_libc_hook *_Atomic hook; /* of calls that do not fail */
};

extern struct fake_libc_plan fake_libc[FAKE_LIBC_COUNT];

/* From now on: `count` calls fail with `error`, after `first` - 1 that do not. */
void fake_libc_fail(enum fake_libc_call call, unsigned first, unsigned count, int error);
#define FAKE_LIBC_FOR_EVER 0x7fffffffu

/* No call fails, and there are no hooks. */
void fake_libc_reset(void);

#endif
