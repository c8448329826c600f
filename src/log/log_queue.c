#include "log_queue.h"

#include <errno.h>
#include <string.h>

#include "log.h"
#include "log_piece.h"
#include "signal_guard.h"
#include "record.h"
#include "text.h"

void spill_log_queue_lose(struct spill_logqueue *queue, size_t length, int error)
{
	queue->lost_lines++;
	queue->lost_bytes += length;
	queue->error = error;
}

void spill_log_queue_begin(struct spill_logqueue *queue, const struct spill_start_line *start)
{
	queue->start = *start;
	queue->head = start->length;
	queue->looked_us = spill_log_now_us();
}

/* pre: the queue is empty, so that the note fits; it leaves with the next drain */
static void add_note(struct spill_logqueue *queue, const char *code, const char *text)
{
	queue->lines++;
	queue->used = spill_record_note(spill_log_now_us(), spill_log_tid(), code, text, queue->bytes,
	                                sizeof(queue->bytes));
	queue->first_us = spill_log_now_us();
}

static void note_lost(struct spill_logqueue *queue, int error)
{
	char buffer[256];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));
	const char *why = strerrordesc_np(error);

	spill_text_number(&text, queue->lost_lines);
	spill_text_add(&text, " lines (");
	spill_text_number(&text, queue->lost_bytes);
	spill_text_add(&text, " bytes) could not be written: ");
	spill_text_add(&text, why ? why : "unknown error");
	queue->lost_lines = 0;
	queue->lost_bytes = 0;
	add_note(queue, "log-lost", buffer);
}

static bool write_out(struct spill_logqueue *queue)
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

/* What a person should know about the log itself, once the rest is out. */
static bool write_notes(struct spill_logqueue *queue, int error)
{
	if (queue->lost_lines) {
		note_lost(queue, error);
		if (!write_out(queue))
			return false;
	}
	if (!queue->note.code)
		return true;
	add_note(queue, queue->note.code, queue->note.text);
	queue->note = (struct spill_log_queue_note){0};
	return write_out(queue);
}

bool spill_log_queue_drain(struct spill_logqueue *queue)
{
	struct spill_signal_guard quiet;
	int error = queue->error;
	bool done;

	if (queue->used == 0 && queue->lost_lines == 0 && queue->head == 0 && !queue->torn &&
	    !queue->note.code)
		return true;
	spill_signal_guard_enter(&quiet);
	done = spill_log_piece_ready(queue) && write_out(queue) && write_notes(queue, error);
	spill_signal_guard_leave(&quiet);
	return done;
}

/* pre: the queue is empty. False: lost */
static bool write_long(struct spill_logqueue *queue, const char *line, size_t length)
{
	struct spill_signal_guard quiet;
	size_t done = 0;

	spill_signal_guard_enter(&quiet);
	if (spill_log_piece_ready(queue))
		done = spill_log_file_append(&queue->file, line, length, &queue->error);
	spill_signal_guard_leave(&quiet);
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

bool spill_log_queue_add(struct spill_logqueue *queue, const char *line, size_t length, bool may_write)
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
		bool taken = write_long(queue, line, length);

		queue->lines += taken;
		return taken;
	}
	spill_log_queue_lose(queue, length, queue->error);
	return false;
}
