/* Libraries that seem to be loaded, instead of the real ones. */
#ifndef SPILL_TEST_FAKE_OBJECTS_H
#define SPILL_TEST_FAKE_OBJECTS_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_libc.h"

struct fake_object {
	uintptr_t start;
	size_t bytes;
	const char *path; /* "" for the main program, which is the first */
};

static struct fake_object fake_objects[8];
static unsigned fake_object_count;
static _Atomic unsigned fake_object_looks; /* through all of them */

static bool visit_fake_objects(long arguments[6], long *result)
{
	int (*visit)(struct dl_phdr_info * info, size_t size, void *data) =
	    (int (*)(struct dl_phdr_info *, size_t, void *))arguments[0];
	fake_object_looks++;
	*result = 0;
	for (unsigned i = 0; i < fake_object_count && !*result; i++) {
		const ElfW(Phdr) segment = {.p_type = PT_LOAD, .p_memsz = fake_objects[i].bytes};
		struct dl_phdr_info info = {.dlpi_addr = fake_objects[i].start,
		                            .dlpi_name = fake_objects[i].path,
		                            .dlpi_phdr = &segment,
		                            .dlpi_phnum = 1,
		                            .dlpi_adds = fake_object_count};
		*result = visit(&info, sizeof(info), (void *)arguments[1]);
	}
	return true;
}

/* From now on these are all there are, and nobody has looked. */
#define USE_FAKE_OBJECTS(...) \
	do { \
		const struct fake_object list[] = {__VA_ARGS__}; \
		fake_object_count = sizeof(list) / sizeof(list[0]); \
		for (unsigned i = 0; i < fake_object_count; i++) \
			fake_objects[i] = list[i]; \
		fake_object_looks = 0; \
		fake_libc[FAKE_dl_iterate_phdr].hook = visit_fake_objects; \
	} while (0)

#endif
