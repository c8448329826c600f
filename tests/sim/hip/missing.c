/* A function for each export that the simulator lacks. It ignores its arguments. */
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
#define GONE(name) /* not exported: see version_script.sh */
#include "hip_missing_later.def"
#endif
