/* Which object holds an address, the build id in its memory, and walks while the process forks. */
#define SETUP setup
#include "unit.h"

#include "caller.h"

#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fake_libc.h"
#include "loaded_objects.h"

#define NOTE_BYTES 20 /* with a build id of 4 bytes */

/* An object in memory: a segment of SEGMENT bytes from BEFORE on, of which the file has FILE_BYTES. */
enum { BEFORE = 256, FILE_BYTES = 256, SEGMENT = 512, BEHIND = BEFORE + 208 };
static _Alignas(4096) unsigned char memory[4096];
static ElfW(Phdr) parts[5];
static unsigned part_count;
static const char *names[3]; /* of the objects, in their order */
static unsigned object_count;

/* The last object holds the memory, the others nothing. */
static bool visit(long arguments[6], long *result)
{
	int (*call)(struct dl_phdr_info * info, size_t size, void *data) =
	    (int (*)(struct dl_phdr_info *, size_t, void *))arguments[0];
	*result = 0;
	for (unsigned i = 0; i < object_count && !*result; i++) {
		struct dl_phdr_info info = {.dlpi_addr = (uintptr_t)memory,
		                            .dlpi_name = names[i],
		                            .dlpi_phdr = parts,
		                            .dlpi_phnum = i == object_count - 1 ? (ElfW(Half))part_count : 0};
		*result = call(&info, sizeof(info), (void *)arguments[1]);
	}
	return true;
}

static void write_notes(uint64_t offset, unsigned char byte)
{
	const Elf64_Nhdr header = {.n_namesz = 4, .n_descsz = 4, .n_type = NT_GNU_BUILD_ID};
	memcpy(memory + offset, &header, sizeof(header));
	memcpy(memory + offset + sizeof(header), "GNU", 4);
	memset(memory + offset + sizeof(header) + 4, byte, 4);
}

static int setup(void **state)
{
	memset(memory, 0, sizeof(memory));
	parts[0] = (ElfW(Phdr)){.p_type = PT_LOAD,
	                        .p_flags = PF_R,
	                        .p_vaddr = BEFORE,
	                        .p_filesz = FILE_BYTES,
	                        .p_memsz = SEGMENT};
	part_count = 1;
	names[0] = "/x/lib.so";
	object_count = 1;
	write_notes(BEHIND, 0xee);
	fake_libc_reset();
	fake_libc[FAKE_dl_iterate_phdr].hook = visit;
	return 0;
}

/* The notes begin at `offset` of the object, and have a build id of four such bytes. */
static void add_notes(uint64_t offset, unsigned char byte)
{
	write_notes(offset, byte);
	parts[part_count++] = (ElfW(Phdr)){.p_type = PT_NOTE, .p_vaddr = offset, .p_filesz = NOTE_BYTES};
}

/* What stands behind the headers is none of them: neither notes, nor a segment that all notes are in. */
static const char *build_id(void)
{
	static struct spill_loaded_object objects[2];
	for (unsigned i = 0; i < 2; i++) {
		parts[part_count] = (ElfW(Phdr)){.p_type = i ? PT_NOTE : PT_LOAD,
		                                 .p_flags = PF_R,
		                                 .p_vaddr = i ? BEHIND : 0,
		                                 .p_filesz = i ? NOTE_BYTES : sizeof(memory)};
		memset(&objects[i], 'x', sizeof(objects[i]));
		assert_true(spill_loaded_object_of(memory + BEFORE, &objects[i]));
	}
	assert_string_equal(objects[0].build_id, objects[1].build_id);
	return objects[0].build_id;
}

/* -- notes --------------------------------------------------------------------------------------- */

TEST(notes_within_the_bytes_of_the_file_are_read)
{
	const uint64_t first = BEFORE, last = BEFORE + FILE_BYTES - NOTE_BYTES;
	const struct {
		uint64_t offset;
		const char *found;
	} cases[] = {{first, "abababab"},       {last, "abababab"},     {first - 4, ""}, {last + 4, ""},
	             {BEFORE + FILE_BYTES, ""}, {BEFORE + SEGMENT, ""}, {0, ""}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		part_count = 1;
		add_notes(cases[i].offset, 0xab);
		if (strcmp(build_id(), cases[i].found) != 0)
			fail_msg("case %u: %s", i, build_id());
	}
}

