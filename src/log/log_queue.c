#include "log_queue.h"

#include <errno.h>
#include <string.h>

#include "fd.h"
#include "log.h"
#include "record.h"
#include "text.h"

void spill_log_queue_lose(struct spill_log_queue *queue, size_t length, int error)
{
	queue->lost_lines++;
	queue->lost_bytes += length;
	queue->error = error;
}

void spill_log_queue_begin(struct spill_log_queue *queue, const struct spill_start_line *start)
{
	queue->start = *start;
	queue->head = start->length;
	queue->looked_us = spill_log_now_us();
}

/* How often we check that the path names our file. The check is one more system call. */
#define LOOK_US 1000000

/* Drops the second half of a line whose first half is in the previous piece. */
static void drop_cut_line(struct spill_log_queue *queue)
{
	const char *newline = memchr(queue->bytes, '\n', queue->used);
	size_t rest = newline ? (size_t)(newline + 1 - queue->bytes) : queue->used;

	spill_log_queue_lose(queue, rest, queue->error);
	queue->lines--;
	queue->used -= rest;
	memmove(queue->bytes, queue->bytes + rest, queue->used);
}

static uint64_t lines_in_queue(const struct spill_log_queue *queue)
{
	uint64_t count = 0;

	for (size_t i = 0; i < queue->used; i++)
		count += queue->bytes[i] == '\n';
	return count;
}

/* Begins a new piece of the run, and sets the note that says why. */
static void begin_piece(struct spill_log_queue *queue, const char *code, const char *text)
{
	if (queue->cut)
		drop_cut_line(queue);
	queue->cut = queue->torn = false;
	queue->note = (struct spill_log_queue_note){code, text};
	if (queue->start.length == 0)
		return;
	spill_start_continue(&queue->start, queue->lines - lines_in_queue(queue));
	queue->head = queue->start.length;
}

/*
 * The program closed our descriptor, and may have reused its number for another file. So this opens
 * our file again by name, and closes nothing.
 */
static bool open_again(struct spill_log_queue *queue)
{
	struct spill_log_file before = queue->file;

	queue->gone = spill_log_name_open(&queue->name, &queue->file) != NULL;
	if (queue->gone)
		return false;
	if (queue->file.dev != before.dev || queue->file.ino != before.ino || queue->file.end < before.end)
		begin_piece(
		    queue, "log-rotated",
		    "the program closed the log's descriptor, and the file was removed or taken by another "
		    "process; the log of this run continues here");
	else
		queue->note = (struct spill_log_queue_note){
		    "log-reopened", "the program closed the log's descriptor; libspill opened the log again"};
	return true;
}

/* Begins a new piece if the path no longer names our file. */
static void check_path(struct spill_log_queue *queue)
{
	uint64_t now = spill_log_now_us();
	struct spill_log_file fresh = queue->file;

	if (now < queue->looked_us + LOOK_US)
		return;
	queue->looked_us = now;
	if (!spill_log_file_moved(&queue->file, queue->name.path) ||
	    spill_log_name_open(&queue->name, &fresh))
		return;
	spill_log_file_close(&queue->file);
	queue->file = fresh;
	begin_piece(queue, "log-rotated",
	            "the log's file was renamed or removed; the log of this run continues here");
}

static bool ensure_file(struct spill_log_queue *queue)
{
	switch (spill_log_file_look(&queue->file)) {
	case SPILL_LOG_FILE_UNKNOWN: /* the next write looks again */
		queue->error = errno;
		return false;
	case SPILL_LOG_FILE_LOST:
		return open_again(queue);
	case SPILL_LOG_FILE_CUT:
		begin_piece(queue, "log-truncated",
		            "the log's file was truncated; the log of this run continues here");
		break;
	case SPILL_LOG_FILE_OURS:
		check_path(queue);
	}
	return true;
}

static bool write_start_line(struct spill_log_queue *queue)
{
	if (queue->head == 0)
		return true;
	queue->head -= spill_log_file_append(
	    &queue->file, queue->start.text + queue->start.length - queue->head, queue->head, &queue->error);
	queue->lines += queue->head == 0;
	return queue->head == 0;
}

