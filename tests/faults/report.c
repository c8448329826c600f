/*
 * At the end of the process, behind libspill's own end, a line for each
 *	errors NAME ERROR…             function of libc that can fail
 *	place SIDE NAME OFFSET COUNT   place in libspill.so that called; SIDE: libc or vendor
 *	strict NAME OFFSET             place whose call would have broken a capture of another thread
 *	met NAME ERROR OFFSET          fault, and where it was
 *	left NAME COUNT                thing that is still there
 *	block OFFSET                   block of malloc that is still there, by the place that asked for it
 */
#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "core.h"

static unsigned descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

static void write_calls(FILE *file)
{
	const struct faults_call *call;
	const struct faults_place *place;

	for (unsigned i = 0; (call = faults_libc(i)); i++) {
		fprintf(file, "errors %s", call->name);
		for (const int *error = call->errors; *error; error++)
			fprintf(file, " %d", *error);
		fprintf(file, "\n");
	}
	for (unsigned i = 0; (place = faults_place(i)); i++) {
		if (place->call)
			fprintf(file, "place %s %s %lx %u\n", place->call->vendor ? "vendor" : "libc",
			        place->call->name, place->offset, place->count);
		if (place->strict)
			fprintf(file, "strict %s %lx\n", place->call->name, place->offset);
	}
}

static void write_left(FILE *file)
{
	void (*ask)(struct sim_left *);
	struct sim_left left = {0};

	*(void **)&ask = dlsym(RTLD_DEFAULT, "sim_left");
	if (ask)
		ask(&left);
	fprintf(file, "left device %llu\nleft host %llu\n", (unsigned long long)left.device,
	        (unsigned long long)left.host);
	fprintf(file, "left contexts %u\nleft streams %u\nleft events %u\nleft handles %u\n", left.contexts,
	        left.streams, left.events, left.handles);
	fprintf(file, "left modules %u\nleft pools %u\nleft arrays %u\nleft ranges %u\n", left.modules,
	        left.pools, left.arrays, left.ranges);
	fprintf(file, "left descriptors %u\n", descriptors());
	for (unsigned i = 0; i < faults_block_room(); i++) {
		unsigned long offset;

		if (faults_block(i, &offset))
			fprintf(file, "block %lx\n", offset);
	}
}

__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("FAULTS_REPORT");
	const struct faults_met *met;
	unsigned count = faults_met(&met);

	if (!path || !faults_library()->base)
		return;
	FILE *file = fopen(path, "we");
	if (!file)
		faults_die("cannot write", path);
	write_calls(file);
	for (unsigned i = 0; i < count; i++)
		fprintf(file, "met %s %d %lx\n", met[i].name, met[i].error, met[i].offset);
	write_left(file);
	if (fclose(file))
		faults_die("cannot write", path);
}
