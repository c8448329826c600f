/* Writes JSON of any length value by value, one at a time. spill_json_* may come between. */
#ifndef SPILL_CLI_JSON_OUT_H
#define SPILL_CLI_JSON_OUT_H

#include <stdio.h>

#include "json.h"
#include "record.h"

void cli_json_begin(struct spill_json *json);

/*
 * Writes inside an HTML page. Characters that could end the <script> or begin a comment are
 * escaped, and so are line ends of older JavaScript. Unprintable characters of texts become "?".
 */
void cli_json_begin_page(struct spill_json *json, FILE *page);

/* Ends the line. */
void cli_json_end(struct spill_json *json);

/* Writes a member's name. Everything before is written out first, so any value fits. */
struct spill_json *cli_json_key(struct spill_json *json, const char *name);

/* Call this before each element of a long array, for the same reason. */
struct spill_json *cli_json_element(struct spill_json *json);

/* A text in an array, cut at 8 KiB. */
void cli_json_text_element(struct spill_json *json, const char *text);

/* Members. A NULL text becomes null; a text is cut at 8 KiB. */
void cli_json_text(struct spill_json *json, const char *member, const char *text);
void cli_json_number(struct spill_json *json, const char *member, uint64_t value);
void cli_json_bool(struct spill_json *json, const char *member, bool value);
void cli_json_bytes(struct spill_json *json, const char *member, const struct spill_bytes *sums);

/* "dev"; null for a negative number */
void cli_json_device(struct spill_json *json, int device);

/* A rate with three decimals; null for 0. */
void cli_json_rate(struct spill_json *json, const char *member, double rate);

/* Prints a line, or an element of an array; json NULL: a line. */
void cli_print_item(struct spill_json *json, const char *text);

#endif
