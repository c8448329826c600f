#include "process_status.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "small_file.h"

/* Field 2 is the name, in parentheses, and may contain any character. Each later one follows a blank. */
const char *cli_stat_field(const char *stat, unsigned field)
{
	const char *at = strrchr(stat, ')');

	for (unsigned passed = 2; at && passed < field; passed++)
		at = strchr(at + 1, ' ');
	return at ? at + 1 : NULL;
}

/* NSpid has the number in each namespace, the own one last. */
uint64_t cli_status_own_pid(const char *status, uint64_t otherwise)
{
	static const char name[] = "\nNSpid:";
	const char *at = strstr(status, name);
	uint64_t last = otherwise;
	char *end;

	at = at ? at + strlen(name) : "";
	for (at += strspn(at, " \t"); *at >= '0' && *at <= '9'; at = end + strspn(end, " \t"))
		last = strtoull(at, &end, 10);
	return last;
}

/* Of a zombie `stat` has a Z in field 3. */
bool cli_process_has_ended(int pid)
{
	char path[64], text[512];
	const char *state;

	if (kill(pid, 0) && errno == ESRCH)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	state = spill_small_file_read(path, text, sizeof(text)) ? cli_stat_field(text, 3) : NULL;
	return state && (*state == 'Z' || *state == 'X');
}
