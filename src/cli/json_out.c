#include "json_out.h"

#include <stdio.h>
#include <string.h>

/* One value is never longer: names are cut at CLI_NAME_MOST, and an escape takes six bytes for one. */
static char buffer[1 << 16];

void cli_json_begin(struct spill_json *json)
{
	spill_json_begin(json, buffer, sizeof(buffer));
}

void cli_json_end(struct spill_json *json)
{
	fwrite(buffer, 1, spill_json_end_line(json), stdout);
}

static void flush(struct spill_json *json)
{
	fwrite(json->buffer, 1, json->length, stdout);
	json->length = 0;
}

struct spill_json *cli_json_key(struct spill_json *json, const char *name)
{
	flush(json);
	return spill_json_key(json, name);
}

void cli_json_name(struct spill_json *json, const char *member, const struct cli_name *name)
{
	spill_json_string(cli_json_key(json, member), name ? name->text : NULL);
}

void cli_json_text(struct spill_json *json, const char *member, const char *text)
{
	size_t length = text ? strnlen(text, sizeof(buffer) / 8) : 0;

	cli_json_key(json, member);
	if (text)
		spill_json_string_length(json, text, length);
	else
		spill_json_string(json, NULL);
}

void cli_json_number(struct spill_json *json, const char *member, uint64_t value)
{
	spill_json_u64(cli_json_key(json, member), value);
}

void cli_json_truth(struct spill_json *json, const char *member, bool value)
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
