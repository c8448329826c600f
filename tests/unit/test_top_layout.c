/* Where the parts of spill top's screen are, and which of them give way on a small terminal. */
#include "top_screen.h"

static void draw_on(int lines, int columns)
{
	assert_int_equal(resizeterm(lines, columns), OK);
	draw();
}

/* The clock goes first: two blanks stay before it. */
TEST_WITH(the_clock_in_the_title, NULL, close_terminal)
{
	const char title[] = "spill top  3 processes on 1 device, every 1 s";
	const int least = sizeof(title) - 1 + 2 + 8;
	char expected[256];

	open_terminal("linux");
	for (int columns = least - 1; columns < least + 10; columns++) {
		draw_on(24, columns);
		snprintf(expected, sizeof(expected), "%s%*s", title, columns - (int)sizeof(title) + 1,
		         "00:01:43");
		assert_string_equal(line_at(TITLE), columns > least ? expected : title);
		assert_int_equal(attributes_at(TITLE, columns - 1),
		                 A_NORMAL | (columns > least ? 0 : A_BOLD));
	}
}

/* All that is known of a device, and as much of it as there is room for. The bar gives way first. */
TEST_WITH(the_figures_of_a_device, NULL, close_terminal)
{
	open_terminal("linux");
	draw_on(24, 120);
	assert_string_equal(line_at(DEVICE), "0 Card                          [||||||||||||++++++++          "
	                                     "          ]  303B +200B of 0.98K");
	others = UINT64_MAX;
	for (unsigned i = 0; i < 3; i++) {
		processes[i].devices[0].about.limit = 40;
		processes[i].devices[0].figures[SPILL_COUNTER_AWAY] = 5;
	}
	draw_on(24, 120);
	assert_string_equal(
	    line_at(DEVICE),
	    "0 Card                          [||||||||||||                            ]  303B of "
	    "0.98K, limit 120B, spilled 15B");
	draw_on(24, 100);
	assert_string_equal(
	    line_at(DEVICE),
	    "0 Card                          [||||||||                  ]  303B of 0.98K, limit 120B, "
	    "spilled 15B");
	draw_on(24, 99);
	assert_string_equal(line_at(DEVICE), "0 Card                [|||||||||||                        ]  "
	                                     "303B of 0.98K, limit 120B, spilled 15B");
	draw_on(24, 69);
	assert_string_equal(line_at(DEVICE),
	                    "0 Card                [||   ]  303B of 0.98K, limit 120B, spilled 15B");
	draw_on(24, 68);
	assert_string_equal(line_at(DEVICE),
	                    "0 Card                  303B of 0.98K, limit 120B, spilled 15B");
	draw_on(24, 40);
	assert_string_equal(line_at(DEVICE), "0 Card                  303B of 0.98K, l");
	draw_on(24, 27);
	assert_string_equal(line_at(DEVICE), "0 Card                  303");
	draw_on(24, 22);
	assert_string_equal(line_at(DEVICE), "0 Card");
	/* Of a size that is not known there is no bar. */
	for (unsigned i = 0; i < 3; i++)
		processes[i].devices[0].about.bytes = 0;
	draw_on(24, 120);
	assert_string_equal(line_at(DEVICE),
	                    "0 Card                            303B, limit 120B, spilled 15B");
}

/* A device that holds more than it has is full, and no bar is longer than its place. */
TEST_WITH(a_bar_is_full_at_most, NULL, close_terminal)
{
	open_terminal("linux");
	for (uint64_t held = 1; held <= 4000; held *= 2) {
		unsigned ours = 0, theirs = 0, expected = (unsigned)((double)(held + 203) / 1000 * 40 + 0.5);
		unsigned both = (unsigned)((double)(held + 403) / 1000 * 40 + 0.5);
		const char *line;

		processes[0].devices[0].figures[SPILL_COUNTER_DEVICE] = held;
		draw_on(24, 120);
		line = line_at(DEVICE);
		for (const char *at = strchr(line, '['); *at != ']'; at++) {
			ours += *at == '|';
			theirs += *at == '+';
		}
		assert_int_equal(ours, expected > 40 ? 40 : expected);
		assert_int_equal(ours + theirs, both > 40 ? 40 : both);
	}
}

