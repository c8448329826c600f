/*
 * The free and total memory that a program is told (meminfo.report). These are the driver's
 * figures, reduced to device.limit, or increased by the memory that can still be spilled to the
 * host.
 *
 * Free never exceeds total, unless it does in the driver's figures.
 */
#ifndef SPILL_MEMINFO_H
#define SPILL_MEMINFO_H

#include "decide.h"

struct spill_meminfo_view {
	uint64_t limit;     /* resolved device.limit of that device, or SPILL_UNLIMITED */
	uint64_t held;      /* device bytes in this process's ledger */
	uint64_t host_most; /* most bytes that can be spilled to host; 0: the device cannot spill */
	uint64_t host_room; /* bytes that can be spilled now */
};

/* The reported value for the driver's `free` and `total`. */
uint64_t spill_meminfo_free(enum spill_meminfo_report report, uint64_t free,
                            const struct spill_meminfo_view *view);
uint64_t spill_meminfo_total(enum spill_meminfo_report report, uint64_t total,
                             const struct spill_meminfo_view *view);

/* NVML's answer for a device. Some of its versions count `reserved` in `used`, others do not. */
struct spill_meminfo_parts {
	uint64_t total, free, used, reserved;
};

/*
 * Replaces free and total as above, and adjusts `used` and `reserved`. A sum of parts that holds in
 * NVML's answer holds in the result. If free and total stay, so do the others.
 */
void spill_meminfo_parts(enum spill_meminfo_report report, struct spill_meminfo_parts *parts,
                         const struct spill_meminfo_view *view);

/* Can a step of oom.chain put bytes on the host? False for a device without memory of its own. */
bool spill_meminfo_can_spill(const struct spill_policy *policy, unsigned capabilities);

#endif
