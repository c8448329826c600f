#include "process_status.h"

#include <stdlib.h>
#include <string.h>

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
