/*
 * device.reserve, the device memory that is kept free for code. Code that the vendor loads at the first launch of a kernel
 * cannot be given room afterwards: a kernel that did not find it fails for good, whatever is freed then (docs/
 * measurements.md: 2, then 999). So the room must be there before, and every allocation takes some of it.
 *
 * While something is movable, the reserve is filled up by demotion. Where too little can move, nothing could fill it up once the
 * device is full. So there, and from the first spill of a device on, it is kept from requests, too: those that would take of
 * it count as refused by the driver. Before the first spill that only places a request elsewhere, and never refuses one: what no
 * place takes the driver is asked for after all.
 */
#ifndef SPILL_RESERVE_KEEPER_H
#define SPILL_RESERVE_KEEPER_H

#include "backend.h"
#include "reserve.h"

/* How often it is looked at by the clock: a question for free memory costs 4 us; and after one that could not be made whole. */
#define SPILL_RESERVE_LOOK_MS 10
#define SPILL_RESERVE_VAIN_MS 1000
/* Without a spill so far: what may be given out between two looks that the clock allows. */
#define SPILL_RESERVE_TAKEN ((uint64_t)8 << 20)
/*
 * The most that it grows to by itself. More was seen to be needed (476 MiB for one kernel of llama.cpp, once), and what is kept for
 * good costs such a program more: 10.1 tokens/s instead of 11.1 (measured, H200).
 */
#define SPILL_RESERVE_MOST ((uint64_t)128 << 20)
/* It grows to no larger part of the device than this one, and no more than that is kept from requests. */
#define SPILL_RESERVE_PART 8
/* What the driver takes for requests that are smaller, and share it: each may be the one that begins another. */
#define SPILL_RESERVE_BLOCK ((uint64_t)2 << 20)

/*
 * Nothing could fill the reserve up again: what can move on the device is too little. Found out every 10 ms. Not on a device of
 * less than SPILL_RESERVE_DEVICE bytes, on which a reserve is a large part.
 *
 * A reading of the clock is a tenth of a pair that fits. So the request reads it once, and hands it down as `now_ns`.
 */
#define SPILL_RESERVE_DEVICE ((uint64_t)2 << 30)
bool spill_reserve_is_at_risk(const struct spill_backend *backend, int device, uint64_t now_ns);

/* There is some reserve to look after: something is movable, or a device has begun to spill. Two loads. */
bool spill_reserve_any(void);

/* What a request takes of the device: most likely, and at the least. */
struct spill_taking {
	uint64_t bytes, least;
};

/*
 * May the driver be asked for so much, or would that take of the reserve? Looks at free memory; what can move makes way
 * for it. True: the bytes count as taken until spill_reserve_answered. Also true where the driver has less than
 * that and so refuses by itself. pre: spill_reserve_is_kept or spill_reserve_is_at_risk; as spill_demote (demote.h)
 */
bool spill_reserve_allows(const struct spill_backend *backend, int device, const struct spill_taking *taking,
                          const char *api, const void *caller);
/* The same by the last look alone, without a call to the driver: false if that does not say. */
bool spill_reserve_allows_at_once(int device, uint64_t bytes, uint64_t now_ns);
/* The driver has answered. */
void spill_reserve_answered(int device, uint64_t bytes);

/*
 * Looks, now and then, whether less than half of the reserve is free, and gives back and demotes until it is whole. Cheap
 * while there is nothing to look after. `now_ns`: the clock a moment ago, or 0. pre: as spill_demote (demote.h)
 */
void spill_reserve_keep(const struct spill_backend *backend, int device, uint64_t now_ns, const char *api,
                        const void *caller);

/* The same for a call that may load code: looks once a millisecond, and makes the whole of it free. */
void spill_reserve_whole(const struct spill_backend *backend, int device, const char *api,
                         const void *caller);

/*
 * A pool has grown by what it was to have in pieces. True if the device has less free now than is kept of its reserve: then for
 * SPILL_RESERVE_CLOSED_MS no pool is thought to have anything in pieces.
 */
#define SPILL_RESERVE_CLOSED_MS 100
bool spill_reserve_fell(const struct spill_backend *backend, int device);
bool spill_reserve_is_closed(int device);

/* The driver has given out so many bytes: it will be looked at soon. Cheap. */
void spill_reserve_taken(int device, uint64_t bytes);

/* The same from gates (maintenance.h), for the current context's device. False: there is nothing to look after. */
bool spill_reserve_maintain(void);

/* What was free when code was about to be loaded, and what the program had been given until then. */
struct spill_code_load {
	uint64_t free, given; /* free 0: not known */
};

/*
 * What a call that loads code takes of the device: free memory before it and after. The reserve becomes as large as that, up to
 * SPILL_RESERVE_MOST, with a note; a reserve of 0 stays 0. Not counted if the program was given other memory meanwhile.
 * Looks once a millisecond on a device that has begun to spill, and always where the call was refused before.
 */
struct spill_code_load spill_reserve_load_begin(const struct spill_backend *backend, int device,
                                                bool refused);
void spill_reserve_load_end(const struct spill_backend *backend, int device,
                            const struct spill_code_load *load, const char *api);

/* For tests: as at the beginning, reserve.h too. */
void spill_reserve_keeper_reset(void);

#endif
