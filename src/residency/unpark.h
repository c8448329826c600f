/* The end of parking: a dead chunk (parking.h) is about to be used again. */
#ifndef SPILL_UNPARK_H
#define SPILL_UNPARK_H

#include "chunked.h"

/*
 * The program gets the bytes at `ptr`: gives the parked chunks there a mapping of their own. That is to device memory
 * if exchanges keep some, because the memory is used soon, and otherwise to their host memory. False: the vendor
 * refuses. Any thread that neither holds the mover nor is inside the gate. pre: the bytes are live (spill_chunked_live)
 */
bool spill_unpark(struct spill_chunked *chunked, uint64_t ptr, uint64_t bytes);

/*
 * Pins a placement for an export, or for others who may use it. What parked chunks have in common must not be exported as the
 * memory of one of them, so each has its own on the host first. The vendor refuses that export, as for any chunk on the host.
 * Waits for the mover; or it is held.
 */
void spill_unpark_pin(struct spill_chunked *chunked);
void spill_unpark_pin_held(struct spill_chunked *chunked);
/* The same for the enlisted placement that `ptr` is in, if there is one. */
void spill_unpark_pin_at(uint64_t ptr);

#endif
