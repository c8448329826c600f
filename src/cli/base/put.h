/*
 * Output for people. Texts come from others: names of files and programs, arguments, variables,
 * logs. They must not control the terminal, so no text is printed with printf or fprintf.
 * tests/static/prints.py checks this.
 */
#ifndef SPILL_CLI_PUT_H
#define SPILL_CLI_PUT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "record.h"
#include "text.h"

/*
 * As printf, but %s and %c print "?" for each unprintable character (spill_text_character), and for
 * NULL. The other conversions are d, i, u, x, e, f and g.
 */
void cli_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_fprintf(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_vfprintf(FILE *out, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));

/* Writes the JSON line with an escape for each unprintable character. pre: valid JSON */
void cli_put_json_line(FILE *out, const char *line, size_t length);

/* "1 line", "2 lines". */
struct spill_word cli_count(uint64_t count, const char *noun);

/* The size in a table's column; "-" for 0. */
struct spill_word cli_size_or_dash(uint64_t bytes);

/* "12.345678" seconds */
struct spill_word cli_seconds(uint64_t us);

/* "13.0" of CUDA's 13000, "6.4.43484" of HIP's 60443484. */
struct spill_word cli_driver_version(const char *backend, int driver);

/* "; tried device: CUDA_ERROR_OUT_OF_MEMORY, split: host.limit" */
void cli_put_tried(FILE *out, const struct spill_attempt *tried, unsigned count);

#endif
