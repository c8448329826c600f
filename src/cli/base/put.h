/*
 * Output for people. Names of files and programs, arguments, variables and texts of logs come from
 * others: nothing in them may steer the terminal. So printf and fprintf print no text in the command;
 * tests/static/prints.py checks it.
 */
#ifndef SPILL_CLI_PUT_H
#define SPILL_CLI_PUT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "record.h"

/* With a ? in place of each character that is not shown (spill_text_character). NULL is "?". */
void cli_put(FILE *out, const char *text);

/* As printf, but %s and %c are written as cli_put does. Other conversions are d, i, u, x, e, f, g. */
void cli_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_fprintf(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_vfprintf(FILE *out, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));

/* Writes the same values, with an escape for each character that is not shown. pre: valid JSON */
void cli_put_json_line(FILE *out, const char *line, size_t length);

/* "2.04 GiB" */
void cli_put_size(FILE *out, uint64_t bytes);

/* The same in a column of a table; "-" of 0. */
void cli_put_size_at(FILE *out, uint64_t bytes);

/* "5.00 GiB device, 2.04 GiB host", what is 0 left out; "nothing" if all is. */
void cli_put_sums(FILE *out, const struct spill_bytes *sums);

/* "; tried device: CUDA_ERROR_OUT_OF_MEMORY, split: host.limit" */
void cli_put_tried(FILE *out, const struct spill_attempt *tried, unsigned count);

#endif
