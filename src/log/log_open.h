/* Where this process's log goes, and its beginning: the file with the start line in it. */
#ifndef SPILL_LOG_OPEN_H
#define SPILL_LOG_OPEN_H

#include <stdbool.h>

#include "log.h"
#include "log_queue.h"

/*
 * Makes the file and folders that the policy names, and the queue for it, from which the start line is on its way; old logs of the
 * default folder are removed. False if there is to be no log, or there can be none: then one line on stderr says why. What the queue
 * had before is forgotten. pre: nobody else uses the queue
 */
bool spill_logopen(struct spill_logqueue *queue, const struct spill_policy *policy,
                   const struct spill_log_start *start);

/* One line on stderr: no log, and why. */
void spill_log_open_complain(const char *path, const char *problem);

#endif
