/* Declares the runtime's functions for programs built without NVIDIA's headers, and for the simulator itself. */
#ifndef SIM_CUDART_API_H
#define SIM_CUDART_API_H

#include "abi/cuda.h"
#include "abi/cudart.h"

#include "graph_types.inc"

#pragma GCC visibility push(default)
#define API(ret, name, params) ret name params;
#include "api.def"
#pragma GCC visibility pop

#endif
