#include "put.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Length of the printable ASCII at the begin, which needs no decoding. */
static size_t plain_length(const char *text, size_t left)
{
	size_t length = 0;

	while (length < left && text[length] >= 0x20 && text[length] < 0x7f)
		length++;
	return length;
}

/* Writes what stands for an unprintable character; in JSON an escape. */
static void put_instead(FILE *out, const struct spill_character *character, bool json)
{
	if (!json)
		fputc('?', out);
	else if (character->code < 0x20)
		fputc(' ', out);
	else
		fprintf(out, "\\u%04x", character->code);
}

static void put_shown(FILE *out, const char *text, size_t left, bool json)
{
	while (left) {
		size_t plain = plain_length(text, left);

		fwrite(text, 1, plain, out);
		text += plain;
		left -= plain;
		if (!left)
			break;

		struct spill_character character = spill_text_character(text, left);

		if (character.shown)
			fwrite(text, 1, character.bytes, out);
		else
			put_instead(out, &character, json);
		text += character.bytes;
		left -= character.bytes;
	}
}

void cli_put_json_line(FILE *out, const char *line, size_t length)
{
	put_shown(out, line, length, true);
}

/* -- cli_printf ------------------------------------------------------------------------------- */

struct conversion {
	char flags[8];
	int width, precision; /* precision -1: none */
	char length[3];       /* "", "l", "ll", "z", "j" */
};

static int read_number(const char **at, va_list *arguments)
{
	char *end;
	long number;

	if (**at == '*') {
		++*at;
		return va_arg(*arguments, int);
	}
	number = strtol(*at, &end, 10);
	*at = end;
	return (int)number;
}

static void read_letters(const char **at, const char *letters, char *to, size_t size)
{
	size_t length = strspn(*at, letters);

	snprintf(to, size, "%.*s", (int)length, *at);
	*at += length;
}

static struct conversion read_conversion(const char **at, va_list *arguments)
{
	struct conversion found = {.precision = -1};

	read_letters(at, "-+ #0", found.flags, sizeof(found.flags));
	if (**at == '*' || (**at >= '1' && **at <= '9'))
		found.width = read_number(at, arguments);
	if (**at == '.') {
		++*at;
		found.precision = read_number(at, arguments);
	}
	read_letters(at, "lzj", found.length, sizeof(found.length));
	return found;
}

/* Bytes of the text as put_shown writes it. */
static size_t shown_bytes(const char *text, size_t left)
{
	size_t shown = 0;

	while (left) {
		struct spill_character character = spill_text_character(text, left);

		shown += character.shown ? character.bytes : 1;
		text += character.bytes;
		left -= character.bytes;
	}
	return shown;
}

static void put_blanks(FILE *out, size_t count)
{
	for (; count; count--)
		fputc(' ', out);
}

/* %s, with "?" for each unprintable character. */
static void print_text(FILE *out, const struct conversion *conversion, const char *text)
{
	size_t most = conversion->precision < 0 ? SIZE_MAX : (size_t)conversion->precision;
	const char *word = text ? text : "?";
	size_t length = strnlen(word, most);
	size_t shown = conversion->width > 0 ? shown_bytes(word, length) : 0;
	size_t blanks = conversion->width > (int)shown ? (size_t)conversion->width - shown : 0;
	bool left = strchr(conversion->flags, '-');

	put_blanks(out, left ? 0 : blanks);
	put_shown(out, word, length, false);
	put_blanks(out, left ? blanks : 0);
}

static void print_number(FILE *out, const struct conversion *conversion, char letter, va_list *arguments)
{
	bool is_signed = letter == 'd' || letter == 'i';
	char format[32];
	uintmax_t number;

	snprintf(format, sizeof(format), "%%%s*.*j%c", conversion->flags, letter);
	if (!strcmp(conversion->length, "l"))
		number = is_signed ? (uintmax_t)va_arg(*arguments, long) : va_arg(*arguments, unsigned long);
	else if (!strcmp(conversion->length, ""))
		number = is_signed ? (uintmax_t)va_arg(*arguments, int) : va_arg(*arguments, unsigned);
	else
		number = va_arg(*arguments, uintmax_t); /* ll, z and j have this width */
	fprintf(out, format, conversion->width, conversion->precision, number);
}

static void print_fraction(FILE *out, const struct conversion *conversion, char letter, va_list *arguments)
{
	char format[32];

	snprintf(format, sizeof(format), "%%%s*.*%c", conversion->flags, letter);
	fprintf(out, format, conversion->width, conversion->precision, va_arg(*arguments, double));
}

/* Prints the conversion at `at`, behind its '%'. Returns the rest of the format. */
static const char *print_conversion(FILE *out, const char *at, va_list *arguments)
{
	struct conversion conversion = read_conversion(&at, arguments);
	char letter[2] = "";

	switch (*at) {
	case 's':
		print_text(out, &conversion, va_arg(*arguments, const char *));
		break;
	case 'c':
		letter[0] = (char)va_arg(*arguments, int);
		print_text(out, &conversion, letter);
		break;
	case 'd':
	case 'i':
	case 'u':
	case 'x':
		print_number(out, &conversion, *at, arguments);
		break;
	case 'e':
	case 'f':
	case 'g':
		print_fraction(out, &conversion, *at, arguments);
		break;
	case '%':
		fputc('%', out);
		break;
	default:
		abort(); /* a bug: tests/static/prints.py finds such formats */
	}
	return at + 1;
}

static void print_format(FILE *out, const char *format, va_list arguments)
{
	va_list left;

	va_copy(left, arguments);
	while (*format) {
		size_t literal = strcspn(format, "%");

		fwrite(format, 1, literal, out);
		format += literal;
		if (*format)
			format = print_conversion(out, format + 1, &left);
	}
	va_end(left);
}

/* stderr is unbuffered. A single write keeps other output out of the line. */
void cli_vfprintf(FILE *out, const char *format, va_list arguments)
{
	char *text;
	size_t size;
	FILE *room = out == stderr ? open_memstream(&text, &size) : NULL;

	print_format(room ? room : out, format, arguments);
	if (!room)
		return;
	fclose(room);
	fwrite(text, 1, size, out);
	free(text);
}

void cli_fprintf(FILE *out, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	cli_vfprintf(out, format, arguments);
	va_end(arguments);
}

void cli_printf(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	cli_vfprintf(stdout, format, arguments);
	va_end(arguments);
}

/* -- figures ---------------------------------------------------------------------------------- */

struct spill_word cli_count(uint64_t count, const char *noun)
{
	struct spill_word word;

	snprintf(word.text, sizeof(word.text), "%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
	return word;
}

struct spill_word cli_size_or_dash(uint64_t bytes)
{
	return bytes ? spill_size(bytes) : (struct spill_word){"-"};
}

struct spill_word cli_seconds(uint64_t us)
{
	struct spill_word word;

	snprintf(word.text, sizeof(word.text), "%ju.%06ju", (uintmax_t)(us / 1000000),
	         (uintmax_t)(us % 1000000));
	return word;
}

struct spill_word cli_driver_version(const char *backend, int driver)
{
	struct spill_word word;

	if (backend && !strcmp(backend, "cuda"))
		snprintf(word.text, sizeof(word.text), "%d.%d", driver / 1000, driver % 1000 / 10);
	else
		snprintf(word.text, sizeof(word.text), "%d.%d.%d", driver / 10000000, driver / 100000 % 100,
		         driver % 100000);
	return word;
}

void cli_put_tried(FILE *out, const struct spill_attempt *tried, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		cli_fprintf(out, "%s%s: %s", i ? ", " : "; tried ", tried[i].place, tried[i].error);
}
