/* What there is in this process against movable memory, by the list hazards.def. */
#ifndef SPILL_HAZARD_SCAN_H
#define SPILL_HAZARD_SCAN_H

/* The environment says that memory is exported: why (static), or NULL. */
const char *spill_hazard_scan_exports(void);

/*
 * Something is mapped that uses device memory around the gate: what it does (static), or NULL. Looks again only when something
 * was loaded since; one step of the loader's list otherwise.
 */
const char *spill_hazard_scan_mapped(void);

void spill_hazard_scan_reset(void);

#endif
