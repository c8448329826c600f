/* Parts of the terminal that spill top draws. pre: of all: curses runs */
#ifndef SPILL_CLI_TOP_PAINT_H
#define SPILL_CLI_TOP_PAINT_H

#include <curses.h>

#include "top_draw.h"

enum { CLI_TOP_PLAIN, CLI_TOP_GOOD, CLI_TOP_WARM, CLI_TOP_BAD, CLI_TOP_FAINT };

attr_t cli_top_attribute(int colour);

/* Of a cell. */
int cli_top_colour(const struct cli_top_row *row, enum cli_top_column column);

/* One line from its beginning, cut and filled up to the terminal's width. */
void cli_top_line(int y, attr_t attributes, const char *text);

/* Behind what is in the line; what does not fit is cut. */
void cli_top_add(char *line, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Four lines about the selected row; the last line of the terminal; the keys. */
void cli_top_selected(int y, const struct cli_top_shown *shown);
void cli_top_last(const struct cli_top_shown *shown);
void cli_top_help(void);

#endif
