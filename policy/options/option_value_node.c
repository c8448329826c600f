/* host.numa. */
#include <string.h>

#include "option_value.h"

_Static_assert(SPILL_NODES == 1024, "as the message says");

int spill_value_node(int *field, const char *value, struct spill_error *error)
{
	size_t at = 0;
	int node = 0;

	if (!strcmp(value, "nearest")) {
		*field = SPILL_NODE_NEAREST;
		return 0;
	}
	for (; value[at] >= '0' && value[at] <= '9'; at++)
		node = node < SPILL_NODES ? node * 10 + (value[at] - '0') : SPILL_NODES;
	if (value[at] || !at || node >= SPILL_NODES || (value[0] == '0' && at > 1))
		return say_bad_number(error, "bad node ", value, value[at] ? at : 0,
		                      "it must be nearest, or a number from 0 to 1023");
	*field = node;
	return 0;
}
