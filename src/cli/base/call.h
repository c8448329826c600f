/* How a subcommand was called: its options, one by one, by the table (commands.def). */
#ifndef SPILL_CLI_CALL_H
#define SPILL_CLI_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "commands.h"

struct cli_call {
	enum cli_option_id option;
	const char *value; /* of the option; NULL if it takes none */
	/* Behind the last option: */
	bool
	    over; /* it has been answered: --help, or wrong use, which was said. The command ends with `status` */
	int status;
	int count;      /* of the operands */
	char **operand; /* NULL behind the last */
	/* Inside call.c: */
	int argc;
	char **argv; /* argv[0] is the subcommand's name */
	const struct cli_command *command;
};

struct cli_call cli_call(int argc, char **argv);

/* True: `option` and `value`. False behind the last, also of a call that is over. */
bool cli_call_next(struct cli_call *call);

/* For a value that is no good: says so as cli_usage does, and the call is over. */
void cli_call_refuse(struct cli_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The option's value as a size in bytes, as the policy file has them; refused if it is none, and told if its unit was probably forgotten. */
void cli_call_size(struct cli_call *call, uint64_t *bytes);

/* Says on stderr that the unit of the option's value was probably forgotten, if it was: a size of device or host memory. */
void cli_call_hint(const struct cli_call *call);

/* For a subcommand of which --json is the only option: true to go on with the operands. */
bool cli_call_json(struct cli_call *call, bool *json, enum cli_option_id option);

#endif
