/* Makes sorted rows and devices from the processes of a look. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "top.h"

/* -- devices ---------------------------------------------------------------------------------- */

/* True if both are one device, by UUID or PCI address. Without these, by number and name. */
static bool is_same(const struct spill_live_page_device *a, unsigned a_number,
                    const struct spill_live_page_device *b, unsigned b_number)
{
	if (a->uuid[0] || b->uuid[0])
		return !strcmp(a->uuid, b->uuid);
	if (a->pci[0] || b->pci[0])
		return !strcmp(a->pci, b->pci);
	return a_number == b_number && !strcmp(a->name, b->name);
}

static struct cli_top_card *find_card(struct cli_top_view *view, const struct cli_top_device *device)
{
	for (size_t i = 0; i < view->card_count; i++) {
		const struct cli_top_device *first = view->cards[i].device;

		if (is_same(&first->about, first->number, &device->about, device->number))
			return &view->cards[i];
	}
	return NULL;
}

/* Takes a device's highest number, because CUDA_VISIBLE_DEVICES only hides devices. */
static void add_to_card(struct cli_top_view *view, size_t *room, const struct cli_top_device *device)
{
	struct cli_top_card *card = find_card(view, device);

	if (!card) {
		view->cards = cli_grow(view->cards, view->card_count, room, sizeof(*view->cards));
		card = &view->cards[view->card_count++];
		*card =
		    (struct cli_top_card){.device = device, .number = device->number, .others = UINT64_MAX};
	}
	if (device->number > card->number)
		card->number = device->number;
	if (!device->used)
		return;
	card->held += device->figures[SPILL_COUNTER_DEVICE];
	card->away += device->figures[SPILL_COUNTER_AWAY];
	card->limit = card->limit == UINT64_MAX || device->about.limit == UINT64_MAX
	                  ? UINT64_MAX
	                  : card->limit + device->about.limit;
	card->users++;
}

static int compare_cards(const void *left, const void *right)
{
	const struct cli_top_card *a = left, *b = right;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return strcmp(a->device->about.pci, b->device->about.pci);
}

/* If two devices have one number, all are numbered by their order. */
static void number_cards(struct cli_top_view *view)
{
	bool unique = true;

	if (view->card_count)
		qsort(view->cards, view->card_count, sizeof(*view->cards), compare_cards);
	for (size_t i = 1; i < view->card_count; i++)
		unique = unique && view->cards[i].number != view->cards[i - 1].number;
	for (size_t i = 0; i < view->card_count && !unique; i++)
		view->cards[i].number = (unsigned)i;
}

/* -- rows ------------------------------------------------------------------------------------- */

static const struct cli_top_device *find_earlier_device(const struct cli_top_look *before,
                                                        const struct cli_top_process *process,
                                                        unsigned number)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct cli_top_process *earlier = &before->processes[i];

		if (earlier->pid != process->pid || earlier->ino != process->ino ||
		    earlier->dev != process->dev)
			continue;
		for (unsigned k = 0; k < earlier->device_count; k++) {
			if (earlier->devices[k].number == number)
				return &earlier->devices[k];
		}
	}
	return NULL;
}

static double add_figures(const struct cli_top_device *device, enum spill_counter first_figure,
                          enum spill_counter second_figure)
{
	return (double)device->figures[first_figure] + (double)device->figures[second_figure];
}

/* More than any link moves; in millionths it still is a whole number of 64 bits. Pages can say anything. */
#define MOST_RATE 1e13

/* A counter that decreased belongs to another page. */
static double per_second(double now, double before, double seconds)
{
	double rate = now > before ? (now - before) / seconds : 0;

	return rate < MOST_RATE ? rate : MOST_RATE;
}

static void set_rates(struct cli_top_row *row, const struct cli_top_look *now,
                      const struct cli_top_look *before)
{
	const struct cli_top_device *earlier = find_earlier_device(before, row->process, row->device->number);
	double seconds = (double)(now->at_us - before->at_us) / 1e6;

	if (!earlier || now->at_us <= before->at_us)
		return;
	row->rated = true;
	row->moves =
	    per_second(add_figures(row->device, SPILL_COUNTER_DEMOTIONS, SPILL_COUNTER_PROMOTIONS),
	               add_figures(earlier, SPILL_COUNTER_DEMOTIONS, SPILL_COUNTER_PROMOTIONS), seconds);
	row->moved_bytes =
	    per_second(add_figures(row->device, SPILL_COUNTER_DEMOTED, SPILL_COUNTER_PROMOTED),
	               add_figures(earlier, SPILL_COUNTER_DEMOTED, SPILL_COUNTER_PROMOTED), seconds);
}

