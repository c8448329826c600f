/*
 * The shipped profiles: texts of policy files, profiles/NAME.conf, in the library itself. Which there are is said by the words
 * of `spill.profile` in options.def; the build has their texts in order, and a test that they are the same.
 */
#ifndef SPILL_PROFILE_H
#define SPILL_PROFILE_H

#include <stddef.h>

struct spill_profile {
	const char *name, *text;
	size_t size; /* of the text */
};

/* By the build (gen_profiles.c); an entry without a name is behind the last. */
extern const struct spill_profile spill_profiles[];

/* NULL if there is none of that name. */
const struct spill_profile *spill_profile_find(const char *name);

#endif
