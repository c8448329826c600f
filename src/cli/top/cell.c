/* Texts of spill top: cells, sizes, ages. */
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "text.h"
#include "top.h"

const struct cli_top_head cli_top_heads[CLI_TOP_COLUMN_COUNT] = {
#define X(id, name, key, title, width, turn) {name, title, key, width, turn},
    CLI_TOP_COLUMNS(X)
#undef X
};

bool cli_top_is_left(enum cli_top_column column)
{
	return column == CLI_TOP_USER || column == CLI_TOP_PROGRAM || column == CLI_TOP_DECISION;
}

static unsigned width_of(const bool shown[CLI_TOP_COLUMN_COUNT])
{
	unsigned sum = 0;

	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++)
		sum += shown[i] ? cli_top_heads[i].width + 1 : 0;
	return sum - 1;
}

void cli_top_fit(unsigned width, bool shown[CLI_TOP_COLUMN_COUNT])
{
	unsigned turn = 0;

	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		shown[i] = true;
		turn = cli_top_heads[i].turn > turn ? cli_top_heads[i].turn : turn;
	}
	for (; turn > 0 && width_of(shown) > width; turn--) {
		for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++)
			shown[i] = shown[i] && cli_top_heads[i].turn != turn;
	}
}

void cli_top_size(uint64_t bytes, char *text, size_t size)
{
	static const char units[] = "BKMGTPE";
	double value = (double)bytes;
	unsigned unit = 0;

	/* From 999.5 on the text would need four digits. */
	for (; value >= 999.5; unit++)
		value /= 1024;
	if (unit == 0)
		snprintf(text, size, bytes ? "%" PRIu64 "B" : "0", bytes);
	else
		snprintf(text, size, "%.*f%c", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[unit]);
}

void cli_top_age(uint64_t wall_us, uint64_t then_us, char *text, size_t size)
{
	static const struct {
		uint64_t seconds;
		char name;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}};
	uint64_t age = wall_us > then_us ? (wall_us - then_us) / 1000000 : 0;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (age >= units[i].seconds) {
			snprintf(text, size, "%" PRIu64 "%c", age / units[i].seconds, units[i].name);
			return;
		}
	}
	snprintf(text, size, "%" PRIu64 "s", age);
}

const char *cli_top_user(uid_t uid)
{
	static uid_t last = (uid_t)-1;
	static char name[64];
	const struct passwd *entry;

	if (name[0] && uid == last)
		return name;
	last = uid;
	entry = getpwuid(uid);
	if (entry)
		snprintf(name, sizeof(name), "%s", entry->pw_name);
	else
		snprintf(name, sizeof(name), "%u", (unsigned)uid);
	return name;
}

void cli_top_add(char *line, size_t size, const char *format, ...)
{
	size_t length = strlen(line);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + length, size - length, format, arguments);
	va_end(arguments);
}

static void add_part(char *text, size_t size, const char *before, const char *part)
{
	if (*part)
		cli_top_add(text, size, "%s%s", before, part);
}

/* "3s spill 2.04G split oom, rule default, cuMemAlloc_v2, libfoo.so+0x1a2b" */
static void put_decision(const struct cli_top_row *row, uint64_t wall_us, char *text, size_t size)
{
	const struct spill_live_page_decision *last = &row->process->decision;
	char age[32], bytes[32];

	snprintf(text, size, "-");
	if (!last->count || last->device != row->device->number)
		return;
	cli_top_age(wall_us, last->time_us, age, sizeof(age));
	cli_top_size(last->bytes, bytes, sizeof(bytes));
	snprintf(text, size, "%s %s %s", age, last->what, bytes);
	add_part(text, size, " ", last->place);
	add_part(text, size, " ", last->reason);
	add_part(text, size, ", rule ", last->rule);
	add_part(text, size, ", ", last->api);
	add_part(text, size, ", ", last->caller);
}

static void put_rate(const struct cli_top_row *row, char *text, size_t size)
{
	if (!row->rated)
		snprintf(text, size, "-");
	else
		snprintf(text, size, row->moves > 0 && row->moves < 99.95 ? "%.1f" : "%.0f", row->moves);
}

