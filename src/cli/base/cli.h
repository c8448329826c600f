/*
 * base: what all rooms of the `spill` command share. The table of subcommands and options
 * (commands.def), the reading of options (call.h), help, text and JSON for people (put.h,
 * json_out.h), files (open_file.h) and memory (alloc.h).
 *
 * It knows no subcommand: it never looks into a log, a policy, a process or a driver. Begin with
 * commands.def.
 *
 * Exit of a command: 0 fine, 1 findings, 2 usage.
 */
#ifndef SPILL_CLI_H
#define SPILL_CLI_H

/* argv[0] is the subcommand's name; how it is read: call.h. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CLI_FINE = 0, CLI_FINDINGS = 1, CLI_USAGE = 2 };

#define COMMAND(name, operands, word, options_first, summary, about) int cli_##name(int argc, char **argv);
#define OPTION(command, name, letter, argument, word, text)
#define EXAMPLE(command, line)
#include "commands.def"

/* What is wrong with how `command` was called, and where help is; returns CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

int cli_usage_list(const char *command, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* help.c: the subcommand's help, and the list of subcommands; CLI_FINE. */
int cli_help(const char *command);
int cli_help_all(void);

/* End of a command that printed facts: output that could not be written is a finding. */
int cli_finish(int status);

/* A JSON string with its quotes. Text of logs and file names may hold anything. */
void cli_print_json_string(FILE *out, const char *text);

/* A line; or an item of a JSON array, behind a comma if there were *any. */
void cli_print_item(FILE *out, const char *text, bool json, bool *any);

/*
 * forgotten_unit.c: "6 bytes; did you mean 6GiB or 6MiB?" of a size of device or host memory without a unit that is not 0 and less than
 * 1 MiB; else NULL. Good until the next call. It is no error: a number without a unit is bytes. The second is about the value of
 * an option, if it is one of device.* or host.*.
 */
const char *cli_unit_forgotten(const char *value);
const char *cli_option_unit_forgotten(unsigned slot, const char *value);

#endif
