/*
 * residency: moves chunks between device and host while the program's pointers stay. It does not
 * predict which memory the program will use (prefetch/). Begin with demote.h, promote.h and
 * exchange.h, then move_batch.h.
 *
 * This header decides whether allocations of the process are made movable. That depends on the
 * options, on the device, and on hazards (policy/decide/hazards.def). Each reason against it is
 * noted once, when memory would have been made movable or moved. With movable.enable = on the user
 * states that only the functions of the table use the memory. Even then spill_movable_forbid holds.
 */
#ifndef SPILL_MOVABLE_H
#define SPILL_MOVABLE_H

#include "backend.h"

/*
 * Shall a plain device allocation of `bytes` be made movable? `chunks`: as in the decision
 * (policy.h); ON: however empty the device is. movable.enable = off and movable.min hold for all.
 * The driver is rarely asked for free memory, and never for a request below movable.min. A program
 * below movable.above sees no other call of ours. pre: a context is current; the request is charged
 * to the device's account; no lock of ours is held
 */
bool spill_movable_wanted(const struct spill_backend *backend, int device, uint64_t bytes,
                          enum spill_switch chunks);

/*
 * The vendor's pool has served a request. Without a limit that is charged to no account, so it is
 * noted here for the question whether more than movable.above is in use.
 */
void spill_movable_pool_served(int device, uint64_t bytes);

/*
 * May chunks move now? False also if a library was mapped that submits work around the gate. pre:
 * no lock of ours but the mover is held
 */
bool spill_movable_may_move(const struct spill_backend *backend, int device);

/*
 * True: nothing on the device will ever move, by the policy, for the device or its driver, or for a reason of
 * spill_movable_forbid. Asks no driver, and notes nothing.
 */
bool spill_movable_never(int device);

/*
 * From now on no memory is made movable or moved, for this reason (a static string): a green
 * context, an export …
 */
void spill_movable_forbid(const char *reason);

/* In a forked child: forgets all. */
void spill_movable_reset(void);

/* -- trial of a device (probe.c) --------------------------------------------------------------- */

/*
 * Tries whether chunks can be moved on a device. The trial makes and maps a chunk on either side,
 * copies bytes to both and back, and compares. It also lets the driver mark the end of all work of
 * a context.
 */
enum spill_probe {
	SPILL_PROBE_WORKS,
	SPILL_PROBE_FAILS, /* final: no need to try again */
	SPILL_PROBE_LATER, /* no memory for the trial now, or no context */
};

/* Waits for no work of the program. pre: no lock of ours but the mover is held; nothing captures */
enum spill_probe spill_probe(const struct spill_backend *backend, int device);

/* -- scan for hazards (hazard_scan.c) ---------------------------------------------------------- */

/*
 * Hazards for movable memory in this process, by the list policy/decide/hazards.def. NULL, or why
 * the environment says that memory is exported (static).
 */
const char *spill_hazard_scan_exports(void);

/*
 * NULL, or the effect of a mapped library that uses device memory around the gate (static). Scans
 * again only after a load. Without one, it is one step of the loader's list.
 */
const char *spill_hazard_scan_mapped(void);

void spill_hazard_scan_reset(void);

#endif
