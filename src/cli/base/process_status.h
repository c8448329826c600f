/* What /proc/PID/stat and /proc/PID/status tell (proc(5)). A process chooses its own name in them. */
#ifndef SPILL_CLI_PROCESS_STATUS_H
#define SPILL_CLI_PROCESS_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/* A field of `stat`, from 3 on, up to the end of the text. NULL: it is missing. */
const char *cli_stat_field(const char *stat, unsigned field);

/* The process's number in its own namespace. `otherwise`: old kernels do not tell it. */
uint64_t cli_status_own_pid(const char *status, uint64_t otherwise);

/* True: there is no such process, or it has ended and its parent does not know yet. */
bool cli_process_has_ended(int pid);

#endif
