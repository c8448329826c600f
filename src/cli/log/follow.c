/* spill log -f: polls, which works on every file system. A log may be 100 ms late anyway. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "find_log.h"
#include "log_reader.h"
#include "cli.h"
#include "process_status.h"

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

static void on_signal(int number)
{
	stopped = 1;
}

/* A caught signal ends as usual: JSON is closed. An ignored signal stays ignored. */
static void catch_signal(int number)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action) || action.sa_handler == SIG_IGN)
		return;
	action = (struct sigaction){.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	sigaction(number, &action, NULL);
}

/*
 * True if no line will come any more. After an exit line the pid may be another process, or the
 * same one after exec. A process on another machine has only its exit line.
 */
static bool is_over(const struct log_output *output, const struct log_reading *reading)
{
	int pid = output->pid ? output->pid : reading->pid;

	if (!pid)
		return false;
	if (!output->pid && reading->where != LOG_HERE)
		return reading->ended || reading->where == LOG_OTHER_BOOT;
	return cli_process_has_ended(pid) || (reading->ended && !cli_log_is_open_in(pid, reading->lines.fd));
}

static void read_new_lines(struct log_output *output, struct followed *log)
{
	struct cli_lines *lines = &log->reading.lines;
	bool over, replaced;

	log_read(output, &log->reading);
	/* Check first, then read, so that lines written before the end are not lost. */
	over = is_over(output, &log->reading);
	log->reading.gone |= over;
	replaced = cli_lines_is_replaced(lines);
	log_read(output, &log->reading);
	if (over || replaced) {
		lines->following = false; /* a cut line will not be completed */
		log_read(output, &log->reading);
	}
	if (replaced)
		cli_lines_reopen(lines);
	else
		log->done = over || lines->error;
	lines->following = !log->done;
}

static void follow_one(struct following *following, const char *path, enum cli_files files)
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

/* Follows later logs too, but not files that were only renamed. */
static void follow_folder(struct following *following, const char *path, bool first)
{
	struct cli_pieces pieces = cli_pieces_find(path);

	if (first)
		cli_pieces_complain("log", path, &pieces);
	for (size_t i = 0; i < pieces.count; i++) {
		size_t length = strlen(pieces.paths[i]);

		if (first || !strcmp(pieces.paths[i] + length - 6, ".jsonl"))
			follow_one(following, pieces.paths[i], CLI_REGULAR);
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

	catch_signal(SIGINT);
	catch_signal(SIGTERM);
	output->many = output->many || folder;
	output->counting = output->counting && !folder;
	for (; !stopped && !ferror(stdout); first = false) {
		if (folder)
			follow_folder(&following, path, first);
		else if (first)
			follow_one(&following, path, CLI_REGULAR_OR_PIPE);
		for (size_t i = 0; i < following.count; i++)
			if (!following.logs[i].done)
				read_new_lines(output, &following.logs[i]);
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
