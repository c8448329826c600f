#include "life.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "files.h"
#include "find_log.h"
#include "process_status.h"

/*
 * A container may have the host's name and its own process numbers. Its lock shows that it runs. The
 * device is not compared, because some file systems tell another one here (proc(5), /proc/locks).
 */
static bool is_locked(const char *path)
{
	FILE *locks = fopen("/proc/locks", "re");
	unsigned long inode;
	struct stat log;
	char line[256];
	bool locked = false;

	while (locks && !stat(path, &log) && !locked && fgets(line, sizeof(line), locks))
		locked =
		    sscanf(line, "%*d: FLOCK %*s %*s %*d %*x:%*x:%lu", &inode) == 1 && inode == log.st_ino;
	if (locks)
		fclose(locks);
	return locked;
}

bool cli_writer_is_gone(const struct spill_record_start *start, const char *path)
{
	if (!start->boot || start->pid <= 0 || !cli_is_this_machine(start))
		return false;
	return !cli_is_this_boot(start) || (cli_process_has_ended(start->pid) && !is_locked(path));
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
