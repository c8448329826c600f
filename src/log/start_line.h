/* The log's first line: program, machine, devices and policy (docs/log-format.md). */
#ifndef SPILL_START_LINE_H
#define SPILL_START_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spill_log_start;

/* {0} is none. */
struct spill_start_line {
	char *text; /* with its newline; NULL: no memory */
	size_t length;
	size_t first; /* its length in the first piece */
	void *pages;  /* mapped until spill_start_release */
	size_t pages_size;
};

/* Never fails. Leaves out unknown facts, and arguments that do not fit ("cut":true). */
void spill_start_compose(struct spill_start_line *line, const struct spill_log_start *start,
                         const char *program);

/* Changes it for the next piece of the run: `lines` lines are in the pieces before. pre: text */
void spill_start_continue(struct spill_start_line *line, uint64_t lines);

void spill_start_release(struct spill_start_line *line);

struct spill_redact {
	bool next;  /* the last argument was a secret's option without its value */
	bool count; /* that option may take a number of tokens */
	bool list;  /* the last argument was such a value: the option may take several */
};

/*
 * Returns the number of bytes of `argument` that may be shown; the rest is a secret. Call it for
 * each argument, in order.
 *
 * A value is secret by its name: a name with a word like key, token, secret, password, credential
 * or auth. The name may be that of an option, of NAME=VALUE, of a header or of a JSON member,
 * anywhere in the argument. All values of an option are secret, up to the next option. By its form
 * a login is secret, user:password@ in a URL or an Authorization header, and so is a token of a
 * known service.
 */
size_t spill_redact_shown(struct spill_redact *state, const char *argument);

#endif
