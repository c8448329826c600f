#include "log_piece.h"

#include <string.h>

#include "log.h"

/* Whether the path still names our file is asked at most so often: it costs a system call that a write does not need. */
#define LOOK_US 1000000

/* Its other half is in a piece that we do not write any more. */
static void forget_cut(struct spill_logqueue *queue)
{
	const char *newline = memchr(queue->bytes, '\n', queue->used);
	size_t rest = newline ? (size_t)(newline + 1 - queue->bytes) : queue->used;

	spill_log_queue_lose(queue, rest, queue->error);
	queue->lines--;
	queue->used -= rest;
	memmove(queue->bytes, queue->bytes + rest, queue->used);
}

static uint64_t waiting(const struct spill_logqueue *queue)
{
	uint64_t count = 0;

	for (size_t i = 0; i < queue->used; i++)
		count += queue->bytes[i] == '\n';
	return count;
}

static void go_on(struct spill_logqueue *queue, const char *code, const char *text)
{
	if (queue->cut)
		forget_cut(queue);
	queue->cut = queue->torn = false;
	queue->note = (struct spill_log_queue_note){code, text};
	if (queue->start.length == 0)
		return;
	spill_start_continue(&queue->start, queue->lines - waiting(queue));
	queue->head = queue->start.length;
}

/*
 * A number is all we have of our file, and the program may have given it to another one. That one is not closed by us; ours is
 * opened again by name.
 */
static bool open_again(struct spill_logqueue *queue)
{
	struct spill_logfile before = queue->file;

	queue->gone = spill_log_name_open(&queue->name, &queue->file) != NULL;
	if (queue->gone)
		return false;
	if (queue->file.dev != before.dev || queue->file.ino != before.ino || queue->file.end < before.end)
		go_on(queue, "log-rotated",
		      "the program closed the log's descriptor, and its file was no longer there, or another "
		      "process's; this run goes on here");
	else
		queue->note = (struct spill_log_queue_note){
		    "log-reopened", "the program closed the log's descriptor; opened again"};
	return true;
}

static void look_at_path(struct spill_logqueue *queue)
{
	uint64_t now = spill_log_now_us();
	struct spill_logfile fresh = queue->file;

	if (now < queue->looked_us + LOOK_US)
		return;
	queue->looked_us = now;
	if (!spill_log_file_moved(&queue->file, queue->name.path) ||
	    spill_log_name_open(&queue->name, &fresh))
		return;
	spill_log_file_close(&queue->file);
	queue->file = fresh;
	go_on(queue, "log-rotated", "the log's file was renamed or removed; this run goes on here");
}

static bool have_file(struct spill_logqueue *queue)
{
	switch (spill_log_file_look(&queue->file)) {
	case SPILL_LOG_FILE_LOST:
		return open_again(queue);
	case SPILL_LOG_FILE_CUT:
		go_on(queue, "log-truncated", "the log's file was truncated; this run goes on here");
		break;
	case SPILL_LOG_FILE_OURS:
		look_at_path(queue);
	}
	return true;
}

static bool write_head(struct spill_logqueue *queue)
{
	if (queue->head == 0)
		return true;
	queue->head -= spill_log_file_append(
	    &queue->file, queue->start.text + queue->start.length - queue->head, queue->head, &queue->error);
	queue->lines += queue->head == 0;
	return queue->head == 0;
}

bool spill_log_piece_ready(struct spill_logqueue *queue)
{
	return !queue->gone && have_file(queue) && write_head(queue);
}
