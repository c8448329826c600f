/*
 * Preloaded under MSan. clang 14 knows the names that stat had before glibc 2.33 only, and takes what these functions write for
 * uninitialised.
 */
#include <dlfcn.h>
#include <sys/stat.h>

extern void __msan_unpoison(const volatile void *at, size_t bytes) __attribute__((weak));

/* Both are one function on machines of 64 bits. */
#define WRITES_STATUS(name, parameters, arguments, status) \
	__attribute__((visibility("default"))) int name parameters \
	{ \
		static int(*real) parameters; \
		if (!real) \
			*(void **)&real = dlsym(RTLD_NEXT, #name); \
		int result = real arguments; \
		if (!result && __msan_unpoison) \
			__msan_unpoison(status, sizeof(*status)); \
		return result; \
	}

WRITES_STATUS(stat, (const char *path, struct stat *status), (path, status), status)
WRITES_STATUS(lstat, (const char *path, struct stat *status), (path, status), status)
WRITES_STATUS(fstat, (int file, struct stat *status), (file, status), status)
WRITES_STATUS(fstatat, (int folder, const char *path, struct stat *status, int flags),
              (folder, path, status, flags), status)
WRITES_STATUS(stat64, (const char *path, struct stat64 *status), (path, status), status)
WRITES_STATUS(lstat64, (const char *path, struct stat64 *status), (path, status), status)
WRITES_STATUS(fstat64, (int file, struct stat64 *status), (file, status), status)
WRITES_STATUS(fstatat64, (int folder, const char *path, struct stat64 *status, int flags),
              (folder, path, status, flags), status)
