/*
 * top: `spill top`. It shows the memory and moves of running programs, read from the pages that
 * libspill keeps in them (live_page.h).
 *
 * It trusts nothing in a page, and writes to none. It reads no log and no policy. Of the devices it
 * asks only how full they are (others.c), which makes no context.
 *
 * Begin with cli_top in top.c. find.c finds pages, page.c reads them, view.c sorts the rows.
 * text.c, json.c and screen.c show them.
 */
#ifndef SPILL_CLI_TOP_H
#define SPILL_CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "card_use.h"
#include "live_page.h"

/* A device of one process, with its figures. All texts are terminated. */
struct cli_top_device {
	unsigned number; /* the process's number of it */
	struct spill_live_page_device about;
	uint64_t figures[SPILL_COUNTERS_COUNT];
	bool used; /* the process has had memory on it */
};

struct cli_top_process {
	pid_t pid; /* in our namespace */
	uid_t uid;
	uint64_t start_ticks; /* clock ticks since boot */
	dev_t dev;            /* identify its page */
	ino_t ino;
	struct spill_live_page_head head;
	struct spill_live_page_decision decision;
	unsigned device_count;
	struct cli_top_device devices[SPILL_DEVICES];
};

struct cli_top_look {
	uint64_t at_us, wall_us; /* monotonic; since 1970 */
	struct cli_top_process *processes;
	size_t count, room;
	size_t closed; /* processes that this user may not examine */
	size_t broken; /* pages that could not be opened or are invalid */
	size_t other;  /* pages of another version of libspill */
	bool blind;    /* there is no /proc */
};

/* -- page.c ----------------------------------------------------------------------------------- */

enum cli_top_page { CLI_TOP_READ, CLI_TOP_BROKEN, CLI_TOP_OTHER };

/* Copies the page at `fd`, with dev and ino. It may be anything: nothing in it is trusted. */
enum cli_top_page cli_top_page(int fd, struct cli_top_process *process);

/* As cli_top_page, for a page in memory. False: its figures never come to rest. */
bool cli_top_copy(const struct spill_live_page *page, struct cli_top_process *process);

/* -- find.c ----------------------------------------------------------------------------------- */

/* Examines all processes below `proc`, normally "/proc". Frees the former content of `look`. */
void cli_top_look(struct cli_top_look *look, const char *proc);
void cli_top_free(struct cli_top_look *look);

/* -- view.c ----------------------------------------------------------------------------------- */

/* One process on one device: a row of the table. */
struct cli_top_row {
	const struct cli_top_process *process; /* points into the look */
	const struct cli_top_device *device;
	unsigned number;           /* the device's number on the screen */
	bool rated;                /* the look before had this row, so rates are known: */
	double moves, moved_bytes; /* per second */
};

/* Programs of others that are named. */
#define CLI_TOP_NAMED 4

struct cli_top_card {
	const struct cli_top_device *device;       /* of the first process */
	uint64_t held, away;                       /* held on it, and spilled from it, by all processes */
	uint64_t others;                           /* used by anyone else on it; UINT64_MAX: not known */
	struct cli_card_user other[CLI_TOP_NAMED]; /* the programs with most of these, as far as known */
	unsigned named;
	uint64_t limit; /* sum of all processes; UINT64_MAX: one has none */
	unsigned users;
	unsigned number;
};

struct cli_top_view {
	struct cli_top_row *rows;
	size_t count;
	struct cli_top_card *cards;
	size_t card_count;
};

/* Name for --sort, key (0: none), title, least width, turn: the highest is left out first. */
#define CLI_TOP_COLUMNS(X) \
	X(PID, "pid", 'P', "PID", 7, 0) \
	X(USER, "user", 'U', "USER", 8, 9) \
	X(PROGRAM, "program", 'N', "PROGRAM", 13, 0) \
	X(DEV, "dev", 0, "DEV", 3, 4) \
	X(DEVICE, "device", 'D', "DEVICE", 6, 0) \
	X(HOST, "host", 'H', "HOST", 6, 1) \
	X(MANAGED, "managed", 'M', "MANAGED", 7, 3) \
	X(SPILLED, "spilled", 'S', "SPILLED", 7, 0) \
	X(LIMIT, "limit", 'L', "LIMIT", 6, 8) \
	X(MOVES, "moves", 'V', "MOVES/s", 7, 2) \
	X(RATE, "rate", 'B', "MOVED/s", 7, 7) \
	X(OOMS, "ooms", 'O', "OOMS", 4, 6) \
	X(DECISION, "decision", 0, "LAST DECISION", 13, 5)

enum cli_top_column {
#define X(id, name, key, title, width, turn) CLI_TOP_##id,
	// clang-format off
	CLI_TOP_COLUMNS(X)
#undef X
	CLI_TOP_COLUMN_COUNT
	// clang-format on
};

struct cli_top_order {
	enum cli_top_column by;
	bool reversed;      /* reverses the usual order: largest numbers or first names first */
	const char *filter; /* part of a program's name, user or pid in any case; "": all */
};

/* Makes the rows of `now`, with rates since `before`, which may be empty. Points into `now`. */
void cli_top_arrange(struct cli_top_view *view, const struct cli_top_look *now,
                     const struct cli_top_look *before, const struct cli_top_order *order);
void cli_top_view_free(struct cli_top_view *view);

/* -- others.c --------------------------------------------------------------------------------- */

/* Sets the cards' `others`. `sys` is normally "/sys". */
void cli_top_ask_others(struct cli_top_view *view, const struct cli_top_look *look, const char *sys);

/* -- cell.c ----------------------------------------------------------------------------------- */

struct cli_top_head {
	const char *name, *title;
	char key;
	unsigned width, turn;
};
extern const struct cli_top_head cli_top_heads[CLI_TOP_COLUMN_COUNT];

/* Chooses the columns that fit. */
void cli_top_fit(unsigned width, bool shown[CLI_TOP_COLUMN_COUNT]);

/* The full text of a cell, any printable UTF-8. `wall_us`: of the look. */
void cli_top_cell(const struct cli_top_row *row, enum cli_top_column column, uint64_t wall_us, char *text,
                  size_t size);

/* Pads or cuts a text to `width` columns. Names stand left, numbers right. */
void cli_top_pad(const char *text, unsigned width, bool left, char *to, size_t size);
bool cli_top_is_left(enum cli_top_column column);

/* The width of a text as cli_top_pad shows it. */
unsigned cli_top_columns(const char *text);

/* "5.00G": three digits and a unit of 1,024; "0" */
void cli_top_size(uint64_t bytes, char *text, size_t size);

/* "3s", "12m", "5h", "8d": the time since then */
void cli_top_age(uint64_t wall_us, uint64_t then_us, char *text, size_t size);

/* A remark on processes that could not be examined or read, or on an empty table. "": none. */
void cli_top_remark(const struct cli_top_look *look, size_t shown, char *text, size_t size);

/* Appends to `line`. Cuts text that does not fit. */
void cli_top_add(char *line, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The user's name, or the number. Valid until the next call. */
const char *cli_top_user(uid_t uid);

/* -- output ----------------------------------------------------------------------------------- */

void cli_top_text(const struct cli_top_look *look, const struct cli_top_view *view);
void cli_top_json(const struct cli_top_look *look, const struct cli_top_view *view);

/* Shows the table until the user quits. False, and *why, if this terminal cannot. */
bool cli_top_screen(uint64_t delay_us, const struct cli_top_order *order, const char **why);

#endif
