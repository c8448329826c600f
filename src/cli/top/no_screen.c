/* In place of screen.c where there was no curses library at build time. */
#include "top.h"

bool cli_top_screen(uint64_t delay_us, const struct cli_top_order *order, const char **why)
{
	*why = "this spill was built without ncurses";
	return false;
}
