/*
 * Growing pools: a pool that wants a larger block with every step keeps the old ones, which nothing ever fits into again
 * (ggml's pool on devices without virtual memory management: each block 5 % larger than what was asked for, shared/design
 * scenario 2). Such blocks are dead cache: they should be the first to leave the device. Pure; the state is the caller's.
 *
 * What tells a run is only the sizes of successive requests from one call site for one device: each larger than the last, by
 * no more than twice. Three of them are enough where each is also larger than all before from there. Otherwise it takes six,
 * since the sizes of a general allocator rise three times in a row by chance: ggml has one function for weights and pool alike,
 * and what the pool asks for is never larger than the weights.
 *
 * How the engine uses it: every live allocation keeps the `run` that its request got. When a request `grows`, all older
 * allocations with its run are dead. A guess: an allocation that is wrongly called dead is moved sooner, and is as right as ever.
 */
#ifndef SPILL_GROWTH_H
#define SPILL_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

/* Call sites that are known at a time; the one that was not heard of for longest makes way. */
#define SPILL_GROWTH_SITES 32

struct spill_growth_site {
	uint64_t address; /* of the call; 0: free */
	int device;
	uint64_t last, largest; /* bytes: of its last request; of all */
	uint64_t run;
	unsigned length; /* requests in the run */
	bool record;     /* the run began with one larger than all before, and so are the others */
	uint64_t heard;
};

/* All zeros is a state that knows nothing. The caller sees to it that one thread at a time uses it. */
struct spill_growth {
	struct spill_growth_site sites[SPILL_GROWTH_SITES];
	uint64_t runs, requests;
};

struct spill_growth_answer {
	uint64_t run; /* which run it belongs to: a number that no other run has; never 0 */
	bool grows;   /* it is one of a run of ever larger ones */
};

/* Would a request of `bytes` be one of a run of ever larger ones, if it were served now? Changes nothing. */
bool spill_growth_would(const struct spill_growth *growth, uint64_t address, int device, uint64_t bytes);

/* A request that was served; one that failed and is repeated is told once. `address` is not 0. */
struct spill_growth_answer spill_growth_request(struct spill_growth *growth, uint64_t address, int device,
                                                uint64_t bytes);

#endif
