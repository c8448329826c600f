#include "meminfo.h"

#include "minmax.h"

/* Adds host memory if the report includes it. A sum that overflows is the maximum. */
static uint64_t add_host(enum spill_meminfo_report report, uint64_t device, uint64_t host)
{
	return report == SPILL_MEMINFO_SPILL ? spill_plus(device, host) : device;
}

uint64_t spill_meminfo_free(enum spill_meminfo_report report, uint64_t free,
                            const struct spill_meminfo_view *view)
{
	if (report == SPILL_MEMINFO_HONEST)
		return free;
	/* `held` can exceed the limit: memory of graphs cannot be refused. */
	if (view->limit != SPILL_UNLIMITED)
		free = spill_min(free, spill_minus(view->limit, view->held));
	return add_host(report, free, spill_min(view->host_room, view->host_most));
}

uint64_t spill_meminfo_total(enum spill_meminfo_report report, uint64_t total,
                             const struct spill_meminfo_view *view)
{
	if (report == SPILL_MEMINFO_HONEST)
		return total;
	return add_host(report, spill_min(total, view->limit), view->host_most);
}

void spill_meminfo_parts(enum spill_meminfo_report report, struct spill_meminfo_parts *parts,
                         const struct spill_meminfo_view *view)
{
	uint64_t free = spill_meminfo_free(report, parts->free, view);
	uint64_t total = spill_meminfo_total(report, parts->total, view);
	if (free == parts->free && total == parts->total)
		return;
	uint64_t taken = spill_minus(parts->total, parts->free);
	uint64_t apart = spill_minus(taken, parts->used);
	taken = spill_minus(total, free);
	*parts = (struct spill_meminfo_parts){.total = total,
	                                      .free = free,
	                                      .used = taken - spill_min(apart, taken),
	                                      .reserved = spill_min(parts->reserved, taken)};
}

bool spill_meminfo_can_spill(const struct spill_policy *policy, unsigned capabilities)
{
	enum spill_step step[SPILL_STEPS];
	unsigned count = spill_policy_chain(policy, capabilities, step);

	/* Free memory of the shared chips would count twice. */
	if (spill_policy_memory(policy, capabilities) == SPILL_MEMORY_INTEGRATED)
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (step[i] == SPILL_STEP_DEMOTE && policy->movable_enable != SPILL_SWITCH_OFF &&
		    capabilities & SPILL_CAN_MOVE)
			return true;
		/* TRIM and DEMOTE place on the device: that is no capability. */
		if (capabilities & 1u << spill_step_place(step[i]))
			return true;
	}
	return false;
}
