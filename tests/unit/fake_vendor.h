/*
 * A vendor without a device: device, host and managed memory, physical memory and its mappings,
 * pools, events and copies. What is alive is counted, and a call can be told to fail. Any number
 * of threads.
 *
 * Mapped memory has real bytes as soon as somebody looks at them: a lost or a wrong byte is seen.
 * A copy is carried out only when a query asks whether it has passed, which is as late as a device
 * may. So memory that is unmapped under a copy is noticed.
 */
#ifndef SPILL_TEST_FAKE_VENDOR_H
#define SPILL_TEST_FAKE_VENDOR_H

#include "backend.h"

#define FAKE_OUT_OF_MEMORY 2
#define FAKE_INVALID 1
#define FAKE_SMALL_UNIT (4ull << 10) /* the granule of fake_vendor_reset_mover */
#define FAKE_POOLS 8
#define FAKE_COPIES 32

struct fake_pool {
	enum spill_place place;
	uint64_t used, reserved; /* a test sets used when it frees */
};

/* The vendor's structure of properties of physical memory. */
struct fake_properties {
	int where; /* enum spill_location */
	int device;
	bool device_only, exportable;
	unsigned char pad[SPILL_PROPERTIES_BYTES - 12];
};

struct fake_copy {
	uint64_t bytes;
	bool from_host;
};

struct fake_vendor {
	/* What it is like: set by a reset, and by a test behind it. */
	uint64_t granule, host_granule;
	uint64_t total;     /* bytes of the device; 0: all that is free */
	unsigned can;       /* its capabilities */
	void *context;      /* the current one, of device 0; NULL: none */
	bool strict;        /* mappings need a range of their own, and calls that give back can fail */
	bool release_fails; /* that of a handle as well */
	int failure;        /* of a call that is told to fail, unless it makes memory */
	int wait_result;
	bool stuck;               /* events do not pass */
	const bool *marks_pass;   /* not NULL: marks pass when it says so */
	const void *dead_context; /* has ended: no vendor forgives a call for its events */
	bool no_pools;
	bool no_descriptors;  /* no memory can be handed to other processes */
	uint64_t next_handle; /* not 0: the value of the next handle */
	/*
	 * Another thread's doing, once: during a mapping, the making of a pool, a look at its reserved
	 * bytes, or a query of an event.
	 */
	void (*meanwhile)(void);

	uint64_t device_free; /* bytes that can still be created on the device */
	unsigned calls;       /* of functions that can fail, since the last fake_vendor_fail */
	unsigned fail_from, fail_end;

	/* What is alive. */
	unsigned ranges, handles, mappings, hosts, manageds, streams, events;
	int pools;
	uint64_t device, host; /* bytes of physical memory */

	/* What was called. */
	unsigned broken; /* what no vendor would forgive */
	unsigned copies, waits, waits_failed, queries, marks;
	unsigned made_on_device;    /* physical memory */
	const void *marked_context; /* of the last mark */
	unsigned most_under_way;    /* copies, at an unmapping */
	uint64_t prefetched, copied_bytes;
	void *copier_context;               /* of the last copy */
	struct fake_copy copy[FAKE_COPIES]; /* the last ones, each at its number (from 0), in turns */
	struct fake_pool pool[FAKE_POOLS];  /* in the order they were made */
	unsigned pools_made;
};

extern struct fake_vendor fake_vendor;
extern const struct spill_backend fake_vendor_backend;

/* The default policy without bounds on host memory: how much there is depends on the machine. */
void fake_vendor_policy(struct spill_policy *policy);

/* Nothing is alive, and nothing fails. A vendor of granules of 2 MiB that cannot move. */
void fake_vendor_reset(uint64_t device_free);
/* The same of small granules. It can move, and is strict. */
void fake_vendor_reset_mover(uint64_t device_free);

/* From now on, calls `from` up to `end` (excluded) fail, counted from 1. */
void fake_vendor_fail(unsigned from, unsigned end);

/* Objects that nobody gave back, without pools and streams. */
unsigned fake_vendor_alive(void);

/* An event that has passed when *passed says so. */
void *fake_vendor_event(const bool *passed);

/* What is mapped at an address; NULL if nothing is, or `device` has no access. */
unsigned char *fake_vendor_bytes(uint64_t va, int device);
/* What a handle stands for. */
unsigned char *fake_vendor_content(uint64_t handle);

/* Calls that only a program makes. */
int fake_vendor_create(uint64_t *handle, uint64_t bytes, const struct fake_properties *properties);
int fake_vendor_retain(uint64_t *handle, uint64_t va);
int fake_vendor_properties(struct fake_properties *properties, uint64_t handle);

#endif
