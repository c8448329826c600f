/* JSON of any length, on standard output or into a page, value by value; one at a time. spill_json_* (policy/text/json.h) go in between. */
#ifndef SPILL_CLI_JSON_OUT_H
#define SPILL_CLI_JSON_OUT_H

#include <stdio.h>

#include "json.h"
#include "record.h"

void cli_json_begin(struct spill_json *json);

/*
 * The same inside an HTML page: what could end a <script>, begin a comment in one, or be a line's end in older JavaScript is
 * written as an escape, so that no text of a log can be anything but text. In texts a ? stands for
 * each character that is not shown, as in cli_put.
 */
void cli_json_begin_page(struct spill_json *json, FILE *page);

/* The line's end. */
void cli_json_end(struct spill_json *json);

/* A member's name; its value follows. What was built so far is written, so that there is room for any value. */
struct spill_json *cli_json_key(struct spill_json *json, const char *name);

/* Before an element of an array that may be long: the same for it. */
struct spill_json *cli_json_element(struct spill_json *json);

/* A text as an element of an array, cut as a member's is. */
void cli_json_text_element(struct spill_json *json, const char *text);

/* Members; a text NULL is null, and a text is cut at 8 KiB. */
void cli_json_text(struct spill_json *json, const char *member, const char *text);
void cli_json_number(struct spill_json *json, const char *member, uint64_t value);
void cli_json_truth(struct spill_json *json, const char *member, bool value);
void cli_json_bytes(struct spill_json *json, const char *member, const struct spill_bytes *sums);

/* "dev": null if there is none */
void cli_json_device(struct spill_json *json, int device);

#endif