static bool is_wanted(const struct cli_top_process *process, const char *filter)
{
	char pid[24];

	snprintf(pid, sizeof(pid), "%d", (int)process->pid);
	return !*filter || strcasestr(process->head.program, filter) || strstr(pid, filter) ||
	       strcasestr(cli_top_user(process->uid), filter);
}

static void add_row(struct cli_top_view *view, size_t *room, const struct cli_top_process *process,
                    const struct cli_top_device *device)
{
	view->rows = cli_grow(view->rows, view->count, room, sizeof(*view->rows));
	view->rows[view->count++] = (struct cli_top_row){.process = process, .device = device};
}

/* A process without memory also gets a row, on its first device. */
static void add_rows(struct cli_top_view *view, size_t *room, const struct cli_top_process *process)
{
	static const struct cli_top_device none = {.about.limit = UINT64_MAX};
	size_t before = view->count;

	for (unsigned i = 0; i < process->device_count; i++) {
		if (process->devices[i].used)
			add_row(view, room, process, &process->devices[i]);
	}
	if (view->count == before)
		add_row(view, room, process, process->device_count ? &process->devices[0] : &none);
}

/* -- order ------------------------------------------------------------------------------------ */

static double sort_value(const struct cli_top_row *row, enum cli_top_column column)
{
	switch (column) {
	case CLI_TOP_DEVICE:
		return (double)row->device->figures[SPILL_COUNTER_DEVICE];
	case CLI_TOP_HOST:
		return (double)row->device->figures[SPILL_COUNTER_HOST];
	case CLI_TOP_MANAGED:
		return (double)row->device->figures[SPILL_COUNTER_MANAGED];
	case CLI_TOP_SPILLED:
		return (double)row->device->figures[SPILL_COUNTER_AWAY];
	case CLI_TOP_LIMIT:
		return (double)row->device->about.limit;
	case CLI_TOP_MOVES:
		return row->moves;
	case CLI_TOP_RATE:
		return row->moved_bytes;
	case CLI_TOP_OOMS:
		return (double)row->device->figures[SPILL_COUNTER_OOMS];
	case CLI_TOP_DECISION:
		return (double)row->process->decision.time_us;
	default:
		return 0;
	}
}

static int compare_column(const struct cli_top_row *a, const struct cli_top_row *b,
                          enum cli_top_column column)
{
	char name[64];
	double x, y;

	switch (column) {
	case CLI_TOP_PID:
		return a->process->pid < b->process->pid ? -1 : a->process->pid > b->process->pid;
	case CLI_TOP_PROGRAM:
		return strcasecmp(a->process->head.program, b->process->head.program);
	case CLI_TOP_DEV:
		return a->number < b->number ? -1 : a->number > b->number;
	case CLI_TOP_USER:
		snprintf(name, sizeof(name), "%s", cli_top_user(a->process->uid));
		return strcmp(name, cli_top_user(b->process->uid));
	default:
		x = sort_value(a, column);
		y = sort_value(b, column);
		return x > y ? -1 : x < y;
	}
}

static int compare_rows(const void *left, const void *right, void *data)
{
	const struct cli_top_order *order = data;
	const struct cli_top_row *a = left, *b = right;
	int answer = compare_column(a, b, order->by);

	if (order->reversed)
		answer = -answer;
	if (!answer)
		answer = compare_column(a, b, CLI_TOP_PID);
	return answer ? answer : compare_column(a, b, CLI_TOP_DEV);
}

void cli_top_arrange(struct cli_top_view *view, const struct cli_top_look *now,
                     const struct cli_top_look *before, const struct cli_top_order *order)
{
	size_t rows = 0, cards = 0;

	cli_top_view_free(view);
	for (size_t i = 0; i < now->count; i++) {
		const struct cli_top_process *process = &now->processes[i];

		for (unsigned k = 0; k < process->device_count; k++)
			add_to_card(view, &cards, &process->devices[k]);
		if (is_wanted(process, order->filter))
			add_rows(view, &rows, process);
	}
	number_cards(view);
	for (size_t i = 0; i < view->count; i++) {
		const struct cli_top_card *card = find_card(view, view->rows[i].device);

		view->rows[i].number = card ? card->number : view->rows[i].device->number;
		set_rates(&view->rows[i], now, before);
	}
	if (view->count)
		qsort_r(view->rows, view->count, sizeof(*view->rows), compare_rows, (void *)order);
}

void cli_top_view_free(struct cli_top_view *view)
{
	free(view->rows);
	free(view->cards);
	memset(view, 0, sizeof(*view));
}
