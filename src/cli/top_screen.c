/* spill top on a terminal: keys, and the looks in between. */
#include <curses.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "clock.h"
#include "top_draw.h"

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	stopped = number;
}

struct screen {
	struct cli_top_look looks[2]; /* now, and the one before */
	struct cli_top_view view;
	struct cli_top_shown shown;
	char filter[256];
};

/* The row that is selected stays so wherever it goes. */
static void select_again(struct screen *screen, pid_t pid, unsigned number)
{
	for (size_t i = 0; i < screen->view.count; i++) {
		const struct cli_top_row *row = &screen->view.rows[i];

		if (row->process->pid == pid && row->device->number == number)
			screen->shown.selected = i;
	}
}

static void arrange(struct screen *screen)
{
	const struct cli_top_view *view = &screen->view;
	bool any = screen->shown.selected < view->count;
	const struct cli_top_row *row = any ? &view->rows[screen->shown.selected] : NULL;
	pid_t pid = any ? row->process->pid : 0;
	unsigned number = any ? row->device->number : 0;

	cli_top_arrange(&screen->view, &screen->looks[0], &screen->looks[1], &screen->shown.order);
	if (any)
		select_again(screen, pid, number);
}

static void look(struct screen *screen)
{
	struct cli_top_look next = {0};

	cli_top_look(&next, "/proc");
	/* The view points into the look that becomes the one before. */
	struct cli_top_look gone = screen->looks[1];
	screen->looks[1] = screen->looks[0];
	screen->looks[0] = next;
	arrange(screen);
	cli_top_free(&gone);
}

/* -- keys ----------------------------------------------------------------------------------------------------- */

/* Only columns that are on the terminal. */
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

static bool sort_by_key(struct cli_top_order *order, wint_t key)
{
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		if (cli_top_heads[i].key && key == (wint_t)cli_top_heads[i].key) {
			order->by = (enum cli_top_column)i;
			return true;
		}
	}
	return false;
}

static void select_row(struct cli_top_shown *shown, long step)
{
	long last = (long)shown->view->count - 1, to = (long)shown->selected + step;

	to = to > last ? last : to;
	shown->selected = (size_t)(to < 0 ? 0 : to);
}

/* A key that curses has a name for. */
static bool take_named(struct cli_top_shown *shown, wint_t key)
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

static void put_filter(struct screen *screen, const char *text)
{
	snprintf(screen->filter, sizeof(screen->filter), "%s", text);
}

/* False: the user leaves. */
static bool take_letter(struct screen *screen, wint_t key)
{
	struct cli_top_shown *shown = &screen->shown;

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
		put_filter(screen, "");
		break;
	default:
		sort_by_key(&shown->order, key);
	}
	return true;
}

/* The last character goes, whole. */
static void rub_out(char *text)
{
	size_t length = strlen(text);

	while (length && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
		length--;
	text[length ? length - 1 : 0] = '\0';
}

static void type(struct screen *screen, wint_t key, bool named)
{
	size_t length = strlen(screen->filter);
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};
	size_t count;

	if (named ? key == KEY_ENTER : key == '\n' || key == '\r') {
		screen->shown.state = CLI_TOP_TABLE;
	} else if (!named && key == 27) {
		put_filter(screen, "");
		screen->shown.state = CLI_TOP_TABLE;
	} else if (named ? key == KEY_BACKSPACE : key == 127 || key == 8) {
		rub_out(screen->filter);
	} else if (!named && key >= ' ') {
		count = wcrtomb(bytes, (wchar_t)key, &state);
		if (count == (size_t)-1 || length + count >= sizeof(screen->filter))
			return;
		memcpy(screen->filter + length, bytes, count);
		screen->filter[length + count] = '\0';
	}
}

static bool take_key(struct screen *screen, wint_t key, bool named)
{
	struct cli_top_shown *shown = &screen->shown;
	bool stays = true;

	if (named && key == KEY_RESIZE)
		return true;
	if (shown->state == CLI_TOP_TYPING)
		type(screen, key, named);
	else if (shown->state == CLI_TOP_HELP)
		shown->state = CLI_TOP_TABLE;
	else
		stays = named ? take_named(shown, key) : take_letter(screen, key);
	arrange(screen);
	return stays;
}

/* All keys that are there; false: the user leaves. */
static bool take_keys(struct screen *screen)
{
	wint_t key;
	int kind;

	while ((kind = get_wch(&key)) != ERR) {
		if (!take_key(screen, key, kind == KEY_CODE_YES))
			return false;
	}
	return true;
}

/* -- the loop ------------------------------------------------------------------------------------------------- */

/* Until a key comes, or it is time for the next look. False if the terminal is gone. */
static bool wait_for_key(uint64_t until_ns)
{
	struct pollfd keyboard = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t now = spill_clock_ns();

	if (now >= until_ns)
		return true;
	poll(&keyboard, 1, (int)((until_ns - now) / 1000000) + 1);
	return !(keyboard.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void run(struct screen *screen)
{
	uint64_t next_ns = 0;

	while (!stopped) {
		if (spill_clock_ns() >= next_ns) {
			look(screen);
			next_ns = spill_clock_ns() + screen->shown.delay_us * 1000;
		}
		cli_top_draw(&screen->shown);
		if (!wait_for_key(next_ns) || !take_keys(screen))
			break;
	}
}

/* Ends in the loop, so that the terminal is as it was. */
static void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = stop};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

bool cli_top_screen(uint64_t delay_us, const struct cli_top_order *order, const char **why)
{
	static struct screen screen;
	SCREEN *terminal;

	*why = "TERM is not set, or names no terminal that is known here";
	catch_signals();
	terminal = getenv("TERM") ? newterm(NULL, stdout, stdin) : NULL;
	if (!terminal)
		return false;
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	cli_top_colours();
	screen.shown =
	    (struct cli_top_shown){.look = &screen.looks[0], .view = &screen.view, .delay_us = delay_us};
	put_filter(&screen, order->filter);
	screen.shown.order = *order;
	screen.shown.order.filter = screen.filter;
	run(&screen);
	endwin();
	delscreen(terminal);
	cli_top_view_free(&screen.view);
	cli_top_free(&screen.looks[0]);
	cli_top_free(&screen.looks[1]);
	return true;
}
