/*
 * What is learned of the uses of movable memory: their order (policy/predict/access_history.h) and what they cost (policy/predict/migration_benefit.h). The memory for it
 * is mapped when the first use is told, about 2 MiB. Any number of threads.
 */
#ifndef SPILL_ACCESS_MODEL_H
#define SPILL_ACCESS_MODEL_H

#include "follow.h"
#include "exchange_choice.h"

/* What to do about one use. */
struct spill_advice {
	bool bring; /* something is needed that is on the host, and it is worth looking whether it pays */
	bool timed; /* in the state that it is in, unless that changes */
	uint16_t site;
	uint64_t busy_ns; /* that the device needs for what was submitted, as far as that is known */
};

/* A use is about to be made. While another thread tells one it goes unrecorded: nobody waits. */
struct spill_advice spill_access_model_learn(const struct spill_launch_access *use);

/*
 * What is to come and to go for it (exchange_choice.h). What does not pay is not asked about again for a while. Stores what moving costs, ns a
 * MiB. pre: `site` is of an advice
 */
bool spill_access_model_choose(struct spill_exchange_choice *window, uint16_t site, uint64_t *cost_ns);

/* Learns what has been timed. Returns how many times were told so far. pre: as spill_stopwatch_collect */
uint64_t spill_access_model_hear(void);

/* The device has done all that was submitted. */
void spill_access_model_idle(void);

/* So many bytes came (and as many left) in that time. */
void spill_access_model_moved(uint64_t bytes, uint64_t ns);

void spill_access_model_reset(void); /* in a forked child */

#endif
