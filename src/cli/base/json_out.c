#include "json_out.h"

#include <stdio.h>
#include <string.h>

#include "put.h"
#include "text.h"

/* Holds any one value: names are cut at CLI_NAME_MOST, and an escape takes six bytes. */
static char buffer[1 << 16];

/* The output. in_page: it is an HTML page. */
static FILE *output;
static bool in_page;

void cli_json_begin(struct spill_json *json)
{
	output = stdout;
	in_page = false;
	spill_json_begin(json, buffer, sizeof(buffer));
}

void cli_json_begin_page(struct spill_json *json, FILE *page)
{
	output = page;
	in_page = true;
	spill_json_begin(json, buffer, sizeof(buffer));
}

/*
 * Only strings can contain these characters. Escaping "<" prevents "</script" and "<!--" (HTML,
 * 4.12.1.3). spill_json_string has escaped U+2028 and U+2029.
 */
static void write_escaped(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '<' || c == '>' || c == '&')
			fprintf(output, "\\u00%02x", c);
		else
			putc(c, output);
	}
}

static void write_out(const char *text, size_t length)
{
	if (in_page)
		write_escaped(text, length);
	else
		fwrite(text, 1, length, output);
}

void cli_json_end(struct spill_json *json)
{
	write_out(buffer, spill_json_end_line(json));
}

static void write_built(struct spill_json *json)
{
	write_out(json->buffer, json->length);
	json->length = 0;
}

struct spill_json *cli_json_element(struct spill_json *json)
{
	if (json->length > sizeof(buffer) / 2)
		write_built(json);
	return json;
}

struct spill_json *cli_json_key(struct spill_json *json, const char *name)
{
	write_built(json);
	return spill_json_key(json, name);
}

/* A page shows texts to people, so unprintable characters become "?" there. */
static void put_text_value(struct spill_json *json, const char *text)
{
	char plain[sizeof(buffer) / 8 + 1];
	struct spill_text shown = spill_text_begin(plain, sizeof(plain));

	if (text && in_page) {
		spill_text_plain(&shown, text);
		text = plain;
	}
	if (text)
		spill_json_string_length(json, text, strnlen(text, sizeof(buffer) / 8));
	else
		spill_json_string(json, NULL);
}

void cli_json_text(struct spill_json *json, const char *member, const char *text)
{
	put_text_value(cli_json_key(json, member), text);
}

void cli_json_text_element(struct spill_json *json, const char *text)
{
	write_built(json);
	put_text_value(json, text);
}

void cli_json_number(struct spill_json *json, const char *member, uint64_t value)
{
	spill_json_u64(cli_json_key(json, member), value);
}

void cli_json_bool(struct spill_json *json, const char *member, bool value)
{
	spill_json_bool(cli_json_key(json, member), value);
}

void cli_json_bytes(struct spill_json *json, const char *member, const struct spill_bytes *sums)
{
	spill_json_object(cli_json_key(json, member));
	cli_json_number(json, "device_bytes", sums->device);
	cli_json_number(json, "host_bytes", sums->host);
	cli_json_number(json, "managed_bytes", sums->managed);
	spill_json_object_end(json);
}

void cli_json_device(struct spill_json *json, int device)
{
	cli_json_key(json, "dev");
	if (device < 0)
		spill_json_string(json, NULL);
	else
		spill_json_i64(json, device);
}

void cli_json_rate(struct spill_json *json, const char *member, double rate)
{
	if (rate > 0) {
		cli_json_key(json, member);
		json->length += (size_t)snprintf(json->buffer + json->length, 64, "%.3f", rate);
		json->comma = true;
	} else {
		cli_json_text(json, member, NULL);
	}
}

void cli_print_item(struct spill_json *json, const char *text)
{
	if (json)
		cli_json_text_element(json, text);
	else
		cli_printf("%s\n", text);
}
