#include "text.h"

#include "json.h"

/* pre: well-formed, of that length */
static unsigned code_of(const unsigned char *at, size_t length)
{
	unsigned code = length == 1 ? at[0] : at[0] & (0x7fu >> length);

	for (size_t i = 1; i < length; i++)
		code = code << 6 | (at[i] & 0x3fu);
	return code;
}

/*
 * C0, DEL and C1; in C1, U+009B does the same as ESC [ (ECMA-48, 5.3). The marks, embeddings,
 * overrides and isolates of the bidirectional algorithm (UAX 9, 2) can make a name look like
 * another one. U+2028 and U+2029 end a line.
 */
static bool steers_terminal(unsigned code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e ||
	       code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

struct spill_character spill_text_character(const char *text, size_t left)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t length = spill_json_utf8(at, left);
	unsigned code = length ? code_of(at, length) : 0xfffd;

	return (struct spill_character){length ? length : 1, code, length && !steers_terminal(code)};
}

/* Adds the characters within the first `most` of `count` bytes, as far as there is room. */
static void add_plain(struct spill_text *text, const char *string, size_t count, size_t most)
{
	for (size_t at = 0; at < count;) {
		struct spill_character character = spill_text_character(string + at, count - at);

		if (at + character.bytes > most || character.bytes > text->size - 1 - text->length)
			break;
		spill_text_bytes(text, character.shown ? string + at : "?",
		                 character.shown ? character.bytes : 1);
		at += character.bytes;
	}
}

void spill_text_plain(struct spill_text *text, const char *string)
{
	size_t count = strlen(string);

	add_plain(text, string, count, count);
}

/* Adds the conversion at `at`, behind its '%'. Returns the rest of the format. */
static const char *add_conversion(struct spill_text *text, const char *at, va_list *arguments)
{
	size_t modifiers = strspn(at, "lz");
	const char *string;

	_Static_assert(sizeof(unsigned long) == sizeof(uint64_t) && sizeof(size_t) == sizeof(uint64_t),
	               "l, ll and z have this width");
	if (at[modifiers] == 'u') {
		spill_text_number(text,
		                  modifiers ? va_arg(*arguments, uint64_t) : va_arg(*arguments, unsigned));
	} else if (*at == 's') {
		string = va_arg(*arguments, const char *);
		spill_text_add(text, string ? string : "?");
	} else if (*at == '%') {
		spill_text_add(text, "%");
	} else {
		return at; /* a bug, which tests/static/prints.py finds */
	}
	return at + modifiers + 1;
}

void spill_text_vformat(struct spill_text *text, const char *format, va_list arguments)
{
	va_list left;

	va_copy(left, arguments);
	while (*format) {
		size_t literal = strcspn(format, "%");

		spill_text_bytes(text, format, literal);
		format += literal;
		if (*format)
			format = add_conversion(text, format + 1, &left);
	}
	va_end(left);
}

void spill_text_format(struct spill_text *text, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	spill_text_vformat(text, format, arguments);
	va_end(arguments);
}

struct spill_word spill_size(uint64_t bytes)
{
	struct spill_word word;
	struct spill_text text = spill_text_begin(word.text, sizeof(word.text));

	spill_text_size(&text, bytes);
	return word;
}

struct spill_word spill_quote(const char *string, size_t count)
{
	struct spill_word word;
	struct spill_text text = spill_text_begin(word.text, sizeof(word.text));

	spill_text_add(&text, "'");
	add_plain(&text, string, count, 60);
	spill_text_add(&text, count > 60 ? "…'" : "'");
	return word;
}
