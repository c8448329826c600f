/*
 * What is done now and then while something is movable, by threads that submit work (gate.h: at most once a millisecond):
 * there is no thread for it.
 */
#ifndef SPILL_MAINTENANCE_H
#define SPILL_MAINTENANCE_H

/* pre: this thread is not inside the gate, no lock of ours is held. errno may change */
void spill_maintain(void);

#endif
