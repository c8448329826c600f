/*
 * device.reserve: device memory that is kept free for code.
 *
 * The vendor loads code at the first launch of a kernel. A kernel that finds no room then fails for
 * good, whatever is freed afterwards (docs/measurements.md: 2, then 999). So the room must be free
 * before, and every allocation takes some of it.
 *
 * While chunks can move, demotion fills the reserve up. If too little can move, nothing can fill it
 * up on a full device. There, and after the first spill of a device, the reserve is also kept from
 * requests: one that would take from it counts as refused by the driver. Before the first spill
 * such a request is placed elsewhere, but never refused: if no place takes it, the driver is asked
 * after all.
 */
#ifndef SPILL_RESERVE_KEEPER_H
#define SPILL_RESERVE_KEEPER_H

#include "backend.h"
#include "reserve.h"

/*
 * How often free memory is looked at: a question costs 4 us. After a look that could not fill the
 * reserve, the longer time.
 */
#define SPILL_RESERVE_LOOK_MS 10
#define SPILL_RESERVE_VAIN_MS 1000
/*
 * On a device without a spill: bytes given out between two looks, or an eighth of what the last look left
 * beyond the reserve, if that is more. A pair of requests of 64 MiB in stream order took 5.3 us with a look,
 * and the driver takes 0.7 (measured, H200).
 */
#define SPILL_RESERVE_TAKEN ((uint64_t)8 << 20)
/*
 * The reserve never grows beyond this. Loads of more were seen (476 MiB for one kernel of
 * llama.cpp, once). But keeping that much costs such a program more: 10.1 tokens/s instead of 11.1
 * (measured, H200).
 */
#define SPILL_RESERVE_MOST ((uint64_t)128 << 20)
/*
 * What is kept on each device of a process with contexts on several, if a library such as NCCL is
 * loaded (exporters.def). Its kernels wait for each other there. While one waits, nothing can move,
 * and the others may still need memory to start: two H200s under JAX took more than 75 MiB and less
 * than 256 (measured). Looked for once in SPILL_RESERVE_VAIN_MS.
 */
#define SPILL_RESERVE_TOGETHER ((uint64_t)256 << 20)
/*
 * What is kept if nothing will ever move on a device of SPILL_RESERVE_DEVICE bytes or more: what code takes there
 * nobody fills up again. At most so many times device.reserve. 14 kinds of loads by PyTorch (cuBLAS, cuDNN, 40 streams, Triton, NVRTC,
 * NCCL last, ...) took more than 192 MiB and less than 256 (measured, H200).
 */
#define SPILL_RESERVE_ALONE ((uint64_t)256 << 20)
#define SPILL_RESERVE_ALONE_TIMES 4
/*
 * One part of this many of the device: the reserve grows no larger, and no more is kept from
 * requests.
 */
#define SPILL_RESERVE_PART 8
/* The driver's block for smaller requests. They share it; each one may begin a new block. */
#define SPILL_RESERVE_BLOCK ((uint64_t)2 << 20)

/*
 * Could nothing fill the reserve up again, because too little can move on the device? Found out
 * every 10 ms. False on a device of less than SPILL_RESERVE_DEVICE bytes, where the reserve would
 * be a large part. `now_ns`: the request reads the clock once, because a reading costs a tenth of
 * an allocation and its free.
 */
#define SPILL_RESERVE_DEVICE ((uint64_t)2 << 30)
bool spill_reserve_is_at_risk(const struct spill_backend *backend, int device, uint64_t now_ns);

/* Is there a reserve to look after? Chunks can move, or a device has begun to spill. Two loads. */
bool spill_reserve_any(void);

/* Bytes that a request takes from the device: most likely, and at least. */
struct spill_taking {
	uint64_t bytes, least;
};

/*
 * May the driver be asked for so much, or would that take from the reserve? Looks at free memory;
 * chunks make way for the request. True: the bytes count as taken until spill_reserve_answered.
 * True also if the driver has less than `least`, and so refuses itself. pre: spill_reserve_is_kept
 * or spill_reserve_is_at_risk; as spill_demote (demote.h)
 */
bool spill_reserve_allows(const struct spill_backend *backend, int device, const struct spill_taking *taking,
                          const char *api, const void *caller);
/*
 * The same by the last look alone, without a call to the driver. False: the last look is too old,
 * or does not allow it.
 */
bool spill_reserve_allows_at_once(int device, uint64_t bytes, uint64_t now_ns);
/* The driver has answered the question for `bytes`. */
void spill_reserve_answered(int device, uint64_t bytes);

/*
 * Looks now and then whether less than half of the reserve is free. Then gives unused memory back,
 * and demotes until the reserve is whole. Cheap while there is nothing to look after. `now_ns`: a
 * recent reading of the clock, or 0. pre: as spill_demote (demote.h)
 */
void spill_reserve_keep(const struct spill_backend *backend, int device, uint64_t now_ns, const char *api,
                        const void *caller);

/*
 * The same for a call that may load code: looks once a millisecond, and fills the whole reserve. After
 * tries in vain it looks more and more rarely, down to once in SPILL_RESERVE_VAIN_MS.
 */
void spill_reserve_whole(const struct spill_backend *backend, int device, const char *api,
                         const void *caller);

/*
 * Asks the driver for free memory. *kept: the part of the reserve that is kept from requests. False if
 * the driver does not know.
 */
bool spill_reserve_look(const struct spill_backend *backend, int device, uint64_t *free, uint64_t *kept);

/* Is less than one part of `parts` of the reserve free? False if unknown. */
bool spill_reserve_is_short(const struct spill_backend *backend, int device, unsigned parts);

/* The driver has given out `bytes`. A look follows soon. Cheap. */
void spill_reserve_taken(int device, uint64_t bytes);

/*
 * spill_reserve_keep from gates (engine.h), for the current context's device. False: there is
 * nothing to look after.
 */
bool spill_reserve_maintain(void);

/* Free memory before a load of code, and all bytes given to the program until then. */
struct spill_code_load {
	uint64_t free, given; /* free is 0 if unknown */
};

/*
 * Measures the device memory that a call takes for code: free memory before and after it. The
 * reserve grows to that, up to SPILL_RESERVE_MOST, with a note. A reserve of 0 stays 0. Not
 * measured if the program was given other memory meanwhile. Measures once a millisecond on a device
 * that has begun to spill, and always after a refusal.
 */
struct spill_code_load spill_reserve_load_begin(const struct spill_backend *backend, int device,
                                                bool refused);
void spill_reserve_load_end(const struct spill_backend *backend, int device,
                            const struct spill_code_load *load, const char *api);

/* For tests: the first state, of reserve.h too. */
void spill_reserve_keeper_reset(void);

#endif
