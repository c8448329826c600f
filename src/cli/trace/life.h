/*
 * Is a log without an exit line still written? Only what is certain counts: a process may be of
 * another user, on another machine, or in a container whose numbers mean nothing here.
 */
#ifndef SPILL_CLI_LIFE_H
#define SPILL_CLI_LIFE_H

#include <stdbool.h>

#include "record_read.h"

/*
 * True: the process of the run has ended, so its log gets no further line. It was on this machine,
 * there is no such process, and nobody holds the log's lock. Ask before the lines are read: then all
 * of them are there.
 */
bool cli_writer_is_gone(const struct spill_record_start *start, const char *path);

/*
 * Of a run that has no exit line. Libspill does not see exec, nor an end by the system call itself, as Go programs
 * end. So a process that is gone need not have failed.
 */
enum cli_life {
	CLI_LIFE_UNKNOWN,
	CLI_LIFE_RUNS, /* its process has the log open for writing */
	CLI_LIFE_GONE, /* its process is gone */
};

/* `gone`: cli_writer_is_gone before the lines were read. pid: of the process that would write. */
enum cli_life cli_life_of(const char *path, int pid, bool gone);

/* "the program was killed, has crashed, or ended by exec or a system call" */
const char *cli_life_words(enum cli_life life);

#endif
