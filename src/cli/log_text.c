/* One record as one line for people; a start line has a few more below it. Unknown kinds are skipped. */
#include <cjson/cJSON.h>
#include <stdint.h>
#include <string.h>

#include "cli.h"
#include "text.h"

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static double number(const cJSON *object, const char *name)
{
	const cJSON *value = member(object, name);

	return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

/* Text of the log, without what could steer a terminal: a program chooses its own name. */
static void put(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

static const char *text(const cJSON *object, const char *name)
{
	const char *value = cJSON_GetStringValue(member(object, name));

	return value ? value : "?";
}

static void put_size(FILE *out, double bytes)
{
	char size[32];
	struct spill_text text = spill_text_begin(size, sizeof(size));

	spill_text_size(&text, bytes > 0 ? (uint64_t)bytes : 0);
	fputs(size, out);
}

/* "5.00 GiB device, 2.04 GiB host", what is 0 left out; "nothing" if all is. */
static void put_sums(FILE *out, const cJSON *sums)
{
	static const char *const places[] = {"device", "host", "managed"};
	const char *comma = "";
	char name[24];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		double bytes;

		snprintf(name, sizeof(name), "%s_bytes", places[i]);
		bytes = number(sums, name);
		if (bytes <= 0)
			continue;
		fputs(comma, out);
		put_size(out, bytes);
		fprintf(out, " %s", places[i]);
		comma = ", ";
	}
	if (!*comma)
		fputs("nothing", out);
}

/* "; tried device: CUDA_ERROR_OUT_OF_MEMORY, split: host.limit" */
static void put_tried(FILE *out, const cJSON *record)
{
	const char *before = "; tried ";
	const cJSON *attempt;

	cJSON_ArrayForEach(attempt, member(record, "tried"))
	{
		fputs(before, out);
		put(out, text(attempt, "place"));
		fputs(": ", out);
		put(out, text(attempt, "error"));
		before = ", ";
	}
}

static void put_when(FILE *out, const cJSON *record)
{
	fprintf(out, "%12.6f  ", number(record, "t"));
}

/* "  device 0  cudaMalloc  libfoo.so+0x1a2b" */
static void put_origin(FILE *out, const cJSON *record)
{
	if (cJSON_IsNumber(member(record, "dev")))
		fprintf(out, "  device %.0f", number(record, "dev"));
	fputs("  ", out);
	put(out, text(record, "api"));
	if (member(record, "caller")) {
		fputs("  ", out);
		put(out, text(record, "caller"));
	}
}

static void put_took(FILE *out, const cJSON *record)
{
	double us = number(record, "us");

	if (us < 1000)
		fprintf(out, "  %.0f us\n", us);
	else
		fprintf(out, "  %.1f ms\n", us / 1000);
}

static void print_start(FILE *out, const cJSON *record)
{
	const cJSON *item;

	put(out, text(record, "program"));
	fprintf(out, " (pid %.0f) on ", number(record, "pid"));
	put(out, text(record, "host"));
	fputs(", ", out);
	put(out, text(record, "time"));
	fputs(", libspill ", out);
	put(out, text(record, "version"));
	fputs(", ", out);
	put(out, text(record, "backend"));
	fprintf(out, " driver %.0f\n", number(record, "driver"));
	cJSON_ArrayForEach(item, member(record, "devices"))
	{
		fprintf(out, "  device %.0f: ", number(item, "dev"));
		put(out, text(item, "name"));
		fputs(", ", out);
		put_size(out, number(item, "bytes"));
		fputc('\n', out);
	}
	cJSON_ArrayForEach(item, member(record, "policy"))
	{
		if (!strcmp(text(item, "source"), "default"))
			continue;
		fputs("  policy: ", out);
		put(out, text(item, "name"));
		fputs(" = ", out);
		put(out, text(item, "value"));
		fputs(" (", out);
		put(out, text(item, "source"));
		fputs(")\n", out);
	}
}

static void print_alloc(FILE *out, const cJSON *record)
{
	put_when(out, record);
	fprintf(out, "alloc #%-6.0f ", number(record, "seq"));
	put_size(out, number(record, "bytes"));
	fputs("  ", out);
	put(out, text(record, "place"));
	if (strcmp(text(record, "place"), "device")) {
		fputs(" (", out);
		put_sums(out, record);
		fputs(")", out);
	}
	put_origin(out, record);
	fputs("  ", out);
	put(out, text(record, "reason"));
	if (member(record, "rule") && strcmp(text(record, "rule"), "default")) {
		fputs(", rule ", out);
		put(out, text(record, "rule"));
	}
	if (member(record, "would")) {
		fputs("; would be ", out);
		put(out, text(record, "would"));
	}
	put_tried(out, record);
	put_took(out, record);
}

static void print_free(FILE *out, const cJSON *record)
{
	put_when(out, record);
	fprintf(out, "free  #%-6.0f ", number(record, "seq"));
	put_size(out, number(record, "bytes"));
	fputs("  ", out);
	put(out, text(record, "place"));
	put_origin(out, record);
	fputs("  ", out);
	put(out, text(record, "reason"));
	put_took(out, record);
}

static void print_move(FILE *out, const cJSON *record)
{
	put_when(out, record);
	fprintf(out, "move  #%-6.0f ", number(record, "seq"));
	put_size(out, number(record, "bytes"));
	fputs(strcmp(text(record, "what"), "demote") ? " back to the device" : " to host memory", out);
	fputs(", now ", out);
	put_sums(out, record);
	if (member(record, "api"))
		put_origin(out, record);
	else
		fprintf(out, "  device %.0f", number(record, "dev"));
	fputs("  ", out);
	put(out, text(record, "reason"));
	put_took(out, record);
}

static void print_oom(FILE *out, const cJSON *record)
{
	const char *before = "; largest: ";
	const cJSON *holder;

	put_when(out, record);
	fputs("OUT OF MEMORY  ", out);
	put_size(out, number(record, "bytes"));
	fputs(" asked", out);
	put_origin(out, record);
	fputs("  refused by ", out);
	put(out, text(record, "refused_by"));
	fputs("; free ", out);
	put_size(out, number(record, "free"));
	fputs(" of ", out);
	put_size(out, number(record, "total"));
	fputs("; live ", out);
	put_sums(out, member(record, "live"));
	put_tried(out, record);
	cJSON_ArrayForEach(holder, member(record, "holders"))
	{
		fputs(before, out);
		put_size(out, number(holder, "bytes"));
		fprintf(out, " #%.0f ", number(holder, "seq"));
		put(out, text(holder, member(holder, "caller") ? "caller" : "api"));
		before = ", ";
	}
	fputc('\n', out);
}

static void print_note(FILE *out, const cJSON *record)
{
	put_when(out, record);
	fputs("note  ", out);
	put(out, text(record, "code"));
	fputs(": ", out);
	put(out, text(record, "text"));
	fputc('\n', out);
}

/* "; moved 2.04 GiB to host memory in 3 moves, 1.00 GiB back in 1" */
static void print_moves(FILE *out, const cJSON *record)
{
	if (number(record, "demotions") + number(record, "promotions") <= 0)
		return;
	fputs("; moved ", out);
	put_size(out, number(record, "demoted_bytes"));
	fprintf(out, " to host memory in %.0f moves, ", number(record, "demotions"));
	put_size(out, number(record, "promoted_bytes"));
	fprintf(out, " back in %.0f", number(record, "promotions"));
}

static void print_exit(FILE *out, const cJSON *record)
{
	put_when(out, record);
	fputs("end (", out);
	put(out, text(record, "how"));
	fprintf(out, "): %.0f of %.0f allocations spilled, ", number(record, "spills"),
	        number(record, "allocs"));
	put_sums(out, member(record, "spilled"));
	fprintf(out, " spilled in all; %.0f out of memory; peak ", number(record, "ooms"));
	put_sums(out, member(record, "peak"));
	print_moves(out, record);
	fputs("; still held ", out);
	put_sums(out, member(record, "live"));
	fputc('\n', out);
}

void cli_print_record(FILE *out, const cJSON *record)
{
	static const struct {
		const char *kind;
		void (*print)(FILE *out, const cJSON *record);
	} kinds[] = {{"start", print_start}, {"alloc", print_alloc}, {"free", print_free},
	             {"move", print_move},   {"oom", print_oom},     {"note", print_note},
	             {"exit", print_exit}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(text(record, "kind"), kinds[i].kind))
			kinds[i].print(out, record);
	}
}
