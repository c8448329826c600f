/* Runs a subcommand of `spill` on an input, and checks what it prints. */
#ifndef FUZZ_PRINTED_H
#define FUZZ_PRINTED_H

#include <stdbool.h>
#include <stddef.h>

/* Valid until the next run. */
struct fuzz_printed {
	const char *text;
	size_t length;
};

typedef int fuzz_command(int argc, char **argv);

/*
 * `words`: the arguments, the command's name first, up to NULL. Both outputs must be text that cannot steer a terminal, and the status
 * one of the command's. Returns standard output.
 */
struct fuzz_printed fuzz_run(fuzz_command *command, const char *const *words);

/* The output must be one JSON value. */
void fuzz_check_json(struct fuzz_printed printed);

/*
 * No number of the JSON may have wrapped around. Nothing is checked if the input has numbers that
 * are too large for their sums.
 */
void fuzz_check_figures(struct fuzz_printed printed, const char *input, size_t length);

#endif
