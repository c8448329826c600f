/*
 * Reads JSON (RFC 8259) from untrusted bytes, value by value, once from front to back. There is no
 * recursion, no byte outside is read, and only the caller's variables are written.
 *
 * The caller asks for the value that it expects. After the first refusal each further call fails.
 */
#ifndef SPILL_JSON_READ_H
#define SPILL_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Deepest value that can be skipped. */
#define SPILL_JSON_DEPTH 64

struct spill_json_reader {
	const char *at, *end;
	const char *reason; /* why the byte at `at` was refused (static); NULL: not refused */
};

/* The bytes between the quotes of a string: checked, escapes not decoded. */
struct spill_json_text {
	const char *bytes;
	size_t length;
	bool escaped; /* it has escapes */
};

struct spill_json_reader spill_json_read(const char *bytes, size_t length);

/* Refuses, unless something was refused before. Returns false. */
bool spill_json_refuse(struct spill_json_reader *reader, const char *reason);

/* Refuses the next byte. If there is none, the reason is that the value ends too early. */
bool spill_json_unexpected(struct spill_json_reader *reader, const char *reason);

bool spill_json_take_behind_blanks(struct spill_json_reader *reader, char c);

/*
 * Takes `c` if it is next, possibly after blanks. Inline, because it is most of the work on a line,
 * and our writer puts no blanks.
 */
static inline bool spill_json_take(struct spill_json_reader *reader, char c)
{
	if (reader->reason || reader->at == reader->end || *reader->at != c)
		return spill_json_take_behind_blanks(reader, c);
	reader->at++;
	return true;
}

/*
 * Takes `"name":` if it is next exactly as our writer puts it, without blanks and escapes. This is
 * the fast path for most members. If it returns false, spill_json_read_key reads the name.
 */
static inline bool spill_json_take_key(struct spill_json_reader *reader, const char *name, size_t length)
{
	const char *at = reader->at;

	if (reader->reason || (size_t)(reader->end - at) < length + 3 || at[0] != '"' || at[1] != name[0] ||
	    at[length + 1] != '"' || at[length + 2] != ':' || memcmp(at + 1, name, length) != 0)
		return false;
	reader->at += length + 3;
	return true;
}

/*
 * Call it after a value of a list. True: a comma was taken. False: the list ended, or is refused.
 */
bool spill_json_more(struct spill_json_reader *reader, char close);

/*
 * Each reads one value, and returns false if it is refused. A string must be valid UTF-8, without a
 * NUL and without lone surrogates, escaped or not.
 */
bool spill_json_read_text(struct spill_json_reader *reader, struct spill_json_text *text);
bool spill_json_read_u64(struct spill_json_reader *reader, uint64_t *value);
bool spill_json_read_int(struct spill_json_reader *reader, int *value);
bool spill_json_read_bool(struct spill_json_reader *reader, bool *value);

/* Seconds with at most six decimals, as microseconds. */
bool spill_json_read_seconds(struct spill_json_reader *reader, uint64_t *us);

/* A device address as spill_json_pointer writes it. */
bool spill_json_read_pointer(struct spill_json_reader *reader, uint64_t *value);

/* Any value, SPILL_JSON_DEPTH deep. */
bool spill_json_skip(struct spill_json_reader *reader);

/* A member's name and its colon. */
bool spill_json_read_key(struct spill_json_reader *reader, struct spill_json_text *name);

/* Writes the decoded bytes, at most text->length, without a NUL. Returns their number. */
size_t spill_json_decode(const struct spill_json_text *text, char *to);

#endif
