/*
 * Uses memory of every kind on two devices, and verifies each byte. Prints `WHAT on DEVICE ERROR`
 * for each call that failed, and goes on. At the end it gives back everything, so nothing may be left.
 *
 *	mixed KERNELS
 *
 * Exit status: 0; 1 data wrong; 2 it could not begin.
 */
#include "mixed.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"

#define BLOCKS 32
#define BUSY 3 /* rounds of small work, in which memory can come back */

static struct block blocks[DEVICES][BLOCKS];
static uint64_t seeds, wrong;

/* True: it succeeded. */
static bool good(const char *what, int device, int error)
{
	if (error)
		printf("%s on %d %s\n", what, device, vendor.error_name(error));
	return !error;
}

/* Each call leaves the thread's state as it was. */
static void check_thread(int device, bool failed)
{
	const char *what = vendor.changed(device, failed);

	if (!what)
		return;
	printf("CHANGED: the %s of the thread on %d\n", what, device);
	good("use", device, vendor.use(device));
}

static void take(struct block *block, const struct kind *kind, int device)
{
	*block = (struct block){.kind = kind, .bytes = kind->bytes};
	bool taken = good(kind->name, device, kind->take(block, device));
	check_thread(device, !taken);
	if (!taken)
		return;
	block->seed = ++seeds;
	block->filled = block->address && good("fill", device, vendor.fill(device, block));
}

static void give(struct block *block, int device)
{
	if (!block->seed)
		return;
	bool given = good("free", device, block->kind->give(block, device));
	check_thread(device, !given);
	if (given)
		block->seed = 0;
}

/* Adds to *found the wrong words, by a kernel and by a copy. Returns the vendor's error. */
static int look_at(const struct block *block, int device, uint64_t *found)
{
	uint64_t *copy = malloc(block->bytes);
	int error = copy ? vendor.verify(device, block, found) : 0;

	if (copy && !error)
		error = vendor.read(block, copy);
	for (uint64_t i = 0; copy && !error && i < block->bytes / 8; i++)
		*found += copy[i] != pattern(i, block->seed);
	free(copy);
	return error;
}

static void verify(struct block *block, int device)
{
	uint64_t found = 0;

	if (!block->seed || !block->filled)
		return;
	bool done = good("verify", device, look_at(block, device, &found));
	check_thread(device, !done);
	if (!done)
		return; /* the error says enough */
	if (found)
		printf("%s on %d: %llu words wrong\n", block->kind->name, device, (unsigned long long)found);
	wrong += found;
}

static void take_all(int device)
{
	unsigned next = 0;

	good("use", device, vendor.use(device));
	for (const struct kind *kind = vendor.kinds; kind->name; kind++)
		for (unsigned i = 0; i < kind->count && next < BLOCKS; i++)
			take(&blocks[device][next++], kind, device);
}

static void verify_all(int device)
{
	good("use", device, vendor.use(device));
	for (unsigned i = 0; i < BLOCKS; i++)
		verify(&blocks[device][i], device);
}

/* Every second block goes, small work lets others come back, and new ones take their place. */
static void exchange(int device)
{
	good("use", device, vendor.use(device));
	for (unsigned i = 0; i < BLOCKS; i += 2)
		give(&blocks[device][i], device);
	for (unsigned round = 0; round < BUSY; round++)
		verify(&blocks[device][1], device);
	for (unsigned i = 0; i < BLOCKS; i += 2)
		if (blocks[device][i].kind && !blocks[device][i].seed)
			take(&blocks[device][i], blocks[device][i].kind, device);
}

/* The child uses no GPU. */
static void make_child(void)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(0);
	if (child < 0 || waitpid(child, &status, 0) != child || status) {
		printf("WRONG: the child\n");
		wrong++;
	}
}

static void give_all(int device)
{
	good("use", device, vendor.use(device));
	for (unsigned tries = 0; tries < 2; tries++) /* a free may fail once */
		for (unsigned i = 0; i < BLOCKS; i++)
			give(&blocks[device][i], device);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 64;
	for (int device = 0; device < DEVICES; device++)
		if (!good("open", device, vendor.open(device, argv[1])))
			return 2;
	good("peers", 0, vendor.peers());
	for (int device = 0; device < DEVICES; device++)
		take_all(device);
	make_child();
	for (int device = 0; device < DEVICES; device++) {
		verify_all(device);
		good("info", device, vendor.info());
		if (vendor.graph)
			good("graph", device, vendor.graph(device));
		exchange(device);
	}
	for (int device = 0; device < DEVICES; device++)
		verify_all(device);
	for (int device = 0; device < DEVICES; device++) {
		give_all(device);
		good("close", device, vendor.close(device));
	}
	printf(wrong ? "WRONG\n" : "all data right\n");
	return wrong ? 1 : 0;
}
