/* Drawing for spill top: basic functions, the selected row, the last line and the help. */
#include <inttypes.h>
#include <string.h>

#include "minmax.h"
#include "run_story.h"
#include "top_draw.h"

static bool coloured;

void cli_top_colours(void)
{
	coloured = has_colors() && start_color() == OK && use_default_colors() == OK;
	if (!coloured)
		return;
	init_pair(CLI_TOP_GOOD, COLOR_GREEN, -1);
	init_pair(CLI_TOP_WARM, COLOR_YELLOW, -1);
	init_pair(CLI_TOP_BAD, COLOR_RED, -1);
	init_pair(CLI_TOP_FAINT, COLOR_CYAN, -1);
}

attr_t cli_top_attribute(int colour)
{
	return coloured && colour != CLI_TOP_PLAIN ? (attr_t)COLOR_PAIR(colour) : A_NORMAL;
}

void cli_top_line(int y, attr_t attributes, const char *text)
{
	char line[2048];

	if (y < 0 || y >= LINES)
		return;
	cli_top_pad(text, (unsigned)COLS, true, line, sizeof(line));
	attrset(attributes);
	mvaddstr(y, 0, line);
	attrset(A_NORMAL);
}

int cli_top_colour(const struct cli_top_row *row, enum cli_top_column column)
{
	const uint64_t *figures = row->device->figures;

	if (column == CLI_TOP_SPILLED && figures[SPILL_COUNTER_AWAY])
		return CLI_TOP_WARM;
	if (column == CLI_TOP_OOMS && figures[SPILL_COUNTER_OOMS])
		return CLI_TOP_BAD;
	if (column == CLI_TOP_DECISION && !strcmp(row->process->decision.what, "oom") &&
	    row->process->decision.device == row->device->number)
		return CLI_TOP_BAD;
	return (column == CLI_TOP_MOVES || column == CLI_TOP_RATE) && row->moves > 0 ? CLI_TOP_WARM
	                                                                             : CLI_TOP_PLAIN;
}

/* -- the selected row, the last line, help ---------------------------------------------------- */

/* The story of the row, of the time since its first GPU memory call. */
static struct spill_story story_of(const struct cli_top_shown *shown)
{
	const struct cli_top_row *row = &shown->view->rows[shown->selected];
	const uint64_t *figures = row->device->figures;

	return (struct spill_story){
	    .away = {.peak = figures[SPILL_COUNTER_PEAK_AWAY],
	             .moves_us = figures[SPILL_COUNTER_MOVES_US],
	             .in_place = {figures[SPILL_COUNTER_FOLLOWED], figures[SPILL_COUNTER_IN_PLACE],
	                          figures[SPILL_COUNTER_IN_PLACE_US],
	                          figures[SPILL_COUNTER_IN_PLACE_MOST_US]}},
	    .run_us = spill_minus(shown->look->wall_us, row->process->head.start_us),
	    .any = figures[SPILL_COUNTER_PEAK_AWAY] != 0,
	};
}

/* "; moves held the program up for 0.30 s, 2 % of the 15.0 s" */
static void add_cost(char *line, size_t size, const struct spill_story *story)
{
	char cost[160];
	struct spill_text text = spill_text_begin(cost, sizeof(cost));

	spill_story_cost(&text, story);
	if (*cost)
		cli_top_add(line, size, "; %s", cost);
}

/* "reads: kernels lost about 9.8 s, 81 % of the 12.1 s, by …". False: there is nothing to tell. */
static bool tell_reads(char *line, size_t size, const struct spill_story *story)
{
	struct spill_text text = spill_text_begin(line, size);
	size_t begin;

	spill_text_add(&text, "reads: ");
	begin = text.length;
	spill_story_in_place(&text, story);
	return text.length > begin;
}

int cli_top_selected_lines(const struct cli_top_shown *shown)
{
	const struct spill_story story = story_of(shown);
	char line[256];

	return 5 + tell_reads(line, sizeof(line), &story);
}

/* Of a path that is too long the folders in front are left out, because its end tells the logs apart. */
static void put_log(int y, const char *path)
{
	char line[1200];
	const char *end = path;

	while (*end && COLS > 9 && cli_top_columns(end) > (unsigned)COLS - (end == path ? 6 : 9)) {
		const char *slash = strchr(end + 1, '/');

		if (!slash)
			break;
		end = slash;
	}
	snprintf(line, sizeof(line), "log:  %s%s", end == path ? "" : "...", *path ? end : "none");
	cli_top_line(y, A_NORMAL, line);
}

