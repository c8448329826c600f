/*
 * movable.audit: checks that kernels reach memory through their parameters, as movable.follow = overlap needs it.
 * Movable chunks that a launch does not name are not mapped while it runs, and each launch is waited for. So a kernel
 * that uses one ends with an illegal address, and the log has its name. Graphs, and launches whose parameters nobody
 * knows, are not checked: for them all memory is mapped, as for flights. Nothing is brought meanwhile.
 */
#ifndef SPILL_AUDIT_H
#define SPILL_AUDIT_H

#include "launch_access.h"

bool spill_audit_wanted(void); /* by the policy. */

/*
 * In place of spill_before_launch; the launch may name no chunk. Unmaps what it does not name. The result is for
 * spill_after_launch; NULL: the launch is not checked. Keeps errno.
 */
void *spill_audit_before(const struct spill_launch_access *access);

/* Waits for the launch, and notes how it ended. False: `audited` is no result of the above. */
bool spill_audit_after(const void *audited);

/* Notes how many launches were checked. At the end of the process. */
void spill_audit_tell(void);

void spill_audit_reset(void); /* in a forked child */

#endif