TEST(notes_that_cannot_be_read_are_left_alone)
{
	add_notes(BEFORE, 0xab);
	parts[0].p_flags = PF_X;
	assert_string_equal(build_id(), "");
	parts[0].p_flags = PF_R;
	parts[1].p_filesz = UINT64_MAX - 8;
	assert_string_equal(build_id(), "");
}

/* A file can have several, for other tools. */
TEST(the_first_notes_with_a_build_id_count)
{
	add_notes(BEFORE, 0x01);
	add_notes(BEFORE + 64, 0x02);
	add_notes(BEFORE + 128, 0x03);
	assert_string_equal(build_id(), "01010101");
	/* The file is told with it. */
	spill_caller_name(memory + BEFORE);
	assert_string_equal(spill_caller_next_file()->build_id, "01010101");
	parts[1].p_filesz = NOTE_BYTES - 4;
	assert_string_equal(build_id(), "02020202");
	parts[2].p_type = PT_DYNAMIC;
	assert_string_equal(build_id(), "03030303");
}

/* -- addresses ------------------------------------------------------------------------------------- */

TEST(an_address_is_in_a_segment)
{
	struct spill_loaded_object object;
	assert_false(spill_loaded_object_of(memory + BEFORE - 1, &object));
	assert_true(spill_loaded_object_of(memory + BEFORE, &object));
	assert_true(spill_loaded_object_of(memory + BEFORE + SEGMENT - 1, &object));
	assert_false(spill_loaded_object_of(memory + BEFORE + SEGMENT, &object));
	parts[0].p_type = PT_GNU_STACK;
	assert_false(spill_loaded_object_of(memory + BEFORE, &object));
}

TEST(the_main_program_is_the_first_and_has_no_path)
{
	static struct spill_loaded_object object;
	assert_true(spill_loaded_object_of(memory + BEFORE, &object));
	assert_true(object.main_program);
	assert_string_equal(object.path, "");
	assert_int_equal(object.base, (uintptr_t)memory);
	names[0] = "";
	names[1] = "/x/lib.so";
	object_count = 2;
	assert_true(spill_loaded_object_of(memory + BEFORE, &object));
	assert_false(object.main_program);
	assert_string_equal(object.path, "/x/lib.so");
	names[1] = NULL;
	assert_true(spill_loaded_object_of(memory + BEFORE, &object));
	assert_string_equal(object.path, "");
}

/* From the lowest segment to the end of the highest, in any order. Other parts may be outside of both. */
TEST(the_extent_of_an_object_is_that_of_its_segments)
{
	static const unsigned orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}};
	static const ElfW(Phdr) three[] = {
	    {.p_type = PT_LOAD, .p_vaddr = BEFORE, .p_memsz = 64},
	    {.p_type = PT_LOAD, .p_vaddr = BEFORE + 128, .p_memsz = 64},
	    {.p_type = PT_LOAD, .p_vaddr = BEFORE + 256, .p_memsz = 64},
	};
	struct spill_unwind_table found;
	for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		for (unsigned j = 0; j < 3; j++)
			parts[j] = three[orders[i][j]];
		parts[3] = (ElfW(Phdr)){.p_type = PT_GNU_EH_FRAME, .p_vaddr = BEFORE + 16, .p_memsz = 16};
		parts[4] = (ElfW(Phdr)){.p_type = PT_NOTE, .p_vaddr = i % 2 ? 16 : 2048, .p_memsz = 16};
		part_count = 5;
		assert_true(spill_loaded_object_unwind(memory + BEFORE, &found));
		assert_ptr_equal(found.begin, memory + BEFORE);
		assert_ptr_equal(found.end, memory + BEFORE + 256 + 64);
		assert_ptr_equal(found.table, memory + BEFORE + 16);
	}
	parts[3].p_type = PT_NULL;
	assert_false(spill_loaded_object_unwind(memory + BEFORE, &found));
}

