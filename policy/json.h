/*
 * Writes one JSON value into the caller's buffer. Pure: no printf (it follows the host program's locale),
 * no malloc, nothing that could fail except room. Whatever bytes the strings hold, the result is valid
 * UTF-8 and valid JSON (RFC 8259).
 *
 * Commas are put where they belong; opening and closing in the right order is the caller's part.
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
	bool full;  /* something did not fit: the result is void */
};

void spill_json_begin(struct spill_json *json, char *buffer, size_t size);

/* Ends the line. Returns its length with the newline (there is no terminating NUL), or 0 if it did not fit. */
size_t spill_json_end_line(struct spill_json *json);

void spill_json_object(struct spill_json *json);
void spill_json_object_end(struct spill_json *json);
void spill_json_array(struct spill_json *json);
void spill_json_array_end(struct spill_json *json);

/* Starts a member; returns `json` so that the value can follow in the same expression. */
struct spill_json *spill_json_key(struct spill_json *json, const char *key);

/* NULL is written as null. Bytes that are not UTF-8 become U+FFFD. Each character that is not shown
 * (spill_text_character) is escaped, so that a log on a terminal cannot steer it. */
void spill_json_string(struct spill_json *json, const char *text);
void spill_json_string_length(struct spill_json *json, const char *text, size_t length);

void spill_json_u64(struct spill_json *json, uint64_t value);
void spill_json_i64(struct spill_json *json, int64_t value);
void spill_json_bool(struct spill_json *json, bool value);

/* A device address as "0x302000000": JSON numbers lose bits above 2^53 in many readers. */
void spill_json_pointer(struct spill_json *json, uint64_t value);

/* Seconds with six decimals. */
void spill_json_seconds(struct spill_json *json, uint64_t microseconds);

/*
 * Length of the well-formed UTF-8 sequence at text[0..left), 0 if there is none: no overlong forms, no
 * surrogates, nothing above U+10FFFF (Unicode, table 3-7). pre: left > 0
 */
size_t spill_json_utf8(const unsigned char *text, size_t left);

#endif
