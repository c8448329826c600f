/* A disk with room for so many bytes: what a hook of write(2) does (fake_libc.h). */
#ifndef SPILL_TEST_FAKE_DISK_H
#define SPILL_TEST_FAKE_DISK_H

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

static _Atomic long room = -1; /* bytes; -1: no end */

static inline bool disk(long arguments[6], long *result)
{
	if (room < 0 || arguments[0] <= STDERR_FILENO)
		return false;
	errno = ENOSPC;
	if (room == 0)
		return true;
	if (arguments[2] > room)
		arguments[2] = room;
	room -= arguments[2];
	return false;
}

#endif
