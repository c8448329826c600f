/* Values of a policy file that are valid and yet do not mean what their user thinks. */
#include <string.h>

#include "cli.h"
#include "policy_file.h"

void cli_check_value(struct cli_policy_file *file, const struct spill_option *row, const char *name,
                     const char *value, unsigned line)
{
	const char *hint = cli_option_unit_forgotten(row, value);
	const char *end = strstr(value, "..") ? "an end of " : "";

	if (hint)
		cli_policy_file_warn(file, line, "%s%s is %s", end, name, hint);
}
