#include "top_draw.h"

#include <string.h>
#include <time.h>

/* -- devices ---------------------------------------------------------------------------------- */

static void put_title(const struct cli_top_shown *shown)
{
	time_t seconds = (time_t)(shown->look->wall_us / 1000000);
	char line[256] = "", clock[32] = "";
	size_t processes = shown->look->count;
	struct tm now;

	if (localtime_r(&seconds, &now))
		strftime(clock, sizeof(clock), "%H:%M:%S", &now);
	cli_top_add(line, sizeof(line), "spill top  %zu process%s on %zu device%s, every %g s", processes,
	            processes == 1 ? "" : "es", shown->view->card_count,
	            shown->view->card_count == 1 ? "" : "s", (double)shown->delay_us / 1e6);
	cli_top_line(0, A_BOLD, line);
	if (COLS > (int)(strlen(line) + strlen(clock)) + 2)
		mvaddstr(0, COLS - (int)strlen(clock), clock);
}

/* The part of `width` that so many bytes take. */
static int bar_part(uint64_t bytes, const struct cli_top_card *card, int width)
{
	double share = (double)bytes / (double)card->device->about.bytes;

	return (int)((share > 1 ? 1 : share) * width + 0.5);
}

/* "[||||+++   ]": libspill's programs, then others. */
static void put_bar(int y, int x, int width, const struct cli_top_card *card)
{
	uint64_t others = card->others == UINT64_MAX ? 0 : card->others;
	int ours = bar_part(card->held, card, width), used = bar_part(card->held + others, card, width);

	mvaddch(y, x, '[');
	attrset(cli_top_attribute(card->away ? CLI_TOP_WARM : CLI_TOP_GOOD));
	for (int i = 0; i < width; i++) {
		if (i == ours)
			attrset(cli_top_attribute(CLI_TOP_FAINT));
		addch(i < ours ? '|' : i < used ? '+' : ' ');
	}
	attrset(A_NORMAL);
	addch(']');
}

/* " 64.0M +12.0M of 96.0M, limit 80.0M, spilled 48.0M" */
static void put_figures(const struct cli_top_card *card, char *figures, size_t size)
{
	uint64_t bytes = card->device->about.bytes;
	char part[16];

	cli_top_size(card->held, part, sizeof(part));
	cli_top_add(figures, size, " %5s", part);
	cli_top_size(card->others, part, sizeof(part));
	if (card->others != UINT64_MAX)
		cli_top_add(figures, size, " +%s", part);
	cli_top_size(bytes, part, sizeof(part));
	if (bytes)
		cli_top_add(figures, size, " of %s", part);
	cli_top_size(card->limit, part, sizeof(part));
	if (card->users && card->limit != UINT64_MAX)
		cli_top_add(figures, size, ", limit %s", part);
	cli_top_size(card->away, part, sizeof(part));
	if (card->away)
		cli_top_add(figures, size, ", spilled %s", part);
}

static void put_card(int y, const struct cli_top_card *card)
{
	const struct spill_live_page_device *about = &card->device->about;
	char name[128], figures[128] = "", number[16];
	int left = 2 + (COLS >= 100 ? 30 : 20), room;

	snprintf(number, sizeof(number), "%u ", card->number);
	cli_top_pad(about->name[0] ? about->name : "device", (unsigned)(left - 2), true, name, sizeof(name));
	cli_top_line(y, A_BOLD, number);
	mvaddstr(y, 2, name);
	put_figures(card, figures, sizeof(figures));
	room = COLS - left - (int)strlen(figures) - 2;
	room = room > 40 ? 40 : room;
	if (about->bytes && room >= 5)
		put_bar(y, left, room, card);
	else
		room = -2;
	if (left + room + 2 < COLS)
		mvaddnstr(y, left + room + 2, figures, COLS - left - room - 2);
}

/* -- table ------------------------------------------------------------------------------------ */

struct columns {
	bool shown[CLI_TOP_COLUMN_COUNT];
	unsigned width[CLI_TOP_COLUMN_COUNT];
};

/* Spare columns go to the names, then to the last column. */
static struct columns fit_columns(void)
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
	columns.width[CLI_TOP_DECISION] += extra; /* cut at the edge */
	return columns;
}

/* Draws a cell in the rest of the line. Returns the begin of the next cell. */
static int put_cell(int y, int x, const char *text, unsigned width, bool left, attr_t attributes)
{
	char cell[2048];
	int room = COLS - x;

	if (room <= 0)
		return x;
	cli_top_pad(text, width < (unsigned)room ? width : (unsigned)room, left, cell, sizeof(cell));
	attrset(attributes);
	mvaddstr(y, x, cell);
	return x + (int)width + 1;
}

static void put_heads(int y, const struct columns *columns, const struct cli_top_order *order)
{
	int x = 0;

	cli_top_line(y, A_REVERSE, "");
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

	cli_top_line(y, all, "");
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		enum cli_top_column column = (enum cli_top_column)i;

		if (!columns->shown[i])
			continue;
		cli_top_cell(row, column, shown->look->wall_us, text, sizeof(text));
		x = put_cell(y, x, text, columns->width[i], cli_top_is_left(column),
		             all | (all == A_NORMAL ? cli_top_attribute(cli_top_colour(row, column)) : 0));
	}
}

/* -- screen ----------------------------------------------------------------------------------- */

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
	const struct columns columns = fit_columns();
	char remark[512];

	shown->page = end > y ? (size_t)(end - y) : 0;
	scroll_to_selected(shown);
	put_heads(y - 1, &columns, &shown->order);
	for (size_t i = shown->first; i < shown->view->count && y < end; i++)
		put_row(y++, &columns, shown, i);
	cli_top_remark(shown->look, shown->view->count, remark, sizeof(remark));
	if (!shown->view->count && y < end)
		cli_top_line(y, A_NORMAL, remark);
}

/* On a low terminal the table stays: the selected row's lines go first, then devices. */
static void put_table(struct cli_top_shown *shown)
{
	int y = 0, most = LINES / 3, end = LINES - 1;
	bool detail = LINES >= 16 && shown->view->count;

	put_title(shown);
	for (y = 1; y <= most && (size_t)(y - 1) < shown->view->card_count; y++)
		put_card(y, &shown->view->cards[y - 1]);
	end -= detail ? cli_top_selected_lines(shown) + 1 : 0;
	put_rows(shown, y + 1, end);
	if (detail)
		cli_top_selected(end + 1, shown);
	cli_top_last(shown);
}

void cli_top_draw(struct cli_top_shown *shown)
{
	erase();
	curs_set(shown->state == CLI_TOP_TYPING);
	if (shown->state == CLI_TOP_HELP)
		cli_top_help();
	else
		put_table(shown);
	refresh();
}
