/* Strings of JSON. They are checked in place, and decoded only if the caller wants them. */
#include <string.h>

#include "json.h"
#include "json_read.h"

static unsigned hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned)(c - 'A') + 10;
	return 16;
}

/* The code of the four digits of \uXXXX. 0 if they are not four: a NUL is refused, too. */
static unsigned hex_code(const char *digits, const char *end)
{
	unsigned code = 0;

	if (end - digits < 4)
		return 0;
	for (unsigned i = 0; i < 4; i++) {
		unsigned digit = hex_digit(digits[i]);

		if (digit > 15)
			return 0;
		code = code << 4 | digit;
	}
	return code;
}

static bool is_high(unsigned code)
{
	return code >= 0xD800 && code <= 0xDBFF;
}

static bool is_low(unsigned code)
{
	return code >= 0xDC00 && code <= 0xDFFF;
}

/* Goes past an escape, or past both halves of a surrogate pair. pre: a backslash at `at` */
static bool check_escape(struct spill_json_reader *reader)
{
	static const char letters[] = "\"\\/bfnrt";
	const char *at = reader->at, *end = reader->end;

	if (end - at < 2) {
		reader->at = end;
		return spill_json_unexpected(reader, "");
	}
	if (at[1] != 'u') {
		if (!memchr(letters, at[1], sizeof(letters) - 1))
			return spill_json_refuse(reader, "an escape that JSON does not have");
		reader->at += 2;
		return true;
	}
	unsigned code = hex_code(at + 2, end);
	if (code == 0)
		return spill_json_refuse(reader, "an escape without a character");
	reader->at += 6;
	if (!is_high(code) && !is_low(code))
		return true;
	at = reader->at;
	if (is_low(code) || end - at < 2 || at[0] != '\\' || at[1] != 'u' || !is_low(hex_code(at + 2, end)))
		return spill_json_refuse(reader, "half of a surrogate pair");
	reader->at += 6;
	return true;
}

#define EACH(byte) ((byte) * (UINT64_MAX / 255))

/*
 * Sets the high bit of each byte that is less than `byte` (0x80 at most). Above the first of them,
 * other bytes may have it set as well.
 */
static uint64_t less_than(uint64_t eight, uint64_t byte)
{
	return (eight - EACH(byte)) & ~eight & EACH(0x80u);
}

/* The same for control characters, quotes, backslashes and bytes that are not ASCII. */
static uint64_t special_bytes(uint64_t eight)
{
	return less_than(eight, 0x20) | less_than(eight ^ EACH((unsigned)'"'), 1) |
	       less_than(eight ^ EACH((unsigned)'\\'), 1) | (eight & EACH(0x80u));
}

/* Eight bytes, the first one lowest. */
static uint64_t load_eight(const char *at)
{
	uint64_t eight;

	memcpy(&eight, at, sizeof(eight));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	eight = __builtin_bswap64(eight);
#endif
	return eight;
}

/* The first byte from `at` on that needs a closer look. Checks eight bytes at once. */
static const char *skip_plain(const char *at, const char *end)
{
	for (; end - at >= 8; at += 8) {
		uint64_t found = special_bytes(load_eight(at));

		if (found)
			return at + __builtin_ctzll(found) / 8;
	}
	while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' &&
	       *at != '\\')
		at++;
	return at;
}

bool spill_json_read_text(struct spill_json_reader *reader, struct spill_json_text *text)
{
	*text = (struct spill_json_text){.bytes = reader->at};
	if (!spill_json_take(reader, '"'))
		return spill_json_unexpected(reader, "not a text");
	text->bytes = reader->at;
	while ((reader->at = skip_plain(reader->at, reader->end)) < reader->end) {
		unsigned char c = (unsigned char)*reader->at;

		if (c == '"') {
			text->length = (size_t)(reader->at++ - text->bytes);
			return true;
		}
		if (c < 0x20)
			return spill_json_refuse(reader, "a control character within a text");
		if (c == '\\') {
			text->escaped = true;
			if (!check_escape(reader))
				return false;
			continue;
		}
		size_t length =
		    spill_json_utf8((const unsigned char *)reader->at, (size_t)(reader->end - reader->at));
		if (length == 0)
			return spill_json_refuse(reader, "bytes that are not UTF-8");
		reader->at += length;
	}
	return spill_json_unexpected(reader, "");
}

static size_t put_utf8(char *to, unsigned code)
{
	unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
	static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};

	to[0] = (char)(lead[more] | code >> (6 * more));
	for (unsigned i = 1; i <= more; i++)
		to[i] = (char)(0x80 | (code >> (6 * (more - i)) & 0x3F));
	return more + 1;
}

/* Decodes one escape; returns its length. pre: it was checked */
static size_t decode_escape(const char *at, const char *end, char *to, size_t *wrote)
{
	static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
	const char *letter = memchr(letters, at[1], sizeof(letters) - 1);

	*wrote = 1;
	if (at[1] != 'u') {
		*to = letter ? meanings[letter - letters] : at[1];
		return 2;
	}
	unsigned code = hex_code(at + 2, end);
	if (!is_high(code)) {
		*wrote = put_utf8(to, code);
		return 6;
	}
	*wrote = put_utf8(to, 0x10000 + ((code - 0xD800) << 10) + (hex_code(at + 8, end) - 0xDC00));
	return 12;
}

size_t spill_json_decode(const struct spill_json_text *text, char *to)
{
	const char *at = text->bytes, *end = at + text->length;
	char *start = to;

	if (!text->escaped) {
		memcpy(to, at, text->length);
		return text->length;
	}
	while (at < end) {
		size_t wrote = 1;

		if (*at == '\\')
			at += decode_escape(at, end, to, &wrote);
		else
			*to = *at++;
		to += wrote;
	}
	return (size_t)(to - start);
}

bool spill_json_read_key(struct spill_json_reader *reader, struct spill_json_text *name)
{
	if (!spill_json_read_text(reader, name))
		return false;
	return spill_json_take(reader, ':') || spill_json_unexpected(reader, "no ':' behind a member's name");
}

bool spill_json_read_pointer(struct spill_json_reader *reader, uint64_t *value)
{
	struct spill_json_text text;

	if (!spill_json_read_text(reader, &text))
		return false;
	if (text.length < 3 || text.length > 18 || memcmp(text.bytes, "0x", 2) != 0)
		return spill_json_refuse(reader, "not an address");
	*value = 0;
	for (size_t i = 2; i < text.length; i++) {
		unsigned digit = hex_digit(text.bytes[i]);

		if (digit > 15)
			return spill_json_refuse(reader, "not an address");
		*value = *value << 4 | digit;
	}
	return true;
}
