/*
 * Runs each CHILD_TEST in a child process, because the tested code keeps state for the life of a
 * process. A failure in the child fails the test.
 */
#ifndef SPILL_CHILDTEST_H
#define SPILL_CHILDTEST_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/* cmocka's own would go on in the child. */
#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1); \
		} \
	} while (0)

/* A child that waits for ever fails after so many seconds; 0: as long as it takes. */
#ifndef CHILD_SECONDS
#define CHILD_SECONDS 0
#endif

static inline void in_child(void (*body)(void))
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		alarm(CHILD_SECONDS);
		test_begins();
		body();
		test_ends(KEEPS_DESCRIPTORS);
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#endif
