#include "policy.h"

enum spill_place spill_step_place(enum spill_step step)
{
	static const enum spill_place places[SPILL_STEPS] = {
	    [SPILL_STEP_TRIM] = SPILL_PLACE_DEVICE, [SPILL_STEP_DEMOTE] = SPILL_PLACE_DEVICE,
	    [SPILL_STEP_SPLIT] = SPILL_PLACE_SPLIT, [SPILL_STEP_MANAGED] = SPILL_PLACE_MANAGED,
	    [SPILL_STEP_HOST] = SPILL_PLACE_HOST,
	};

	return places[step];
}

const char *spill_step_name(enum spill_step step)
{
	/* Both make room on the device, where there is one place and not two. */
	if (step == SPILL_STEP_TRIM)
		return "trim";
	return step == SPILL_STEP_DEMOTE ? "demote" : spill_place_name(spill_step_place(step));
}

const char *spill_memory_name(enum spill_memory memory)
{
	static const char *const names[] = {
	    [SPILL_MEMORY_AUTO] = "auto",
	    [SPILL_MEMORY_DISCRETE] = "discrete",
	    [SPILL_MEMORY_INTEGRATED] = "integrated",
	    [SPILL_MEMORY_COHERENT] = "coherent",
	};

	return names[memory];
}

const char *spill_place_name(enum spill_place place)
{
	static const char *const names[SPILL_PLACES] = {
	    [SPILL_PLACE_DEVICE] = "device",   [SPILL_PLACE_SPLIT] = "split",
	    [SPILL_PLACE_MANAGED] = "managed", [SPILL_PLACE_HOST] = "host",
	    [SPILL_PLACE_MOVABLE] = "movable",
	};

	return (unsigned)place < SPILL_PLACES ? names[place] : "unknown";
}
