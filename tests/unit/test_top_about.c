/* What spill top tells of the selected row, its last line, and the colours that its terminal gets. */
#include "top_screen.h"

static void colour_is(int pair, short expected)
{
	short front, back;

	assert_int_equal(pair_content((short)pair, &front, &back), OK);
	assert_int_equal(front, expected);
	assert_int_equal(back, -1); /* the terminal's own */
}

TEST_WITH(green_yellow_red_and_cyan, NULL, close_terminal)
{
	open_terminal("linux");
	colour_is(CLI_TOP_GOOD, COLOR_GREEN);
	colour_is(CLI_TOP_WARM, COLOR_YELLOW);
	colour_is(CLI_TOP_BAD, COLOR_RED);
	colour_is(CLI_TOP_FAINT, COLOR_CYAN);
}

/* The first process, which has run for 15 seconds, with figures of its moves. */
static uint64_t *one_that_moves(void)
{
	uint64_t *figures = processes[0].devices[0].figures;

	processes[0].uid = 54321; /* has no name */
	processes[0].head.start_us = look.wall_us - 15000000;
	strcpy(processes[0].head.log, "/var/log/spill/program0-1001.jsonl");
	figures[SPILL_COUNTER_PEAK_DEVICE] = 11;
	figures[SPILL_COUNTER_PEAK_HOST] = 12;
	figures[SPILL_COUNTER_PEAK_MANAGED] = 13;
	figures[SPILL_COUNTER_SPILLS] = 14;
	figures[SPILL_COUNTER_OOMS] = 15;
	figures[SPILL_COUNTER_DEMOTIONS] = 16;
	figures[SPILL_COUNTER_DEMOTED] = 17;
	figures[SPILL_COUNTER_PROMOTIONS] = 18;
	figures[SPILL_COUNTER_PROMOTED] = 19;
	return figures;
}

TEST_WITH(the_lines_of_the_selected_row, NULL, close_terminal)
{
	uint64_t *figures;

	open_terminal("linux");
	figures = one_that_moves();
	processes[0].decision = (struct spill_live_page_decision){.count = 1,
	                                                          .time_us = 100000000,
	                                                          .bytes = 2048,
	                                                          .what = "spill",
	                                                          .place = "host",
	                                                          .reason = "limit",
	                                                          .rule = "r",
	                                                          .api = "a",
	                                                          .caller = "c"};
	draw();
	assert_string_equal(line_at(17), "");
	assert_string_equal(line_at(18), "program0 (pid 1001, 54321), for 15s");
	assert_string_equal(line_at(19),
	                    "most: 11B device, 12B host, 13B managed; 14 placed off card, 15 out of memory");
	assert_string_equal(line_at(20), "moves: 16 out (17B), 18 back (19B)");
	assert_string_equal(line_at(21), "last: 3s spill 2.00K host limit, rule r, a, c");
	assert_string_equal(line_at(22), "log:  /var/log/spill/program0-1001.jsonl");
	/* What its moves cost. Where kernels read memory in place there is a line more, and a row less. */
	figures[SPILL_COUNTER_PEAK_AWAY] = 1 << 20;
	figures[SPILL_COUNTER_MOVES_US] = 300000;
	figures[SPILL_COUNTER_IN_PLACE] = 1 << 20;
	strcpy(processes[0].head.mode, "observe");
	processes[0].head.log[0] = '\0';
	draw();
	assert_string_equal(line_at(16), "");
	assert_string_equal(line_at(17), "program0 (pid 1001, 54321), only observes, for 15s");
	assert_string_equal(
	    line_at(19),
	    "moves: 16 out (17B), 18 back (19B); moves held the program up for 0.30 s, 2 % of the 15.0 s");
	assert_int_equal(strncmp(line_at(20), "reads: ", 7), 0);
	assert_true(strlen(line_at(20)) > 7);
	assert_string_equal(line_at(21), "last: 3s spill 2.00K host limit, rule r, a, c");
	assert_string_equal(line_at(22), "log:  none");
}

/* Folders in front are left out as far as needed. The file's name is never. */
TEST_WITH(the_end_of_a_path_is_seen, NULL, close_terminal)
{
	static const struct {
		int columns;
		const char *line;
	} cases[] = {{40, "log:  /var/log/spill/program0-1001.jsonl"},
	             {39, "log:  .../log/spill/program0-1001.jsonl"},
	             {38, "log:  .../spill/program0-1001.jsonl"},
	             {35, "log:  .../spill/program0-1001.jsonl"},
	             {34, "log:  .../program0-1001.jsonl"},
	             {29, "log:  .../program0-1001.jsonl"},
	             {28, "log:  .../program0-1001.json"},
	             {10, "log:  .../"},
	             {9, "log:  /va"}};

	open_terminal("linux");
	one_that_moves();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(resizeterm(24, cases[i].columns), OK);
		draw();
		assert_string_equal(line_at(22), cases[i].line);
	}
}

TEST_WITH(the_last_line, NULL, close_terminal)
{
	open_terminal("linux");
	draw();
	assert_string_equal(line_at(23), "h help  / filter  < > sort by pid  q quit");
	shown.order.reversed = true;
	strcpy(shown.filter, "prog");
	look.closed = 1;
	draw();
	assert_string_equal(line_at(23), "h help  / filter  < > sort by pid (reversed)  q quit  filter: prog "
	                                 " 1 process of others not looked into (root may)");
	shown.filter[0] = '\0';
	draw();
	assert_string_equal(line_at(23), "h help  / filter  < > sort by pid (reversed)  q quit  1 process "
	                                 "of others not looked into (root may)");
	/* Where no row matches, the table has the remark. */
	strcpy(shown.filter, "none");
	draw();
	assert_string_equal(line_at(23),
	                    "h help  / filter  < > sort by pid (reversed)  q quit  filter: none");
}

/* The cursor is behind what was typed, or in the last column. */
TEST_WITH(the_cursor, NULL, close_terminal)
{
	int y, x;

	open_terminal("linux");
	shown.state = CLI_TOP_TYPING;
	for (unsigned typed = 0; typed < 40; typed++) {
		memset(shown.filter, 'p', typed);
		shown.filter[typed] = '\0';
		assert_int_equal(resizeterm(24, 30), OK);
		draw();
		getyx(stdscr, y, x);
		assert_int_equal(y, 23);
		assert_int_equal(x, 8 + typed < 30 ? 8 + typed : 29);
	}
}
