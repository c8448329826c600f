#include "put.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Printable ASCII, of which most text is, needs no second look. */
static size_t plain_length(const char *text, size_t left)
{
	size_t length = 0;

	while (length < left && text[length] >= 0x20 && text[length] < 0x7f)
		length++;
	return length;
}

static void put_part(FILE *out, const char *text, size_t left)
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
	put_part(out, text, strlen(text));
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

/* -- cli_printf ----------------------------------------------------------------------------------------------- */

/* A conversion of a format, without its letter. */
struct conversion {
	char flags[8];
	int width, precision; /* precision: -1 if there is none */
	char length[3];       /* "", "l", "ll", "z", "j" */
};

static int take_number(const char **at, va_list *arguments)
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

static void take_letters(const char **at, const char *letters, char *to, size_t size)
{
	size_t length = strspn(*at, letters);

	snprintf(to, size, "%.*s", (int)length, *at);
	*at += length;
}

static struct conversion take_conversion(const char **at, va_list *arguments)
{
	struct conversion found = {.precision = -1};

	take_letters(at, "-+ #0", found.flags, sizeof(found.flags));
	if (**at == '*' || (**at >= '1' && **at <= '9'))
		found.width = take_number(at, arguments);
	if (**at == '.') {
		++*at;
		found.precision = take_number(at, arguments);
	}
	take_letters(at, "lzj", found.length, sizeof(found.length));
	return found;
}

/* %s, with a ? for each character that is not shown. */
static void put_text(FILE *out, const struct conversion *how, const char *text)
{
	size_t most = how->precision < 0 ? SIZE_MAX : (size_t)how->precision;
	size_t length = text ? strnlen(text, most) : 0;
	char *shown;
	size_t size;
	FILE *room;

	if (!how->width) {
		put_part(out, text ? text : "?", text ? length : 1);
		return;
	}
	room = open_memstream(&shown, &size);
	if (!room)
		return;
	put_part(room, text ? text : "?", text ? length : 1);
	fclose(room);
	fprintf(out, strchr(how->flags, '-') ? "%-*s" : "%*s", how->width, shown);
	free(shown);
}

static void put_number(FILE *out, const struct conversion *how, char letter, va_list *arguments)
{
	bool is_signed = letter == 'd' || letter == 'i';
	char format[32];
	uintmax_t number;

	snprintf(format, sizeof(format), "%%%s*.*j%c", how->flags, letter);
	if (!strcmp(how->length, "l"))
		number = is_signed ? (uintmax_t)va_arg(*arguments, long) : va_arg(*arguments, unsigned long);
	else if (!strcmp(how->length, ""))
		number = is_signed ? (uintmax_t)va_arg(*arguments, int) : va_arg(*arguments, unsigned);
	else
		number = va_arg(*arguments, uintmax_t); /* ll, z and j are as wide */
	fprintf(out, format, how->width, how->precision, number);
}

static void put_fraction(FILE *out, const struct conversion *how, char letter, va_list *arguments)
{
	char format[32];

	snprintf(format, sizeof(format), "%%%s*.*%c", how->flags, letter);
	fprintf(out, format, how->width, how->precision, va_arg(*arguments, double));
}

/* pre: behind a '%'. Returns what is behind the conversion. */
static const char *convert(FILE *out, const char *at, va_list *arguments)
{
	struct conversion how = take_conversion(&at, arguments);
	char letter[2] = "";

	switch (*at) {
	case 's':
		put_text(out, &how, va_arg(*arguments, const char *));
		break;
	case 'c':
		letter[0] = (char)va_arg(*arguments, int);
		put_text(out, &how, letter);
		break;
	case 'd':
	case 'i':
	case 'u':
	case 'x':
		put_number(out, &how, *at, arguments);
		break;
	case 'e':
	case 'f':
	case 'g':
		put_fraction(out, &how, *at, arguments);
		break;
	case '%':
		fputc('%', out);
		break;
	default:
		abort(); /* a mistake of ours: tests/static/prints.py refuses it */
	}
	return at + 1;
}

static void print(FILE *out, const char *format, va_list arguments)
{
	va_list left;

	va_copy(left, arguments);
	while (*format) {
		size_t literal = strcspn(format, "%");

		fwrite(format, 1, literal, out);
		format += literal;
		if (*format)
			format = convert(out, format + 1, &left);
	}
	va_end(left);
}

/* stderr has no buffer: one write keeps other programs' output out of the line. */
void cli_vfprintf(FILE *out, const char *format, va_list arguments)
{
	char *text;
	size_t size;
	FILE *room = out == stderr ? open_memstream(&text, &size) : NULL;

	print(room ? room : out, format, arguments);
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

/* -- figures -------------------------------------------------------------------------------------------------- */

void cli_put_size(FILE *out, uint64_t bytes)
{
	char size[32];
	struct spill_text text = spill_text_begin(size, sizeof(size));

	spill_text_size(&text, bytes);
	fputs(size, out);
}

void cli_put_size_at(FILE *out, uint64_t bytes)
{
	char size[32];
	struct spill_text text = spill_text_begin(size, sizeof(size));

	spill_text_size(&text, bytes);
	fprintf(out, "%12s", bytes ? size : "-");
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
