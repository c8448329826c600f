/*
 * Runs each case in a child process, because the tested code keeps state for the life of a process.
 * A failure in the child fails the test. CASES is a list X(name) X(name) … of functions without
 * arguments; TESTS_OF_CHILDREN(CASES) is all the rest, main with it.
 */
#ifndef SPILL_CHILDTEST_H
#define SPILL_CHILDTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* cmocka's own would go on in the child. */
#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1); \
		} \
	} while (0)

/* Who waits for ever fails after `seconds`; 0: as long as it takes. */
static inline void in_child_for(unsigned seconds, void (*body)(void))
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		alarm(seconds);
		body();
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define CHILD_TEST(body) cmocka_unit_test(test_##body),
#define TESTS_OF_CHILDREN(CASES) \
	CASES(CHILD_CASE) \
	int main(void) \
	{ \
		const struct CMUnitTest tests[] = {CASES(CHILD_TEST)}; \
		return cmocka_run_group_tests(tests, NULL, NULL); \
	}
#ifndef CHILD_SECONDS
#define CHILD_SECONDS 0
#endif
#define CHILD_CASE(body) \
	static void test_##body(void **state) \
	{ \
		in_child_for(CHILD_SECONDS, body); \
	}

#endif
