/* Small functions of all rooms: usage errors, printed items, memory, and hints at missing units. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "amount.h"
#include "cli.h"
#include "options.h"
#include "put.h"

int cli_usage_list(const char *command, const char *format, va_list arguments)
{
	cli_fprintf(stderr, "spill%s%s: ", *command ? " " : "", command);
	cli_vfprintf(stderr, format, arguments);
	cli_fprintf(stderr, "\ntry: spill %s%s--help\n", command, *command ? " " : "");
	return CLI_USAGE;
}

int cli_usage(const char *command, const char *format, ...)
{
	va_list arguments;
	int status;

	va_start(arguments, format);
	status = cli_usage_list(command, format, arguments);
	va_end(arguments);
	return status;
}

bool cli_complain(const char *command, const char *path, const char *why)
{
	cli_fprintf(stderr, "spill %s: %s: %s\n", command, path, why);
	return false;
}

int cli_finish(int status)
{
	fflush(stdout);
	if (ferror(stdout)) { /* of any write */
		perror("spill: standard output");
		return CLI_FINDINGS;
	}
	return status;
}

/* -- memory ----------------------------------------------------------------------------------- */

void *cli_realloc(void *old, size_t count, size_t size)
{
	void *memory = reallocarray(old, count ? count : 1, size);

	if (!memory) {
		perror("spill");
		exit(CLI_FINDINGS);
	}
	return memory;
}

void *cli_grow(void *old, size_t used, size_t *size, size_t each)
{
	if (used < *size)
		return old;
	*size = *size ? *size * 2 : 16;
	return cli_realloc(old, *size, each);
}

char *cli_strdup(const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;

	return text ? memcpy(cli_realloc(NULL, size, 1), text, size) : NULL;
}

/* -- missing units ---------------------------------------------------------------------------- */

#define LEAST_MEANT (1u << 20) /* nobody means a smaller limit of memory, except 0 */

/* shares: the value may be a percentage. */
static const char *unit_forgotten(const char *value, uint64_t least_meant, bool shares)
{
	static char hint[96];
	struct spill_amount amount;
	size_t error_at;

	if (strspn(value, "0123456789") != strlen(value) ||
	    spill_amount_parse(value, 0, &amount, &error_at) || !amount.value || amount.value >= least_meant)
		return NULL;
	/* A small number may mean either unit. No card has 1024 GiB or more. */
	if (shares && amount.value <= 100)
		snprintf(hint, sizeof(hint), "%s bytes; did you mean %s%%, %sGiB or %sMiB?", value, value,
		         value, value);
	else if (amount.value < 1024)
		snprintf(hint, sizeof(hint), "%s bytes; did you mean %sGiB or %sMiB?", value, value, value);
	else
		snprintf(hint, sizeof(hint), "%s bytes; did you mean %sMiB?", value, value);
	return hint;
}

const char *cli_unit_forgotten(const char *value)
{
	return unit_forgotten(value, LEAST_MEANT, false);
}

const char *cli_option_unit_forgotten(const struct spill_option *row, const char *value)
{
	uint64_t least_meant = spill_option_least_meant(row);
	bool shares = row->kind == SPILL_OPTION_SHARE || row->kind == SPILL_OPTION_LIMIT;
	const char *dots = strstr(value, ".."), *hint;
	char first[32] = "";

	if (!dots)
		return unit_forgotten(value, least_meant, shares);
	/* A range. An end without a unit has at most 20 digits. */
	if ((size_t)(dots - value) < sizeof(first))
		memcpy(first, value, (size_t)(dots - value));
	hint = unit_forgotten(first, least_meant, shares);
	return hint ? hint : unit_forgotten(dots + 2, least_meant, shares);
}