void cli_top_cell(const struct cli_top_row *row, enum cli_top_column column, uint64_t wall_us, char *text,
                  size_t size)
{
	static const enum spill_counter figures[CLI_TOP_COLUMN_COUNT] = {
	    [CLI_TOP_DEVICE] = SPILL_COUNTER_DEVICE,
	    [CLI_TOP_HOST] = SPILL_COUNTER_HOST,
	    [CLI_TOP_MANAGED] = SPILL_COUNTER_MANAGED,
	    [CLI_TOP_SPILLED] = SPILL_COUNTER_AWAY,
	};

	switch (column) {
	case CLI_TOP_PID:
		snprintf(text, size, "%d", (int)row->process->pid);
		break;
	case CLI_TOP_USER:
		snprintf(text, size, "%s", cli_top_user(row->process->uid));
		break;
	case CLI_TOP_PROGRAM:
		snprintf(text, size, "%s", row->process->head.program);
		break;
	case CLI_TOP_DEV:
		snprintf(text, size, "%u", row->number);
		break;
	case CLI_TOP_LIMIT:
		snprintf(text, size, "-");
		if (row->device->about.limit != UINT64_MAX)
			cli_top_size(row->device->about.limit, text, size);
		break;
	case CLI_TOP_MOVES:
		put_rate(row, text, size);
		break;
	case CLI_TOP_RATE:
		snprintf(text, size, "-");
		if (row->rated)
			cli_top_size((uint64_t)row->moved_bytes, text, size);
		break;
	case CLI_TOP_OOMS:
		snprintf(text, size, "%" PRIu64, row->device->figures[SPILL_COUNTER_OOMS]);
		break;
	case CLI_TOP_DECISION:
		put_decision(row, wall_us, text, size);
		break;
	default:
		cli_top_size(row->device->figures[figures[column]], text, size);
	}
}

/* Reads one character of any text: its bytes and width. An unprintable one becomes "?". */
static size_t next_character(const char *position, mbstate_t *state, unsigned *width, const char **shown,
                             size_t *shown_length)
{
	wchar_t wide;
	size_t length = mbrtowc(&wide, position, strlen(position), state);
	bool whole = length != (size_t)-1 && length != (size_t)-2;
	int columns = whole && spill_text_character(position, strlen(position)).shown ? wcwidth(wide) : -1;

	*shown = columns < 0 ? "?" : position;
	*width = columns < 0 ? 1 : (unsigned)columns;
	if (!whole || length == 0) {
		*state = (mbstate_t){0};
		length = 1;
	}
	*shown_length = columns < 0 ? 1 : length;
	return length;
}

unsigned cli_top_columns(const char *text)
{
	mbstate_t state = {0};
	unsigned sum = 0, width;
	const char *shown;
	size_t length;

	for (; *text; sum += width)
		text += next_character(text, &state, &width, &shown, &length);
	return sum;
}

void cli_top_pad(const char *text, unsigned width, bool left, char *to, size_t size)
{
	char shown[1024];
	size_t length = 0, part_length;
	unsigned columns = 0, part_width;
	mbstate_t state = {0};
	const char *part;
	int blanks;

	while (*text) {
		text += next_character(text, &state, &part_width, &part, &part_length);
		if (columns + part_width > width || length + part_length >= sizeof(shown))
			break;
		memcpy(shown + length, part, part_length);
		length += part_length;
		columns += part_width;
	}
	blanks = (int)(width - columns);
	snprintf(to, size, "%*s%.*s%*s", left ? 0 : blanks, "", (int)length, shown, left ? blanks : 0, "");
}

void cli_top_remark(const struct cli_top_look *look, size_t shown, char *text, size_t size)
{
	text[0] = '\0';
	if (look->blind)
		cli_top_add(text, size, "/proc cannot be read; ");
	else if (!look->count)
		cli_top_add(text, size, "no process uses libspill on a GPU now; ");
	else if (!shown)
		cli_top_add(text, size, "no process matches the filter; ");
	if (look->broken)
		cli_top_add(text, size, "%zu could not be read; ", look->broken);
	if (look->other)
		cli_top_add(text, size, "%zu of another version of libspill; ", look->other);
	if (look->closed)
		cli_top_add(text, size, "%zu process%s of others not looked into (root may); ", look->closed,
		            look->closed == 1 ? "" : "es");
	if (strlen(text) >= 2)
		text[strlen(text) - 2] = '\0';
}
