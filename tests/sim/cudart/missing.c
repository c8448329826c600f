/* One function for every export that the simulator lacks; its caller's arguments are left where they are. */
#include "cudart_entry.h"

#define MISSING(name) \
	__attribute__((visibility("default"))) cudaError_t name(void); \
	cudaError_t name(void) \
	{ \
		return cudart_missing(#name); \
	}
#include "cudart_missing.def"