void cli_top_selected(int y, const struct cli_top_shown *shown)
{
	const struct cli_top_row *row = &shown->view->rows[shown->selected];
	const struct spill_live_page_head *head = &row->process->head;
	const uint64_t *figures = row->device->figures;
	const struct spill_story story = story_of(shown);
	char line[2048] = "", size[6][16];
	static const enum spill_counter sizes[] = {SPILL_COUNTER_PEAK_DEVICE, SPILL_COUNTER_PEAK_HOST,
	                                           SPILL_COUNTER_PEAK_MANAGED, SPILL_COUNTER_DEMOTED,
	                                           SPILL_COUNTER_PROMOTED};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		cli_top_size(figures[sizes[i]], size[i], sizeof(size[i]));
	cli_top_age(shown->look->wall_us, head->start_us, size[5], sizeof(size[5]));
	cli_top_add(line, sizeof(line), "%s (pid %d, %s)%s, for %s", head->program, (int)row->process->pid,
	            cli_top_user(row->process->uid), strcmp(head->mode, "spill") ? ", only observes" : "",
	            size[5]);
	cli_top_line(y, A_BOLD, line);
	line[0] = '\0';
	cli_top_add(line, sizeof(line),
	            "most: %s device, %s host, %s managed; %" PRIu64 " placed off card, %" PRIu64
	            " out of memory",
	            size[0], size[1], size[2], figures[SPILL_COUNTER_SPILLS], figures[SPILL_COUNTER_OOMS]);
	cli_top_line(y + 1, A_NORMAL, line);
	line[0] = '\0';
	cli_top_add(line, sizeof(line), "moves: %" PRIu64 " out (%s), %" PRIu64 " back (%s)",
	            figures[SPILL_COUNTER_DEMOTIONS], size[3], figures[SPILL_COUNTER_PROMOTIONS], size[4]);
	add_cost(line, sizeof(line), &story);
	cli_top_line(y + 2, A_NORMAL, line);
	if (tell_reads(line, sizeof(line), &story))
		cli_top_line(y++ + 3, A_NORMAL, line);
	strcpy(line, "last: ");
	cli_top_cell(row, CLI_TOP_DECISION, shown->look->wall_us, line + 6, sizeof(line) - 6);
	cli_top_line(y + 3, cli_top_attribute(cli_top_colour(row, CLI_TOP_DECISION)), line);
	put_log(y + 4, head->log);
}

void cli_top_last(const struct cli_top_shown *shown)
{
	char line[1024] = "", remark[512];

	if (shown->state == CLI_TOP_TYPING) {
		cli_top_add(line, sizeof(line), "filter: %s", shown->order.filter);
		cli_top_line(LINES - 1, A_NORMAL, line);
		move(LINES - 1, (int)cli_top_columns(line) < COLS ? (int)cli_top_columns(line) : COLS - 1);
		return;
	}
	cli_top_add(line, sizeof(line), "h help  / filter  < > sort by %s%s  q quit",
	            cli_top_heads[shown->order.by].name, shown->order.reversed ? " (reversed)" : "");
	if (*shown->order.filter)
		cli_top_add(line, sizeof(line), "  filter: %s", shown->order.filter);
	cli_top_remark(shown->look, shown->view->count, remark, sizeof(remark));
	if (*remark && shown->view->count)
		cli_top_add(line, sizeof(line), "  %s", remark);
	cli_top_line(LINES - 1, cli_top_attribute(CLI_TOP_FAINT), line);
}

void cli_top_help(void)
{
	char line[128];
	int y = 0;

	cli_top_line(y++, A_BOLD, "spill top: what programs hold through libspill");
	y++;
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		if (!cli_top_heads[i].key)
			continue;
		snprintf(line, sizeof(line), "  %c           sort by %s", cli_top_heads[i].key,
		         cli_top_heads[i].title);
		cli_top_line(y++, A_NORMAL, line);
	}
	cli_top_line(y++, A_NORMAL, "  < >         sort by the next column on the left, on the right");
	cli_top_line(y++, A_NORMAL, "  r           reverse the order");
	cli_top_line(y++, A_NORMAL,
	             "  /           filter by program, user or pid; Enter keeps, Esc drops it");
	cli_top_line(y++, A_NORMAL,
	             "  up down     select a row (PgUp, PgDn, Home, End); below is more about it");
	cli_top_line(y++, A_NORMAL, "  q           quit");
	y++;
	cli_top_line(y++, A_NORMAL,
	             "SPILLED: off the device now by libspill's doing; part of HOST and MANAGED.");
	cli_top_line(y++, A_NORMAL, "HOST, MANAGED: also memory that the program itself asked for there.");
	cli_top_line(y++, A_NORMAL,
	             "+ in a device's line: of other programs and of contexts and code, theirs too.");
	cli_top_line(LINES - 1, cli_top_attribute(CLI_TOP_FAINT), "any key goes back");
}
