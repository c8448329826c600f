/* What the command prints: cli_printf is printf, but for texts that could steer a terminal. */
#include <inttypes.h>
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "put.h"

static char *told;
static size_t told_size;

static FILE *begin(void)
{
	FILE *out = open_memstream(&told, &told_size);

	assert_non_null(out);
	return out;
}

static void ends_as(FILE *out, const char *expected)
{
	fclose(out);
	assert_string_equal(told, expected);
	free(told);
}

#define SAME(...) \
	do { \
		char expected[512]; \
		FILE *out = begin(); \
		snprintf(expected, sizeof(expected), __VA_ARGS__); \
		cli_fprintf(out, __VA_ARGS__); \
		ends_as(out, expected); \
	} while (0)

TEST(as_printf)
{
	SAME("nothing but text\n");
	SAME("100%% of %s: %d, %i\n", "it", -1, 2147483647);
	SAME("%u %lu %llu %zu %ld %lld", 4294967295u, ~0ul, ~0ull, (size_t)-1, -1L, -1LL);
	SAME("%" PRIu64 " %06" PRIu64 " %-8" PRIu64 "|%8" PRIu64, UINT64_MAX, (uint64_t)7, (uint64_t)7,
	     (uint64_t)8);
	SAME("%x %04x %#x", 0xabcu, 0xau, 0xffu);
	SAME("%.1f %8.3f %-8.2f| %g %e", 0.25, 1.5, 2.5, 0.1, 1e9);
	SAME("%5d|%-5d|%05d|%+d|% d|%.3d", 42, 42, 42, 42, 42, 7);
	SAME("[%12s] [%-12s] [%.3s] [%-*s] [%*.*s]", "right", "left", "cut off", 7, "wide", 6, 2, "both");
	SAME("[%.0s] [%.*s] [%3.0s]", "nothing", 0, "of", "it");
	SAME("%s%s%c%c", "", "größe 模型", 'a', 'z');
}

TEST(texts_that_steer)
{
	const char *volatile nothing = NULL;
	FILE *out = begin();

	cli_fprintf(out, "\t%s|%-6s|%6s|%.5s|%c%s\n", "a\x1b[2J\nb", "\x9b", "\xc2\x9b",
	            "\xe2\x80\xae"
	            "abc",
	            '\a', nothing);
	ends_as(out, "\ta?[2J?b|?     |     ?|?ab|??\n");
	out = begin();
	cli_fprintf(out, "%s",
	            "\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\xa8\xe2\x81\xa6\xe2\x81\xa9\x7f\xf0\x9f\x98");
	ends_as(out, "??????????");
}

TEST(json_lines)
{
	static const char line[] = "{\"a\":\t\"\x7f\xc2\x9b\xe2\x80\xae \\u202e größe\"}\r";
	FILE *out = begin();

	cli_put_json_line(out, line, strlen(line));
	ends_as(out, "{\"a\": \"\\u007f\\u009b\\u202e \\u202e größe\"} ");
}

/* A line of a table has several figures at once. */
TEST(figures)
{
	FILE *out = begin();

	cli_fprintf(out, "%s|%12s|%s|%12s|%s", spill_size(0).text, cli_size_or_dash(0).text,
	            cli_size_or_dash(2048).text, cli_seconds(12345678).text, cli_seconds(5).text);
	ends_as(out, "0 B|           -|2.00 KiB|   12.345678|0.000005");
}
