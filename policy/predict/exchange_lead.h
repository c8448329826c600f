/*
 * What an exchange costs beside the time that it takes: the lead of the program over the device.
 *
 * An exchange waits for an idle device, and holds up the threads that launch. Behind it the device waits for launches, until
 * the program is ahead again. A program that is bound by its launches never is, so that an exchange costs it up to twice its
 * time (docs/adr/0049-the-lead-that-an-exchange-takes.md). What counts is the time for which the device is idle behind an exchange,
 * looked at for as long as the threads were held up.
 *
 * All memory is in the struct. Zeroed, nothing is followed. Times are ns.
 */
#ifndef SPILL_EXCHANGE_LEAD_H
#define SPILL_EXCHANGE_LEAD_H

#include <stdbool.h>
#include <stdint.h>

struct spill_exchange_lead {
	uint64_t bytes;    /* that came; 0: nothing is followed */
	uint64_t idle_ns;  /* of the device behind it, so far */
	uint64_t until_ns; /* it is followed until then */
};

/* An exchange that brought `bytes` ended at `now_ns`. It held threads up for `held_ns`. What was followed before is forgotten. */
void spill_exchange_lead_begin(struct spill_exchange_lead *lead, uint64_t bytes, uint64_t held_ns,
                               uint64_t now_ns);

/* The device was idle for `idle_ns` since the last call. True: all of .idle_ns is known. */
bool spill_exchange_lead_follow(struct spill_exchange_lead *lead, uint64_t idle_ns, uint64_t now_ns);

#endif
