/*
 * How libc's own dlsym is found, and what is asked of it. The loader's list and dlvsym are replaced. What is found is kept for the
 * life of the process, so each case runs in a child.
 */
#include "childtest.h"

#include <dlfcn.h>
#include <string.h>

#include "libc_symbol.h"
#include "said.h"

static const char *library_with_it, *version_with_it; /* NULL: none */
static bool wrapped;                                  /* dlvsym asks us first */
static bool without_dlclose;

static int close_handle(void *handle)
{
	say("close", (uintptr_t)handle);
	return 5;
}

static void *real_dlsym(void *handle, const char *name)
{
	say(name, handle == RTLD_NEXT);
	return without_dlclose ? NULL : (void *)close_handle;
}

void *spill_loaded_function(const char *soname, const char *name)
{
	say(soname, strcmp(name, "dlsym") == 0);
	return library_with_it && strcmp(soname, library_with_it) == 0 ? (void *)real_dlsym : NULL;
}

void *dlvsym(void *restrict handle, const char *restrict name, const char *restrict version)
{
	say(version, handle == RTLD_NEXT && strcmp(name, "dlsym") == 0);
	if (wrapped)
		CHECK(!spill_real_dlsym()(RTLD_NEXT, "dlvsym"));
	return version_with_it && strcmp(version, version_with_it) == 0 ? (void *)real_dlsym : NULL;
}

#define IN_LIBRARIES "libc.so.6:1 libdl.so.2:1 "
#if defined(__x86_64__)
#define OLD "GLIBC_2.2.5"
#else
#define OLD "GLIBC_2.17"
#endif

static bool are_said(const char *words)
{
	const char *last = what_was_said();
	if (strcmp(last, words) != 0)
		fprintf(stderr, "said: %s\n", last);
	return strcmp(last, words) == 0;
}

static bool is_found(void)
{
	return spill_real_dlsym() == real_dlsym;
}

CHILD_TEST(in_libc)
{
	library_with_it = "libc.so.6";
	CHECK(is_found() && are_said("libc.so.6:1"));
	CHECK(is_found() && are_said("")); /* by the first look-up alone */
}

CHILD_TEST(in_the_library_of_an_older_libc)
{
	library_with_it = "libdl.so.2";
	CHECK(is_found() && are_said("libc.so.6:1 libdl.so.2:1"));
}

CHILD_TEST(by_version)
{
	version_with_it = "GLIBC_2.34";
	CHECK(is_found() && are_said(IN_LIBRARIES "GLIBC_2.34:1"));
}

CHILD_TEST(by_an_older_version)
{
	version_with_it = OLD;
	CHECK(is_found() && are_said(IN_LIBRARIES "GLIBC_2.34:1 " OLD ":1"));
}

/* Later there may be one. */
CHILD_TEST(nowhere)
{
	CHECK(!is_found() && are_said(IN_LIBRARIES "GLIBC_2.34:1 " OLD ":1"));
	CHECK(!spill_libc_symbol("abort") && are_said(IN_LIBRARIES "GLIBC_2.34:1 " OLD ":1"));
	library_with_it = "libc.so.6";
	CHECK(is_found());
}

/* A wrapper of dlvsym finds its real function by our dlsym, which has none yet. */
CHILD_TEST(while_it_is_looked_for)
{
	wrapped = true;
	version_with_it = "GLIBC_2.34";
	CHECK(is_found() && are_said(IN_LIBRARIES "GLIBC_2.34:1 libc.so.6:1 libdl.so.2:1"));
}

CHILD_TEST(symbols_are_the_next_ones)
{
	library_with_it = "libc.so.6";
	CHECK(spill_libc_symbol("abort") == (void *)close_handle);
	CHECK(are_said("libc.so.6:1 abort:1"));
}

CHILD_TEST(handles_are_closed_by_libc)
{
	library_with_it = "libc.so.6";
	CHECK(spill_real_dlclose((void *)7) == 5 && are_said("libc.so.6:1 dlclose:1 close:7"));
	CHECK(spill_real_dlclose((void *)8) == 5 && are_said("close:8"));
}

CHILD_TEST(handles_that_nobody_closes)
{
	library_with_it = "libc.so.6";
	without_dlclose = true;
	CHECK(spill_real_dlclose((void *)7) == 0 && are_said("libc.so.6:1 dlclose:1"));
}
