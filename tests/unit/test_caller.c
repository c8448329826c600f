/* The files of callers: each once, and again in the child of a fork. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "caller.h"
#include "fake_objects.h"
#include "process.h"

static const void *at(uintptr_t address)
{
	return (const void *)address;
}

static void expect_file(const char *name, const char *path)
{
	assert_true(spill_caller_has_new_file());
	const struct spill_caller_file *file = spill_caller_next_file();
	assert_non_null(file);
	assert_string_equal(file->name, name);
	assert_string_equal(file->path, path);
	assert_string_equal(file->build_id, "");
}

static void expect_no_file(void)
{
	assert_false(spill_caller_has_new_file());
	assert_null(spill_caller_next_file());
}

TEST(each_file_once)
{
	USE_FAKE_OBJECTS({0x1000, 0x1000, ""}, {0x2000, 0x1000, "/a/lib.so"}, {0x3000, 0x1000, "/b/lib.so"});
	expect_no_file();
	assert_string_equal(spill_caller_name(at(0x2010)), "lib.so+0x10");
	assert_string_equal(spill_caller_name(at(0x2020)), "lib.so+0x20");
	assert_string_equal(spill_caller_name(at(0x3010)), "lib.so+0x10");
	expect_file("lib.so", "/a/lib.so");
	expect_file("lib.so", "/b/lib.so");
	expect_no_file();
	spill_caller_name(at(0x2030));
	expect_no_file();

	/* Generated code has no file. */
	spill_caller_name(at(0x9000));
	expect_no_file();

	/* Another library at the place of one that was unloaded. */
	spill_unloads_count();
	USE_FAKE_OBJECTS({0x1000, 0x1000, ""}, {0x2000, 0x1000, "/c/other.so"});
	assert_string_equal(spill_caller_name(at(0x2010)), "other.so+0x10");
	expect_file("other.so", "/c/other.so");
	expect_no_file();

	spill_fork_lock_take(&spill_caller_fork_lock);
	spill_fork_lock_release(&spill_caller_fork_lock, false);
	expect_no_file();
	spill_fork_lock_take(&spill_caller_fork_lock);
	spill_fork_lock_release(&spill_caller_fork_lock, true);
	expect_file("lib.so", "/a/lib.so");
	expect_file("lib.so", "/b/lib.so");
	expect_file("other.so", "/c/other.so");
	expect_no_file();
}

/* The loader is asked for each address once, and again behind an unload. */
TEST(a_name_is_kept)
{
	USE_FAKE_OBJECTS({0x1000, 0x1000, ""}, {0x5000, 0x1000, "/a/kept.so"});
	const char *name = spill_caller_name(at(0x5010));
	assert_string_equal(name, "kept.so+0x10");
	unsigned looks = fake_object_looks;
	assert_true(looks > 0);
	assert_ptr_equal(spill_caller_name(at(0x5010)), name);
	assert_int_equal(fake_object_looks, looks);
	spill_unloads_count();
	assert_ptr_equal(spill_caller_name(at(0x5010)), name);
	assert_true(fake_object_looks > looks);
	looks = fake_object_looks;
	assert_ptr_equal(spill_caller_name(at(0x5010)), name);
	assert_int_equal(fake_object_looks, looks);
}

/* The loader tells no path of the program's own file. */
TEST(the_program_itself)
{
	char path[4096];
	USE_FAKE_OBJECTS({0x1000, 0x1000, ""}, {0x6000, 0x1000, "/a/one.so"});
	spill_program_path(path, sizeof(path));
	while (spill_caller_next_file())
		; /* those of other tests */
	assert_string_equal(spill_caller_name(at(0x1010)), "test_caller+0x10");
	expect_file("test_caller", path);
	expect_no_file();
}

/* Texts of a program that makes ever new ones are kept up to a number. Those that are known stay so. */
/* The addresses of generated code are many. These share the places where an address may be. */
TEST(more_call_sites_than_have_a_place)
{
	unsigned count = 0;
	for (uintptr_t address = 0x100000; count < 100; address++) {
		char text[32];
		if ((uint64_t)address * 0x9e3779b97f4a7c15ull >> 52 != 5)
			continue;
		snprintf(text, sizeof(text), "%p", at(address));
		assert_string_equal(spill_caller_name(at(address)), text);
		assert_string_equal(spill_caller_name(at(address)), text);
		count++;
	}
}

TEST(texts_are_kept_up_to_a_number)
{
	char text[32];
	const char *first = spill_caller_keep("text 0"), *last = first;
	unsigned count = 0;
	while (last) {
		snprintf(text, sizeof(text), "text %u", ++count);
		const char *kept = spill_caller_keep(text);
		assert_true(!kept || (kept != text && strcmp(kept, text) == 0));
		assert_ptr_equal(spill_caller_keep(text), kept);
		last = kept;
	}
	assert_int_equal(count, 4096);
	assert_ptr_equal(spill_caller_keep("text 0"), first);
	assert_non_null(spill_caller_keep("text 4095"));
	/* Names of call sites are of no such number. */
	USE_FAKE_OBJECTS({0x1000, 0x1000, ""}, {0x7000, 0x1000, "/a/two.so"});
	assert_string_equal(spill_caller_name(at(0x7010)), "two.so+0x10");
	expect_file("two.so", "/a/two.so");
}
