/* A function for each export that the simulator lacks. It ignores its arguments. */
#include "cudart_entry.h"

#define MISSING(name) \
	__attribute__((visibility("default"))) cudaError_t name(void); \
	cudaError_t name(void) \
	{ \
		return cudart_missing(#name); \
	}
#include "cudart_missing.def"
