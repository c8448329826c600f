/* JSON of any length on standard output, value by value; one at a time. spill_json_* (policy/json.h) go in between. */
#ifndef SPILL_CLI_JSON_OUT_H
#define SPILL_CLI_JSON_OUT_H

#include "json.h"
#include "names.h"
#include "record.h"

void cli_json_begin(struct spill_json *json);

/* The line's end. */
void cli_json_end(struct spill_json *json);

/* A member's name; its value follows. What was built so far is written, so that there is room for any value. */
struct spill_json *cli_json_key(struct spill_json *json, const char *name);

/* Members; a name or text NULL is null, and a text is cut at 8 KiB. */
void cli_json_name(struct spill_json *json, const char *member, const struct cli_name *name);
void cli_json_text(struct spill_json *json, const char *member, const char *text);
void cli_json_number(struct spill_json *json, const char *member, uint64_t value);
void cli_json_truth(struct spill_json *json, const char *member, bool value);
void cli_json_bytes(struct spill_json *json, const char *member, const struct spill_bytes *sums);

/* "dev": null if there is none */
void cli_json_device(struct spill_json *json, int device);

#endif
