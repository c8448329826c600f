/* Finds logs that a user did not name: of a process, or the newest one. */
#ifndef SPILL_CLI_FIND_LOG_H
#define SPILL_CLI_FIND_LOG_H

#include <limits.h>
#include <stdbool.h>

/*
 * The log that an operand of `command` means: a file, a folder, or the log of a process by its number,
 * if no file has that name. NULL as operand: the newest log in the default folder. Stores the number in
 * *pid, or 0. Returns the operand or `path`; NULL: there is none, which was reported.
 */
const char *cli_find_log(const char *command, const char *operand, int *pid, char path[PATH_MAX]);

/* True if the process has the log open. */
bool cli_log_is_open_in(int pid, int fd);

#endif
