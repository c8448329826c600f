/* Declares the functions of later releases; a program for libamdhip64.so.6 or .7 includes it beside api.h. */
#ifndef SIM_HIP_API_LATER_H
#define SIM_HIP_API_LATER_H

#include "later.h"

#pragma GCC visibility push(default)
#define API(node, ret, name, params) ret name params;
#include "api_later.def"
#pragma GCC visibility pop

#endif
