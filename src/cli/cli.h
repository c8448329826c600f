/* The `spill` command: one table of subcommands (main.c), one file each. Exit: 0 fine, 1 findings, 2 usage. */
#ifndef SPILL_CLI_H
#define SPILL_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CLI_FINE = 0, CLI_FINDINGS = 1, CLI_USAGE = 2 };

struct cli_command {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name */
	const char *summary;
	const char *help; /* usage and examples */
};

int cli_run(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_log(int argc, char **argv);
int cli_policy(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_version(int argc, char **argv);

/* What is wrong with how `command` was called, and where help is; returns CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of the option that getopt_long has just answered '?' to, with the nearest of `options`. */
struct option;
int cli_unknown_option(const char *command, char **argv, const struct option *options);

/* Prints the subcommand's help; returns CLI_FINE. */
int cli_help(const char *command);

/*
 * For a subcommand whose options are --json and --help only: true to go on with the arguments from
 * `optind`; false to end with *status.
 */
bool cli_plain_options(int argc, char **argv, bool *json, int *status);

/* End of a command that printed facts: output that could not be written is a finding. */
int cli_finish(int status);

/* A JSON string with its quotes. Text of logs and file names may hold anything. */
void cli_print_json_string(FILE *out, const char *text);

/* log_text.c: one record as a line for people. */
struct spill_record;
void cli_print_record(FILE *out, const struct spill_record *record);

/*
 * log_rules.c: counts the requests of each rule, record by record; a start line begins anew. Prints a line a rule, behind all
 * records of a run; nothing if not every request has its line (log.level, log.max).
 */
void cli_rules_take(const struct spill_record *record);
void cli_rules_print(FILE *out);

/* A rule and its source, FILE:LINE: one line, or a JSON object. */
struct spill_rule;
void cli_print_rule(const struct spill_rule *rule, const char *source, bool json);

#endif
