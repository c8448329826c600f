/*
 * Residency follows use: before work is submitted that uses chunks on the host, they are brought to the device if that pays,
 * with those that are foreseen next, and what is needed furthest in the future leaves for them (policy/predict/exchange_choice.h). What a
 * launch uses is told by its parameters (shim/hints.h): a hint and never a promise. So nothing depends on it but speed: chunks
 * move behind the closed gate and on an idle device, as for any other reason, and what was not foreseen is used in place
 * (docs/adr/0021-stop-exchange-go.md).
 */
#ifndef SPILL_FOLLOW_H
#define SPILL_FOLLOW_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "stopwatch.h"

/* What one call that submits work is going to use. */
#define SPILL_USE_KEYS 1024
#define SPILL_USE_HOST_KEYS SPILL_STOPWATCH_KEYS
struct spill_use {
	uint64_t site; /* hash of what does it: function, grid and block; never 0 */
	void *stream;
	bool per_thread;            /* stream: of the per-thread default kind */
	unsigned count, sure;       /* of keys; the first ones are sure, the others perhaps (reach.h) */
	bool once;                  /* touches each byte once (copies, sets): brings nothing */
	unsigned on_host;           /* of them */
	uint64_t host_bytes, bytes; /* of all chunks, those on host */
	uint32_t host_keys[SPILL_USE_HOST_KEYS]; /* of those on host, the first few */
	uint32_t keys[SPILL_USE_KEYS];           /* of chunks, each once (granules.h) */
};

/* How many of host_keys there are. */
static inline unsigned spill_use_host_keys(const struct spill_use *use)
{
	return use->on_host < SPILL_USE_HOST_KEYS ? use->on_host : SPILL_USE_HOST_KEYS;
}

/* True while something movable is on the host, movable.follow is not off and nothing is only observed: then alone are uses told. */
extern _Atomic bool spill_follow_wanted;

/*
 * Before the call, outside of the gate. May wait and move. Returns a stopwatch that is to be handed to spill_follow_after
 * behind the call, or NULL. Keeps errno. pre: it uses something, nothing captures, this thread is in no call of ours (spill_thread.depth is 0) and not inside the gate
 */
void *spill_follow_before(const struct spill_use *use);
void spill_follow_after(void *stopwatch);

/*
 * Bytes of what is movable are on the host now, or no longer (spill_chunked_on_host). Called with the list's lock held
 * (SPILL_RANK_CHUNKED), one call at a time: it takes no lock of a lower rank and walks no list. The mover need not be held: an
 * allocation can be made on the host at any time.
 */
void spill_follow_moved(void);

/* Called from gates (tick.h): gives back what is kept for exchanges when there were none for a while. False: nothing is kept. */
bool spill_follow_tick(void);

/* In a forked child nothing is known. */
void spill_follow_reset(void);

#endif
