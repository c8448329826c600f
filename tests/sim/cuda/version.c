/*
 * The version of the driver. The usual library is of 13.0, and has some functions that came later.
 * With VERSION it is of another version and has no later ones (exports.c).
 */
#include <limits.h>

#include "cuda_entry.h"

#ifdef VERSION
const int driver_version = VERSION, driver_newest = VERSION;
#else
const int driver_version = 13000, driver_newest = INT_MAX;
#endif
