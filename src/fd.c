#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int spill_fd_out_of_the_way(int fd)
{
	static const int floors[] = {200, 100, 20, 3};

	for (unsigned i = 0; i < sizeof(floors) / sizeof(floors[0]); i++) {
		int high = fcntl(fd, F_DUPFD_CLOEXEC, floors[i]);

		if (high >= 0) {
			close(fd);
			return high;
		}
	}
	if (fd > STDERR_FILENO)
		return fd;
	close(fd); /* as 0, 1 or 2 the program's own output would land in our file */
	errno = EMFILE;
	return -1;
}
