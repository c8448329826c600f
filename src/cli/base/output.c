/* Words on wrong use, items and strings of what a command prints, and the end of its output. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "cli.h"
#include "json.h"
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

int cli_finish(int status)
{
	if (fflush(stdout) || ferror(stdout)) {
		perror("spill: standard output");
		return CLI_FINDINGS;
	}
	return status;
}

void cli_print_json_string(FILE *out, const char *text)
{
	size_t most = 6 * strlen(text) + 3; /* an escape is six bytes for one */
	char *buffer = cli_room(NULL, most, 1);
	struct spill_json json;

	spill_json_begin(&json, buffer, most);
	spill_json_string(&json, text);
	fwrite(buffer, 1, json.length, out);
	free(buffer);
}

void cli_print_item(FILE *out, const char *text, bool json, bool *any)
{
	if (json) {
		fputs(*any ? "," : "", out);
		cli_print_json_string(out, text);
	} else {
		cli_fprintf(out, "%s\n", text);
	}
	*any = true;
}