/* Which rows are seen: the selected one is, and no place stays empty while there are more. */
TEST_WITH(rows_on_a_low_terminal, NULL, close_terminal)
{
	static const struct {
		size_t selected, first;
	} steps[] = {{0, 0}, {2, 0}, {3, 1}, {1, 1}, {4, 2}, {3, 2}, {0, 0}, {5, 2}, {0, 0}, {9, 2}};

	open_terminal("linux");
	fill(5);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		char first[32];

		shown.selected = steps[i].selected;
		draw_on(7, 120);
		assert_int_equal(shown.page, 3);
		assert_int_equal(shown.first, steps[i].first);
		assert_int_equal(shown.selected, steps[i].selected > 4 ? 4 : steps[i].selected);
		for (unsigned row = 0; row < 3; row++) {
			snprintf(first, sizeof(first), "%7u ", 1001 + (unsigned)steps[i].first + row);
			assert_int_equal(strncmp(line_at(ROWS + (int)row), first, strlen(first)), 0);
		}
		assert_int_equal(strncmp(line_at(6), "h help", 6), 0);
		line_is(ROWS + (int)(shown.selected - shown.first), A_REVERSE);
	}
	/* It grows, and what was left out above comes back. */
	shown.selected = 4;
	draw_on(8, 120);
	assert_int_equal(shown.page, 4);
	assert_int_equal(shown.first, 1);
	draw_on(15, 120);
	assert_int_equal(shown.first, 0);
	for (int y = ROWS + 5; y < 14; y++)
		assert_string_equal(line_at(y), "");
	/* From 16 lines on there is more about the selected row. */
	draw_on(16, 120);
	assert_int_equal(strncmp(line_at(10), "program4 (pid 1005, ", 20), 0);
	draw_on(3, 120); /* no room for any */
	assert_int_equal(shown.page, 0);
	assert_int_equal(strncmp(line_at(DEVICE), "0 Card ", 7), 0);
}

/* A line stays empty before what is told of the selected row, however many rows there are. */
TEST_WITH(what_is_around_the_rows, NULL, close_terminal)
{
	open_terminal("linux");
	fill(8);
	look.broken = 1;
	draw_on(16, 120);
	assert_int_equal(shown.page, 6);
	assert_int_equal(strncmp(line_at(ROWS + 5), "   1006 ", 8), 0);
	assert_string_equal(line_at(ROWS + 6), "");
	assert_int_equal(strncmp(line_at(ROWS + 7), "program0 (pid 1001, ", 20), 0);
	look.count = 3;
	draw_on(16, 120);
	assert_int_equal(strncmp(line_at(ROWS + 2), "   1003 ", 8), 0);
	for (int y = ROWS + 3; y < ROWS + 7; y++)
		assert_string_equal(line_at(y), "");
	/* Nothing of them stays where there are none. Then the remark is in their place. */
	look.count = 0;
	look.broken = 0;
	draw_on(16, 120);
	assert_string_equal(line_at(DEVICE + 1), "no process uses libspill on a GPU now");
	for (int y = DEVICE + 2; y < 15; y++)
		assert_string_equal(line_at(y), "");
}

/* Spare columns go to the programs' names, up to 15, and then to the last decision, which ends with the line. */
TEST_WITH(columns_fill_the_line, NULL, close_terminal)
{
	open_terminal("linux");
	processes[2].decision = (struct spill_live_page_decision){.count = 1,
	                                                          .time_us = 100000000,
	                                                          .bytes = 2048,
	                                                          .what = "spill",
	                                                          .place = "host",
	                                                          .rule = "r",
	                                                          .api = "a"};
	memset(processes[2].decision.caller, 'c', sizeof(processes[2].decision.caller) - 1);
	for (int columns = 97; columns <= 200; columns++) {
		/* All columns are 106 wide together; without the users 97. */
		int spare = columns - (columns < 106 ? 97 : 106), dev = columns < 106 ? 22 : 31;
		const char *heads;
		char text[1024];
		ptrdiff_t at;
		size_t length;

		draw_on(24, columns);
		heads = line_at(HEADS);
		assert_int_equal(strstr(heads, "DEV ") - heads, dev + (spare / 4 < 15 ? spare / 4 : 15));
		at = strstr(heads, "LAST DECISION") - heads;
		cli_top_cell(&view.rows[2], CLI_TOP_DECISION, look.wall_us, text, sizeof(text));
		length = (size_t)(columns - at);
		while (text[length - 1] == ' ')
			length--;
		text[length] = '\0';
		assert_string_equal(line_at(ROWS + 2) + at, text);
		assert_string_equal(line_at(ROWS + 3), "");
	}
	/* On a terminal that is too narrow for what is always shown the last of it is cut. */
	draw_on(24, 34);
	assert_string_equal(line_at(HEADS), "    PID PROGRAM       DEVICE SPILL");
	draw_on(24, 29);
	assert_string_equal(line_at(HEADS), "    PID PROGRAM       DEVICE");
}
