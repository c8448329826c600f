/*
 * text: sizes, patterns, JSON, nearest words, and the words that the rooms above share.
 *
 * Each function works in the caller's buffer. It never allocates, reads or prints, and the locale
 * of the host program has no effect. Begin reading here: this header builds a line of text. words.h
 * has the words, amount.h the sizes, json.h and json_read.h the format of the log.
 *
 * Text that does not fit is cut. The result is always terminated, with `length` < `size`.
 * pre: size > 0
 */
#ifndef SPILL_TEXT_H
#define SPILL_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct spill_text {
	char *buffer;
	size_t size, length;
};

static inline struct spill_text spill_text_begin(char *buffer, size_t size)
{
	buffer[0] = '\0';
	return (struct spill_text){buffer, size, 0};
}

static inline void spill_text_bytes(struct spill_text *text, const char *bytes, size_t count)
{
	size_t room = text->size - 1 - text->length;

	if (count > room)
		count = room;
	memcpy(text->buffer + text->length, bytes, count);
	text->length += count;
	text->buffer[text->length] = '\0';
}

static inline void spill_text_add(struct spill_text *text, const char *string)
{
	spill_text_bytes(text, string, strlen(string));
}

static inline void spill_text_number(struct spill_text *text, uint64_t number)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	spill_text_bytes(text, digits + at, sizeof(digits) - at);
}

/* "2.04 GiB", rounded to hundredths; "512 B" below a KiB. */
static inline void spill_text_size(struct spill_text *text, uint64_t bytes)
{
	static const char *const units[] = {" KiB", " MiB", " GiB", " TiB"};
	unsigned unit = 0;
	uint64_t hundredths;

	if (bytes < 1024) {
		spill_text_number(text, bytes);
		spill_text_add(text, " B");
		return;
	}
	while (unit < 3 && bytes >> (10 * (unit + 2)))
		unit++;
	/* In two steps, because bytes * 100 could overflow. */
	uint64_t scale = (uint64_t)1 << (10 * (unit + 1));
	hundredths = bytes / scale * 100 + ((bytes % scale) * 100 + scale / 2) / scale;
	spill_text_number(text, hundredths / 100);
	spill_text_add(text, hundredths % 100 < 10 ? ".0" : ".");
	spill_text_number(text, hundredths % 100);
	spill_text_add(text, units[unit]);
}

/*
 * Adds as printf does, but knows only %s, %u, %lu, %llu, %zu and %%, without width and precision.
 * The locale has no effect. NULL for %s is "?".
 */
void spill_text_format(struct spill_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void spill_text_vformat(struct spill_text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* A short text for %s, by value: `spill_size(bytes).text`. It is valid within its expression. */
struct spill_word {
	char text[80];
};

/* As spill_text_size. */
struct spill_word spill_size(uint64_t bytes);

/* At most 60 bytes of the user's text, plain and in quotes: messages stay one readable line. */
struct spill_word spill_quote(const char *string, size_t count);

/* The first character of a text. */
struct spill_character {
	size_t bytes;  /* its length */
	unsigned code; /* in Unicode; U+FFFD for a byte that is not UTF-8 */
	bool shown;    /* a terminal shows it, and does nothing else */
};

/*
 * `shown` is false for control characters (C0, DEL, C1), characters that change the direction of
 * text, and the line ends U+2028 and U+2029. It is false for bytes that are not UTF-8, too: an
 * 8-bit terminal reads the byte 9B as ESC [. pre: left > 0
 */
struct spill_character spill_text_character(const char *text, size_t left);

/* Adds the string with a ? for each character that is not shown. */
void spill_text_plain(struct spill_text *text, const char *string);

#endif
