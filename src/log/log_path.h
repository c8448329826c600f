/* The path of this process's log, by log.path or SPILL_LOG, and of its other files. */
#ifndef SPILL_LOG_PATH_H
#define SPILL_LOG_PATH_H

#include <stdbool.h>
#include <stddef.h>

struct spill_log_path {
	char path[4096]; /* absolute; "" if the log is off or there is a problem. */
	bool in_default; /* in our default folder, not in one that the user named. */
	/* Length of the folder in `path` that must exist. Missing folders below it are created. */
	size_t base;
	const char *problem; /* static text for people, or NULL */
};

/* Suffixes of the files: of log.path, log.metrics and movable.record. */
#define SPILL_LOG_SUFFIX ".jsonl"
#define SPILL_METRICS_SUFFIX ".prom"
#define SPILL_RECORDING_SUFFIX ".rec"

/*
 * Expands `pattern`, and creates nothing. In it %h is the host, %e the program, %p the pid, %j the
 * job, %t the rank and %% a percent sign. Without a job %j is "nojob", and without a rank %t is
 * "norank". A leading ~/ is HOME. "off" is no file. "" is the default folder,
 * ${XDG_STATE_HOME:-~/.local/state}/spill.
 *
 * An existing folder, or a name that ends in /, gets the default file name with `suffix`: %e-%p. A
 * process with a rank has the job's number if there is one, the host and the rank before it.
 *
 * A missing HOME is a problem, not a folder to create: users of daemons have such a HOME, and root
 * could create it. The same holds for the parent of XDG_STATE_HOME, unless that is below HOME. pre:
 * not privileged (AT_SECURE)
 */
void spill_log_path_find(struct spill_log_path *found, const char *pattern, const char *program,
                         const char *suffix);

/*
 * Creates the missing folders below `base`, with mode 0700. found->path is changed for a moment
 * meanwhile. Returns 0 or an errno value.
 */
int spill_log_path_make_folders(struct spill_log_path *found);

#endif
