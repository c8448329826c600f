/* Values of a policy file that are valid and yet do not mean what their user thinks. */
#include <string.h>

#include "cli.h"
#include "glob.h"
#include "nearest.h"
#include "policy_file.h"
#include "request_names.h"

/* -- texts that stay as they are --------------------------------------------------------------- */

static bool is_quoted(const char *value)
{
	size_t length = strlen(value);

	return length > 1 && strchr("\"'", value[0]) && value[length - 1] == value[0];
}

/* $HOME or ${HOME} in the value, or NULL. A lone $ may be a part of a name. */
static const char *find_variable(const char *value)
{
	const char *dollar = value;

	while ((dollar = strchr(dollar, '$')) != NULL) {
		char next = *++dollar;

		if (next == '{' || next == '_' || (next >= 'A' && next <= 'Z') ||
		    (next >= 'a' && next <= 'z'))
			return dollar - 1;
	}
	return NULL;
}

static int variable_length(const char *variable)
{
	size_t braces = variable[1] == '{' ? strcspn(variable, "}") + 1 : 0;

	return (int)(braces ? braces : 1 + strcspn(variable + 1, "/%.-$"));
}

/* The library reads no shell's syntax in paths and patterns. */
static void check_shell(struct cli_policy_file *file, const struct spill_option *row, const char *value,
                        unsigned line)
{
	const char *variable = find_variable(value);
	bool path = row->kind == SPILL_OPTION_PATH;

	if (is_quoted(value))
		cli_policy_file_warn(file, line,
		                     "%s = %s: the quotes count as part of the %s; write it without them",
		                     row->key, value, path ? "path" : "name");
	if (variable)
		cli_policy_file_warn(file, line,
		                     "%s = %s: %.*s stays as it is, as a policy knows no variables; write %s",
		                     row->key, value, variable_length(variable), variable,
		                     path ? "the whole path, or ~/ for the home folder" : "* for any text");
}

void cli_check_app_name(struct cli_policy_file *file, const char *name, unsigned line)
{
	if (is_quoted(name))
		cli_policy_file_warn(file, line,
		                     "[app %s]: the quotes count as part of the name; write it without them",
		                     name);
}

/* -- patterns that match nothing --------------------------------------------------------------- */

/* The library's own comparison, by a rule with this key only. */
static bool matches_a_request(const char *api)
{
	static struct spill_rules one = {.count = 1}; /* large */
	bool matches = false;

	one.rule[0].set = SPILL_RULE_HAS_API;
	memcpy(one.rule[0].api, api, strlen(api) + 1);
	for (const char *const *name = cli_request_names; *name && !matches; name++)
		matches = spill_rules_of(&one, *name, "");
	return matches;
}

static void check_api(struct cli_policy_file *file, const char *api, unsigned line)
{
	struct spill_nearest nearest;
	const char *near;

	if (matches_a_request(api))
		return;
	spill_nearest_begin(&nearest, api, strlen(api));
	for (const char *const *name = cli_request_names; *name; name++)
		spill_nearest_offer(&nearest, *name, strlen(*name));
	near = spill_nearest_word(&nearest);
	cli_policy_file_warn(
	    file, line,
	    "api = %s never matches: no function that allocates device memory has this name; %s%s", api,
	    near ? "the nearest is " : "such functions are cudaMalloc, cuMemAlloc, cuMemCreate and hipMalloc",
	    near ? near : "");
}

/* Bytes of an offset at the end, as in libx.so+0x1a2b of the log; 0: none. */
static size_t offset_length(const char *caller)
{
	const char *plus = strrchr(caller, '+');

	if (!plus || strncmp(plus, "+0x", 3) || !plus[3] || plus[3 + strspn(plus + 3, "0123456789abcdef")])
		return 0;
	return strlen(plus);
}

/* "libx" of a library libx.so: it is in a path or alone, without a pattern. */
static bool lacks_suffix(const char *caller)
{
	const char *name = spill_file_name(caller);

	return !strncmp(name, "lib", 3) && !name[strcspn(name, ".*?")] && name[3];
}

static void check_caller(struct cli_policy_file *file, const char *caller, unsigned line)
{
	size_t offset = offset_length(caller);

	if (offset)
		cli_policy_file_warn(file, line,
		                     "caller = %s never matches: it is compared with the library's file, "
		                     "without an address; write %.*s",
		                     caller, (int)(strlen(caller) - offset), caller);
	else if (strstr(caller, ".py:"))
		cli_policy_file_warn(
		    file, line,
		    "caller = %s never matches: a rule knows the library that calls, and no Python function",
		    caller);
	else if (lacks_suffix(caller))
		cli_policy_file_warn(file, line,
		                     "caller = %s matches no library, but a program of that name: a "
		                     "library's file has .so in its name; "
		                     "write %s.so*",
		                     caller, caller);
}

/* -- all of them ------------------------------------------------------------------------------- */

void cli_check_value(struct cli_policy_file *file, const struct spill_option *row, const char *name,
                     const char *value, unsigned line)
{
	const char *hint = cli_option_unit_forgotten(row, value);
	const char *end = strstr(value, "..") ? "an end of " : "";

	if (hint)
		cli_policy_file_warn(file, line, "%s%s is %s", end, name, hint);
	switch (row->kind) {
	case SPILL_OPTION_SYMBOL:
		check_api(file, value, line);
		break;
	case SPILL_OPTION_GLOB:
		check_caller(file, value, line);
		check_shell(file, row, value, line);
		break;
	case SPILL_OPTION_PATH:
	case SPILL_OPTION_NAME:
		check_shell(file, row, value, line);
		break;
	default:
		break;
	}
}
