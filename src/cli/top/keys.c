/* Handles the keys of spill top. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "top_draw.h"

/* Sorts by a neighbouring column that is visible. */
static void sort_beside(struct cli_top_order *order, int step)
{
	bool shown[CLI_TOP_COLUMN_COUNT];
	int by = (int)order->by;

	cli_top_fit((unsigned)COLS, shown);
	do {
		by = (by + step + CLI_TOP_COLUMN_COUNT) % CLI_TOP_COLUMN_COUNT;
	} while (!shown[by]);
	order->by = (enum cli_top_column)by;
}

static void sort_by_key(struct cli_top_order *order, wint_t key)
{
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		if (cli_top_heads[i].key && key == (wint_t)cli_top_heads[i].key)
			order->by = (enum cli_top_column)i;
	}
}

static void select_row(struct cli_top_shown *shown, long step)
{
	long last = (long)shown->view->count - 1, to = (long)shown->selected + step;

	to = to > last ? last : to;
	shown->selected = (size_t)(to < 0 ? 0 : to);
}

static bool handle_named_key(struct cli_top_shown *shown, wint_t key)
{
	switch (key) {
	case KEY_UP:
		select_row(shown, -1);
		break;
	case KEY_DOWN:
		select_row(shown, 1);
		break;
	case KEY_PPAGE:
		select_row(shown, -(long)shown->page);
		break;
	case KEY_NPAGE:
		select_row(shown, (long)shown->page);
		break;
	case KEY_HOME:
		shown->selected = 0;
		break;
	case KEY_END:
		select_row(shown, (long)shown->view->count);
		break;
	case KEY_LEFT:
		sort_beside(&shown->order, -1);
		break;
	case KEY_RIGHT:
		sort_beside(&shown->order, 1);
		break;
	case KEY_F(1):
		shown->state = CLI_TOP_HELP;
		break;
	case KEY_F(10):
		return false;
	default:
		break;
	}
	return true;
}

static void set_filter(struct cli_top_shown *shown, const char *text)
{
	snprintf(shown->filter, sizeof(shown->filter), "%s", text);
}

/* False: the user quits. */
static bool handle_letter(struct cli_top_shown *shown, wint_t key)
{
	switch (key) {
	case 'q':
		return false;
	case 'h':
	case '?':
		shown->state = CLI_TOP_HELP;
		break;
	case '/':
		shown->state = CLI_TOP_TYPING;
		break;
	case 'r':
		shown->order.reversed = !shown->order.reversed;
		break;
	case '<':
	case ',':
		sort_beside(&shown->order, -1);
		break;
	case '>':
	case '.':
		sort_beside(&shown->order, 1);
		break;
	case 27:
		set_filter(shown, "");
		break;
	default:
		sort_by_key(&shown->order, key);
	}
	return true;
}

/* Removes the last character, all of its bytes. */
static void erase_last_character(char *text)
{
	size_t length = strlen(text);

	while (length && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
		length--;
	text[length ? length - 1 : 0] = '\0';
}

static void type_filter(struct cli_top_shown *shown, wint_t key, bool named)
{
	size_t length = strlen(shown->filter);
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};
	size_t count;

	if (named ? key == KEY_ENTER : key == '\n' || key == '\r') {
		shown->state = CLI_TOP_TABLE;
	} else if (!named && key == 27) {
		set_filter(shown, "");
		shown->state = CLI_TOP_TABLE;
	} else if (named ? key == KEY_BACKSPACE : key == 127 || key == 8) {
		erase_last_character(shown->filter);
	} else if (!named && key >= ' ') {
		count = wcrtomb(bytes, (wchar_t)key, &state);
		if (count == (size_t)-1 || length + count >= sizeof(shown->filter))
			return;
		memcpy(shown->filter + length, bytes, count);
		shown->filter[length + count] = '\0';
	}
}

bool cli_top_key(struct cli_top_shown *shown, unsigned key, bool named)
{
	bool stays = true;

	if (named && key == KEY_RESIZE)
		return true;
	if (shown->state == CLI_TOP_TYPING)
		type_filter(shown, key, named);
	else if (shown->state == CLI_TOP_HELP)
		shown->state = CLI_TOP_TABLE;
	else
		stays = named ? handle_named_key(shown, key) : handle_letter(shown, key);
	return stays;
}
