/* A line of text: the formats that it knows, what it cuts, and short texts by value. */
#include <inttypes.h>
#include "unit.h"

#include <ctype.h>
#include <string.h>

#include "json.h"
#include "nearest.h"
#include "roll.h"
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

/* -- the nearest word ------------------------------------------------------------------------------------- */

/* By the definition: the fewest edits of the last letters, of which a swap is one. */
static unsigned fewest_edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
	if (!a_length || !b_length)
		return (unsigned)(a_length + b_length);
	char last_a = a[a_length - 1], last_b = b[b_length - 1];
	unsigned fewest =
	    fewest_edits(a, a_length - 1, b, b_length - 1) + (tolower(last_a) != tolower(last_b));
	unsigned other = fewest_edits(a, a_length - 1, b, b_length) + 1;
	fewest = other < fewest ? other : fewest;
	other = fewest_edits(a, a_length, b, b_length - 1) + 1;
	fewest = other < fewest ? other : fewest;
	if (a_length > 1 && b_length > 1 && tolower(last_a) == tolower(b[b_length - 2]) &&
	    tolower(a[a_length - 2]) == tolower(last_b)) {
		other = fewest_edits(a, a_length - 2, b, b_length - 2) + 1;
		fewest = other < fewest ? other : fewest;
	}
	return fewest;
}

static size_t any_word(char *word)
{
	size_t length = roll_any() % 6;
	for (size_t i = 0; i < length; i++)
		word[i] = "abcABzZ"[roll_any() % 7];
	return length;
}

TEST(edits_are_counted)
{
	roll_state = ROLL_BEGIN;
	for (unsigned round = 0; round < 3000; round++) {
		char rooms[2][8], *a = rooms[0] + 1, *b = rooms[1] + 1;
		size_t a_length = any_word(a), b_length = any_word(b);
		a[-1] = b_length ? b[b_length - 1] : 'a'; /* no letter of the word */
		b[-1] = a_length ? a[a_length - 1] : 'a';
		struct spill_nearest nearest;
		spill_nearest_begin(&nearest, a, a_length);
		spill_nearest_offer(&nearest, b, b_length);
		assert_int_equal(nearest.distance, fewest_edits(a, a_length, b, b_length));
	}
}

/* The first of those that are as near, and of which no more than two fifths differ. */
TEST(the_nearest_word)
{
	static const struct {
		const char *word, *offers[3], *nearest;
	} cases[] = {{"jsom", {"html", "json", "Jsom"}, "Jsom"},
	             {"abx", {"abc", "abd", "zzz"}, "abc"},
	             {"abcd", {"abcx", NULL}, "abcx"},
	             {"abcd", {"abxy", NULL}, NULL},
	             {"demote", {"move", NULL}, NULL},
	             {"abcde", {"abc", NULL}, "abc"}, /* the longer one counts */
	             {"abc", {"abcde", NULL}, "abcde"},
	             {"", {"a", NULL}, NULL},
	             {"", {"", NULL}, NULL}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spill_nearest nearest;
		spill_nearest_begin(&nearest, cases[i].word, strlen(cases[i].word));
		for (size_t k = 0; k < 3 && cases[i].offers[k]; k++)
			spill_nearest_offer(&nearest, cases[i].offers[k], strlen(cases[i].offers[k]));
		const char *word = spill_nearest_word(&nearest);
		assert_int_equal(!word, !cases[i].nearest);
		if (word)
			assert_string_equal(word, cases[i].nearest);
	}
}

TEST(long_words_are_compared_by_their_begins)
{
	char word[SPILL_NEAREST_MAX + 3], other[SPILL_NEAREST_MAX + 3];
	struct spill_nearest nearest;
	memset(word, 'a', sizeof(word));
	for (size_t place = SPILL_NEAREST_MAX - 1; place <= SPILL_NEAREST_MAX; place++) {
		memset(other, 'a', sizeof(other));
		other[place] = 'b';
		spill_nearest_begin(&nearest, word, sizeof(word));
		spill_nearest_offer(&nearest, other, sizeof(other));
		assert_int_equal(nearest.distance, place < SPILL_NEAREST_MAX);
		assert_int_equal(strlen(spill_nearest_word(&nearest)), SPILL_NEAREST_MAX);
	}
}
