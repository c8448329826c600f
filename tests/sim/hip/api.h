/* Declares HIP's functions for programs built without AMD's headers, and for the simulator itself. */
#ifndef SIM_HIP_API_H
#define SIM_HIP_API_H

#include "abi/hip.h"

#pragma GCC visibility push(default)
#define API(node, ret, name, params) ret name params;
#include "api.def"
#pragma GCC visibility pop

#endif
