/* The loader's cache, and files that only look like one. The search of a library is in tests/cli/doctor_library.bats. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "doctor.h"

#define MOST 40

static char root[] = "/tmp/spill-ldcache-XXXXXX", path[4200];
static struct {
	char magic[20];
	uint32_t entries, strings_size, rest[5];
	struct {
		int32_t flags;
		uint32_t name, path, unused[3];
	} entry[MOST];
	char strings[4096];
} file;

static int make_root(void **state)
{
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/etc", root);
	return mkdir(path, 0700);
}

static int remove_root(void **state)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static uint32_t offset_of(const char *string)
{
	return (uint32_t)(string - (const char *)&file);
}

/* Entries that all have the name a.so, the path /N/a.so, and strings of so many bytes. */
static struct ld_cache make_cache(uint32_t entries, size_t strings)
{
	struct ld_cache cache;
	char name[64];
	FILE *out;

	memcpy(file.magic, "glibc-ld.so.cache1.1", 20);
	file.entries = entries;
	memset(file.strings, 'x', sizeof(file.strings));
	strcpy(file.strings, "a.so");
	for (uint32_t i = 0; i < MOST; i++) {
		char *to = file.strings + 8 + 16 * i;

		sprintf(to, "/%u/a.so", i);
		file.entry[i].name = offset_of(file.strings);
		file.entry[i].path = offset_of(to);
	}
	snprintf(name, sizeof(name), "%s/etc/ld.so.cache", root);
	out = fopen(name, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(&file, 1, offset_of(file.strings) + strings, out),
	                 offset_of(file.strings) + strings);
	fclose(out);
	ld_cache_read(&cache, root);
	return cache;
}

static bool find(const struct ld_cache *cache, const char *name, uint32_t *from)
{
	return ld_cache_find(cache, name, from, path, sizeof(path));
}

TEST(each_entry_of_a_name_once)
{
	struct ld_cache cache = make_cache(MOST, sizeof(file.strings));
	uint32_t from = 0;

	for (unsigned i = 0; i < MOST; i++) {
		char right[32];

		sprintf(right, "/%u/a.so", i);
		assert_true(find(&cache, "a.so", &from));
		assert_string_equal(path, right);
	}
	assert_false(find(&cache, "a.so", &from));
	from = 0;
	assert_false(find(&cache, "a.s", &from));
	ld_cache_free(&cache);
}

/* The second path ends the file, with its NUL and without it. Then it counts more entries than it has. */
TEST(what_the_end_cuts_is_not_there)
{
	for (unsigned with = 0; with < 2; with++) {
		struct ld_cache cache = make_cache(2, 8 + 16 + strlen("/1/a.so") + with);
		uint32_t from = 0;

		assert_true(find(&cache, "a.so", &from));
		assert_int_equal(find(&cache, "a.so", &from), with);
		ld_cache_free(&cache);
	}
	struct ld_cache cache = make_cache(MOST + 200, sizeof(file.strings));
	uint32_t from = 0;

	assert_false(find(&cache, "a.so", &from));
	ld_cache_free(&cache);
}

TEST(a_path_that_is_too_long)
{
	struct ld_cache cache = make_cache(1, sizeof(file.strings));
	uint32_t from = 0;

	assert_false(ld_cache_find(&cache, "a.so", &from, path, strlen("/0/a.so")));
	from = 0;
	assert_true(ld_cache_find(&cache, "a.so", &from, path, sizeof("/0/a.so")));
	ld_cache_free(&cache);
}

TEST(no_cache_has_no_entries)
{
	struct ld_cache cache;
	uint32_t from = 0;

	ld_cache_read(&cache, "/nowhere");
	assert_false(find(&cache, "a.so", &from));
	ld_cache_free(&cache);
}

int main(void)
{
	return run_unit_tests(make_root, remove_root);
}
