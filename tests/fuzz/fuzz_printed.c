#include "fuzz_printed.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "fuzz.h"
#include "json_read.h"

/* -- text ------------------------------------------------------------------------------------- */

/* By the first byte; 0: none begins with it. */
static size_t length_of(unsigned char first)
{
	if (first < 0x80)
		return 1;
	return first >= 0xc2 && first < 0xe0   ? 2
	       : first >= 0xe0 && first < 0xf0 ? 3
	       : first >= 0xf0 && first < 0xf5 ? 4
	                                       : 0;
}

/* The bytes of the character at `at`; 0: it is no UTF-8. */
static size_t decode(const unsigned char *at, size_t left, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = length_of(at[0]);

	if (!length || length > left)
		return 0;
	*code = length == 1 ? at[0] : at[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (at[i] & 0x3f);
	}
	return *code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : length;
}

/* Controls, and characters that change the direction of text or end a line (Unicode, chapter 23). */
static bool steers(uint32_t code)
{
	static const uint32_t ranges[][2] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
	                                     {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (code >= ranges[i][0] && code <= ranges[i][1])
			return true;
	}
	return false;
}

static void check_text(const char *text, size_t length)
{
	uint32_t code = 0;

	for (size_t at = 0, bytes; at < length; at += bytes) {
		bytes = decode((const unsigned char *)text + at, length - at, &code);
		fuzz_require(bytes != 0, "what is printed is UTF-8");
		fuzz_require(code == '\n' || !steers(code), "nothing steers the terminal");
	}
}

/* -- the run ---------------------------------------------------------------------------------- */

struct stream {
	FILE *before, *kept;
	char *text;
	size_t length;
};

static struct stream out, err;

static FILE *begin(struct stream *stream, FILE *before)
{
	free(stream->text);
	stream->before = before;
	stream->kept = open_memstream(&stream->text, &stream->length);
	fuzz_require(stream->kept != NULL, "no memory");
	return stream->kept;
}

static FILE *end(struct stream *stream)
{
	fuzz_require(fclose(stream->kept) == 0, "no memory");
	return stream->before;
}

struct fuzz_printed fuzz_run(fuzz_command *command, const char *const *words)
{
	char *argv[16] = {NULL};
	int argc = 0, status;

	for (; words[argc]; argc++) {
		fuzz_require(argc < 15, "few words");
		argv[argc] = (char *)words[argc];
	}
	optind = 0; /* getopt begins anew */
	stdout = begin(&out, stdout);
	stderr = begin(&err, stderr);
	status = command(argc, argv);
	stdout = end(&out);
	stderr = end(&err);
	fuzz_require(status == CLI_FINE || status == CLI_FINDINGS || status == CLI_USAGE,
	             "a status of spill");
	check_text(out.text, out.length);
	check_text(err.text, err.length);
	return (struct fuzz_printed){out.text, out.length};
}

/* -- JSON ------------------------------------------------------------------------------------- */

/* So large may the numbers of an input be: its sums are far from 2^63 then, also those of microseconds. */
#define MOST 1e12

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The largest whole number, with its unit: "4GiB". The T of a time is none: a digit follows. */
static double largest_number(const char *text, size_t length)
{
	static const char units[] = "KMGTPE";
	double largest = 0, number = 0;

	for (size_t i = 0; i < length; i++) {
		bool is_time = i + 1 < length && is_digit(text[i + 1]);
		const char *unit = text[i] && !is_time ? strchr(units, text[i]) : NULL;

		if (is_digit(text[i]))
			number = number * 10 + (text[i] - '0');
		for (; unit && unit >= units; unit--)
			number *= 1024;
		largest = number > largest ? number : largest;
		if (!is_digit(text[i]))
			number = 0;
	}
	return largest;
}

/* Numbers of a JSON value, outside of its strings. */
static double largest_figure(const char *json, size_t length)
{
	double largest = 0, number = 0;
	bool inside = false;

	for (size_t i = 0; i < length; i++) {
		if (inside && json[i] == '\\')
			i++;
		else if (json[i] == '"')
			inside = !inside;
		number = !inside && is_digit(json[i]) ? number * 10 + (json[i] - '0') : 0;
		largest = number > largest ? number : largest;
	}
	return largest;
}

void fuzz_check_json(struct fuzz_printed printed)
{
	struct spill_json_reader reader = spill_json_read(printed.text, printed.length);

	spill_json_skip(&reader);
	if (!reader.reason && reader.at < reader.end && *reader.at == '\n')
		reader.at++;
	fuzz_require(!reader.reason && reader.at == reader.end, "one JSON value");
}

void fuzz_check_figures(struct fuzz_printed printed, const char *input, size_t length)
{
	if (largest_number(input, length) <= MOST)
		fuzz_require(largest_figure(printed.text, printed.length) < 9e18,
		             "no figure has wrapped around");
}
