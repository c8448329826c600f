/* Reads a subcommand's options one by one, by the table (commands.def). */
#ifndef SPILL_CLI_CALL_H
#define SPILL_CLI_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "commands.h"

struct cli_call {
	enum cli_option_id option;
	const char *value; /* the option's value; NULL if it takes none */
	/* Set after the last option: */
	bool
	    /* true: the command must end with `status`, because --help or an error was printed */
	    over;
	int status;
	int count;      /* number of operands */
	char **operand; /* ends with NULL */
	/* Private to call.c: */
	int argc;
	char **argv; /* argv[0] is the subcommand's name */
	const struct cli_command *command;
};

struct cli_call cli_call(int argc, char **argv);

/* True: sets `option` and `value`. False: no more options, or the call is over. */
bool cli_call_next(struct cli_call *call);

/* Prints a usage error for a bad value. The call is then over. */
void cli_call_refuse(struct cli_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads the value as a size. Refuses a bad one, and hints at a missing unit. */
void cli_call_size(struct cli_call *call, uint64_t *bytes);

/* Prints a hint on stderr if the value looks like a memory size without its unit. */
void cli_call_hint(const struct cli_call *call);

/* For a subcommand with --json as its only option. True: go on with the operands. */
bool cli_call_json(struct cli_call *call, bool *json, enum cli_option_id option);

#endif
