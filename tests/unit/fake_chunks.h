/*
 * A vendor whose virtual memory has real bytes: a lost or a wrong one is seen. A copy is carried
 * out only when a query asks whether it has passed, as late as a device may. So memory that is
 * unmapped under a copy is noticed. Whatever no vendor would forgive is counted. Calls can be told
 * to fail. Any number of threads.
 */
#ifndef SPILL_TEST_FAKE_CHUNKS_H
#define SPILL_TEST_FAKE_CHUNKS_H

#include "backend.h"

#define FAKE_UNIT (4ull << 10)
#define FAKE_OUT_OF_MEMORY 2

struct fake_chunks {
	unsigned calls;               /* of functions that can fail, since the last fake_chunks_fail */
	unsigned fail_from, fail_end; /* calls of those numbers fail, the last one excluded */
	uint64_t device_free;
	unsigned handles, mappings, ranges, streams, events; /* live ones */
	unsigned broken;                                     /* calls that no vendor would forgive */
	unsigned copies, waits, waits_failed;
	unsigned most_under_way; /* copies, at an unmapping */
	bool stuck;              /* events do not pass */
	int wait_result;
	void *copier_context; /* of the last copy */
};

extern struct fake_chunks fake_chunks;
extern const struct spill_backend fake_chunks_backend;

/* Nothing is there, and nothing fails. */
void fake_chunks_reset(uint64_t device_free);
/* From now on, calls `from` up to `end` (excluded) fail, counted from 1. */
void fake_chunks_fail(unsigned from, unsigned end);
unsigned fake_chunks_alive(void);

/* What is mapped at an address; NULL if nothing is, or `device` has no access. */
unsigned char *fake_chunks_bytes(uint64_t va, int device);
/* What a handle stands for. */
unsigned char *fake_chunks_content(uint64_t handle);

#endif
