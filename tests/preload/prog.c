/*
 * Allocates buffers and fills each by a kernel with data that differs per word. Verifies by a
 * kernel and by copying back. Frees every second buffer while a kernel still writes to it,
 * allocates again, and verifies again. Prints one line a call, `NAME INDEX RESULT LAST-ERROR`,
 * without addresses and times, so that two runs can be compared by diff.
 *
 *	prog --kernels MODULE [--count N] [--mib N | --kib N] [--odd 0]
 *
 *	--odd 0    without the requests that no program makes, at the end: of nothing, of far too much, and so on
 *
 * Exit status: 0 all data right; 1 data wrong, or a call failed that never should; 2 out of memory; 64 usage.
 */
#include "pattern.h"
#include "prog.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)3 << 20) /* bytes copied back at a time */

enum { WRONG = 1, OUT_OF_MEMORY = 2, USAGE = 64 };

struct buffer {
	uint64_t address;
	uint64_t seed;
};

/* Pinned words that kernels and host share. */
struct shared {
	_Atomic uint64_t go; /* hold_fill waits for it */
	uint64_t mismatches;
};

static struct {
	size_t bytes;
	unsigned count;
	bool odd;
	const char *kernels;
} options = {.bytes = (size_t)300 << 20, .count = 5, .odd = true};

static void *kernel_fill, *kernel_verify, *kernel_hold_fill;
static struct shared *shared;
static unsigned wrong;

/* Prints the call's line; returns its result. */
static int say(const char *call, unsigned index, int result)
{
	printf("%s %u %s", call, index, way.error_name(result));
	if (way.last_error)
		printf(" last %s", way.error_name(way.last_error()));
	printf("\n");
	return result;
}

/* A call that cannot fail in a program that is right: ends it if it does. */
static void must(const char *call, unsigned index, int result)
{
	if (say(call, index, result) == 0)
		return;
	printf("failed: %s\n", call);
	exit(WRONG);
}

static uint64_t words(void)
{
	return options.bytes / sizeof(uint64_t);
}

static void fill(struct buffer *buffer, unsigned index, uint64_t seed)
{
	uint64_t count = words();
	void *parameters[] = {&buffer->address, &count, &seed};

	buffer->seed = seed;
	must("fill", index, way.launch(kernel_fill, parameters));
}

static void verify_on_device(struct buffer *buffer, unsigned index)
{
	uint64_t count = words(), out = (uint64_t)(uintptr_t)&shared->mismatches;
	void *parameters[] = {&buffer->address, &count, &buffer->seed, &out};

	shared->mismatches = 0;
	must("verify", index, way.launch(kernel_verify, parameters));
	must("synchronize", index, way.synchronize());
	if (shared->mismatches == 0)
		return;
	printf("buffer %u: the device sees %llu wrong words\n", index,
	       (unsigned long long)shared->mismatches);
	wrong++;
}

static void verify_on_host(struct buffer *buffer, unsigned index, uint64_t *piece)
{
	uint64_t bad = 0;

	for (size_t done = 0; done < options.bytes; done += PIECE) {
		size_t length = options.bytes - done < PIECE ? options.bytes - done : PIECE;
		int result = way.copy_out(piece, buffer->address + done, length);

		if (result)
			must("copy out", index, result);
		for (size_t i = 0; i < length / sizeof(*piece); i++)
			bad += piece[i] != pattern(done / sizeof(*piece) + i, buffer->seed);
	}
	must("copied out", index, 0);
	if (bad == 0)
		return;
	printf("buffer %u: the host sees %llu wrong words\n", index, (unsigned long long)bad);
	wrong++;
}

/* The first and the last byte must be told as parts of one allocation. */
static void ask_about(struct buffer *buffer, unsigned index)
{
	struct about first = {0}, last = {0};

	must("about", index, way.about(buffer->address, &first));
	must("about", index, way.about(buffer->address + options.bytes - 1, &last));
	printf("buffer %u: type %d and %d, offset %llu and %llu, size %llu, aligned %d\n", index, first.type,
	       last.type, (unsigned long long)first.offset, (unsigned long long)last.offset,
	       (unsigned long long)last.size, buffer->address % 256 == 0);
}

static void allocate(struct buffer *buffer, unsigned index, uint64_t seed)
{
	int result = say("alloc", index, way.alloc(&buffer->address, options.bytes));

	if (result == 0) {
		ask_about(buffer, index);
		fill(buffer, index, seed);
		return;
	}
	printf("out of memory at buffer %u of %u\n", index, options.count);
	exit(OUT_OF_MEMORY);
}

