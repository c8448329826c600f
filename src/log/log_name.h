/*
 * The name of the log's file. Where the name is one for several processes (no %p in it, or another container's process has the same
 * number) each has a file of its own, NAME.jsonl, NAME-2.jsonl, …: in one, nobody could tell whose a line is.
 */
#ifndef SPILL_LOG_NAME_H
#define SPILL_LOG_NAME_H

#include <stdatomic.h>

#include "log_file.h"

#define SPILL_LOGNAME 4096

/* Zero, but for `name`, before the first open. */
struct spill_logname {
	char name[SPILL_LOGNAME]; /* the first of them */
	const char *_Atomic path; /* the one that was opened last; NULL: none yet */
	/* Of which it is one: threads that do not have the log's lock may be reading it. */
	char paths[2][SPILL_LOGNAME];
};

/*
 * Opens the log's file, as spill_log_file_open does: the one that it was, else the first whose name no other process has (256 are
 * tried), and from the second time on no other run. `file` is the one until now. pre: in a quiet section
 */
const char *spill_log_name_open(struct spill_logname *name, struct spill_logfile *file);

#endif
