/*
 * prefetch: residency follows use. Before work is submitted that uses chunks on the host, they are brought to the device if that
 * pays, with those that are foreseen next, and what is needed furthest in the future leaves for them (exchange_choice.h). What a
 * launch uses is told by its parameters (shim/hints.h): a hint and never a promise. So nothing depends on it but speed: chunks
 * move behind the closed gate and on an idle device, as for any other reason, and what was not foreseen is used in place
 * (docs/adr/0021-stop-exchange-go.md).
 *
 * It never refuses or changes a call of the program. Begin with this header, then access_model.h and prefetch.h.
 */
#ifndef SPILL_FOLLOW_H
#define SPILL_FOLLOW_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "stopwatch.h"

/* What one call that submits work is going to use. */
#define SPILL_LAUNCH_ACCESS_KEYS 1024
#define SPILL_LAUNCH_ACCESS_HOST_KEYS SPILL_STOPWATCH_KEYS
struct spill_launch_access {
	uint64_t site; /* hash of what does it: function, grid and block; never 0 */
	void *stream;
	bool per_thread;      /* stream: of the per-thread default kind */
	unsigned count, sure; /* of keys; the first ones are sure, the others perhaps (param_extent.h) */
	bool once;            /* touches each byte once (copies, sets): brings nothing */
	unsigned on_host;     /* of them */
	uint64_t host_bytes, bytes;                        /* of all chunks, those on host */
	uint32_t host_keys[SPILL_LAUNCH_ACCESS_HOST_KEYS]; /* of those on host, the first few */
	uint32_t keys[SPILL_LAUNCH_ACCESS_KEYS];           /* of chunks, each once (chunk_map.h) */
};

/* How many of host_keys there are. */
static inline unsigned spill_launch_access_host_keys(const struct spill_launch_access *use)
{
	return use->on_host < SPILL_LAUNCH_ACCESS_HOST_KEYS ? use->on_host : SPILL_LAUNCH_ACCESS_HOST_KEYS;
}

/* True while something movable is on the host, movable.follow is not off and nothing is only observed: then alone are uses told. */
extern _Atomic bool spill_follow_wanted;

/*
 * Before the call, outside of the gate. May wait and move. Returns a stopwatch that is to be handed to spill_follow_after
 * behind the call, or NULL. Keeps errno. pre: it uses something, nothing captures, this thread is in no call of ours (spill_thread.depth is 0) and not inside the gate
 */
void *spill_follow_before(const struct spill_launch_access *use);
void spill_follow_after(void *stopwatch);

/* Another that is told, and nothing else happens; NULL: none. For tests. `other` must live until the next call. */
struct spill_follower {
	void *(*before)(const struct spill_launch_access *use);
	void (*after)(void *stopwatch);
};
void spill_follow_use(const struct spill_follower *other);

/*
 * Movable bytes have come to the host or left it. The observer of spill_chunked_observe: what is said there holds.
 */
void spill_follow_moved(void);

/* Called from gates (maintenance.h): gives back what is kept for exchanges when there were none for a while. False: nothing is kept. */
bool spill_follow_maintain(void);

/* In a forked child nothing is known. */
void spill_follow_reset(void);

#endif
