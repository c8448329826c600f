#include "call.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "amount.h"
#include "cli.h"
#include "nearest.h"
#include "put.h"

/* getopt_long returns this plus the option's index in the table. Letters are smaller. */
#define FIRST_ID 256

struct cli_call cli_call(int argc, char **argv)
{
	opterr = 0;
	return (struct cli_call){.argc = argc, .argv = argv, .command = cli_command_find(argv[0])};
}

static bool belongs_to_call(const struct cli_call *call, const struct cli_option *option)
{
	return option->command == cli_command_id(call->command);
}

/* Fills the tables of getopt_long: the long options, and the mode followed by the letters. */
static void fill_getopt_tables(const struct cli_call *call, struct option options[CLI_OPTIONS + 2],
                               char letters[2 * CLI_OPTIONS + 8])
{
	unsigned count = 0;

	strcpy(letters, call->command->options_first ? "+:h" : ":h");
	letters += strlen(letters);
	for (unsigned i = 0; i < CLI_OPTIONS; i++) {
		const struct cli_option *option = &cli_options[i];

		if (!belongs_to_call(call, option))
			continue;
		options[count++] =
		    (struct option){option->name, *option->argument ? required_argument : no_argument, NULL,
		                    (int)(FIRST_ID + i)};
		if (!option->letter)
			continue;
		*letters++ = option->letter;
		if (*option->argument)
			*letters++ = ':';
	}
	*letters = '\0';
	options[count++] = (struct option){"help", no_argument, NULL, 'h'};
	options[count] = (struct option){0};
}

static int unknown_option(const struct cli_call *call, const struct option *options)
{
	const char *argument = call->argv[optind - 1], *name = call->argv[0];
	size_t length = strcspn(argument, "=");
	struct spill_nearest nearest;

	/* A letter inside a group like -abc: the argument is not consumed yet. */
	if (optopt && (strncmp(argument, "--", 2) || !argument[length]))
		return cli_usage(name, "unknown option '-%c'", optopt);
	if (optopt)
		return cli_usage(name, "option '%.*s' takes no value", (int)length, argument);
	spill_nearest_begin(&nearest, argument + 2, length - 2);
	for (; options->name; options++)
		spill_nearest_offer(&nearest, options->name, strlen(options->name));
	if (spill_nearest_word(&nearest))
		return cli_usage(name, "unknown option '%s'; the nearest is '--%s'", argument,
		                 spill_nearest_word(&nearest));
	return cli_usage(name, "unknown option '%s'", argument);
}

static enum cli_option_id option_by_letter(const struct cli_call *call, int letter)
{
	unsigned i = 0;

	while (!belongs_to_call(call, &cli_options[i]) || cli_options[i].letter != letter)
		i++;
	return (enum cli_option_id)i;
}

static bool end_call(struct cli_call *call, int status)
{
	call->over = true;
	call->status = status;
	return false;
}

bool cli_call_next(struct cli_call *call)
{
	struct option options[CLI_OPTIONS + 2];
	char letters[2 * CLI_OPTIONS + 8];
	int found;

	if (call->over)
		return false;
	fill_getopt_tables(call, options, letters);
	found = getopt_long(call->argc, call->argv, letters, options, NULL);
	switch (found) {
	case -1:
		call->count = call->argc - optind;
		call->operand = call->argv + optind;
		return false;
	case 'h':
		return end_call(call, cli_help(call->argv[0]));
	case ':':
		return end_call(
		    call, cli_usage(call->argv[0], "option '%s' needs a value", call->argv[optind - 1]));
	case '?':
		return end_call(call, unknown_option(call, options));
	}
	call->option =
	    found >= FIRST_ID ? (enum cli_option_id)(found - FIRST_ID) : option_by_letter(call, found);
	call->value = optarg;
	return true;
}

void cli_call_refuse(struct cli_call *call, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	end_call(call, cli_usage_list(call->argv[0], format, arguments));
	va_end(arguments);
}

void cli_call_hint(const struct cli_call *call)
{
	const char *hint = cli_unit_forgotten(call->value);

	if (hint)
		cli_fprintf(stderr, "spill %s: --%s is %s\n", call->argv[0], cli_options[call->option].name,
		            hint);
}

void cli_call_size(struct cli_call *call, uint64_t *bytes)
{
	struct spill_amount amount = {SPILL_AMOUNT_BYTES, 0};
	size_t error_at;
	const char *reason = spill_amount_parse(call->value, 0, &amount, &error_at);

	if (reason)
		cli_call_refuse(call, "bad --%s '%s': %s", cli_options[call->option].name, call->value,
		                reason);
	else
		cli_call_hint(call);
	*bytes = amount.value;
}

bool cli_call_json(struct cli_call *call, bool *json, enum cli_option_id option)
{
	*json = false;
	while (cli_call_next(call))
		*json |= call->option == option;
	return !call->over;
}
