/*
 * A vendor that only counts: a device of so many bytes, host memory without end, and a call that can be told to
 * fail. What is not given back is seen at the end.
 */
#ifndef SPILL_TEST_FAKE_BACKEND_H
#define SPILL_TEST_FAKE_BACKEND_H

#include "backend.h"

#define FAKE_POOLS 8

struct fake_pool {
	enum spill_place place;
	uint64_t used, reserved; /* a test sets used when it frees */
};

/* Atomic, as tests call it from several threads at once. */
struct fake {
	_Atomic uint64_t device_free; /* bytes that can still be created on the device */
	_Atomic unsigned calls;       /* of functions that can fail, since fake_reset */
	unsigned fail_at;             /* the call of that number fails; 0: none */
	/* Live objects. */
	_Atomic unsigned ranges, handles, mappings, hosts, manageds;
	_Atomic uint64_t prefetched;
	struct fake_pool pool[FAKE_POOLS]; /* in the order they were made */
	unsigned pools_made;
	int pools, events; /* live ones; a test counts events itself */
	bool no_pools;     /* a vendor without */
	unsigned queries, waits;
	int wait_result;
};

extern struct fake fake;
extern const struct spill_backend fake_backend;

/* A device with `device_free` bytes and nothing alive. */
void fake_reset(uint64_t device_free);

/* Objects that nobody gave back. */
unsigned fake_alive(void);

#endif
