/* spill top: shows the memory of running programs, and moves. */
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "amount.h"
#include "call.h"
#include "cli.h"
#include "clock.h"
#include "nearest.h"
#include "top.h"

#define DELAY_US 1000000u
#define LEAST_US 50000u
#define MOST_US 3600000000u

struct options {
	bool once, json, delayed;
	uint64_t delay_us;
	struct cli_top_order order;
};

static void read_delay(struct cli_call *call, struct options *options)
{
	size_t error_at;
	const char *reason = spill_time_parse(call->value, &options->delay_us, &error_at);

	options->delayed = true;
	if (reason)
		cli_call_refuse(call, "bad --delay '%s': %s", call->value, reason);
	else if (options->delay_us < LEAST_US || options->delay_us > MOST_US)
		cli_call_refuse(call, "bad --delay '%s': not between 50ms and 1h", call->value);
}

/* Each name follows ", ". */
#define X(id, name, key, title, width, turn) ", " name
static const char columns[] = CLI_TOP_COLUMNS(X);
#undef X

static void read_sort(struct cli_call *call, struct options *options)
{
	struct spill_nearest nearest;

	spill_nearest_begin(&nearest, call->value, strlen(call->value));
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
		options->order.by = (enum cli_top_column)i;
		if (!strcmp(call->value, cli_top_heads[i].name))
			return;
		spill_nearest_offer(&nearest, cli_top_heads[i].name, strlen(cli_top_heads[i].name));
	}
	if (spill_nearest_word(&nearest))
		cli_call_refuse(call, "bad --sort '%s'; the nearest is '%s'", call->value,
		                spill_nearest_word(&nearest));
	else
		cli_call_refuse(call, "bad --sort '%s': no such column; there are %s", call->value,
		                columns + 2);
}

static void read_option(struct cli_call *call, struct options *options)
{
	switch (call->option) {
	case CLI_top_once:
		options->once = true;
		break;
	case CLI_top_json:
		options->json = true;
		break;
	case CLI_top_delay:
		read_delay(call, options);
		break;
	case CLI_top_sort:
		read_sort(call, options);
		break;
	case CLI_top_reverse:
		options->order.reversed = true;
		break;
	case CLI_top_filter:
		options->order.filter = call->value;
		break;
	default:
		break;
	}
}

/* Without a terminal: prints looks until one is enough, or the reader is gone. */
static int print_looks(const struct options *options)
{
	struct cli_top_look now = {0}, before = {0}, gone;
	struct cli_top_view view = {0};
	unsigned looks = !options->once ? 0 : options->delayed ? 2 : 1; /* 0: without end */
	int status;

	for (unsigned done = 1;; done++) {
		gone = before;
		before = now;
		now = (struct cli_top_look){0};
		cli_top_free(&gone);
		cli_top_look(&now, "/proc");
		cli_top_arrange(&view, &now, &before, &options->order);
		cli_top_ask_others(&view, &now, "/sys");
		if (!looks || done == looks)
			(options->json ? cli_top_json : cli_top_text)(&now, &view);
		status = cli_finish(now.blind || (now.broken && !now.count) ? CLI_FINDINGS : CLI_FINE);
		if (ferror(stdout) || done == looks)
			break;
		spill_clock_sleep(options->delay_us * 1000);
	}
	cli_top_view_free(&view);
	cli_top_free(&now);
	cli_top_free(&before);
	return status;
}

static int show_screen(const struct options *options)
{
	const char *why;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return cli_usage("top", "not a terminal; use --once or --json");
	if (cli_top_screen(options->delay_us, &options->order, &why))
		return CLI_FINE;
	return cli_usage("top", "%s; use --once or --json", why);
}

int cli_top(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	struct options options = {.delay_us = DELAY_US, .order = {.by = CLI_TOP_DEVICE, .filter = ""}};

	while (cli_call_next(&call))
		read_option(&call, &options);
	if (call.over)
		return call.status;
	if (call.count)
		return cli_usage(argv[0], "unexpected argument '%s'", call.operand[0]);
	setlocale(LC_CTYPE, ""); /* for the width of names */
	return options.once || options.json ? print_looks(&options) : show_screen(&options);
}
