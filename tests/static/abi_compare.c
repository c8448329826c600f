/* Prints every value of src/vendor/abi/ that differs from the vendor's own header; fails if there is one. */
#include <stdio.h>

#include "abi_table.h"

int main(void)
{
	unsigned wrong = abi_ours_count != abi_theirs_count;

	for (unsigned i = 0; i < abi_ours_count && i < abi_theirs_count; i++) {
		const struct abi_value *ours = &abi_ours[i], *theirs = &abi_theirs[i];

		if (ours->value == theirs->value && ours->extra == theirs->extra)
			continue;
		printf("%s: ours %lld (%lld), the vendor's %lld (%lld)\n", ours->name, ours->value,
		       ours->extra, theirs->value, theirs->extra);
		wrong++;
	}
	printf("%u values compared, %u differ\n", abi_ours_count, wrong);
	return wrong != 0;
}
