/* A line of text: the formats that it knows, what it cuts, and short texts by value. */
#include <inttypes.h>
#include "unit.h"

#include <string.h>

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
