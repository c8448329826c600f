#include "put.h"

#include <stdarg.h>
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

static void put_shown(FILE *out, const char *text, size_t left)
{
	while (left) {
		size_t plain = plain_length(text, left);

		fwrite(text, 1, plain, out);
		text += plain;
		left -= plain;
		if (!left)
			break;

		struct spill_character character = spill_text_character(text, left);

		fwrite(character.shown ? text : "?", 1, character.shown ? character.bytes : 1, out);
		text += character.bytes;
		left -= character.bytes;
	}
}

void cli_put(FILE *out, const char *text)
{
	text = text ? text : "?";
	put_shown(out, text, strlen(text));
}

void cli_put_json_line(FILE *out, const char *line, size_t length)
{
	while (length) {
		size_t plain = plain_length(line, length);

		fwrite(line, 1, plain, out);
		line += plain;
		length -= plain;
		if (!length)
			break;

		struct spill_character character = spill_text_character(line, length);

		if (character.shown)
			fwrite(line, 1, character.bytes, out);
		else if (character.code < 0x20)
			fputc(' ', out);
		else
			fprintf(out, "\\u%04x", character.code);
		line += character.bytes;
		length -= character.bytes;
	}
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

/* %s, with "?" for each unprintable character. */
static void print_text(FILE *out, const struct conversion *conversion, const char *text)
{
	size_t most = conversion->precision < 0 ? SIZE_MAX : (size_t)conversion->precision;
	size_t length = text ? strnlen(text, most) : 0;
	char *shown;
	size_t size;
	FILE *room;

	if (!conversion->width) {
		put_shown(out, text ? text : "?", text ? length : 1);
		return;
	}
	room = open_memstream(&shown, &size);
	if (!room)
		return;
	put_shown(room, text ? text : "?", text ? length : 1);
	fclose(room);
	fprintf(out, strchr(conversion->flags, '-') ? "%-*s" : "%*s", conversion->width, shown);
	free(shown);
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

void cli_put_size(FILE *out, uint64_t bytes)
{
	char size[32];
	struct spill_text text = spill_text_begin(size, sizeof(size));

	spill_text_size(&text, bytes);
	fputs(size, out);
}

void cli_put_size_column(FILE *out, uint64_t bytes)
{
	char size[32];
	struct spill_text text = spill_text_begin(size, sizeof(size));

	spill_text_size(&text, bytes);
	fprintf(out, "%12s", bytes ? size : "-");
}

void cli_put_seconds(FILE *out, uint64_t us)
{
	fprintf(out, "%ju.%06ju", (uintmax_t)(us / 1000000), (uintmax_t)(us % 1000000));
}

void cli_put_sums(FILE *out, const struct spill_bytes *sums)
{
	const struct {
		uint64_t bytes;
		const char *place;
	} parts[] = {{sums->device, "device"}, {sums->host, "host"}, {sums->managed, "managed"}};
	const char *comma = "";

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].bytes == 0)
			continue;
		fputs(comma, out);
		cli_put_size(out, parts[i].bytes);
		cli_fprintf(out, " %s", parts[i].place);
		comma = ", ";
	}
	if (!*comma)
		fputs("nothing", out);
}

void cli_put_tried(FILE *out, const struct spill_attempt *tried, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		fputs(i ? ", " : "; tried ", out);
		cli_put(out, tried[i].place);
		fputs(": ", out);
		cli_put(out, tried[i].error);
	}
}
