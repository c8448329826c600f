/*
 * Accesses of launches are not reported for a moment where they tell nothing that matters (policy/predict/learning_rest.h).
 * Their parameters are not read then, and nothing is added to the history. Maintenance goes on, and ends the rest.
 */
#ifndef SPILL_REST_H
#define SPILL_REST_H

#include <stdbool.h>

/* True: launches are not reported now. */
bool spill_rest_on(void);

/* Movable bytes were made, have moved, or have gone. Other memory on the host ends the rest at the next maintenance. */
void spill_rest_moved(void);

/* Maintenance: begins and ends rests. pre: memory is on the host, and movable.follow is auto */
void spill_rest_maintain(void);

void spill_rest_reset(void);

#endif
