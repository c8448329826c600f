#include "policy.h"

const char *spill_place_name(enum spill_place place)
{
	static const char *const names[SPILL_PLACES] = {
	    [SPILL_PLACE_DEVICE] = "device",
	    [SPILL_PLACE_SPLIT] = "split",
	    [SPILL_PLACE_MANAGED] = "managed",
	    [SPILL_PLACE_HOST] = "host",
	};

	return (unsigned)place < SPILL_PLACES ? names[place] : "unknown";
}
