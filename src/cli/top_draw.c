#include "top_draw.h"

#include <curses.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { PLAIN, GOOD, WARM, BAD, FAINT };

static bool coloured;

void cli_top_colours(void)
{
	coloured = has_colors() && start_color() == OK && use_default_colors() == OK;
	if (!coloured)
		return;
	init_pair(GOOD, COLOR_GREEN, -1);
	init_pair(WARM, COLOR_YELLOW, -1);
	init_pair(BAD, COLOR_RED, -1);
	init_pair(FAINT, COLOR_CYAN, -1);
}

static attr_t look_of(int colour)
{
	return coloured && colour != PLAIN ? (attr_t)COLOR_PAIR(colour) : A_NORMAL;
}

/* One line from its beginning, cut and filled up to the terminal's width. */
static void put_line(int y, attr_t attributes, const char *text)
{
	char line[2048];

	if (y < 0 || y >= LINES)
		return;
	cli_top_pad(text, (unsigned)COLS, true, line, sizeof(line));
	attrset(attributes);
	mvaddstr(y, 0, line);
	attrset(A_NORMAL);
}

static void add(char *line, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(char *line, size_t size, const char *format, ...)
{
	size_t length = strlen(line);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + length, size - length, format, arguments);
	va_end(arguments);
}

/* -- the devices ---------------------------------------------------------------------------------------------- */

static void put_title(const struct cli_top_shown *shown)
{
	time_t seconds = (time_t)(shown->look->wall_us / 1000000);
	char line[256] = "", clock[32] = "";
	size_t processes = shown->look->count;
	struct tm now;

	if (localtime_r(&seconds, &now))
		strftime(clock, sizeof(clock), "%H:%M:%S", &now);
	add(line, sizeof(line), "spill top  %zu process%s on %zu device%s, every %g s", processes,
	    processes == 1 ? "" : "es", shown->view->card_count, shown->view->card_count == 1 ? "" : "s",
	    (double)shown->delay_us / 1e6);
	put_line(0, A_BOLD, line);
	if (COLS > (int)(strlen(line) + strlen(clock)) + 2)
		mvaddstr(0, COLS - (int)strlen(clock), clock);
}

/* Inside the brackets: what is held of the device. */
static void put_bar(int y, int x, int width, const struct cli_top_card *card)
{
	double share = (double)card->held / (double)card->device->about.bytes;
	int full = (int)((share > 1 ? 1 : share) * width + 0.5);

	mvaddch(y, x, '[');
	attrset(look_of(card->away ? WARM : GOOD));
	for (int i = 0; i < width; i++)
		addch(i < full ? '|' : ' ');
	attrset(A_NORMAL);
	addch(']');
}

static void put_card(int y, const struct cli_top_card *card)
{
	const struct spill_counters_device *about = &card->device->about;
	char name[128], figures[128] = "", held[16], part[16];
	int left = 2 + (COLS >= 100 ? 30 : 20), room;

	snprintf(held, sizeof(held), "%u ", card->number);
	cli_top_pad(about->name[0] ? about->name : "device", (unsigned)(left - 2), true, name, sizeof(name));
	put_line(y, A_BOLD, held);
	mvaddstr(y, 2, name);
	cli_top_size(card->held, held, sizeof(held));
	cli_top_size(about->bytes, part, sizeof(part));
	add(figures, sizeof(figures), about->bytes ? " %5s of %s" : " %5s", held, part);
	cli_top_size(card->limit, part, sizeof(part));
	if (card->users && card->limit != UINT64_MAX)
		add(figures, sizeof(figures), ", limit %s", part);
	cli_top_size(card->away, part, sizeof(part));
	if (card->away)
		add(figures, sizeof(figures), ", spilled %s", part);
	room = COLS - left - (int)strlen(figures) - 2;
	room = room > 40 ? 40 : room;
	if (about->bytes && room >= 5)
		put_bar(y, left, room, card);
	else
		room = -2;
	if (left + room + 2 < COLS)
		mvaddnstr(y, left + room + 2, figures, COLS - left - room - 2);
}

/* -- the table ------------------------------------------------------------------------------------------------ */

struct columns {
	bool shown[CLI_TOP_COLUMN_COUNT];
	unsigned width[CLI_TOP_COLUMN_COUNT];
};

/* What is left over goes to the names, and then to the last column. */
static struct columns fit(void)
{
	struct columns columns;
	unsigned sum = 0, extra;

