/* spill top on a terminal: takes looks, and handles keys in between. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

#include "clock.h"
#include "top_draw.h"

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = number;
}

struct screen {
	struct cli_top_look looks[2]; /* this look and the one before */
	struct cli_top_view view;
	struct cli_top_shown shown;
};

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
	cli_top_ask_others(&screen->view, &screen->looks[0], "/sys");
	if (any)
		select_again(screen, pid, number);
}

static void take_look(struct screen *screen)
{
	struct cli_top_look next = {0};

	cli_top_look(&next, "/proc");
	/* The view points into the current look, so that is kept as the one before. */
	struct cli_top_look gone = screen->looks[1];
	screen->looks[1] = screen->looks[0];
	screen->looks[0] = next;
	arrange(screen);
	cli_top_free(&gone);
}

/* -- loop ------------------------------------------------------------------------------------- */

/* Handles all waiting keys. False: the user quits. */
static bool take_keys(struct screen *screen)
{
	wint_t key;
	int kind;

	while ((kind = get_wch(&key)) != ERR) {
		if (!cli_top_key(&screen->shown, (unsigned)key, kind == KEY_CODE_YES))
			return false;
		arrange(screen);
	}
	return true;
}

/* Waits for a key or the next look. False: the terminal is gone. */
static bool wait_for_key(uint64_t until_ns)
{
	struct pollfd keyboard = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t now = spill_clock_ns();

	if (now >= until_ns)
		return true;
	poll(&keyboard, 1, (int)((until_ns - now) / 1000000) + 1);
	return !(keyboard.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void run_until_quit(struct screen *screen)
{
	uint64_t next_ns = 0;

	while (!stopped) {
		if (spill_clock_ns() >= next_ns) {
			take_look(screen);
			next_ns = spill_clock_ns() + screen->shown.delay_us * 1000;
		}
		cli_top_draw(&screen->shown);
		if (!wait_for_key(next_ns) || !take_keys(screen))
			break;
	}
}

/* Signals end the loop, so that the terminal is restored. */
static void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

bool cli_top_screen(uint64_t delay_us, const struct cli_top_order *order, const char **why)
{
	static struct screen screen;
	SCREEN *terminal;

	*why = "TERM is not set, or names an unknown terminal";
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
	snprintf(screen.shown.filter, sizeof(screen.shown.filter), "%s", order->filter);
	screen.shown.order = *order;
	screen.shown.order.filter = screen.shown.filter;
	run_until_quit(&screen);
	endwin();
	delscreen(terminal);
	cli_top_view_free(&screen.view);
	cli_top_free(&screen.looks[0]);
	cli_top_free(&screen.looks[1]);
	return true;
}
