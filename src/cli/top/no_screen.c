/* Replaces screen.c if the build has no curses library. */
#include "top.h"

bool cli_top_screen(uint64_t delay_us, const struct cli_top_order *order, const char **why)
{
	*why = "this spill was built without ncurses";
	return false;
}