	cli_top_fit((unsigned)COLS, columns.shown);
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		columns.width[i] = cli_top_heads[i].width;
		sum += columns.shown[i] ? columns.width[i] + 1 : 0;
	}
	extra = (unsigned)COLS + 1 > sum ? (unsigned)COLS + 1 - sum : 0;
	columns.width[CLI_TOP_PROGRAM] += extra / 4 < 15 ? extra / 4 : 15;
	columns.width[CLI_TOP_DECISION] += extra; /* it is cut at the edge */
	return columns;
}

static int colour_of(const struct cli_top_row *row, enum cli_top_column column)
{
	const uint64_t *figures = row->device->figures;

	if (column == CLI_TOP_SPILLED && figures[SPILL_COUNTER_AWAY])
		return WARM;
	if (column == CLI_TOP_OOMS && figures[SPILL_COUNTER_OOMS])
		return BAD;
	if (column == CLI_TOP_DECISION && !strcmp(row->process->decision.what, "oom") &&
	    row->process->decision.device == row->device->number)
		return BAD;
	return (column == CLI_TOP_MOVES || column == CLI_TOP_RATE) && row->moves > 0 ? WARM : PLAIN;
}

/* Draws what is not yet drawn of the line; returns where the next cell begins. */
static int put_cell(int y, int x, const char *text, unsigned width, bool left, attr_t attributes)
{
	char cell[2048];
	int room = COLS - x;

	if (room <= 0)
		return x;
	cli_top_pad(text, width < (unsigned)room ? width : (unsigned)room, left, cell, sizeof(cell));
	attrset(attributes);
	mvaddstr(y, x, cell);
	attrset(A_NORMAL);
	return x + (int)width + 1;
}

static void put_heads(int y, const struct columns *columns, const struct cli_top_order *order)
{
	int x = 0;

	put_line(y, A_REVERSE, "");
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		attr_t mark = order->by == (enum cli_top_column)i ? A_BOLD | A_UNDERLINE : A_NORMAL;

		if (columns->shown[i])
			x = put_cell(y, x, cli_top_heads[i].title, columns->width[i],
			             cli_top_is_left((enum cli_top_column)i), A_REVERSE | mark);
	}
}

static void put_row(int y, const struct columns *columns, const struct cli_top_shown *shown, size_t index)
{
	const struct cli_top_row *row = &shown->view->rows[index];
	attr_t all = index == shown->selected ? A_REVERSE : A_NORMAL;
	char text[1024];
	int x = 0;

	put_line(y, all, "");
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		enum cli_top_column column = (enum cli_top_column)i;

		if (!columns->shown[i])
			continue;
		cli_top_cell(row, column, shown->look->wall_us, text, sizeof(text));
		x = put_cell(y, x, text, columns->width[i], cli_top_is_left(column),
		             all | (all == A_NORMAL ? look_of(colour_of(row, column)) : 0));
	}
}

/* -- the selected row, the last line, help -------------------------------------------------------------------- */

static void put_selected(int y, const struct cli_top_shown *shown)
{
	const struct cli_top_row *row = &shown->view->rows[shown->selected];
	const struct spill_counters_head *head = &row->process->head;
	const uint64_t *figures = row->device->figures;
	char line[2048] = "", size[6][16];
	static const enum spill_counter sizes[] = {SPILL_COUNTER_PEAK_DEVICE, SPILL_COUNTER_PEAK_HOST,
	                                           SPILL_COUNTER_PEAK_MANAGED, SPILL_COUNTER_DEMOTED,
	                                           SPILL_COUNTER_PROMOTED};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		cli_top_size(figures[sizes[i]], size[i], sizeof(size[i]));
	cli_top_age(shown->look->wall_us, head->start_us, size[5], sizeof(size[5]));
	add(line, sizeof(line), "%s (pid %d, %s)%s, for %s", head->program, (int)row->process->pid,
	    cli_top_user(row->process->uid), strcmp(head->mode, "spill") ? ", only observes" : "", size[5]);
	put_line(y, A_BOLD, line);
	line[0] = '\0';
	add(line, sizeof(line),
	    "most: %s device, %s host, %s managed; %" PRIu64 " spills, %" PRIu64 " moves out (%s), %" PRIu64
	    " back (%s), %" PRIu64 " out of memory",
	    size[0], size[1], size[2], figures[SPILL_COUNTER_SPILLS], figures[SPILL_COUNTER_DEMOTIONS],
	    size[3], figures[SPILL_COUNTER_PROMOTIONS], size[4], figures[SPILL_COUNTER_OOMS]);
	put_line(y + 1, A_NORMAL, line);
	strcpy(line, "last: ");
	cli_top_cell(row, CLI_TOP_DECISION, shown->look->wall_us, line + 6, sizeof(line) - 6);
	put_line(y + 2, look_of(colour_of(row, CLI_TOP_DECISION)), line);
	snprintf(line, sizeof(line), "log:  %s", head->log[0] ? head->log : "none");
	put_line(y + 3, A_NORMAL, line);
}

