#include "start_line.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock.h"
#include "json.h"
#include "log.h"
#include "process.h"
#include "process_ranks.h"
#include "record_read.h"
#include "small_file.h"
#include "text.h"

#ifndef SPILL_VERSION
#error "the build gives SPILL_VERSION, the project's version"
#endif

#define ARGUMENTS_BYTES (64 * 1024)
#define LINE_BYTES (1024 * 1024)
#define CONTINUES_BYTES 64 /* of the line: room for the member that a later piece adds */

/* Mapped: stacks are too small, malloc may be the program's. Only the line's pages are kept. */
struct pages {
	char line[LINE_BYTES];
	char arguments[ARGUMENTS_BYTES]; /* first holds the path of the executable */
};

static void put_two_digits(char *to, unsigned value)
{
	to[0] = (char)('0' + value / 10 % 10);
	to[1] = (char)('0' + value % 10);
}

/*
 * UTC as 2026-11-21T03:50:51.123456Z. By hand, because gmtime_r takes libc's lock of the time zone
 * and reads files. Years begin on 1 March here, so that a leap day is the last day of its year. An
 * era is 400 such years.
 */
static void put_time(struct spill_json *json)
{
	char text[27] = "0000-00-00T00:00:00.000000Z";
	uint64_t now_us = spill_clock_wall_us(), now = now_us / 1000000;
	uint64_t second = now % 86400, day = now / 86400 + 719468;
	uint64_t of_era = day % 146097;
	uint64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	uint64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	unsigned month = (unsigned)((5 * of_year + 2) / 153); /* from March */
	uint64_t year = year_of_era + day / 146097 * 400 + (month >= 10);

	put_two_digits(text, (unsigned)(year / 100));
	put_two_digits(text + 2, (unsigned)(year % 100));
	put_two_digits(text + 5, month < 10 ? month + 3 : month - 9);
	put_two_digits(text + 8, (unsigned)(of_year - (153 * month + 2) / 5 + 1));
	put_two_digits(text + 11, (unsigned)(second / 3600));
	put_two_digits(text + 14, (unsigned)(second / 60 % 60));
	put_two_digits(text + 17, (unsigned)(second % 60));
	char *digits = text + 24;
	for (uint64_t part = now_us % 1000000; digits >= text + 20; digits -= 2, part /= 100)
		put_two_digits(digits, (unsigned)(part % 100));
	spill_json_string_length(spill_json_key(json, "time"), text, sizeof(text));
}

