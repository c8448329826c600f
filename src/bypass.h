/* What there is in this process against movable memory, by the list policy/decide/hazards.def. */
#ifndef SPILL_BYPASS_H
#define SPILL_BYPASS_H

/* The environment says that memory is exported: why (static), or NULL. */
const char *spill_bypass_exports(void);

/*
 * Something is mapped that uses device memory around the gate: what it does (static), or NULL. Looks again only when something
 * was loaded since; one step of the loader's list otherwise.
 */
const char *spill_bypass_mapped(void);

void spill_bypass_reset(void);

#endif
