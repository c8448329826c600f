/* spill top on a terminal: when it looks, what it does between looks, and how it ends. Each run is a child on a terminal of its own. */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "fake_clock.h"
#include "top_draw.h"

#define MS ((uint64_t)1000000)

static unsigned looks, draws, frees, polls, asked;
static int waited;       /* for a key, in ms */
static short terminal;   /* what poll says of it */
static uint64_t step_ns; /* the time that a wait without keys takes; 0: all of it */
static int keyboard;
static bool drawn; /* nobody has waited since */
static void (*on_draw)(struct cli_top_shown *shown);

/* Not in the way of cmocka, which is the parent's. */
#define check(condition) \
	do { \
		if (!(condition)) { \
			dprintf(STDERR_FILENO, "line %d: %s\n", __LINE__, #condition); \
			_exit(1); \
		} \
	} while (0)

/* -- in place of find.c, others.c, draw.c and of the kernel ---------------------------------------- */

/* The first look finds the pids 12 and 13, each later one 11 and 14, too; the one of 13 has two devices. */
void cli_top_look(struct cli_top_look *look, const char *proc)
{
	unsigned first = looks ? 11 : 12, last = looks ? 14 : 13;

	check(!strcmp(proc, "/proc"));
	*look = (struct cli_top_look){.at_us = ++looks * 1000000, .count = last - first + 1};
	look->processes = calloc(look->count, sizeof(*look->processes));
	for (size_t i = 0; i < look->count; i++) {
		struct cli_top_process *process = &look->processes[i];

		process->pid = (pid_t)(first + i);
		process->ino = first + i;
		process->device_count = process->pid == 13 ? 2 : 1;
		sprintf(process->head.program, "program");
		for (unsigned k = 0; k < process->device_count; k++) {
			process->devices[k].number = k;
			process->devices[k].used = true;
			sprintf(process->devices[k].about.uuid, "GPU-%u", k);
			process->devices[k].figures[SPILL_COUNTER_ALLOCS] = 1;
			process->devices[k].figures[SPILL_COUNTER_AWAY] = first + i + k;
		}
	}
}

void cli_top_free(struct cli_top_look *look)
{
	free(look->processes);
	*look = (struct cli_top_look){0};
	frees++;
}

void cli_top_ask_others(struct cli_top_view *view, const struct cli_top_look *look, const char *sys)
{
	check(!strcmp(sys, "/sys"));
	check(look->count && view->card_count == 2);
	asked++;
}

void cli_top_draw(struct cli_top_shown *shown)
{
	draws++;
	drawn = true;
	on_draw(shown);
}

/* Under its own name the compiler believes that it only writes. */
int fake_poll(struct pollfd *files, nfds_t count, int timeout) __asm__("poll");

int fake_poll(struct pollfd *files, nfds_t count, int timeout)
{
	/* Curses reads keys; linked statically, it is here, too. */
	if (!drawn || timeout == 0)
		return ppoll(files, count, &(struct timespec){.tv_nsec = timeout * (long)MS}, NULL);
	drawn = false;
	check(count == 1 && files->fd == STDIN_FILENO && files->events == POLLIN);
	polls++;
	waited = timeout;
	fake_clock.ns += step_ns ? step_ns : (uint64_t)timeout * MS;
	files->revents = terminal;
	return 0;
}

/* -- the frame ------------------------------------------------------------------------------------- */

static void type(const char *keys)
{
	check(write(keyboard, keys, strlen(keys)) == (ssize_t)strlen(keys));
}

static struct termios settings(void)
{
	struct termios of;

	check(!tcgetattr(STDIN_FILENO, &of));
	return of;
}

/* A row of the pid on its device is selected. */
static bool is_selected(const struct cli_top_shown *shown, int pid, unsigned number)
{
	const struct cli_top_row *row = &shown->view->rows[shown->selected];

	return shown->selected < shown->view->count && row->process->pid == pid &&
	       row->device->number == number;
}

/* It ends in time, with so many draws and looks, and leaves the terminal as it was. */
static void shows(void (*each)(struct cli_top_shown *shown), uint64_t delay_us, unsigned of_draws,
                  unsigned of_looks)
{
	const struct cli_top_order order = {.by = CLI_TOP_PID, .filter = "prog"};
	const char *why;
	int status;
	pid_t child = fork();

	if (child == 0) {
		int ours;

		alarm(20);
		setenv("TERM", "linux", 1);
		keyboard = posix_openpt(O_RDWR | O_NOCTTY);
		check(keyboard >= 0 && !grantpt(keyboard) && !unlockpt(keyboard));
		ours = open(ptsname(keyboard), O_RDWR | O_NOCTTY);
		check(ours >= 0 && dup2(ours, STDIN_FILENO) == 0 && dup2(ours, STDOUT_FILENO) == 1);
		fake_clock_use(1000 * MS);
		on_draw = each;
		check(cli_top_screen(delay_us, &order, &why));
		check(draws == of_draws);
		check(looks == of_looks);
		check(frees == looks + 2);
		check((settings().c_lflag & (ECHO | ICANON)) == (ECHO | ICANON) && !stdscr);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* -- tests ----------------------------------------------------------------------------------------- */

#define HOUR ((uint64_t)3600 * 1000000)

static void type_keys(struct cli_top_shown *shown)
{
	const struct cli_top_row *rows = shown->view->rows;

	switch (draws) {
	case 1:
		check(!(settings().c_lflag & (ECHO | ICANON)) && !(settings().c_oflag & ONLCR));
		check(is_keypad(stdscr) && is_nodelay(stdscr) && get_escdelay() == 25);
		check(cli_top_attribute(CLI_TOP_GOOD) != A_NORMAL);
		check(shown->order.filter == shown->filter && !strcmp(shown->filter, "prog"));
		check(shown->delay_us == HOUR && shown->look->count == 2 && shown->view->count == 3);
		check(is_selected(shown, 12, 0) && asked == 1);
		type("S");
		break;
	case 2: /* in the new order the same row is selected */
		check(rows[0].process->pid == 13 && rows[2].process->pid == 12);
		check((mvinch(0, 0) & A_CHARTEXT) == ' '); /* not echoed */
		check(shown->selected == 2 && is_selected(shown, 12, 0) && asked == 2);
		type("\033[A");
		break;
	case 3:
		check(shown->selected == 1 && shown->state == CLI_TOP_TABLE && is_selected(shown, 13, 0));
		type("Ph"); /* all that wait, before the next draw */
		break;
	case 4:
		check(shown->state == CLI_TOP_HELP && is_selected(shown, 13, 0) &&
		      rows[0].process->pid == 12);
		type(" q");
		break;
	}
}

/* No key makes it look before its time. */
TEST(keys_between_looks)
{
	step_ns = 1;
	shows(type_keys, HOUR, 4, 1);
}

/* Looks are 5 ms apart. */
static void see_looks(struct cli_top_shown *shown)
{
	const struct cli_top_row *row = &shown->view->rows[shown->selected];

	switch (draws) {
	case 1:
		check(looks == 1 && !row->rated);
		shown->selected = 2;
		check(is_selected(shown, 13, 1));
		step_ns = 2 * MS;
		break;
	case 2: /* too early */
		check(looks == 1 && waited == 6 && is_selected(shown, 13, 1));
		step_ns = 0;
		break;
	case 3: /* rates are of the two last looks; the row is selected where it is now */
		check(looks == 2 && waited == 4 && shown->look->count == 4 && shown->look->at_us == 2000000);
		check(shown->selected == 3 && is_selected(shown, 13, 1) && row->rated);
		fake_clock.ns += 5 * MS; /* at that time no key is waited for */
		break;
	case 4:
		check(looks == 3 && polls == 2 && row->rated);
		type("q");
		break;
	}
}

TEST(looks)
{
	step_ns = 0;
	shows(see_looks, 5000, 4, 3);
}

static int number;

static void send_signal(struct cli_top_shown *shown)
{
	raise(number);
}

static void see_nothing(struct cli_top_shown *shown)
{
}

/* The terminal is as it was, and the program ends in order. */
TEST(signals_end_it)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		number = numbers[i];
		shows(send_signal, 5000, 1, 1);
	}
}

TEST(the_end_of_its_terminal)
{
	static const short ends[] = {POLLHUP, POLLERR, POLLNVAL};

	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		terminal = (short)(ends[i] | POLLIN);
		shows(see_nothing, 5000, 1, 1);
	}
	terminal = 0;
}

TEST(no_terminal)
{
	const struct cli_top_order order = {.filter = ""};
	const char *why = NULL;

	unsetenv("TERM");
	assert_false(cli_top_screen(1, &order, &why));
	assert_string_equal(why, "TERM is not set, or names an unknown terminal");
	setenv("TERM", "no-such-terminal", 1);
	assert_false(cli_top_screen(1, &order, &why));
	assert_int_equal(looks, 0);
}
