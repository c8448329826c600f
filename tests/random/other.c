/* Operations of other kinds: questions, wrong calls, contexts, children, plug-ins, and those of all threads. */
#include "api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct outcome run_ask(struct worker *worker, const uint64_t *a)
{
	struct block *block = &worker->blocks[a[0] % SLOTS];
	uint64_t figure = 0;

	if (!block->kind)
		return NOTHING_TO_DO;
	int error = api.ask(block, block->bytes * (a[1] % 1000) / 1000, &figure);
	return DONE_WITH(error, figure);
}

/* The free memory is not the same in each run. */
struct outcome run_info(struct worker *worker, const uint64_t *a)
{
	uint64_t free_bytes = 0, total = 0;

	int error = api.info(&free_bytes, &total);
	return DONE_WITH(error, free_bytes <= total);
}

struct outcome run_nonsense(struct worker *worker, const uint64_t *a)
{
	uint64_t figure = 0;

	int error = api.nonsense((unsigned)a[0], worker->streams[worker->device][a[1] % STREAMS], &figure);
	return DONE_WITH(error, figure);
}

/* An array that is written, read and ended. */
struct outcome run_array(struct worker *worker, const uint64_t *a)
{
	uint64_t rows = a[0] % LARGEST / 1024 + 1;
	unsigned char *to = worker->staging[worker->device];

	if (!api.array)
		return NOTHING_TO_DO;
	memset(worker->copy, (int)a[2], LARGEST);
	worker->copy[rows * 1024 - 1] ^= (unsigned char)a[1];
	memset(to, 0, rows * 1024);
	int error = api.array(rows, worker->copy, to);
	if (error || !memcmp(to, worker->copy, rows * 1024))
		return DONE_WITH(error, rows);
	return (struct outcome){.how = WRONG};
}

/* Their context does not end them. */
static int free_blocks(struct block *blocks, uint64_t count)
{
	int error = 0;

	for (uint64_t i = 0; i < count && !error; i++)
		if (blocks[i].address)
			error = api.give(&blocks[i], NULL, false);
	return error;
}

/* A context of its own, with memory in it. */
struct outcome run_context(struct worker *worker, const uint64_t *a)
{
	struct block blocks[4] = {{0}};
	void *context;
	uint64_t count = 1 + a[0] % 4, found = 0;

	if (!api.context)
		return NOTHING_TO_DO;
	int error = api.context(worker->device, &context);
	if (error)
		return DONE_WITH(error, 0);
	for (uint64_t i = 0; i < count && !error; i++) {
		blocks[i] = (struct block){.kind = PLAIN, .bytes = a[1] % LARGEST / 8 * 8 + 8};
		error = api.take(&blocks[i], NULL);
		error = error
		            ? error
		            : api.set(blocks[i].address, (unsigned char)(a[2] + i), blocks[i].bytes, NULL, 0);
	}
	for (uint64_t i = 0; i < count && !error; i++) {
		error =
		    api.copy_now((uintptr_t)worker->copy, blocks[i].address, blocks[i].bytes, DOWNLOAD, 0);
		for (uint64_t at = 0; at < blocks[i].bytes && !error; at++)
			found += worker->copy[at] != (unsigned char)(a[2] + i);
	}
	int ended = api.context_has_memory ? 0 : free_blocks(blocks, count);
	ended = ended ? ended : api.context_end(context);
	if (found)
		return (struct outcome){.how = WRONG, .figure = found};
	return DONE_WITH(error ? error : ended, count);
}

/* A library with a runtime of its own comes, uses memory and goes. */
struct outcome run_plugin(struct worker *worker, const uint64_t *a)
{
	if (!*plugin_path)
		return NOTHING_TO_DO;
	void *library = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
	int (*run)(void);
	if (!library)
		return DONE_WITH(-2, 0);
	*(void **)&run = dlsym(library, "plugin_run");
	int error = run ? run() : -3;
	dlclose(library);
	if (error == -1)
		return (struct outcome){.how = WRONG};
	return DONE_WITH(error, 0);
}

/* A child that uses no GPU. */
struct outcome run_child(struct worker *worker, const uint64_t *a)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	if (child > 0)
		waitpid(child, &status, 0);
	return DONE_WITH(status, 0);
}

struct outcome run_together(struct worker *worker, const uint64_t *a)
{
	return DONE_WITH(0, 0);
}

struct outcome run_global(struct worker *worker, const uint64_t *a)
{
	global_captures = true;
	return DONE_WITH(0, 0);
}

static int set_peers(struct worker *worker, bool on)
{
	int error = 0, present = worker->device;

	for (int device = 0; device < DEVICES && peers != on && !error; device++) {
		use_device(worker, device);
		error = api.set_peers(device, !device, on);
	}
	use_device(worker, present);
	if (!error)
		peers = on;
	return error;
}

struct outcome run_peers(struct worker *worker, const uint64_t *a)
{
	return DONE_WITH(set_peers(worker, a[0] % 4 != 0), 0);
}

/* What a worker has on the device goes before its context. Its plain memory ends with that, where `left`. */
static int leave_device(struct worker *of, int device, bool left)
{
	int error = 0;

	use_device(of, device);
	for (unsigned i = 0; i < SLOTS; i++) {
		struct block *block = &of->blocks[i];

		if (!block->kind || block->device != device)
			continue;
		if (left && (block->kind == PLAIN || block->kind == PITCHED)) {
			for (unsigned g = 0; g < GRAPHS; g++)
				if (of->graphs[g].exec && of->graphs[g].device == device)
					graph_end(of, &of->graphs[g]);
			block_lose(block);
		} else {
			int given = block_give(of, block, false);
			error = error ? error : given;
		}
	}
	int closed = worker_close(of, device);
	return error ? error : closed;
}

struct outcome run_reset(struct worker *worker, const uint64_t *a)
{
	int device = (int)(a[0] % DEVICES), error = set_peers(worker, false);

	for (unsigned i = 0; i < THREADS && !error; i++)
		if (workers[i].copy) {
			workers[i].device = -1; /* of this thread, not of its own */
			error = leave_device(&workers[i], device, a[1] % 2);
		}
	error = error ? error : api.close(device, (unsigned)(a[1] / 2));
	error = error ? error : api.open(device, kernels_path);
	for (unsigned i = 0; i < THREADS && !error; i++)
		if (workers[i].copy) {
			workers[i].device = device;
			error = worker_open(&workers[i], device);
		}
	return DONE_WITH(error, 0);
}
