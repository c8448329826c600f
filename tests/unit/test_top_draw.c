/* The colours of spill top's screen: which attributes each part has. */
#include "top_screen.h"

/* All of the first such text in the line. */
static void text_is(int y, const char *text, attr_t attributes)
{
	char line[256];
	const char *found;

	assert_true(mvinnstr(y, 0, line, sizeof(line) - 1) != ERR);
	found = strstr(line, text);
	assert_non_null(found);
	for (size_t i = 0; i < strlen(text); i++)
		assert_int_equal(attributes_at(y, (int)(found - line) + (int)i), attributes);
}

/* The head of the column that the table is ordered by stands out from the others. */
TEST_WITH(heads, NULL, close_terminal)
{
	open_terminal("linux");
	draw();
	text_is(HEADS, "PID", A_REVERSE | A_BOLD | A_UNDERLINE);
	text_is(HEADS, " USER", A_REVERSE);
	text_is(HEADS, "SPILLED", A_REVERSE);
	shown.order.by = CLI_TOP_SPILLED;
	draw();
	text_is(HEADS, "PID", A_REVERSE);
	text_is(HEADS, "SPILLED", A_REVERSE | A_BOLD | A_UNDERLINE);
	text_is(HEADS, " LIMIT", A_REVERSE);
}

TEST_WITH(the_selected_row, NULL, close_terminal)
{
	open_terminal("linux");
	processes[1].devices[0].figures[SPILL_COUNTER_AWAY] = 5;
	draw();
	line_is(ROWS, A_REVERSE);
	text_is(ROWS + 1, "program1", A_NORMAL);
	shown.selected = 1;
	draw();
	line_is(ROWS, A_NORMAL);
	line_is(ROWS + 1, A_REVERSE); /* also where it would have a colour */
	line_is(ROWS + 2, A_NORMAL);
}

/* What libspill moved is yellow, out of memory is red. */
TEST_WITH(colours_of_cells, NULL, close_terminal)
{
	static struct cli_top_process then[3];
	uint64_t *figures;

	open_terminal("linux");
	assert_int_not_equal(cli_top_attribute(CLI_TOP_WARM), A_NORMAL);
	assert_int_not_equal(cli_top_attribute(CLI_TOP_WARM), cli_top_attribute(CLI_TOP_BAD));
	memcpy(then, processes, sizeof(then));
	before = (struct cli_top_look){.at_us = 0, .processes = then, .count = 3};
	figures = processes[1].devices[0].figures;
	figures[SPILL_COUNTER_AWAY] = 17;
	figures[SPILL_COUNTER_DEMOTIONS] = 7;
	figures[SPILL_COUNTER_DEMOTED] = 77;
	processes[2].devices[0].figures[SPILL_COUNTER_OOMS] = 33;
	processes[2].decision = (struct spill_live_page_decision){.count = 1,
	                                                          .time_us = 100000000,
	                                                          .bytes = 2048,
	                                                          .what = "oom",
	                                                          .rule = "r",
	                                                          .api = "a",
	                                                          .caller = "c"};
	draw();
	text_is(ROWS + 1, "1002", A_NORMAL);
	text_is(ROWS + 1, "101B", A_NORMAL);
	text_is(ROWS + 1, "201B", A_NORMAL);
	text_is(ROWS + 1, "17B", cli_top_attribute(CLI_TOP_WARM));
	text_is(ROWS + 1, "7.0", cli_top_attribute(CLI_TOP_WARM));
	text_is(ROWS + 1, "77B", cli_top_attribute(CLI_TOP_WARM));
	text_is(ROWS + 2, "102B", A_NORMAL);
	text_is(ROWS + 2, "33", cli_top_attribute(CLI_TOP_BAD));
	text_is(ROWS + 2, "3s oom 2.00K", cli_top_attribute(CLI_TOP_BAD));
}

/* Ours are green, or yellow while something of the device is elsewhere. Those of others have another colour. */
TEST_WITH(the_bar_of_a_device, NULL, close_terminal)
{
	open_terminal("linux");
	draw();
	text_is(DEVICE, "0 ", A_BOLD);
	text_is(DEVICE, "Card", A_NORMAL);
	text_is(DEVICE, "[", A_NORMAL);
	text_is(DEVICE, "||||", cli_top_attribute(CLI_TOP_GOOD));
	text_is(DEVICE, "++++", cli_top_attribute(CLI_TOP_FAINT));
	text_is(DEVICE, "]", A_NORMAL);
	text_is(DEVICE, " of 0.98K", A_NORMAL);
	processes[0].devices[0].figures[SPILL_COUNTER_AWAY] = 1;
	draw();
	text_is(DEVICE, "||||", cli_top_attribute(CLI_TOP_WARM));
	text_is(DEVICE, "++++", cli_top_attribute(CLI_TOP_FAINT));
	text_is(DEVICE, "]", A_NORMAL);
}

TEST_WITH(the_lines_around_the_table, NULL, close_terminal)
{
	open_terminal("linux");
	draw();
	assert_int_equal(curs_set(0), 0);
	text_is(TITLE, "spill top  3 processes on 1 device, every 1 s", A_BOLD);
	text_is(LINES - 1, "h help  / filter", cli_top_attribute(CLI_TOP_FAINT));
	text_is(LINES - 6, "program0 (pid 1001, ", A_BOLD);
	text_is(LINES - 5, "most: ", A_NORMAL);
	text_is(LINES - 3, "last: -", A_NORMAL);
	processes[0].decision = (struct spill_live_page_decision){.count = 1, .what = "oom"};
	draw();
	text_is(LINES - 3, "last: ", cli_top_attribute(CLI_TOP_BAD));
	/* The cursor is seen where the user types. */
	shown.state = CLI_TOP_TYPING;
	draw();
	assert_int_equal(curs_set(0), 1);
	text_is(LINES - 1, "filter: ", A_NORMAL);
	shown.state = CLI_TOP_TABLE;
	draw();
	assert_int_equal(curs_set(0), 0);
	shown.state = CLI_TOP_HELP;
	draw();
	text_is(0, "spill top: what programs hold", A_BOLD);
	text_is(2, "sort by PID", A_NORMAL);
	text_is(LINES - 1, "any key goes back", cli_top_attribute(CLI_TOP_FAINT));
}

/* The table is as readable where there are no colours. */
TEST_WITH(a_terminal_without_colours, NULL, close_terminal)
{
	open_terminal("vt100");
	for (int colour = CLI_TOP_PLAIN; colour <= CLI_TOP_FAINT; colour++)
		assert_int_equal(cli_top_attribute(colour), A_NORMAL);
	processes[1].devices[0].figures[SPILL_COUNTER_AWAY] = 17;
	draw();
	text_is(HEADS, "PID", A_REVERSE | A_BOLD | A_UNDERLINE);
	line_is(ROWS, A_REVERSE);
	line_is(ROWS + 1, A_NORMAL);
}
