/*
 * Lines on their way to the log's file. Whole lines come in, bytes leave from the front: whatever a full disk or a
 * size limit cuts short is completed later, so that every line in the file is whole. What finds no room while
 * nothing can be written is counted, and a note tells so as soon as something can. Not locked: log.c does that.
 */
#ifndef SPILL_LOG_QUEUE_H
#define SPILL_LOG_QUEUE_H

#include <stdint.h>

#include "log_file.h"
#include "log_name.h"
#include "start_line.h"

/* Static texts; {0} is none. */
struct spill_log_queue_note {
	const char *code, *text;
};

struct spill_logqueue {
	struct spill_logfile file;
	struct spill_logname name;
	struct spill_start_line start; /* kept for further pieces (log_piece.h) */
	size_t head;                   /* bytes of it that must be in the file before anything else */
	size_t used;
	bool cut;  /* the file ends within a line whose rest is the queue's first */
	bool torn; /* the file ends within a line whose rest is lost: begin on a new one */
	bool gone; /* the file could not be opened again */
	struct spill_log_queue_note note; /* about the log's file, due when the rest is out */
	int error;                        /* errno value of the last write, 0 if it went well */
	uint64_t lines;                   /* of this run, in its files or waiting */
	uint64_t lost_lines, lost_bytes;
	uint64_t first_us;  /* when the oldest byte came in */
	uint64_t looked_us; /* when the path was last looked at */
	char bytes[4096];
};

/*
 * A run begins in `file` with that line, which is then the queue's, and goes out with the first drain. pre: all else is zero but
 * the name
 */
void spill_log_queue_begin(struct spill_logqueue *queue, const struct spill_start_line *start);

/*
 * Takes one line; a line longer than the queue goes straight to the file. `may_write`: try to make room. False if it is
 * lost, and counted as such.
 */
bool spill_log_queue_add(struct spill_logqueue *queue, const char *line, size_t length, bool may_write);

/* Writes what waits. True if nothing is left. Blocks and takes back the signals of a failed write. */
bool spill_log_queue_drain(struct spill_logqueue *queue);

/* Counts a line that will not come. */
void spill_log_queue_lose(struct spill_logqueue *queue, size_t length, int error);

#endif
