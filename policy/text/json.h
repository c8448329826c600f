/*
 * Writes one JSON value (RFC 8259) into the caller's buffer. Lack of room is the only failure. The
 * result is valid UTF-8 and valid JSON for any bytes in the strings. printf is not used, because it
 * follows the host program's locale.
 *
 * Commas are written here. The caller opens and closes objects and lists in the right order.
 */
#ifndef SPILL_JSON_H
#define SPILL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spill_json {
	char *buffer;
	size_t size, length;
	bool comma; /* a value precedes at this level */
	bool full;  /* something did not fit: the result is invalid */
};

void spill_json_begin(struct spill_json *json, char *buffer, size_t size);

/* Ends the line, without a NUL. Returns its length with the newline, or 0 if it did not fit. */
size_t spill_json_end_line(struct spill_json *json);

void spill_json_object(struct spill_json *json);
void spill_json_object_end(struct spill_json *json);
void spill_json_array(struct spill_json *json);
void spill_json_array_end(struct spill_json *json);

/* Starts a member; returns `json` so that the value can follow in the same expression. */
struct spill_json *spill_json_key(struct spill_json *json, const char *key);

/*
 * NULL becomes null. Bytes that are not UTF-8 become U+FFFD. Each character that is not shown
 * (spill_text_character) is escaped, so that a log cannot steer a terminal.
 */
void spill_json_string(struct spill_json *json, const char *text);
void spill_json_string_length(struct spill_json *json, const char *text, size_t length);

void spill_json_u64(struct spill_json *json, uint64_t value);
void spill_json_i64(struct spill_json *json, int64_t value);
void spill_json_bool(struct spill_json *json, bool value);

/* A device address as "0x302000000": many readers lose bits of JSON numbers above 2^53. */
void spill_json_pointer(struct spill_json *json, uint64_t value);

/* Seconds with six decimals. */
void spill_json_seconds(struct spill_json *json, uint64_t microseconds);

/*
 * Length of the well-formed UTF-8 sequence at text[0..left), or 0. Overlong forms, surrogates and
 * characters above U+10FFFF are not well-formed (Unicode, table 3-7). pre: left > 0
 */
size_t spill_json_utf8(const unsigned char *text, size_t left);

#endif
