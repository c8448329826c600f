/* What spill top has on the terminal. */
#ifndef SPILL_CLI_TOP_DRAW_H
#define SPILL_CLI_TOP_DRAW_H

#include "top.h"

enum cli_top_state { CLI_TOP_TABLE, CLI_TOP_TYPING, CLI_TOP_HELP };

struct cli_top_shown {
	const struct cli_top_look *look;
	const struct cli_top_view *view;
	struct cli_top_order order; /* its filter is: */
	char filter[256];
	enum cli_top_state state;
	uint64_t delay_us;
	size_t selected; /* a row of the view */
	size_t first;    /* the first row on the terminal; kept so that the selected one is */
	size_t page;     /* how many rows there was room for */
};

/* pre: curses runs */
void cli_top_colours(void);
void cli_top_draw(struct cli_top_shown *shown);

/* A key, or one that curses has a name for. False: the user leaves. */
bool cli_top_key(struct cli_top_shown *shown, unsigned key, bool named);

#endif
