/*
 * Growing pools. A pool that needs a larger block at each step keeps the old blocks, which are too
 * small for later requests. An example is ggml's pool on devices without virtual memory management.
 * Such blocks are dead cache and should leave the device first.
 *
 * A run is a series of requests from one call site for one device. Each is larger than the last
 * one, but at most twice as large. Three requests are enough if each is also larger than all
 * earlier ones of the site. Otherwise it takes six: in a general allocator, three sizes rise by
 * chance. ggml needs this case, since one function allocates weights and pool, and the weights are
 * larger.
 *
 * Each live allocation keeps the `run` of its request. When a request `grows`, all older
 * allocations of its run are dead. If that is wrong, the allocation moves earlier, and its data
 * stays correct.
 */
#ifndef SPILL_GROWTH_H
#define SPILL_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

/* Call sites that are known at a time. The one with the oldest request is replaced. */
#define SPILL_GROWTH_SITES 32

struct spill_growth_site {
	uint64_t address; /* of the call; 0: free */
	int device;
	uint64_t last, largest; /* bytes of its last request; most bytes of any */
	uint64_t run;
	unsigned length; /* requests in the run */
	bool record;     /* each request of the run is larger than all before the run */
	uint64_t heard;
};

/* Zeroed, it knows nothing. One thread at a time may use it. */
struct spill_growth {
	struct spill_growth_site sites[SPILL_GROWTH_SITES];
	uint64_t runs, requests;
};

struct spill_growth_answer {
	uint64_t run; /* number of its run: unique, never 0 */
	bool grows;   /* the run is long enough */
};

/* Would a request of `bytes` grow its run? Changes nothing. */
bool spill_growth_would(const struct spill_growth *growth, uint64_t address, int device, uint64_t bytes);

/* Adds a served request. pre: address != 0; a repeated request is added once */
struct spill_growth_answer spill_growth_request(struct spill_growth *growth, uint64_t address, int device,
                                                uint64_t bytes);

#endif
