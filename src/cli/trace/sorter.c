#include "sorter.h"

#include <stdbool.h>
#include <stdlib.h>

#include "cli.h"

/* A heap by order, then by arrival. An out of memory has the order of the event before it. */
struct cli_sorter_item {
	uint64_t arrival;
	struct cli_event event;
};

static bool precedes(const struct cli_sorter_item *a, const struct cli_sorter_item *b)
{
	return a->event.order != b->event.order ? a->event.order < b->event.order : a->arrival < b->arrival;
}

static void push_event(struct cli_sorter *sorter, const struct cli_event *event)
{
	const struct cli_sorter_item item = {sorter->arrivals++, *event};
	size_t index = sorter->count;

	sorter->heap = cli_grow(sorter->heap, sorter->count, &sorter->size, sizeof(item));
	sorter->count++;
	for (; index && precedes(&item, &sorter->heap[(index - 1) / 2]); index = (index - 1) / 2)
		sorter->heap[index] = sorter->heap[(index - 1) / 2];
	sorter->heap[index] = item;
}

static struct cli_event pop_event(struct cli_sorter *sorter)
{
	struct cli_event first = sorter->heap[0].event;
	struct cli_sorter_item last = sorter->heap[--sorter->count];
	size_t index = 0, child;

	while ((child = 2 * index + 1) < sorter->count) {
		if (child + 1 < sorter->count && precedes(&sorter->heap[child + 1], &sorter->heap[child]))
			child++;
		if (!precedes(&sorter->heap[child], &last))
			break;
		sorter->heap[index] = sorter->heap[child];
		index = child;
	}
	sorter->heap[index] = last;
	return first;
}

static void deliver(struct cli_sorter *sorter, const struct cli_event *event)
{
	if (event->order > sorter->delivered)
		sorter->delivered = event->order;
	sorter->deliver(sorter->data, event);
}

static void deliver_first(struct cli_sorter *sorter)
{
	struct cli_event event = pop_event(sorter);

	deliver(sorter, &event);
}

static void deliver_due(struct cli_sorter *sorter)
{
	while (sorter->count && sorter->heap[0].event.order <= sorter->delivered + 1)
		deliver_first(sorter);
}

void cli_sorter_put(struct cli_sorter *sorter, const struct cli_event *event)
{
	struct cli_event ordered = *event;

	if (event->kind == CLI_EVENT_OOM)
		ordered.order = sorter->seen;
	else if (event->order > sorter->seen)
		sorter->seen = event->order;
	else if (event->order && event->order <= sorter->delivered)
		sorter->late++;
	if (ordered.order <= sorter->delivered + 1) {
		deliver(sorter, &ordered);
		deliver_due(sorter);
		return;
	}
	push_event(sorter, &ordered);
	if (sorter->count < CLI_SORTER_MOST)
		return;
	/* The missing event does not come any more. Continue at the next gap. */
	deliver_first(sorter);
	deliver_due(sorter);
}

void cli_sorter_flush(struct cli_sorter *sorter)
{
	while (sorter->count)
		deliver_first(sorter);
}

void cli_sorter_reset(struct cli_sorter *sorter)
{
	free(sorter->heap);
	*sorter = (struct cli_sorter){.deliver = sorter->deliver, .data = sorter->data};
}
