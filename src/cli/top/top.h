/*
 * top: `spill top`. What running programs hold and move, read from the pages that libspill keeps
 * in them (live_page.h).
 *
 * It trusts nothing in a page, and writes to none: it only looks. It reads no log and no policy.
 *
 * Begin with cli_top in top.c. Pages are found by find.c, read by page.c, put in order by view.c,
 * shown by text.c, json.c and screen.c.
 */
#ifndef SPILL_CLI_TOP_H
#define SPILL_CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "live_page.h"

/* A device as one process knows it, with its figures; all texts are terminated. */
struct cli_top_device {
	unsigned number; /* of that process */
	struct spill_live_page_device about;
	uint64_t figures[SPILL_COUNTERS_COUNT];
	bool used; /* the process has had memory on it */
};

struct cli_top_process {
	pid_t pid; /* as seen from here */
	uid_t uid;
	uint64_t began; /* clock ticks since boot */
	dev_t dev;      /* of its page */
	ino_t ino;
	struct spill_live_page_head head;
	struct spill_live_page_decision decision;
	unsigned device_count;
	struct cli_top_device devices[SPILL_DEVICES]; /* those that it knows */
};

/* All processes at one moment. */
struct cli_top_look {
	uint64_t at_us, wall_us; /* monotonic; since 1970 */
	struct cli_top_process *processes;
	size_t count, room;
	size_t closed; /* processes into which this user may not look */
	size_t broken; /* pages that could not be opened or are none */
	size_t other;  /* of another version of libspill */
	bool blind;    /* there is no /proc */
};

/* -- page.c ---------------------------------------------------------------------------------------------- */

enum cli_top_page { CLI_TOP_READ, CLI_TOP_BROKEN, CLI_TOP_OTHER };

/*
 * Copies what is at `fd`, a page of whoever wants to be one: nothing in it is trusted. Fills all of `process` that is in a page; dev
 * and ino, too.
 */
enum cli_top_page cli_top_page(int fd, struct cli_top_process *process);

/* The same of a page in memory. False if its figures are never at rest. */
bool cli_top_copy(const struct spill_live_page *page, struct cli_top_process *process);

/* -- find.c ---------------------------------------------------------------------------------------------- */

/* `proc`: "/proc". What is in the look before is given back. */
void cli_top_look(struct cli_top_look *look, const char *proc);
void cli_top_free(struct cli_top_look *look);

/* -- view.c ---------------------------------------------------------------------------------------------- */

/* A process on a device: one line of the table. */
struct cli_top_row {
	const struct cli_top_process *process; /* of the look */
	const struct cli_top_device *device;
	unsigned number;           /* of the device among all that are shown */
	bool rated;                /* the look before had it as well: */
	double moves, moved_bytes; /* a second */
};

/* A device of which the processes tell. */
struct cli_top_card {
	const struct cli_top_device *device; /* as the first process knows it */
	uint64_t held, away;                 /* on it, and off it by our doing, of all processes */
	uint64_t limit;                      /* of all processes; UINT64_MAX: one has none */
	unsigned users;
	unsigned number;
};

struct cli_top_view {
	struct cli_top_row *rows;
	size_t count;
	struct cli_top_card *cards;
	size_t card_count;
};

/* The columns, in their order: name for --sort, key that sorts by it (0: none), title, least width, and in which turn it gives way. */
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
	bool reversed; /* against what is usual: numbers from the greatest, names from the first */
	const char *
	    filter; /* part of the program's name, the user's or the pid; "" for all; letters of either case */
};

/* Rows of `now`; rates by the look before, which may be empty. Points into `now`. */
void cli_top_arrange(struct cli_top_view *view, const struct cli_top_look *now,
                     const struct cli_top_look *before, const struct cli_top_order *order);
void cli_top_view_free(struct cli_top_view *view);

/* -- cell.c ---------------------------------------------------------------------------------------------- */

struct cli_top_head {
	const char *name, *title;
	char key;
	unsigned width, turn;
};
extern const struct cli_top_head cli_top_heads[CLI_TOP_COLUMN_COUNT];

/* Which columns there is room for; those that give way first are left out. */
void cli_top_fit(unsigned width, bool shown[CLI_TOP_COLUMN_COUNT]);

/*
 * A cell's text, as long as it is; the name of a program may hold anything that can be shown, in UTF-8. `wall_us`: of the look.
 */
void cli_top_cell(const struct cli_top_row *row, enum cli_top_column column, uint64_t wall_us, char *text,
                  size_t size);

/* A column of the table at its side: names at the left, numbers at the right, in `width` columns of the terminal; cut if it is too long. */
void cli_top_pad(const char *text, unsigned width, bool left, char *to, size_t size);
bool cli_top_is_left(enum cli_top_column column);

/* How many columns of the terminal a text takes, shown by cli_top_pad. */
unsigned cli_top_columns(const char *text);

/* "5.00G": three digits and a unit of 1,024; "0" */
void cli_top_size(uint64_t bytes, char *text, size_t size);

/* "3s", "12m", "5h", "8d" since then */
void cli_top_age(uint64_t wall_us, uint64_t then_us, char *text, size_t size);

/* What is to be said besides: whom one may not look into, what could not be read, that there is nothing. "" if nothing is. */
void cli_top_remark(const struct cli_top_look *look, size_t shown, char *text, size_t size);

/* The name of the user, or the number. Lives until the next call. */
const char *cli_top_user(uid_t uid);

/* -- the ways to show it ------------------------------------------------------------------------------------- */

void cli_top_text(const struct cli_top_look *look, const struct cli_top_view *view);
void cli_top_json(const struct cli_top_look *look, const struct cli_top_view *view);

/* Until the user leaves. `order`: to begin with. False, and why, if this terminal cannot. */
bool cli_top_screen(uint64_t delay_us, const struct cli_top_order *order, const char **why);

#endif
