/* The keys of spill top: the selected row, the order, the filter that is typed, and the end. */
#include "top_screen.h"

#include <locale.h>

/* Letters, as the user types them. All of them stay in spill top. */
static void type(const char *letters)
{
	for (; *letters; letters++)
		assert_true(cli_top_key(&shown, (unsigned char)*letters, false));
}

static void press(int key)
{
	assert_true(cli_top_key(&shown, (unsigned)key, true));
}

static void open_with(unsigned count)
{
	open_terminal("linux");
	fill(count);
	draw();
}

TEST_WITH(the_selected_row_moves, NULL, close_terminal)
{
	static const struct {
		int key;
		size_t selected;
	} steps[] = {{KEY_UP, 0},    {KEY_DOWN, 1},  {KEY_DOWN, 2}, {KEY_UP, 1},    {KEY_NPAGE, 4},
	             {KEY_NPAGE, 7}, {KEY_NPAGE, 7}, {KEY_DOWN, 7}, {KEY_PPAGE, 4}, {KEY_PPAGE, 1},
	             {KEY_PPAGE, 0}, {KEY_END, 7},   {KEY_HOME, 0}};

	open_with(8);
	shown.page = 3;
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		press(steps[i].key);
		assert_int_equal(shown.selected, steps[i].selected);
	}
	/* Without a row none is selected. */
	view.count = 0;
	press(KEY_DOWN);
	press(KEY_END);
	assert_int_equal(shown.selected, 0);
}

/* Each column that is named in the help has a key; neighbours are those that are seen. */
TEST_WITH(the_order_changes, NULL, close_terminal)
{
	open_with(3);
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		const char letter[] = {cli_top_heads[i].key, '\0'};

		shown.order.by = CLI_TOP_DEV;
		type(letter);
		assert_int_equal(shown.order.by, letter[0] ? (enum cli_top_column)i : CLI_TOP_DEV);
	}
	shown.order.by = CLI_TOP_PID;
	type(">");
	assert_int_equal(shown.order.by, CLI_TOP_USER);
	press(KEY_RIGHT);
	type(".");
	assert_int_equal(shown.order.by, CLI_TOP_DEV);
	type("<,");
	press(KEY_LEFT);
	assert_int_equal(shown.order.by, CLI_TOP_PID);
	type("<");
	assert_int_equal(shown.order.by, CLI_TOP_DECISION);
	type(">");
	assert_int_equal(shown.order.by, CLI_TOP_PID);
	assert_int_equal(resizeterm(24, 40), OK); /* PID PROGRAM DEVICE SPILLED */
	type(">");
	assert_int_equal(shown.order.by, CLI_TOP_PROGRAM);
	type(">>");
	assert_int_equal(shown.order.by, CLI_TOP_SPILLED);
	type(">");
	assert_int_equal(shown.order.by, CLI_TOP_PID);
	type("r");
	assert_true(shown.order.reversed);
	type("rx"); /* x is no key */
	assert_false(shown.order.reversed);
	assert_int_equal(shown.order.by, CLI_TOP_PID);
}

TEST_WITH(a_filter_is_typed, NULL, close_terminal)
{
	open_with(3);
	type("/");
	assert_int_equal(shown.state, CLI_TOP_TYPING);
	type("q r"); /* now they are letters */
	assert_string_equal(shown.filter, "q r");
	type("\x7f\b");
	press(KEY_BACKSPACE);
	assert_string_equal(shown.filter, "");
	type("\x7f" /* nothing is left to remove */
	     "a");
	press(KEY_DOWN);
	type("\t"); /* neither is a letter */
	assert_string_equal(shown.filter, "a");
	type("\r");
	assert_int_equal(shown.state, CLI_TOP_TABLE);
	assert_string_equal(shown.filter, "a");
	/* Enter keeps it, in each form; Esc drops it, also from the table. */
	type("/b\n");
	assert_int_equal(shown.state, CLI_TOP_TABLE);
	type("/c");
	press(KEY_ENTER);
	assert_int_equal(shown.state, CLI_TOP_TABLE);
	assert_string_equal(shown.filter, "abc");
	type("/d\x1b");
	assert_int_equal(shown.state, CLI_TOP_TABLE);
	assert_string_equal(shown.filter, "");
	type("/e\r\x1b");
	assert_string_equal(shown.filter, "");
}

/* A character of several bytes comes and goes as a whole. What does not fit any more is not typed. */
TEST_WITH(characters_of_several_bytes, NULL, close_terminal)
{
	open_with(3);
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip();
	type("/a");
	assert_true(cli_top_key(&shown, L'ß', false));
	assert_true(cli_top_key(&shown, L'模', false));
	assert_string_equal(shown.filter, "aß模");
	type("\x7f");
	assert_string_equal(shown.filter, "aß");
	type("\x7f\x7f");
	assert_string_equal(shown.filter, "");
	assert_true(cli_top_key(&shown, 0xd800, false)); /* half of a character */
	assert_string_equal(shown.filter, "");
	for (size_t i = 0; i < sizeof(shown.filter) - 2; i++)
		type("x");
	assert_true(cli_top_key(&shown, L'ß', false));
	assert_int_equal(strlen(shown.filter), sizeof(shown.filter) - 2);
	type("yz");
	assert_int_equal(strlen(shown.filter), sizeof(shown.filter) - 1);
	assert_int_equal(shown.filter[sizeof(shown.filter) - 2], 'y');
	setlocale(LC_CTYPE, "C");
}

TEST_WITH(help_and_the_end, NULL, close_terminal)
{
	open_with(3);
	for (unsigned i = 0; i < 3; i++) {
		if (i < 2)
			type(i ? "h" : "?");
		else
			press(KEY_F(1));
		assert_int_equal(shown.state, CLI_TOP_HELP);
		press(KEY_RESIZE); /* no key of the user's */
		assert_int_equal(shown.state, CLI_TOP_HELP);
		type("q"); /* any key goes back */
		assert_int_equal(shown.state, CLI_TOP_TABLE);
	}
	assert_false(cli_top_key(&shown, 'q', false));
	assert_false(cli_top_key(&shown, KEY_F(10), true));
	press('q'); /* another key that curses gave this number */
}