static void put_last(const struct cli_top_shown *shown)
{
	char line[1024] = "", remark[512];

	if (shown->state == CLI_TOP_TYPING) {
		add(line, sizeof(line), "filter: %s", shown->order.filter);
		put_line(LINES - 1, A_NORMAL, line);
		move(LINES - 1, (int)cli_top_columns(line) < COLS ? (int)cli_top_columns(line) : COLS - 1);
		return;
	}
	add(line, sizeof(line), "h help  / filter  < > sort by %s%s  q quit",
	    cli_top_heads[shown->order.by].name, shown->order.reversed ? " (reversed)" : "");
	if (*shown->order.filter)
		add(line, sizeof(line), "  filter: %s", shown->order.filter);
	cli_top_remark(shown->look, shown->view->count, remark, sizeof(remark));
	if (*remark && shown->view->count)
		add(line, sizeof(line), "  %s", remark);
	put_line(LINES - 1, look_of(FAINT), line);
}

static void put_help(void)
{
	char line[128];
	int y = 0;

	put_line(y++, A_BOLD, "spill top: what programs hold through libspill");
	y++;
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		if (!cli_top_heads[i].key)
			continue;
		snprintf(line, sizeof(line), "  %c           sort by %s", cli_top_heads[i].key,
		         cli_top_heads[i].title);
		put_line(y++, A_NORMAL, line);
	}
	put_line(y++, A_NORMAL, "  < >         sort by the next column on the left, on the right");
	put_line(y++, A_NORMAL, "  r           the other way round");
	put_line(y++, A_NORMAL, "  /           filter by program, user or pid; Enter keeps, Esc drops it");
	put_line(y++, A_NORMAL, "  up down     select a row (PgUp, PgDn, Home, End); below is more about it");
	put_line(y++, A_NORMAL, "  q           quit");
	y++;
	put_line(y++, A_NORMAL, "SPILLED: off the device now by libspill's doing; part of HOST and MANAGED.");
	put_line(y++, A_NORMAL, "HOST, MANAGED: with what the program itself asked for there.");
	put_line(LINES - 1, look_of(FAINT), "any key goes back");
}

/* -- all of it ------------------------------------------------------------------------------------------------ */

static void scroll_to_selected(struct cli_top_shown *shown)
{
	size_t count = shown->view->count;

	if (shown->selected >= count)
		shown->selected = count ? count - 1 : 0;
	if (shown->selected < shown->first)
		shown->first = shown->selected;
	if (shown->page && shown->selected >= shown->first + shown->page)
		shown->first = shown->selected - shown->page + 1;
	if (shown->first + shown->page > count)
		shown->first = count > shown->page ? count - shown->page : 0;
}

static void put_rows(struct cli_top_shown *shown, int y, int end)
{
	const struct columns columns = fit();
	char remark[512];

	shown->page = end > y ? (size_t)(end - y) : 0;
	scroll_to_selected(shown);
	put_heads(y - 1, &columns, &shown->order);
	for (size_t i = shown->first; i < shown->view->count && y < end; i++)
		put_row(y++, &columns, shown, i);
	cli_top_remark(shown->look, shown->view->count, remark, sizeof(remark));
	if (!shown->view->count && y < end)
		put_line(y, A_NORMAL, remark);
}

/* A low terminal keeps the table: what is about the selected row goes first, then devices. */
static void put_table(struct cli_top_shown *shown)
{
	int y = 0, most = LINES / 3, end = LINES - 1;
	bool detail = LINES >= 16 && shown->view->count;

	put_title(shown);
	for (y = 1; y <= most && (size_t)(y - 1) < shown->view->card_count; y++)
		put_card(y, &shown->view->cards[y - 1]);
	end -= detail ? 5 : 0;
	put_rows(shown, y + 1, end);
	if (detail)
		put_selected(end + 1, shown);
	put_last(shown);
}

void cli_top_draw(struct cli_top_shown *shown)
{
	erase();
	curs_set(shown->state == CLI_TOP_TYPING);
	if (shown->state == CLI_TOP_HELP)
		put_help();
	else
		put_table(shown);
	refresh();
}
