#include "profile.h"

#include <string.h>

const struct spill_profile *spill_profile_find(const char *name)
{
	for (const struct spill_profile *profile = spill_profiles; profile->name; profile++) {
		if (!strcmp(profile->name, name))
			return profile;
	}
	return NULL;
}
