#include "json_read.h"

#include <limits.h>
#include <string.h>

struct spill_json_reader spill_json_read(const char *bytes, size_t length)
{
	return (struct spill_json_reader){.at = bytes, .end = bytes + length};
}

bool spill_json_refuse(struct spill_json_reader *reader, const char *reason)
{
	if (!reader->reason)
		reader->reason = reason;
	return false;
}

/* Skips blanks. Returns the next byte, or -1 at the end and after a refusal. */
static int next_byte(struct spill_json_reader *reader)
{
	if (reader->reason)
		return -1;
	while (reader->at < reader->end &&
	       (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\r' || *reader->at == '\n'))
		reader->at++;
	return reader->at < reader->end ? (unsigned char)*reader->at : -1;
}

bool spill_json_unexpected(struct spill_json_reader *reader, const char *reason)
{
	return spill_json_refuse(reader, next_byte(reader) < 0 ? "it ends within a value" : reason);
}

bool spill_json_take_behind_blanks(struct spill_json_reader *reader, char c)
{
	if (next_byte(reader) != (unsigned char)c)
		return false;
	reader->at++;
	return true;
}

bool spill_json_more(struct spill_json_reader *reader, char close)
{
	if (spill_json_take(reader, ','))
		return true;
	if (!spill_json_take(reader, close))
		spill_json_unexpected(reader, close == '}' ? "neither ',' nor '}'" : "neither ',' nor ']'");
	return false;
}

static bool is_digit(const struct spill_json_reader *reader)
{
	return reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9';
}

/* Reads at least one digit, and appends the digits to *value. */
static bool read_digits(struct spill_json_reader *reader, uint64_t *value)
{
	if (!is_digit(reader))
		return spill_json_unexpected(reader, "not a number");
	uint64_t sum = *value;
	const char *at = reader->at;
	for (; at < reader->end && *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (sum > UINT64_MAX / 10 || sum * 10 > UINT64_MAX - digit)
			return spill_json_refuse(reader, "a number out of range");
		sum = sum * 10 + digit;
	}
	reader->at = at;
	*value = sum;
	return true;
}

/* Reads an integer. JSON has no leading zeros. */
static bool read_whole(struct spill_json_reader *reader, uint64_t *value)
{
	next_byte(reader);
	if (reader->reason)
		return false;
	*value = 0;
	if (reader->at < reader->end && *reader->at == '0') {
		reader->at++;
		return !is_digit(reader) || spill_json_refuse(reader, "a number that begins with 0");
	}
	return read_digits(reader, value);
}

static bool no_more_number(struct spill_json_reader *reader)
{
	char c = reader->at < reader->end ? *reader->at : ' ';

	return (c != '.' && c != 'e' && c != 'E') || spill_json_refuse(reader, "not a whole number");
}

bool spill_json_read_u64(struct spill_json_reader *reader, uint64_t *value)
{
	return read_whole(reader, value) && no_more_number(reader);
}

bool spill_json_read_int(struct spill_json_reader *reader, int *value)
{
	bool negative = spill_json_take(reader, '-');
	uint64_t size;

	/* Checked here, because spill_json_read_u64 accepts blanks before a number. */
	if (negative && !is_digit(reader))
		return spill_json_unexpected(reader, "not a number");
	if (!spill_json_read_u64(reader, &size))
		return false;
	if (size > (uint64_t)INT_MAX + negative)
		return spill_json_refuse(reader, "a number out of range");
	*value = (int)(negative ? -(int64_t)size : (int64_t)size);
	return true;
}

bool spill_json_read_seconds(struct spill_json_reader *reader, uint64_t *us)
{
	uint64_t seconds, part = 0;

	if (!read_whole(reader, &seconds))
		return false;
	if (reader->at < reader->end && *reader->at == '.') {
		const char *point = reader->at++;

		if (!read_digits(reader, &part))
			return false;
		if (reader->at - point > 7)
			return spill_json_refuse(reader, "a time in parts of a microsecond");
		for (size_t places = (size_t)(reader->at - point - 1); places < 6; places++)
			part *= 10;
	}
	if (seconds > (UINT64_MAX - part) / 1000000)
		return spill_json_refuse(reader, "a number out of range");
	*us = seconds * 1000000 + part;
	return no_more_number(reader);
}

static bool take_word(struct spill_json_reader *reader, const char *letters)
{
	size_t length = strlen(letters);

	if (next_byte(reader) < 0 || (size_t)(reader->end - reader->at) < length ||
	    memcmp(reader->at, letters, length) != 0)
		return false;
	reader->at += length;
	return true;
}

bool spill_json_read_bool(struct spill_json_reader *reader, bool *value)
{
	*value = take_word(reader, "true");
	return *value || take_word(reader, "false") ||
	       spill_json_unexpected(reader, "neither true nor false");
}

/* A skipped number may have any size. */
static bool skip_digits(struct spill_json_reader *reader)
{
	if (!is_digit(reader))
		return spill_json_unexpected(reader, "not a number");
	while (is_digit(reader))
		reader->at++;
	return true;
}

static bool skip_number(struct spill_json_reader *reader)
{
	spill_json_take(reader, '-');
	const char *first = reader->at;
	if (!skip_digits(reader))
		return false;
	if (*first == '0' && reader->at - first > 1)
		return spill_json_refuse(reader, "a number that begins with 0");
	if (reader->at < reader->end && *reader->at == '.') {
		reader->at++;
		if (!skip_digits(reader))
			return false;
	}
	if (reader->at < reader->end && (*reader->at == 'e' || *reader->at == 'E')) {
		reader->at++;
		if (reader->at < reader->end && (*reader->at == '+' || *reader->at == '-'))
			reader->at++;
		return skip_digits(reader);
	}
	return true;
}

static bool skip_scalar(struct spill_json_reader *reader)
{
	struct spill_json_text text;
	int c = next_byte(reader);

	if (c == '"')
		return spill_json_read_text(reader, &text);
	if (c == '-' || (c >= '0' && c <= '9'))
		return skip_number(reader);
	return take_word(reader, "true") || take_word(reader, "false") || take_word(reader, "null") ||
	       spill_json_unexpected(reader, "not a value");
}

/* Without recursion: each level is a bit of `objects`. */
bool spill_json_skip(struct spill_json_reader *reader)
{
	struct spill_json_text name;
	uint64_t objects = 0; /* a bit for each level, the innermost lowest: is it an object? */
	unsigned depth = 0;

	for (;;) {
		bool object = spill_json_take(reader, '{'), inside = object || spill_json_take(reader, '[');

		if (inside) {
			if (depth++ == SPILL_JSON_DEPTH)
				return spill_json_refuse(reader, "nested too deep");
			objects = objects << 1 | object;
			inside = !spill_json_take(reader, object ? '}' : ']');
			depth -= !inside;
			objects >>= !inside;
		} else if (!skip_scalar(reader)) {
			return false;
		}
		while (!inside && depth > 0) {
			inside = spill_json_more(reader, objects & 1 ? '}' : ']');
			if (reader->reason)
				return false;
			depth -= !inside;
			objects >>= !inside;
		}
		if (depth == 0)
			return true;
		if (objects & 1 && !spill_json_read_key(reader, &name))
			return false;
	}
}
