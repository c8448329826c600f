/* From the policy's log.path to the name of this process's log (contract: environment SPILL_LOG, log.path). */
#ifndef SPILL_LOG_PATH_H
#define SPILL_LOG_PATH_H

#include <stdbool.h>
#include <stddef.h>

struct spill_logpath {
	char path[4096];     /* absolute; "" when the log is off or there is a problem */
	bool in_default;     /* in the folder that we made and own, not one that the user named */
	size_t base;         /* length of the folder that must exist: folders are made below it */
	const char *problem; /* static text for people, or NULL */
};

/*
 * Expands `pattern`: %h host, %e program, %p pid, %% a percent sign; "off" is no log; an existing
 * folder or a name that ends in / holds the default name; ~/ is HOME; "" is the default,
 * ${XDG_STATE_HOME:-~/.local/state}/spill/%e-%p.jsonl. A HOME that is not there is a problem:
 * daemons' users have one, and root would make it. So is an XDG_STATE_HOME whose parent is not
 * there, unless it is below HOME. Nothing is created. pre: not privileged (AT_SECURE)
 */
void spill_log_path_find(struct spill_logpath *found, const char *pattern, const char *program);

/*
 * Makes the missing folders between `base` and the file, 0700 each, whose names are cut out of it
 * for a moment. 0, or an errno value.
 */
int spill_log_path_make_folders(struct spill_logpath *found);

#endif
