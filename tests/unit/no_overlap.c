/* In place of overlap.c, for tests whose movable.follow is not overlap, and whose exchanges are their own. */
#include "overlap.h"

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
