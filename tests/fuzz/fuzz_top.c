/* A page of counters as anybody's process may offer it to `spill top`. */
#include <string.h>

#include "fuzz.h"
#include "fuzz_printed.h"
#include "top.h"

static void check_text(const char *text, size_t size)
{
	fuzz_require(memchr(text, '\0', size) != NULL, "a text ends");
}

static void check(const struct cli_top_process *process)
{
	fuzz_require(process->device_count <= SPILL_DEVICES, "devices have an end");
	check_text(process->head.program, sizeof(process->head.program));
	check_text(process->head.log, sizeof(process->head.log));
	check_text(process->decision.caller, sizeof(process->decision.caller));
	for (unsigned i = 0; i < process->device_count; i++)
		check_text(process->devices[i].about.name, sizeof(process->devices[i].about.name));
}

static struct cli_top_look now, before;
static struct cli_top_view view;

static int print_text(int argc, char **argv)
{
	cli_top_text(&now, &view);
	return 0;
}

static int print_json(int argc, char **argv)
{
	cli_top_json(&now, &view);
	return 0;
}

static void check_rate(double rate)
{
	fuzz_require(rate >= 0 && rate * 1e6 < (double)UINT64_MAX, "a rate is a number that can be printed");
}

static void show(void)
{
	static const char *const words[] = {"top", NULL};
	const struct cli_top_order order = {.by = CLI_TOP_RATE, .filter = ""};
	char cell[256], line[256];

	cli_top_arrange(&view, &now, &before, &order);
	for (size_t i = 0; i < view.count; i++) {
		check_rate(view.rows[i].moves);
		check_rate(view.rows[i].moved_bytes);
		for (unsigned column = 0; column < CLI_TOP_COLUMN_COUNT; column++) {
			cli_top_cell(&view.rows[i], (enum cli_top_column)column, now.wall_us, cell,
			             sizeof(cell));
			cli_top_pad(cell, 20, true, line, sizeof(line));
			for (const char *at = line; *at; at++)
				fuzz_require((unsigned char)*at >= 0x20 && *at != 0x7f,
				             "nothing steers the terminal");
		}
	}
	fuzz_run(print_text, words);
	fuzz_check_json(fuzz_run(print_json, words));
	cli_top_view_free(&view);
}

/* A good page, every third byte of the input put where the two before it say. */
static void fill(struct spill_live_page *page, const uint8_t *data, size_t size)
{
	memset(page, 'x', sizeof(*page));
	page->decided = 2;
	for (unsigned i = 0; i < SPILL_DEVICES; i++)
		page->figures[i].lock = 2 * (i % 3);
	for (size_t i = 0; i + 2 < size; i += 3)
		((uint8_t *)page)[((size_t)data[i] << 8 | data[i + 1]) % sizeof(*page)] = data[i + 2];
}

/* The same process half a second before, when nothing was counted yet. */
static void look_before(const struct cli_top_process *process)
{
	static struct cli_top_process earlier;

	earlier = *process;
	for (unsigned i = 0; i < SPILL_DEVICES; i++)
		memset(earlier.devices[i].figures, 0, sizeof(earlier.devices[i].figures));
	before = (struct cli_top_look){.processes = &earlier, .count = 1, .at_us = 1};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct spill_live_page page;
	static struct cli_top_process process;

	fill(&page, data, size);
	if (!cli_top_copy(&page, &process))
		return 0;
	check(&process);
	now = (struct cli_top_look){.processes = &process, .count = 1, .at_us = 500001};
	look_before(&process);
	show();
	return 0;
}
