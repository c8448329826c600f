/* Lines of logs that still grow, are replaced, or have lines of any length. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lines.h"

#define NOTE "{\"v\":1,\"kind\":\"note\",\"t\":1.0,\"tid\":1,\"code\":\"c\",\"text\":\"t\"}\n"
#define MIB ((size_t)1 << 20)

static char path[] = "/tmp/spill-unit-XXXXXX";
static struct cli_lines lines;
static struct spill_record record;

static int setup(void **state)
{
	strcpy(path + strlen(path) - 6, "XXXXXX");
	close(mkstemp(path));
	return 0;
}

static int teardown(void **state)
{
	return unlink(path);
}

static void put(const char *mode, const char *text)
{
	FILE *file = fopen(path, mode);

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void next_is(enum cli_line line, unsigned long number)
{
	assert_int_equal(cli_lines_next(&lines, &record), line);
	assert_int_equal(lines.number, number);
}

/* Half of a line is none yet, and is not told before its other half is there. */
TEST(a_log_that_is_followed)
{
	put("w", NOTE "{\"v\":1,\"kind\":\"no");
	assert_true(cli_lines_open(&lines, path, CLI_REGULAR));
	lines.following = true;
	next_is(CLI_LINE_RECORD, 1);
	for (unsigned i = 0; i < 3; i++)
		next_is(CLI_LINE_END, 1);
	put("a", "te\",\"t\":1.0,\"tid\":1,\"code\":\"c\",\"text\":\"t\"}");
	next_is(CLI_LINE_END, 1);
	put("a", "\n");
	next_is(CLI_LINE_RECORD, 2);
	assert_string_equal(record.note.text, "t");
	next_is(CLI_LINE_END, 2);
	put("a", "{\"v\":1,");
	lines.following = false;
	next_is(CLI_LINE_CUT, 3);
	next_is(CLI_LINE_END, 3);
	cli_lines_close(&lines);
}

/* One that is cut and written again is shorter than what was read, or another file. */
TEST(a_log_that_is_replaced)
{
	char other[sizeof(path) + 2];

	put("w", NOTE NOTE);
	assert_true(cli_lines_open(&lines, path, CLI_REGULAR));
	next_is(CLI_LINE_RECORD, 1);
	next_is(CLI_LINE_RECORD, 2);
	next_is(CLI_LINE_END, 2);
	assert_false(cli_lines_is_replaced(&lines));
	put("a", NOTE);
	assert_false(cli_lines_is_replaced(&lines));
	put("w", NOTE);
	assert_true(cli_lines_is_replaced(&lines));
	assert_true(cli_lines_reopen(&lines));
	next_is(CLI_LINE_RECORD, 1);
	next_is(CLI_LINE_END, 1);
	/* Nothing has begun in the other one yet, or it is not there. */
	snprintf(other, sizeof(other), "%s.1", path);
	assert_int_equal(rename(path, other), 0);
	assert_false(cli_lines_is_replaced(&lines));
	put("w", "");
	assert_false(cli_lines_is_replaced(&lines));
	put("w", NOTE);
	assert_true(cli_lines_is_replaced(&lines));
	assert_int_equal(unlink(other), 0);
	cli_lines_close(&lines);
}

/* Memory is bounded: it comes in pieces of 16 MiB. What follows is read as ever. */
TEST(a_line_without_an_end)
{
	char *block = malloc(MIB);
	FILE *file = fopen(path, "w");

	memset(block, 'a', MIB);
	for (unsigned i = 0; i < 40; i++)
		fwrite(block, MIB, 1, file);
	fputs("\n" NOTE, file);
	fclose(file);
	free(block);
	assert_true(cli_lines_open(&lines, path, CLI_REGULAR));
	for (unsigned i = 0; i < 3; i++) {
		next_is(CLI_LINE_BAD, i + 1);
		assert_in_range(lines.length, i < 2 ? 16 * MIB : MIB, 17 * MIB);
	}
	next_is(CLI_LINE_RECORD, 4);
	next_is(CLI_LINE_END, 4);
	assert_in_range(lines.size, 17 * MIB, 40 * MIB);
	cli_lines_close(&lines);
}

/* What cannot be read is no end without a reason. */
TEST(a_folder_in_the_place_of_a_log)
{
	assert_false(cli_lines_open(&lines, "/tmp", CLI_REGULAR));
	assert_int_not_equal(lines.error, 0);
	next_is(CLI_LINE_END, 0);
	assert_false(cli_lines_is_replaced(&lines));
	cli_lines_close(&lines);
}

/* One complaint, whatever its bytes look like. */
TEST(a_compressed_log)
{
	static const char *const begins[] = {"\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "\xfd\x37zXZ", "BZh9"};

	for (unsigned i = 0; i < 4; i++) {
		char text[256];

		snprintf(text, sizeof(text), "%s%s", begins[i], i % 2 ? "" : "\nmore\n" NOTE);
		put("w", text);
		assert_true(cli_lines_open(&lines, path, CLI_REGULAR));
		next_is(CLI_LINE_BAD, 1);
		assert_string_equal(lines.reason, "the file is compressed; decompress it first");
		next_is(CLI_LINE_END, 1);
		cli_lines_close(&lines);
	}
	put("w", NOTE "BZh\n" NOTE);
	assert_true(cli_lines_open(&lines, path, CLI_REGULAR));
	next_is(CLI_LINE_RECORD, 1);
	next_is(CLI_LINE_BAD, 2); /* a log that something has written into */
	next_is(CLI_LINE_RECORD, 3);
	cli_lines_close(&lines);
	put("w", "BZ\n");
	assert_true(cli_lines_open(&lines, path, CLI_REGULAR));
	next_is(CLI_LINE_BAD, 1);
	assert_null(strstr(lines.reason, "compressed"));
	cli_lines_close(&lines);
}
