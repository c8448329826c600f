/* The screen of spill top. pre of all functions: curses runs */
#ifndef SPILL_CLI_TOP_DRAW_H
#define SPILL_CLI_TOP_DRAW_H

#include <curses.h>

#include "top.h"

enum cli_top_state { CLI_TOP_TABLE, CLI_TOP_TYPING, CLI_TOP_HELP };

struct cli_top_shown {
	const struct cli_top_look *look;
	const struct cli_top_view *view;
	struct cli_top_order order; /* its filter points to `filter` */
	char filter[256];
	enum cli_top_state state;
	uint64_t delay_us;
	size_t selected; /* index of the selected row */
	size_t first;    /* index of the first visible row */
	size_t page;     /* number of visible rows */
};

void cli_top_colours(void);
void cli_top_draw(struct cli_top_shown *shown);

/* Handles a key. `named`: curses has a name for it. False: the user quits. */
bool cli_top_key(struct cli_top_shown *shown, unsigned key, bool named);

enum { CLI_TOP_PLAIN, CLI_TOP_GOOD, CLI_TOP_WARM, CLI_TOP_BAD, CLI_TOP_FAINT };

attr_t cli_top_attribute(int colour);

int cli_top_colour(const struct cli_top_row *row, enum cli_top_column column);

/* Draws a whole line, cut or filled to the terminal's width. */
void cli_top_line(int y, attr_t attributes, const char *text);

/* The number of lines about the selected row. */
int cli_top_selected_lines(const struct cli_top_shown *shown);

/* Draws these lines, the last line of the terminal, and the help. */
void cli_top_selected(int y, const struct cli_top_shown *shown);
void cli_top_last(const struct cli_top_shown *shown);
void cli_top_help(void);

#endif
