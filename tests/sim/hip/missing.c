/* One function for every export that the simulator lacks; its caller's arguments are left where they are. */
#include "runtime.h"

#define MISSING(node, name) \
	__attribute__((visibility("default"))) hipError_t name(void); \
	hipError_t name(void) \
	{ \
		return hip_missing(#name); \
	}
#include "missing.def"
