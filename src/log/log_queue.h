/*
 * The queue of lines on their way to the log's file, and the pieces of a run's log.
 *
 * Whole lines come in, and bytes leave at the front. If a full disk or a size limit cuts a line,
 * the rest follows later, so each line in the file is whole in the end. A line that finds no room
 * is counted. A note tells the count as soon as something can be written.
 *
 * If the file is renamed, removed or truncated, the run continues in another piece. That is a file
 * at the same path, or under the next free name (log_file.h). It begins with the start line again,
 * which then has the number of lines in the pieces before. If no file can be opened there, the
 * queue continues in the present file.
 *
 * The caller, log.c, holds the lock.
 */
#ifndef SPILL_LOG_QUEUE_H
#define SPILL_LOG_QUEUE_H

#include <stdint.h>

#include "log_file.h"
#include "start_line.h"

/* Static texts; {0} is none. */
struct spill_log_queue_note {
	const char *code, *text;
};

struct spill_log_queue {
	struct spill_log_file file;
	struct spill_log_name name;
	struct spill_start_line start; /* kept for further pieces. */
	size_t head;                   /* bytes of the start line that must be written first. */
	size_t used;                   /* of `bytes` */
	/* The file ends within a line whose rest is at the front of the queue. */
	bool cut;
	/* The file ends within a line whose rest is lost: the next line needs a newline first. */
	bool torn;
	bool gone;                        /* the file could not be opened again. */
	struct spill_log_queue_note note; /* about the file, due when the queue is empty. */
	int error;                        /* errno value of the last write, 0 if it succeeded. */
	uint64_t lines;                   /* of this run, in its files or in the queue */
	uint64_t lost_lines, lost_bytes;
	uint64_t first_us;  /* when the oldest byte came in */
	uint64_t looked_us; /* when we last checked that the path names our file */
	char bytes[4096];
};

/*
 * Begins a run in queue->file. The queue owns the start line from now on, and the first drain
 * writes it. pre: all members but the file and the name are zero
 */
void spill_log_queue_begin(struct spill_log_queue *queue, const struct spill_start_line *start);

/*
 * Takes one line. A line longer than the queue goes straight to the file. `may_write` allows a
 * write that makes room. False if the line is lost; it is counted then.
 */
bool spill_log_queue_add(struct spill_log_queue *queue, const char *line, size_t length, bool may_write);

/* Writes the queue to the file, in a guarded section (fd.h). True if nothing is left. */
bool spill_log_queue_drain(struct spill_log_queue *queue);

/* Counts a lost line. */
void spill_log_queue_lose(struct spill_log_queue *queue, size_t length, int error);

#endif
