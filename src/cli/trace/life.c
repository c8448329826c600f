#include "life.h"

#include <errno.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli.h"
#include "files.h"
#include "find_log.h"
#include "process_status.h"

/*
 * A container may have the host's name and its own process numbers. The log's lock shows that its writer runs.
 * /proc/locks does not list the locks of other containers, so this asks for the lock, for a moment, as log_keep.c
 * does. True: it is held, or it is not known.
 */
static bool may_be_locked(const char *path)
{
	int error, fd = cli_open(path, CLI_REGULAR, &error);
	bool held = fd < 0 || (flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK);

	if (fd >= 0)
		close(fd);
	return held;
}

bool cli_writer_is_gone(const struct spill_record_start *start, const char *path)
{
	if (!start->boot || start->pid <= 0 || !cli_is_this_machine(start))
		return false;
	return !cli_is_this_boot(start) || (cli_process_has_ended(start->pid) && !may_be_locked(path));
}

/* libspill has its log open until the program ends. */
static bool is_written_by(const char *path, int pid)
{
	int error, fd = pid > 0 ? cli_open(path, CLI_REGULAR, &error) : -1;
	bool written = fd >= 0 && cli_log_is_open_in(pid, fd);

	if (fd >= 0)
		close(fd);
	return written;
}

enum cli_life cli_life_of(const char *path, int pid, bool gone)
{
	if (is_written_by(path, pid))
		return CLI_LIFE_RUNS;
	return gone ? CLI_LIFE_GONE : CLI_LIFE_UNKNOWN;
}

const char *cli_life_words(enum cli_life life)
{
	static const char *const words[] = {
	    [CLI_LIFE_UNKNOWN] =
	        "the program still runs, was killed, has crashed, or ended by exec or a system call",
	    [CLI_LIFE_RUNS] = "the program still runs",
	    [CLI_LIFE_GONE] = "the program was killed, has crashed, or ended by exec or a system call",
	};

	return words[life];
}
