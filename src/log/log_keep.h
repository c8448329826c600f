/* log.keep: the default folder is ours, so that nobody else tidies it. */
#ifndef SPILL_LOG_KEEP_H
#define SPILL_LOG_KEEP_H

#include "log_file.h"

/*
 * Removes the oldest finished logs in the folder of `path` beyond the newest `keep` of them. `own` is the open log at `path` and
 * not counted. Looks at so many files at most that a start does not wait: what is left is removed at later starts.
 *
 * Removed is only what libspill wrote and nobody writes any more: see log_keep.c. Never fails; errno is not kept.
 */
void spill_logkeep(const char *path, const struct spill_logfile *own, unsigned keep);

#endif
