#include "json.h"

#include <string.h>

#include "text.h"

static void put_bytes(struct spill_json *json, const char *bytes, size_t count)
{
	if (json->full || count > json->size - json->length) {
		json->full = true;
		return;
	}
	memcpy(json->buffer + json->length, bytes, count);
	json->length += count;
}

/* Writes the comma before a value. */
static void put_comma(struct spill_json *json)
{
	if (json->comma)
		put_bytes(json, ",", 1);
	json->comma = true;
}

void spill_json_begin(struct spill_json *json, char *buffer, size_t size)
{
	*json = (struct spill_json){.buffer = buffer, .size = size};
}

size_t spill_json_end_line(struct spill_json *json)
{
	put_bytes(json, "\n", 1);
	return json->full ? 0 : json->length;
}

static void open_with(struct spill_json *json, const char *bracket)
{
	put_comma(json);
	put_bytes(json, bracket, 1);
	json->comma = false;
}

static void close_with(struct spill_json *json, const char *bracket)
{
	put_bytes(json, bracket, 1);
	json->comma = true;
}

void spill_json_object(struct spill_json *json)
{
	open_with(json, "{");
}

void spill_json_object_end(struct spill_json *json)
{
	close_with(json, "}");
}

void spill_json_array(struct spill_json *json)
{
	open_with(json, "[");
}

void spill_json_array_end(struct spill_json *json)
{
	close_with(json, "]");
}

struct spill_json *spill_json_key(struct spill_json *json, const char *key)
{
	spill_json_string(json, key);
	put_bytes(json, ":", 1);
	json->comma = false;
	return json;
}

size_t spill_json_utf8(const unsigned char *text, size_t left)
{
	unsigned char lead = text[0], low = 0x80, high = 0xBF;
	size_t length;

	if (lead < 0x80)
		return 1;
	if (lead >= 0xC2 && lead <= 0xDF)
		length = 2;
	else if (lead >= 0xE0 && lead <= 0xEF)
		length = 3;
	else if (lead >= 0xF0 && lead <= 0xF4)
		length = 4;
	else
		return 0;
	if (lead == 0xE0)
		low = 0xA0;
	else if (lead == 0xED)
		high = 0x9F;
	else if (lead == 0xF0)
		low = 0x90;
	else if (lead == 0xF4)
		high = 0x8F;
	if (left < length || text[1] < low || text[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (text[i] < 0x80 || text[i] > 0xBF)
			return 0;
	return length;
}

/* pre: code < 0x10000 */
static void put_escape(struct spill_json *json, unsigned code)
{
	static const char digits[] = "0123456789abcdef";
	char escape[6] = {
	    '\\', 'u', digits[code >> 12], digits[code >> 8 & 15], digits[code >> 4 & 15], digits[code & 15]};

	switch (code) {
	case '\n':
		put_bytes(json, "\\n", 2);
		break;
	case '\t':
		put_bytes(json, "\\t", 2);
		break;
	case '\r':
		put_bytes(json, "\\r", 2);
		break;
	default:
		put_bytes(json, escape, sizeof(escape));
	}
}

/* Writes the first character of `text`; returns its length in bytes. */
static size_t put_character(struct spill_json *json, const char *text, size_t left)
{
	struct spill_character character = spill_text_character(text, left);

	if (text[0] == '"' || text[0] == '\\')
		put_bytes(json, "\\", 1);
	if (character.shown)
		put_bytes(json, text, character.bytes);
	else if (character.code == 0xfffd)
		put_bytes(json, "\xEF\xBF\xBD", 3);
	else
		put_escape(json, character.code);
	return character.bytes;
}

/* Number of bytes from the start that need no escape. Most text has no other. */
static size_t plain_length(const char *text, size_t left)
{
	size_t length = 0;

	while (length < left && text[length] >= 0x20 && text[length] < 0x7F && text[length] != '"' &&
	       text[length] != '\\')
		length++;
	return length;
}

void spill_json_string_length(struct spill_json *json, const char *text, size_t length)
{
	put_comma(json);
	put_bytes(json, "\"", 1);
	for (size_t i = 0; i < length && !json->full;) {
		size_t plain = plain_length(text + i, length - i);

		put_bytes(json, text + i, plain);
		i += plain;
		if (i < length)
			i += put_character(json, text + i, length - i);
	}
	put_bytes(json, "\"", 1);
}

void spill_json_string(struct spill_json *json, const char *text)
{
	if (text) {
		spill_json_string_length(json, text, strlen(text));
		return;
	}
	put_comma(json);
	put_bytes(json, "null", 4);
}

/* At least `digits` digits, so that fractions keep their leading zeros. */
static void put_decimal(struct spill_json *json, uint64_t value, unsigned digits)
{
	char text[20];
	unsigned at = sizeof(text);

	while (value != 0 || digits > 0) {
		text[--at] = (char)('0' + value % 10);
		value /= 10;
		if (digits > 0)
			digits--;
	}
	put_bytes(json, text + at, sizeof(text) - at);
}

void spill_json_u64(struct spill_json *json, uint64_t value)
{
	put_comma(json);
	put_decimal(json, value, 1);
}

void spill_json_i64(struct spill_json *json, int64_t value)
{
	put_comma(json);
	if (value < 0)
		put_bytes(json, "-", 1);
	put_decimal(json, value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

void spill_json_bool(struct spill_json *json, bool value)
{
	put_comma(json);
	put_bytes(json, value ? "true" : "false", value ? 4 : 5);
}

void spill_json_pointer(struct spill_json *json, uint64_t value)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 + 16 + 2];
	unsigned at = sizeof(text);

	text[--at] = '"';
	do {
		text[--at] = digits[value & 15];
		value >>= 4;
	} while (value != 0);
	text[--at] = 'x';
	text[--at] = '0';
	put_comma(json);
	put_bytes(json, "\"", 1);
	put_bytes(json, text + at, sizeof(text) - at);
}

void spill_json_seconds(struct spill_json *json, uint64_t microseconds)
{
	put_comma(json);
	put_decimal(json, microseconds / 1000000, 1);
	put_bytes(json, ".", 1);
	put_decimal(json, microseconds % 1000000, 6);
}
