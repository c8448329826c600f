/*
 * Reads JSON (RFC 8259) from bytes that nobody vouches for, value by value, once from front to back. Pure: no malloc, no
 * recursion, nothing is read outside and nothing is written but what the caller asked for.
 *
 * The caller knows what may come and asks for it; the first refusal stays, whatever is asked after it fails too.
 */
#ifndef SPILL_JSON_READ_H
#define SPILL_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How deep a value that is skipped may be. */
#define SPILL_JSON_DEPTH 64

struct spill_json_reader {
	const char *at, *end;
	const char *reason; /* static text: why it was refused, at `at`; NULL so far */
};

/* What stands between the quotes of a string: checked, escapes not decoded. */
struct spill_json_text {
	const char *bytes;
	size_t length;
	bool escaped; /* there is something to decode */
};

struct spill_json_reader spill_json_read(const char *bytes, size_t length);

/* Refuses, unless something was refused before; false. */
bool spill_json_refuse(struct spill_json_reader *reader, const char *reason);

/* The same for what comes next; of bytes that end here it is said that they do. */
bool spill_json_unexpected(struct spill_json_reader *reader, const char *reason);

bool spill_json_take_behind_blanks(struct spill_json_reader *reader, char c);

/* Takes `c` if it comes next, blanks before it skipped. Inline: a line is made of little else, and our writer puts no blanks. */
static inline bool spill_json_take(struct spill_json_reader *reader, char c)
{
	if (reader->reason || reader->at == reader->end || *reader->at != c)
		return spill_json_take_behind_blanks(reader, c);
	reader->at++;
	return true;
}

/*
 * Takes `"name":` if it stands there as our writer puts it: without a blank, and no escape, which a name of ours has not. False says
 * nothing about what is there (spill_json_read_key). Most members are found so, without a look at their text's every byte.
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

/* After a value of a list: true if a comma was taken, false if the list was closed or is refused. */
bool spill_json_more(struct spill_json_reader *reader, char close);

/*
 * Each reads one value and returns false if it is refused. A string is valid UTF-8, without a NUL and without lone
 * surrogates, escaped or not.
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

/* A member's name and the colon behind it. */
bool spill_json_read_key(struct spill_json_reader *reader, struct spill_json_text *name);

/* Writes the text's bytes, never more than text->length; returns how many. No NUL behind them. */
size_t spill_json_decode(const struct spill_json_text *text, char *to);

#endif
