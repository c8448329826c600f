/* In place of overlap.c and audit.c, for tests without either, whose exchanges are their own. */
#include "audit.h"
#include "overlap.h"

bool spill_audit_wanted(void)
{
	return false;
}

bool spill_audit_after(const void *audited)
{
	return false;
}

void spill_audit_reset(void)
{
}

bool spill_overlap_wanted(void)
{
	return false;
}

bool spill_overlap_bring(const struct spill_launch_access *access, const struct spill_access_advice *advice)
{
	return false;
}

void spill_overlap_ahead(const struct spill_launch_access *access, const struct spill_access_advice *advice)
{
}

void spill_overlap_reset(void)
{
}

bool spill_overlap_away(void)
{
	return false;
}