/* Lets the kernel go on once the free has been entered: before that the kernel cannot have finished. */
static void *let_go(void *entered)
{
	while (!atomic_load((atomic_bool *)entered))
		sched_yield();
	atomic_store(&shared->go, 1);
	return NULL;
}

/* Legal, and every vendor waits: the memory must be there until the kernel is done with it. */
static void free_in_use(struct buffer *buffer, unsigned index)
{
	uint64_t flag = (uint64_t)(uintptr_t)&shared->go, count = words(), seed = index;
	void *parameters[] = {&flag, &buffer->address, &count, &seed};
	atomic_bool entered = false;
	pthread_t thread;

	atomic_store(&shared->go, 0);
	must("hold", index, way.launch(kernel_hold_fill, parameters));
	if (pthread_create(&thread, NULL, let_go, &entered))
		exit(WRONG);
	atomic_store(&entered, true);
	int result = way.release(buffer->address);
	pthread_join(thread, NULL);
	must("free in use", index, result);
	must("synchronize", index, way.synchronize());
}

/* The program's variable was 1. Prints its value after a call that made no allocation. */
static void say_left(uint64_t address)
{
	printf("address %s\n", address == 0 ? "NULL" : address == 1 ? "untouched" : "changed");
}

/* The vendor's answers to odd requests must not change either. */
static void odd_requests(void)
{
	uint64_t address = 1;
	size_t free = 0, total = 0;

	say("alloc nothing", 0, way.alloc(&address, 0));
	say_left(address);
	address = 1;
	say("alloc too much", 0, way.alloc(&address, (size_t)1 << 60));
	say_left(address);
	say("free NULL", 0, way.release(0));
	say("free garbage", 0, way.release(0x1000));
	say("info", 0, way.info(&free, &total));
	printf("free at most total: %d\n", free <= total);
	say("info without free", 0, way.info(NULL, &total));
}

static void run(struct buffer *buffers, uint64_t *piece)
{
	unsigned n = options.count;

	for (unsigned i = 0; i < n; i++)
		allocate(&buffers[i], i, i + 1);
	for (unsigned i = 0; i < n; i++) {
		verify_on_device(&buffers[i], i);
		verify_on_host(&buffers[i], i, piece);
	}
	for (unsigned i = 0; i < n; i += 2)
		free_in_use(&buffers[i], i);
	for (unsigned i = 0; i < n; i += 2)
		allocate(&buffers[i], i, n + i + 1);
	for (unsigned i = 0; i < n; i++) {
		verify_on_device(&buffers[i], i);
		verify_on_host(&buffers[i], i, piece);
	}
	if (options.odd)
		odd_requests();
	for (unsigned i = 0; i < n; i++)
		must("free", i, way.release(buffers[i].address));
}

static void start(void)
{
	void *pinned;

	must("start", 0, way.start());
	must("load", 0, way.load(options.kernels));
	must("kernel", 0, way.kernel("fill", &kernel_fill));
	must("kernel", 1, way.kernel("verify", &kernel_verify));
	must("kernel", 2, way.kernel("hold_fill", &kernel_hold_fill));
	must("alloc host", 0, way.alloc_host(&pinned, sizeof(*shared)));
	shared = pinned;
}

static bool parse(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		unsigned long long value = strtoull(argv[i + 1], NULL, 10);

		if (!strcmp(argv[i], "--kernels"))
			options.kernels = argv[i + 1];
		else if (!strcmp(argv[i], "--count"))
			options.count = (unsigned)value;
		else if (!strcmp(argv[i], "--mib"))
			options.bytes = (size_t)value << 20;
		else if (!strcmp(argv[i], "--kib"))
			options.bytes = (size_t)value << 10;
		else if (!strcmp(argv[i], "--odd"))
			options.odd = value != 0;
		else
			return false;
	}
	return argc % 2 == 1 && options.kernels && options.count && options.bytes;
}

int main(int argc, char **argv)
{
	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: %s --kernels MODULE [--count N] [--mib N | --kib N] [--odd 0]\n",
		        argv[0]);
		return USAGE;
	}
	struct buffer *buffers = calloc(options.count, sizeof(*buffers));
	uint64_t *piece = malloc(PIECE);
	if (!buffers || !piece)
		return WRONG;
	setvbuf(stdout, NULL, _IOLBF, 0);
	start();
	run(buffers, piece);
	must("free host", 0, way.release_host(shared));
	free(buffers);
	free(piece);
	printf(wrong ? "WRONG\n" : "all data right\n");
	return wrong ? WRONG : 0;
}
