/*
 * Text built into the caller's buffer, for the pure archive: printf follows the host program's locale and
 * is not a mem* or str* symbol. What does not fit is cut; `length` then stays below `size`, and the
 * result is always terminated (pre: size > 0).
 */
#ifndef SPILL_TEXT_H
#define SPILL_TEXT_H

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

/* "2.04 GiB" for people, rounded to hundredths; "512 B" below a KiB. */
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
	/* In two steps, as bytes times 100 could overflow. */
	uint64_t scale = (uint64_t)1 << (10 * (unit + 1));
	hundredths = bytes / scale * 100 + ((bytes % scale) * 100 + scale / 2) / scale;
	spill_text_number(text, hundredths / 100);
	spill_text_add(text, hundredths % 100 < 10 ? ".0" : ".");
	spill_text_number(text, hundredths % 100);
	spill_text_add(text, units[unit]);
}

/* Bytes of the control character at the begin of the text, for which a terminal may do more than show it; 0: it is none. */
static inline unsigned spill_text_control(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	/* C1 in UTF-8: U+009B begins what ESC [ does (ECMA-48, 5.3). */
	if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
		return 2;
	return at[0] < 0x20 || at[0] == 0x7f;
}

/* With a ? in place of each control character. */
static inline void spill_text_plain(struct spill_text *text, const char *string)
{
	for (unsigned skipped; *string; string += skipped ? skipped : 1) {
		skipped = spill_text_control(string);
		spill_text_bytes(text, skipped ? "?" : string, 1);
	}
}

/* At most 60 bytes of what the user wrote, control characters as ?: messages stay one readable line. */
static inline void spill_text_quote(struct spill_text *text, const char *string, size_t count)
{
	size_t shown = count > 60 ? 60 : count;

	spill_text_add(text, "'");
	for (size_t i = 0; i < shown; i++) {
		/* Behind the last byte nothing is looked at. */
		unsigned skipped = i + 1 < count || string[i] != '\xc2' ? spill_text_control(string + i) : 0;

		spill_text_bytes(text, skipped ? "?" : string + i, 1);
		i += skipped == 2;
	}
	spill_text_add(text, shown < count ? "…'" : "'");
}

#endif
