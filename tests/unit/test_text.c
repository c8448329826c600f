/* A line of text: the formats that it knows, what it cuts, and short texts by value. */
#include <inttypes.h>
#include "unit.h"

#include <string.h>

#include "json.h"
#include "text.h"

TEST(formats)
{
	const char *volatile nothing = NULL;
	char buffer[160];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	spill_text_format(&text, "plain");
	assert_string_equal(buffer, "plain");
	spill_text_format(&text, "%s|%s|%s%%", " a", "", nothing);
	assert_string_equal(buffer, "plain a||?%");
	assert_int_equal(text.length, strlen(buffer));
	text = spill_text_begin(buffer, sizeof(buffer));
	spill_text_format(&text, "%u %lu %llu %zu %" PRIu64 " %u", 7u, ~0ul, ~0ull, (size_t)0, UINT64_MAX / 2,
	                  4294967295u);
	assert_string_equal(buffer,
	                    "7 18446744073709551615 18446744073709551615 0 9223372036854775807 4294967295");
}

TEST(too_long)
{
	char buffer[8];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	spill_text_format(&text, "%s and %u", "1234", 567u);
	assert_string_equal(buffer, "1234 an");
	assert_int_equal(text.length, 7);
	spill_text_format(&text, "%s", "more");
	assert_string_equal(buffer, "1234 an");
}

/* Several in one call: each has its own memory. */
TEST(words)
{
	const struct spill_word longest =
	    spill_quote("0123456789012345678901234567890123456789012345678901234567890123456789", 70);
	char buffer[160];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	spill_text_format(&text, "%s, %s, %s", spill_size(0).text, spill_size(UINT64_MAX).text,
	                  spill_quote("a\x1b"
	                              "b",
	                              3)
	                      .text);
	assert_string_equal(buffer, "0 B, 16777216.00 TiB, 'a?b'");
	assert_string_equal(longest.text, "'012345678901234567890123456789012345678901234567890123456789…'");
}

/* The length by the definition of a character: no longer than it needs to be, no surrogate, at most 10FFFF. */
static size_t length_by_code(const unsigned char *text, size_t left)
{
	static const struct {
		unsigned mask, lead;
		uint32_t least, most;
	} forms[] = {{0x80, 0, 0, 0x7F},
	             {0xE0, 0xC0, 0x80, 0x7FF},
	             {0xF0, 0xE0, 0x800, 0xFFFF},
	             {0xF8, 0xF0, 0x10000, 0x10FFFF}};
	for (size_t more = 0; more < 4; more++) {
		uint32_t code = text[0] & ~forms[more].mask;
		if ((text[0] & forms[more].mask) != forms[more].lead)
			continue;
		if (left <= more)
			return 0;
		for (size_t i = 1; i <= more; i++) {
			if ((text[i] & 0xC0) != 0x80)
				return 0;
			code = code << 6 | (text[i] & 0x3F);
		}
		bool surrogate = code >= 0xD800 && code <= 0xDFFF;
		return code >= forms[more].least && code <= forms[more].most && !surrogate ? more + 1 : 0;
	}
	return 0;
}

/* Each begin of a text; of the third and fourth byte those at the ends of what is allowed. */
TEST(characters_of_utf_8)
{
	static const unsigned char ends[] = {0, 0x7F, 0x80, 0xBF, 0xC0, 0xFF};
	enum { ENDS = sizeof(ends) };
	for (unsigned i = 0; i < 0x10000 * ENDS * ENDS; i++) {
		const unsigned char text[] = {(unsigned char)(i >> 8), (unsigned char)i,
		                              ends[(i >> 16) % ENDS], ends[(i >> 16) / ENDS]};
		for (size_t left = 1; left <= sizeof(text); left++)
			if (spill_json_utf8(text, left) != length_by_code(text, left))
				fail_msg("%02x %02x %02x %02x, %zu", text[0], text[1], text[2], text[3],
				         left);
	}
}
