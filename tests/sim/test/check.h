/*
 * test: contract tests of the simulated libraries. The same programs run on a real GPU, and a
 * difference is a bug of the simulator. This header has the checks of tests that count failures.
 *
 * A test never uses core/: it asks a library, as a program does. It needs libc and that library
 * only, so it runs on a GPU machine with nothing else installed.
 *
 * Begin with test_driver.c and driver_test.h, where each test is a process of its own.
 */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include <stdio.h>

#define MIB ((size_t)1 << 20)
#define GARBAGE ((void *)0x1000)

static unsigned check_failures, check_count;

/* Both values are evaluated once and printed with their text when they differ. */
#define CHECK(expression, wanted) \
	do { \
		long long check_got = (long long)(expression), check_want = (long long)(wanted); \
		check_count++; \
		if (check_got != check_want) { \
			check_failures++; \
			printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #expression, check_got, \
			       check_want); \
		} \
	} while (0)

#define CHECK_TRUE(expression) CHECK(!!(expression), 1)

static inline int check_result(void)
{
	printf("%u checks, %u failed\n", check_count, check_failures);
	return check_failures != 0;
}

#endif
