/* Reads a recording that tests/recordings/compact.py has made. Fails the test if it is none. */
#ifndef RECORDED_RUN_H
#define RECORDED_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* One chunk that a launch accesses. */
struct recorded_use {
	unsigned chunk;
	uint64_t in_place_ns; /* that it adds if the chunk is on the host */
};

/* A buffer that a launch accesses, in units of 2 MiB from the begin of a chunk on. */
struct recorded_range {
	unsigned chunk;
	uint32_t offset, units;
};

struct recorded_launch {
	bool once; /* a copy */
	bool graph;
	bool waits; /* the program waits for the device before it */
	uint64_t site, ns;
	unsigned sure, count;
	const struct recorded_use *uses;
	unsigned range_count; /* 0: not recorded */
	const struct recorded_range *ranges;
};

/* Launches that are repeated. A phase of one repeat is the begin of the next one. */
struct recorded_phase {
	unsigned first, count, repeats;
};

struct recorded_chunk {
	uint64_t bytes;
	bool on_host;
	bool begins; /* it is the first of an allocation */
};

struct recording {
	char program[256];
	struct recorded_chunk *chunks;
	struct recorded_launch *launches;
	struct recorded_use *uses;
	struct recorded_range *ranges;
	struct recorded_phase phases[32];
	unsigned chunk_count, launch_count, use_count, range_count, phase_count;
	uint64_t host_bytes, device_bytes; /* of the chunks, at first */
	uint64_t host_ns;                  /* what the program does on the host for each launch */
};

/* host_ns where the file says nothing: a submission, measured on an H200. */
#define RECORDED_HOST_NS 10000

struct recording recording_read(const char *path);

void recording_free(struct recording *recording);

#endif
