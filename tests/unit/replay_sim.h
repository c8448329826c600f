/*
 * Replays a recording through prefetch/ and its predictions, as launches of a program do. The device
 * is simulated: one queue of work, timers, and a link. Time is the test's. Moves are only counted:
 * replay_sim.c stands in for the exchange of residency/, and for its wait for an idle device.
 */
#ifndef REPLAY_SIM_H
#define REPLAY_SIM_H

#include "in_place_cost.h"
#include "policy.h"
#include "recorded_run.h"

#define REPLAY_PERIODS 256

struct replay_result {
	uint64_t period_ns[REPLAY_PERIODS]; /* of all phases, one behind the other */
	uint64_t moved[REPLAY_PERIODS];     /* bytes that came in each */
	unsigned timed[REPLAY_PERIODS];     /* launches of each that were timed */
	unsigned count;
	unsigned submitted, unreported;  /* launches of all periods, and those that were not reported */
	uint64_t ns;                     /* all periods */
	uint64_t lost_ns, used_bytes;    /* by uses on the host, without copies and sets */
	struct spill_in_place_sums told; /* the same as estimated for the reports */
};

/*
 * ns that an exchange takes: for each MiB of the direction that has more, for each chunk that moves, and
 * for the stop. Every so many exchanges, device memory is made for the chunks. Measured on an H200
 * (docs/measurements.md, Usual programs).
 */
struct replay_price {
	uint64_t mib, chunk, stop, made;
	unsigned every; /* 0: never */
};
extern const struct replay_price replay_usual; /* chunks of 16 and 64 MiB: 40 us a MiB */
extern const struct replay_price replay_dear;  /* programs with buffers of many sizes: 64 */

/* Runs it with movable.follow, from the sides that were recorded. */
struct replay_result replay(const struct recording *recording, enum spill_follow follow,
                            const struct replay_price *price);

/* The same on a device with enough memory. */
struct replay_result replay_resident(const struct recording *recording);

/* ns to copy so much to the device, and as much back at the same time: the least of an exchange. */
uint64_t replay_copy_ns(uint64_t bytes);

#endif
