/* One function for every export that the simulator lacks; its caller's arguments are left where they are. */
#include "hip_entry.h"

#define STAND_IN(name) \
	__attribute__((visibility("default"))) hipError_t name(void); \
	hipError_t name(void) \
	{ \
		return hip_missing(#name); \
	}

#define MISSING(node, name) STAND_IN(name)
#include "hip_missing.def"

#if HIP_RELEASE >= 6
#define MISSING(node, name) STAND_IN(name)
#define GONE(name) /* the version script leaves it out */
#include "hip_missing_later.def"
#endif
