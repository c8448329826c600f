/*
 *	random draw SEED LINES THREADS       prints a program
 *	random run FILE KERNELS PLUGIN       runs it
 *	random import KERNELS                is the other process of share.c
 *
 * A run prints, in any order, one line for each line of the program that is not left out:
 *
 *	NUMBER OPERATION done ERROR FIGURE
 *	NUMBER OPERATION WRONG BYTE          data is wrong, first at this byte
 *	NUMBER OPERATION … changed WHAT      the call changed the thread's context or device (1), its last error (2)
 *	                                     or its capture mode (4)
 *
 * and at the end `calls N` and, for each device, `free DEVICE LESS`: bytes that are free now, and were not
 * at the begin, and the reverse. Exit status: 0; 2 if it could not begin; 64 usage.
 */
#include "api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct worker workers[THREADS];
const char *kernels_path, *plugin_path;
bool peers, global_captures;
__thread uint64_t api_calls;

static struct program program;
static pthread_barrier_t meeting;

/* One write a line, so that lines of threads do not mix, and none is lost if the process ends early. */
static void say(const char *text, int length)
{
	if (length > 0 && write(STDOUT_FILENO, text, (size_t)length) != length)
		_exit(3);
}

static void tell(size_t number, const struct operation *operation, struct outcome outcome, unsigned changed)
{
	char text[128];
	int length;

	if (outcome.how == LEFT_OUT)
		return;
	if (outcome.how == WRONG)
		length =
		    snprintf(text, sizeof(text), "%zu %s WRONG %lu", number, operation->name, outcome.figure);
	else
		length = snprintf(text, sizeof(text), "%zu %s done %d %lu", number, operation->name,
		                  outcome.error, outcome.figure);
	if (changed)
		length += snprintf(text + length, sizeof(text) - (size_t)length, " changed %u", changed);
	text[length++] = '\n';
	say(text, length);
}

static void run_line(struct worker *worker, size_t number)
{
	const struct line *line = &program.lines[number];
	const struct operation *operation = line->operation;

	if ((worker->capturing && !operation->captured) || (global_captures && !operation->beside))
		return;
	struct outcome outcome = operation->run(worker, line->arguments);
	if (outcome.how != LEFT_OUT)
		tell(number, operation, outcome, api.changed(worker->device, outcome.error != 0));
}

static void run_alone(struct worker *worker, size_t number)
{
	bool captured = program.lines[number].operation->captured;

	/* Only the thread that began a capture may end it. One that was broken leaves a last error. */
	if (global_captures)
		capture_keep(worker);
	if (!captured)
		capture_drop(worker);
	if (global_captures || !captured)
		api.changed(worker->device, true);
	pthread_barrier_wait(&meeting);
	if (worker->index == 0) {
		global_captures = false;
		run_line(worker, number);
	}
	pthread_barrier_wait(&meeting);
	api.use(worker->device); /* its context may be a new one */
}

static int open_all(struct worker *worker)
{
	int error = 0;

	for (int device = DEVICES - 1; device >= 0 && !error; device--) {
		use_device(worker, device);
		error = worker_open(worker, device);
	}
	return error;
}

static int close_all(struct worker *worker)
{
	int error = 0;

	capture_drop(worker);
	for (int device = 0; device < DEVICES; device++) {
		use_device(worker, device);
		for (unsigned i = 0; i < SLOTS; i++)
			if (worker->blocks[i].kind && worker->blocks[i].device == device)
				error |= block_give(worker, &worker->blocks[i], false);
		error |= worker_close(worker, device);
	}
	return error;
}

static void *run(void *argument)
{
	struct worker *worker = argument;
	char text[64];
	int error = open_all(worker);

	if (error)
		say(text, snprintf(text, sizeof(text), "open %u failed %d\n", worker->index, error));
	for (size_t number = 0; number < program.count; number++) {
		int thread = program.lines[number].thread;

		if (thread < 0)
			run_alone(worker, number);
		else if (thread == (int)worker->index && !error)
			run_line(worker, number);
	}
	if (global_captures) { /* what follows would break those of other threads */
		capture_drop(worker);
		pthread_barrier_wait(&meeting);
	}
	error = close_all(worker);
	if (error)
		say(text, snprintf(text, sizeof(text), "close %u failed %d\n", worker->index, error));
	worker->calls += api_calls;
	return NULL;
}

static bool open_devices(uint64_t *free_bytes)
{
	uint64_t total;

	for (int device = 0; device < DEVICES; device++)
		if (api.open(device, kernels_path) || api.info(&free_bytes[device], &total))
			return false;
	return true;
}

/* With all given back: each device has as much free memory as at the begin. */
static void tell_free(const uint64_t *before)
{
	uint64_t now[DEVICES] = {0};
	char text[64];

	for (int device = 0; device < DEVICES; device++)
		if (!api.use(device) && !api.settle(device))
			api.close(device, 1);
	if (!open_devices(now))
		say("reopen failed\n", 14);
	for (int device = 0; device < DEVICES; device++)
		say(text, snprintf(text, sizeof(text), "free %d %ld\n", device,
		                   (long)(before[device] - now[device])));
	for (int device = 0; device < DEVICES; device++)
		api.close(device, 1);
}

static int run_program(void)
{
	uint64_t before[DEVICES], calls = 0;
	pthread_t threads[THREADS];
	char text[64];

	if (!open_devices(before))
		return 2;
	pthread_barrier_init(&meeting, NULL, program.threads);
	for (unsigned i = 0; i < program.threads; i++) {
		workers[i] = (struct worker){.index = i, .device = -1, .copy = malloc(LARGEST)};
		pthread_create(&threads[i], NULL, run, &workers[i]);
	}
	for (unsigned i = 0; i < program.threads; i++) {
		pthread_join(threads[i], NULL);
		free(workers[i].copy);
		calls += workers[i].calls;
	}
	if (peers)
		for (int device = 0; device < DEVICES; device++)
			if (!api.use(device))
				api.set_peers(device, !device, false);
	tell_free(before);
	say(text, snprintf(text, sizeof(text), "calls %lu\n", calls));
	return 0;
}

int main(int count, char **words)
{
	if (count == 5 && !strcmp(words[1], "draw")) {
		program_draw(strtoull(words[2], NULL, 10), strtoull(words[3], NULL, 10),
		             (unsigned)strtoul(words[4], NULL, 10));
		return 0;
	}
	if (count == 3 && !strcmp(words[1], "import")) {
		kernels_path = words[2];
		return share_child();
	}
	if (count != 5 || strcmp(words[1], "run") != 0)
		return 64;
	program = program_read(words[2]);
	kernels_path = words[3];
	plugin_path = words[4];
	return run_program();
}
