/* spill log -f. Looked at ten times a second: that works on every file system, and the log itself may wait for 100 ms. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "log_reader.h"
#include "cli.h"
#include "small_file.h"

#define LOOK_MS 100

struct followed {
	struct log_reading reading;
	char *path;
	bool done;
};

struct following {
	struct log_output *output;
	struct followed *logs;
	size_t count;
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	stopped = 1;
}

/* The end is then as of a log that was read: JSON is closed, and what is in a buffer is out. What is ignored stays so. */
static void stop_on(int number)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action) || action.sa_handler == SIG_IGN)
		return;
	action = (struct sigaction){.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
	sigaction(number, &action, NULL);
}

/* Also one that nobody has waited for yet: "Z" behind the name in parentheses, proc(5). */
static bool has_ended(int pid)
{
	char path[64], text[512], *state;

	if (kill(pid, 0) && errno == ESRCH)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	state = spill_small_file_read(path, text, sizeof(text)) ? strrchr(text, ')') : NULL;
	return state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
}

/*
 * No line will come any more. Behind an exit line the number may be another process's, or the same one's that has executed another
 * program; of another machine the exit line is all that is known.
 */
static bool is_over(const struct log_output *output, const struct log_reading *reading)
{
	int pid = output->pid ? output->pid : reading->pid;

	if (!pid)
		return false;
	if (!output->pid && reading->where != LOG_HERE)
		return reading->ended || reading->where == LOG_OTHER_BOOT;
	return has_ended(pid) || (reading->ended && !log_is_open_in(pid, reading->lines.fd));
}

static void look_at(struct log_output *output, struct followed *log)
{
	struct cli_lines *lines = &log->reading.lines;
	bool over, replaced;

	log_read(output, &log->reading);
	/* Asked first, read then: what was written before it was so is not lost. */
	over = is_over(output, &log->reading);
	replaced = cli_lines_is_replaced(lines);
	log_read(output, &log->reading);
	if (over || replaced) {
		lines->following = false; /* a line that is cut stays so */
		log_read(output, &log->reading);
	}
	if (replaced)
		cli_lines_reopen(lines);
	else
		log->done = over || lines->error;
	lines->following = !log->done;
}

static void add(struct following *following, const char *path, enum cli_files files)
{
	struct followed *log;

	for (size_t i = 0; i < following->count; i++)
		if (!strcmp(following->logs[i].path, path))
			return;
	following->logs = cli_realloc(following->logs, following->count + 1, sizeof(following->logs[0]));
	log = &following->logs[following->count++];
	*log = (struct followed){.path = cli_strdup(path)};
	log->done = !log_begin(&log->reading, log->path, files);
	log->reading.lines.following = true;
}

/* Those that come later are begun: what only gets another name was read already. */
static void add_folder(struct following *following, const char *path, bool first)
{
	struct cli_pieces pieces = cli_pieces_find(path);

	for (size_t i = 0; i < pieces.count; i++) {
		size_t length = strlen(pieces.paths[i]);

		if (first || !strcmp(pieces.paths[i] + length - 6, ".jsonl"))
			add(following, pieces.paths[i], CLI_REGULAR);
	}
	cli_pieces_free(&pieces);
}

static bool all_done(const struct following *following)
{
	for (size_t i = 0; i < following->count; i++)
		if (!following->logs[i].done)
			return false;
	return following->count > 0;
}

void log_follow(struct log_output *output, const char *path, bool folder)
{
	struct following following = {.output = output};
	bool first = true;

	stop_on(SIGINT);
	stop_on(SIGTERM);
	output->many = folder;
	output->counting = !folder;
	for (; !stopped && !ferror(stdout); first = false) {
		if (folder)
			add_folder(&following, path, first);
		else if (first)
			add(&following, path, CLI_REGULAR_OR_PIPE);
		for (size_t i = 0; i < following.count; i++)
			if (!following.logs[i].done)
				look_at(output, &following.logs[i]);
		fflush(stdout);
		if (all_done(&following))
			break;
		poll(NULL, 0, LOOK_MS);
	}
	for (size_t i = 0; i < following.count; i++) {
		log_end(output, &following.logs[i].reading);
		free(following.logs[i].path);
	}
	free(following.logs);
}
