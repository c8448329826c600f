/*
 * A flight: an exchange beside the program's work, without a stop (movable.follow = overlap). Its chunks are
 * not mapped while they are copied. So work that uses one of them, although nothing names it, ends with a fault
 * and not with wrong data. Those that left the device stay without a mapping until they come back, or something
 * names them: to map host memory takes as long as to copy it (docs/measurements.md, The time of an exchange).
 * There is one flight at a time. gate.h keeps work that may use such chunks outside, and who wants the mover has
 * all of them mapped again.
 *
 * Copies go through views of both memories. All of them begin together, because the driver takes 1 ms to map
 * anything beside a copy to the host.
 */
#ifndef SPILL_FLIGHT_H
#define SPILL_FLIGHT_H

#include "exchange.h"

/* Most chunks of a flight. */
#define SPILL_FLIGHT_CHUNKS 128

/*
 * Can a chunk be in flight? Not if others than its device have access, or if nothing tells how far a buffer in
 * it reaches: from one chunk set into the next (exact_begins).
 */
bool spill_flight_takes(const struct spill_backend *backend, const struct spill_chunked *chunked,
                        unsigned index);

/* The addresses from which work can reach the chunk: its allocation, or the chunk where begins are exact. */
struct spill_span spill_flight_reach(const struct spill_chunked *chunked, unsigned index);

/* Can submitted work use the chunk (spill_flight_reach)? Asked again with the gate closed. */
typedef bool spill_flight_used_fn(const struct spill_chunked *chunked, unsigned index);

/*
 * Begins the flight of an exchange, as far as there is memory for it, with the chunks that no work uses, and
 * empties the exchange. False: nothing is in flight. pre: the mover is held (in flight), none is under way, the
 * exchange is not empty, this thread is not inside the gate
 */
bool spill_flight_begin(struct spill_exchange *exchange, spill_flight_used_fn *is_used);

/* Is one under way? False: it has landed. pre: the mover is held (in flight) */
bool spill_flight_is_up(void);

/* Have its copies ended? pre: as above, and one is under way */
bool spill_flight_has_arrived(void);

/*
 * Waits for the copies and logs them. Maps the chunks that came, and leaves the others without a mapping.
 * Returns the bytes that came. pre: as above
 */
uint64_t spill_flight_land(void);

/*
 * Can work that uses these chunks reach any that is not mapped? Any thread; a hint, unless the thread is clear
 * (gate.h) with the number that it read before.
 */
bool spill_flight_touches(const uint32_t *keys, unsigned count);

/*
 * Maps the chunks that such work can reach, on the host. pre: the mover is held (in flight), none is under way
 */
void spill_flight_map(const uint32_t *keys, unsigned count);

/*
 * Unmaps a chunk that can be in flight, where it is (movable.audit). pre: the mover is held (in flight), none is under
 * way, the gate is closed, no work uses the chunk, and it is mapped. The caller begins a flight of the gate.
 */
void spill_flight_hide(const struct spill_backend *backend, int device, const struct spill_move *move);

/* Lands, and maps all chunks. Returns the bytes that came. pre: the mover is held */
uint64_t spill_flight_end(void);

void spill_flight_reset(void); /* in a forked child */

#endif
