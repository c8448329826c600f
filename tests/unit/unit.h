/*
 * The frame of a unit test. TEST(name) { … } defines a test and adds it to the program's list.
 * run_unit_tests runs the list in the order of the lines: a constructor's priority, because link-time
 * optimisation reverses others. A program without a main gets one without fixtures of the group.
 *
 * A file may define SETUP and TEARDOWN before it includes this: the fixtures of each of its tests.
 */
#ifndef SPILL_UNIT_H
#define SPILL_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifndef SETUP
#define SETUP NULL
#endif
#ifndef TEARDOWN
#define TEARDOWN NULL
#endif

/* How often this thread has taken a lock: a path that costs a load takes none (held_locks.c). */
unsigned locks_taken(void);

/* Called once, just before this thread takes a mutex: what a signal handler does that comes then. */
void before_next_lock(void (*handler)(void));

/*
 * Before and behind each test. The second aborts the program if this thread cannot be cancelled, if
 * it blocks other signals than before, if more descriptors are open, or if memory of scratch.h is
 * still taken: each function of the library that changes this puts it back. A file whose tests keep
 * descriptors defines KEEPS_DESCRIPTORS.
 */
void test_begins(void);
void test_ends(bool keeps_descriptors);

#ifdef KEEPS_DESCRIPTORS
#undef KEEPS_DESCRIPTORS
#define KEEPS_DESCRIPTORS true
#else
#define KEEPS_DESCRIPTORS false
#endif

void add_unit_test(const struct CMUnitTest *test);
int run_unit_tests(CMFixtureFunction setup, CMFixtureFunction teardown);
/* In a new folder, as mkdtemp makes it of `folder`. The tests leave nothing there. */
int run_unit_tests_in(char *folder);

#define TEST(name) TEST_WITH(name, SETUP, TEARDOWN)
#define TEST_WITH(name, setup, teardown) \
	static void body_of_##name(void **state); \
	static void test_##name(void **state) \
	{ \
		test_begins(); \
		body_of_##name(state); \
		test_ends(KEEPS_DESCRIPTORS); \
	} \
	__attribute__((constructor(1000 + __LINE__))) static void add_##name(void) \
	{ \
		add_unit_test(&(struct CMUnitTest){#name, test_##name, setup, teardown, NULL}); \
	} \
	static void body_of_##name(void **state)

/* The body runs in a child process. The header that is included has its in_child. */
#define CHILD_TEST(name) \
	static void name(void); \
	TEST(name) \
	{ \
		in_child(name); \
	} \
	static void name(void)

#endif
