/*
 * base: what all rooms of the `spill` command share. commands.def is the table of subcommands and
 * options. call.h reads options; put.h and json_out.h print. This header has usage errors, memory
 * and opening files.
 *
 * It knows no subcommand: it never looks into a log, a policy, a process or a driver. Begin with
 * commands.def.
 *
 * Exit of a command: 0 fine, 1 findings, 2 usage.
 */
#ifndef SPILL_CLI_H
#define SPILL_CLI_H

/* The subcommands' functions. argv[0] is the subcommand's name. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

enum { CLI_FINE = 0, CLI_FINDINGS = 1, CLI_USAGE = 2 };

#define COMMAND(name, operands, word, options_first, summary, about) int cli_##name(int argc, char **argv);
#include "commands.def"

/* Prints an error of usage and a pointer to --help. Returns CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

int cli_usage_list(const char *command, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Prints "spill COMMAND: PATH: WHY" on stderr. Returns false. */
bool cli_complain(const char *command, const char *path, const char *why);

/* help.c: prints the help of a subcommand, or the list of all. Returns CLI_FINE. */
int cli_help(const char *command);
int cli_help_all(void);

/* A failed write turns the status into CLI_FINDINGS. */
int cli_finish(int status);

/*
 * Returns "6 bytes; did you mean 6GiB or 6MiB?" for a memory size from 1 byte to 1 MiB without a
 * unit, else NULL. It is a hint only: a number without a unit means bytes. Valid until the next
 * call. cli_option_unit_forgotten checks a value of an option or of a rule's key, up to the size that
 * its kind has for this (spill_option_least_meant).
 */
const char *cli_unit_forgotten(const char *value);
struct spill_option;
const char *cli_option_unit_forgotten(const struct spill_option *row, const char *value);

/* Memory. Without memory these print an error and end the command with status 1. */
/* Resizes `old`, which may be NULL, to count * size bytes. */
void *cli_realloc(void *old, size_t count, size_t size);

/* Makes room for one more element of `each` bytes when `used` of *size are taken. Updates *size. */
void *cli_grow(void *old, size_t used, size_t *size, size_t each);

/* Copies a text; the caller frees it. NULL for NULL. */
char *cli_strdup(const char *text);

/* Files. A FIFO or device in a folder of logs must not block the command. */
enum cli_files {
	CLI_REGULAR, /* for files found in a folder */
	/* for files that the user names: /dev/stdin and <(zcat x.gz) are pipes */
	CLI_REGULAR_OR_PIPE,
};

/* Opens a file of these kinds. Returns -1 and sets *error on failure. */
int cli_open(const char *path, enum cli_files files, int *error);

/* The message for an *error of cli_open. Valid until the next call. */
const char *cli_open_text(int error);

/* True if both describe one file. */
static inline bool cli_is_same_file(const struct stat *left, const struct stat *right)
{
	return left->st_dev == right->st_dev && left->st_ino == right->st_ino;
}

#endif
