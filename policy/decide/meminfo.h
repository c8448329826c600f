/*
 * What a program is told when it asks how much memory there is (meminfo.report): the driver's figures, cut to what
 * device.limit leaves, or with what the host could still take on top. Pure; the caller has the figures.
 *
 * What is told never says more free than in all, as long as the driver's figures do not.
 */
#ifndef SPILL_MEMINFO_H
#define SPILL_MEMINFO_H

#include "decide.h"

struct spill_meminfo_view {
	uint64_t limit;     /* device.limit of that device, resolved, or SPILL_UNLIMITED */
	uint64_t held;      /* bytes this process holds on the device by its own account */
	uint64_t host_most; /* bytes that may ever be spilled to host; 0 where nothing can be */
	uint64_t host_room; /* of those, what may be spilled now */
};

/* What is told for the driver's answer `free`, and for its answer `total`. */
uint64_t spill_meminfo_free(enum spill_meminfo_report report, uint64_t free,
                            const struct spill_meminfo_view *view);
uint64_t spill_meminfo_total(enum spill_meminfo_report report, uint64_t total,
                             const struct spill_meminfo_view *view);

/* What NVML tells of a device. Whether `used` counts `reserved` differs between its forms and versions: see spill_meminfo_parts. */
struct spill_meminfo_parts {
	uint64_t total, free, used, reserved;
};

/*
 * The same of free and total; what is not free is told as used, less what was in neither of the two before. So sums that hold in the
 * vendor's answer hold in what is told, and what is told of an answer that nothing cuts is that answer.
 */
void spill_meminfo_parts(enum spill_meminfo_report report, struct spill_meminfo_parts *parts,
                         const struct spill_meminfo_view *view);

/* Does oom.chain have a step that puts bytes on the host, on a device that can do `capabilities` and has memory of its own? */
bool spill_meminfo_can_spill(const struct spill_policy *policy, unsigned capabilities);

#endif