/* In the order of symbol search. The memory is the last object's. */
TEST(what_comes_behind_the_c_library_does_not_interpose)
{
	static const struct {
		const char *names[3];
		unsigned count;
		bool interposes;
	} cases[] = {
	    {{"/x/lib.so"}, 1, true},
	    {{"", "/x/lib.so"}, 2, true},
	    {{NULL, "/lib/libcuda.so.1", "/x/lib.so"}, 3, true},
	    {{"", "/lib/libc.so.6", "/x/lib.so"}, 3, false},
	    {{"", "/lib/libc.musl.so", "/x/lib.so"}, 3, false},
	    {{"", "libc.so.6", "/x/lib.so"}, 3, true},
	    {{"/libc.so.6"}, 1, true},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(names, cases[i].names, sizeof(names));
		object_count = cases[i].count;
		if (spill_loaded_object_interposes(memory + BEFORE) != cases[i].interposes)
			fail_msg("case %u", i);
	}
	assert_false(spill_loaded_object_interposes(memory));
}

/* -- forks: held_locks.c ends the test if the lock is given back by a thread that does not hold it ---- */

static int (*within)(struct dl_phdr_info *info, size_t size, void *data);

static int walk(struct dl_phdr_info *info, size_t size, void *data)
{
	assert_true(spill_loaded_objects_looking());
	return within ? within(info, size, data) : 7;
}

static void expect_walk(void)
{
	assert_int_equal(spill_loaded_objects_visit(walk, NULL), 7);
	assert_false(spill_loaded_objects_looking());
}

static void *fork_and_go_on(void *data)
{
	spill_loaded_objects_fork_prepare();
	spill_loaded_objects_fork_parent();
	return data;
}

static void fork_in_another_thread(void)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, fork_and_go_on, NULL), 0);
	pthread_join(thread, NULL);
}

/* One before the caller's would call it in turn (test_blocks.py, with two preloads in either order). */
TEST(a_definition_behind_another_one)
{
	fake_libc_reset();
	void *own = spill_loaded_objects_function("malloc", NULL);
	assert_non_null(own);
	assert_null(spill_loaded_objects_function("malloc", own));
	assert_null(spill_loaded_objects_function("free", own)); /* another function's */
	assert_null(spill_loaded_objects_function("no_such_function_anywhere", NULL));
}

TEST(a_fork_takes_the_lock)
{
	within = NULL;
	expect_walk();
	fork_and_go_on(NULL);
	spill_loaded_objects_fork_prepare();
	spill_loaded_objects_fork_child();
	expect_walk();
	fork_in_another_thread();
	expect_walk();
}

static int fork_meanwhile(struct dl_phdr_info *info, size_t size, void *data)
{
	fork_in_another_thread();
	return 7;
}

/* The walk may be what the forking thread has to wait for. */
TEST(a_fork_during_another_threads_walk_goes_on)
{
	within = fork_meanwhile;
	expect_walk();
	fork_in_another_thread();
}

static int walk_again(struct dl_phdr_info *info, size_t size, void *data)
{
	within = NULL;
	assert_int_equal(spill_loaded_objects_visit(walk, NULL), 7);
	return spill_loaded_objects_looking() ? 7 : 0;
}

TEST(a_walk_within_a_walk)
{
	within = walk_again;
	expect_walk();
	fork_in_another_thread();
}

/* By a signal handler. */
static int fork_here(struct dl_phdr_info *info, size_t size, void *child)
{
	spill_loaded_objects_fork_prepare();
	if (child)
		spill_loaded_objects_fork_child();
	else
		spill_loaded_objects_fork_parent();
	return 7;
}

TEST(a_fork_within_a_walk)
{
#ifdef __SANITIZE_THREAD__ /* which takes a lock that is made anew for one that is held */
	skip();
#endif
	static int child;
	within = fork_here;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(spill_loaded_objects_visit(walk, i ? &child : NULL), 7);
		assert_false(spill_loaded_objects_looking());
		fork_in_another_thread();
	}
}