/* Called before every write; false if nothing can be written. pre: in a guarded section (fd.h) */
static bool ready_to_write(struct spill_log_queue *queue)
{
	return !queue->gone && ensure_file(queue) && write_start_line(queue);
}

/* pre: the queue is empty, so the note fits */
static void queue_note(struct spill_log_queue *queue, const char *code, const char *text)
{
	queue->lines++;
	queue->used = spill_record_note(spill_log_now_us(), spill_log_tid(), code, text, queue->bytes,
	                                sizeof(queue->bytes));
	queue->first_us = spill_log_now_us();
}

static void queue_lost_note(struct spill_log_queue *queue, int error)
{
	char buffer[256];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));
	const char *why = spill_error_text(error);

	spill_text_number(&text, queue->lost_lines);
	spill_text_add(&text, " lines (");
	spill_text_number(&text, queue->lost_bytes);
	spill_text_add(&text, " bytes) could not be written: ");
	spill_text_add(&text, why ? why : "unknown error");
	queue->lost_lines = 0;
	queue->lost_bytes = 0;
	queue_note(queue, "log-lost", buffer);
}

static bool write_queue(struct spill_log_queue *queue)
{
	size_t done;

	if (queue->torn && spill_log_file_append(&queue->file, "\n", 1, &queue->error) == 0)
		return false;
	queue->torn = false;
	done = spill_log_file_append(&queue->file, queue->bytes, queue->used, &queue->error);
	if (done > 0)
		queue->cut = queue->bytes[done - 1] != '\n';
	memmove(queue->bytes, queue->bytes + done, queue->used - done);
	queue->used -= done;
	return queue->used == 0;
}

/* Writes the notes about the log itself, after the queue. */
static bool write_notes(struct spill_log_queue *queue, int error)
{
	if (queue->lost_lines) {
		queue_lost_note(queue, error);
		if (!write_queue(queue))
			return false;
	}
	if (!queue->note.code)
		return true;
	queue_note(queue, queue->note.code, queue->note.text);
	queue->note = (struct spill_log_queue_note){0};
	return write_queue(queue);
}

bool spill_log_queue_drain(struct spill_log_queue *queue)
{
	struct spill_signal_guard guard;
	int error = queue->error;
	bool done;

	if (queue->used == 0 && queue->lost_lines == 0 && queue->head == 0 && !queue->torn &&
	    !queue->note.code)
		return true;
	spill_signal_guard_enter(&guard);
	done = ready_to_write(queue) && write_queue(queue) && write_notes(queue, error);
	spill_signal_guard_leave(&guard);
	return done;
}

/* Writes a line that is longer than the queue. False if it is lost. pre: the queue is empty */
static bool write_long_line(struct spill_log_queue *queue, const char *line, size_t length)
{
	struct spill_signal_guard guard;
	size_t done = 0;

	spill_signal_guard_enter(&guard);
	if (ready_to_write(queue))
		done = spill_log_file_append(&queue->file, line, length, &queue->error);
	spill_signal_guard_leave(&guard);
	if (done == length)
		return true;
	if (length - done <= sizeof(queue->bytes)) {
		queue->used = length - done;
		queue->cut = done > 0;
		memcpy(queue->bytes, line + done, queue->used);
		queue->first_us = spill_log_now_us();
		return true;
	}
	queue->torn = done > 0;
	spill_log_queue_lose(queue, length, queue->error);
	return false;
}

bool spill_log_queue_add(struct spill_log_queue *queue, const char *line, size_t length, bool may_write)
{
	if (length > sizeof(queue->bytes) - queue->used && may_write)
		spill_log_queue_drain(queue);
	if (length <= sizeof(queue->bytes) - queue->used) {
		if (queue->used == 0)
			queue->first_us = spill_log_now_us();
		memcpy(queue->bytes + queue->used, line, length);
		queue->used += length;
		queue->lines++;
		return true;
	}
	if (queue->used == 0 && !queue->torn && may_write) {
		bool taken = write_long_line(queue, line, length);

		queue->lines += taken;
		return taken;
	}
	spill_log_queue_lose(queue, length, queue->error);
	return false;
}
