/* A terminal that is nowhere, with spill top's screen on it, as curses has it. For the tests of what is drawn. */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

/* The terminal's: until the test's end. */
#define KEEPS_DESCRIPTORS
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top_draw.h"

/* In place of card_use.c: no other program is known. */
uint64_t cli_card_free(const char *uuid)
{
	return UINT64_MAX;
}

unsigned cli_card_users(const char *uuid, struct cli_card_user *users, unsigned room)
{
	return 0;
}

const char *cli_card_user_text(const struct cli_card_user *user, char text[CLI_CARD_USER_TEXT])
{
	return strcpy(text, user->name);
}

static FILE *nowhere;
static uint64_t others;
static SCREEN *terminal;
static struct cli_top_process processes[8];
static struct cli_top_look look, before;
static struct cli_top_view view;
static struct cli_top_shown shown;

/* The lines on the screen: a title, one device, the heads, and a row for each process. */
enum { TITLE, DEVICE, HEADS, ROWS };

/* Processes on one device of 1,000 bytes. Ordered by pid, the first is selected. */
static inline void fill(unsigned count)
{
	memset(processes, 0, sizeof(processes));
	for (unsigned i = 0; i < count; i++) {
		struct cli_top_process *process = &processes[i];
		struct cli_top_device *device = &process->devices[0];

		process->pid = 1001 + (int)i;
		process->ino = i + 1;
		process->device_count = 1;
		sprintf(process->head.program, "program%u", i);
		strcpy(process->head.mode, "spill");
		strcpy(device->about.uuid, "GPU-1");
		strcpy(device->about.name, "Card");
		device->about.bytes = 1000;
		device->about.limit = UINT64_MAX;
		device->used = true;
		device->figures[SPILL_COUNTER_ALLOCS] = 1;
		device->figures[SPILL_COUNTER_DEVICE] = 100 + i;
		device->figures[SPILL_COUNTER_HOST] = 200 + i;
	}
	before = (struct cli_top_look){0};
	look = (struct cli_top_look){
	    .at_us = 1000000, .wall_us = 103000000, .processes = processes, .count = count};
}

static inline void open_terminal(const char *type)
{
	setenv("TZ", "UTC0", 1);
	setenv("LINES", "24", 1);
	setenv("COLUMNS", "130", 1);
	nowhere = fopen("/dev/null", "r+e");
	assert_non_null(nowhere);
	terminal = newterm(type, nowhere, nowhere);
	if (!terminal) {
		fclose(nowhere);
		skip(); /* its description is not installed */
	}
	cli_top_colours();
	fill(3);
	others = 200;
	shown = (struct cli_top_shown){.look = &look,
	                               .view = &view,
	                               .order = {.by = CLI_TOP_PID, .filter = shown.filter},
	                               .delay_us = 1000000};
}

static inline void draw(void)
{
	cli_top_arrange(&view, &look, &before, &shown.order);
	for (size_t i = 0; i < view.card_count; i++)
		view.cards[i].others = others;
	cli_top_draw(&shown);
	assert_false(is_wintouched(stdscr)); /* all of it is on the terminal */
}

static inline int close_terminal(void **state)
{
	if (!terminal)
		return 0;
	endwin();
	delscreen(terminal);
	terminal = NULL;
	cli_top_view_free(&view);
	return fclose(nowhere);
}

static inline attr_t attributes_at(int y, int x)
{
	return (attr_t)(mvinch(y, x) & A_ATTRIBUTES);
}

static inline void line_is(int y, attr_t attributes)
{
	for (int x = 0; x < COLS; x++)
		assert_int_equal(attributes_at(y, x), attributes);
}

/* A line without the blanks at its end. */
static inline const char *line_at(int y)
{
	static char line[1024];
	size_t length;

	assert_true(mvinnstr(y, 0, line, sizeof(line) - 1) != ERR);
	for (length = strlen(line); length && line[length - 1] == ' '; length--)
		line[length - 1] = '\0';
	return line;
}

#endif