static void put_machine(struct spill_json *json)
{
	char boot[64];
	size_t length = spill_small_file_bytes("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	struct utsname system;

	while (length > 0 && boot[length - 1] == '\n')
		length--;
	if (length > 0)
		spill_json_string_length(spill_json_key(json, "boot"), boot, length);
	if (uname(&system) == 0)
		spill_json_string(spill_json_key(json, "host"), system.nodename);
}

static void put_ranks(struct spill_json *json)
{
	const struct spill_record_ranks ranks = spill_process_ranks();
	bool any = false;

	for (unsigned i = 0; i < SPILL_RANKS_COUNT; i++) {
		const char *value = ranks.of[i];

		if (!value)
			continue;
		if (!any)
			spill_json_object(spill_json_key(json, "rank"));
		any = true;
		spill_json_string_length(spill_json_key(json, spill_rank_variable((enum spill_rank)i)), value,
		                         strnlen(value, SPILL_RANK_BYTES));
	}
	if (any)
		spill_json_object_end(json);
}

static void put_process(struct spill_json *json, const char *program, char *path, size_t size)
{
	spill_program_path(path, size);
	spill_json_i64(spill_json_key(json, "pid"), getpid());
	spill_json_i64(spill_json_key(json, "ppid"), getppid());
	spill_json_string(spill_json_key(json, "program"), program);
	if (path[0])
		spill_json_string(spill_json_key(json, "exe"), path);
	put_ranks(json);
}

static void put_argument(struct spill_json *json, struct spill_redact *redact, const char *text)
{
	static const char hidden[] = "[redacted]";
	char shown[256 + sizeof(hidden)];
	size_t length = spill_redact_shown(redact, text);

	if (text[length] == '\0') {
		spill_json_string_length(json, text, length);
		return;
	}
	if (length > 256)
		length = 256;
	memcpy(shown, text, length);
	memcpy(shown + length, hidden, sizeof(hidden));
	spill_json_string(json, shown);
}

/* Leaves out an argument that the buffer cut: it may hold a part of a secret. */
static void put_arguments(struct spill_json *json, char *buffer, size_t size)
{
	struct spill_redact redact = {0};
	size_t length = spill_small_file_bytes("/proc/self/cmdline", buffer, size), offset = 0;

	spill_json_array(spill_json_key(json, "args"));
	while (offset < length) {
		size_t count = strnlen(buffer + offset, length - offset);

		if (offset + count == length && length == size)
			break;
		buffer[offset + count < size ? offset + count : size - 1] = '\0';
		put_argument(json, &redact, buffer + offset);
		offset += count + 1;
	}
	spill_json_array_end(json);
	if (offset < length)
		spill_json_bool(spill_json_key(json, "cut"), true);
}

static void put_devices(struct spill_json *json, const struct spill_log_start *start)
{
	spill_json_string(spill_json_key(json, "backend"), start->backend);
	spill_json_i64(spill_json_key(json, "driver"), start->driver_version);
	spill_json_array(spill_json_key(json, "devices"));
	for (unsigned i = 0; i < start->device_count; i++) {
		const struct spill_log_device *device = &start->devices[i];

		spill_json_object(json);
		spill_json_u64(spill_json_key(json, "dev"), i);
		spill_json_string(spill_json_key(json, "name"), device->name);
		if (device->uuid[0])
			spill_json_string(spill_json_key(json, "uuid"), device->uuid);
		if (device->pci[0])
			spill_json_string(spill_json_key(json, "pci"), device->pci);
		spill_json_u64(spill_json_key(json, "bytes"), device->bytes);
		if (device->memory != SPILL_MEMORY_AUTO)
			spill_json_string(spill_json_key(json, "memory"), spill_memory_name(device->memory));
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_policy(struct spill_json *json, const struct spill_log_start *start)
{
	spill_json_array(spill_json_key(json, "policy"));
	for (unsigned i = 0; i < start->option_count; i++) {
		spill_json_object(json);
		spill_json_string(spill_json_key(json, "name"), start->options[i].name);
		spill_json_string(spill_json_key(json, "value"), start->options[i].value);
		spill_json_string(spill_json_key(json, "source"), start->options[i].source);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static size_t compose_line(struct pages *pages, const struct spill_log_start *start, const char *program,
                           bool whole)
{
	struct spill_json json;

	spill_json_begin(&json, pages->line, sizeof(pages->line) - CONTINUES_BYTES);
	spill_json_object(&json);
	spill_json_u64(spill_json_key(&json, "v"), SPILL_RECORD_VERSION);
	spill_json_string(spill_json_key(&json, "kind"), spill_kind_name(SPILL_KIND_START));
	spill_json_seconds(spill_json_key(&json, "t"), 0);
	put_time(&json);
	put_machine(&json);
	put_process(&json, program, pages->arguments, sizeof(pages->arguments));
	spill_json_string(spill_json_key(&json, "version"), SPILL_VERSION);
	put_devices(&json, start);
	put_policy(&json, start);
	if (whole)
		put_arguments(&json, pages->arguments, sizeof(pages->arguments));
	else
		spill_json_bool(spill_json_key(&json, "cut"), true);
	spill_json_object_end(&json);
	return spill_json_end_line(&json);
}

/* Unmaps all pages behind the line. If that fails they stay, because only the line is needed. */
static void keep_line(struct spill_start_line *line)
{
	long page = sysconf(_SC_PAGESIZE);
	size_t kept;

	if (page <= 0)
		return;
	kept = (line->length + CONTINUES_BYTES + (size_t)page - 1) / (size_t)page * (size_t)page;
	if (kept < line->pages_size && munmap((char *)line->pages + kept, line->pages_size - kept) == 0)
		line->pages_size = kept;
}

void spill_start_compose(struct spill_start_line *line, const struct spill_log_start *start,
                         const char *program)
{
	struct pages *pages =
	    mmap(NULL, sizeof(*pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*line = (struct spill_start_line){0};
	if (pages == MAP_FAILED)
		return;
	line->pages = pages;
	line->pages_size = sizeof(*pages);
	line->text = pages->line;
	line->length = compose_line(pages, start, program, true);
	if (line->length == 0)
		line->length = compose_line(pages, start, program, false);
	line->first = line->length;
	keep_line(line);
}

void spill_start_continue(struct spill_start_line *line, uint64_t lines)
{
	size_t end = line->first - strlen("}\n");
	struct spill_text more = spill_text_begin(line->text + end, CONTINUES_BYTES);

	spill_text_add(&more, ",\"continues\":");
	spill_text_number(&more, lines);
	spill_text_add(&more, "}\n");
	line->length = end + more.length;
}

void spill_start_release(struct spill_start_line *line)
{
	if (line->pages)
		munmap(line->pages, line->pages_size);
	*line = (struct spill_start_line){0};
}
