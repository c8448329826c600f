/*
 * Memory pressure, by the kernel's own account of time lost to it (PSI): the share of the last 10 seconds in which all tasks
 * that were not idle waited for memory.
 */
#ifndef SPILL_PRESSURE_H
#define SPILL_PRESSURE_H

#include <stdbool.h>

/* Is more than a fifth of the time lost, by that file? One that is missing says no. */
bool spill_pressure_on(const char *path);

#endif
