#include "sorter.h"

#include <stdbool.h>
#include <stdlib.h>

#include "cli.h"

/* A heap, the first to be told on top; of one order (an out of memory has that of what was before it) the first to come. */
struct cli_sorter_item {
	uint64_t arrival;
	struct cli_event event;
};

static bool before(const struct cli_sorter_item *a, const struct cli_sorter_item *b)
{
	return a->event.order != b->event.order ? a->event.order < b->event.order : a->arrival < b->arrival;
}

static void push(struct cli_sorter *sorter, const struct cli_event *event)
{
	const struct cli_sorter_item item = {sorter->arrivals++, *event};
	size_t at = sorter->count;

	sorter->heap = cli_grow(sorter->heap, sorter->count, &sorter->size, sizeof(item));
	sorter->count++;
	for (; at && before(&item, &sorter->heap[(at - 1) / 2]); at = (at - 1) / 2)
		sorter->heap[at] = sorter->heap[(at - 1) / 2];
	sorter->heap[at] = item;
}

/* pre: count > 0 */
static struct cli_event pop(struct cli_sorter *sorter)
{
	struct cli_event first = sorter->heap[0].event;
	struct cli_sorter_item last = sorter->heap[--sorter->count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < sorter->count) {
		if (child + 1 < sorter->count && before(&sorter->heap[child + 1], &sorter->heap[child]))
			child++;
		if (!before(&sorter->heap[child], &last))
			break;
		sorter->heap[at] = sorter->heap[child];
		at = child;
	}
	sorter->heap[at] = last;
	return first;
}

static void tell(struct cli_sorter *sorter, const struct cli_event *event)
{
	if (event->order > sorter->told)
		sorter->told = event->order;
	sorter->tell(sorter->data, event);
}

static void tell_first(struct cli_sorter *sorter)
{
	struct cli_event event = pop(sorter);

	tell(sorter, &event);
}

static void tell_what_is_due(struct cli_sorter *sorter)
{
	while (sorter->count && sorter->heap[0].event.order <= sorter->told + 1)
		tell_first(sorter);
}

void cli_sorter_put(struct cli_sorter *sorter, const struct cli_event *event)
{
	struct cli_event ordered = *event;

	if (event->kind == CLI_EVENT_OOM)
		ordered.order = sorter->seen;
	else if (event->order > sorter->seen)
		sorter->seen = event->order;
	else if (event->order && event->order <= sorter->told)
		sorter->late++;
	if (ordered.order <= sorter->told + 1) {
		tell(sorter, &ordered);
		tell_what_is_due(sorter);
		return;
	}
	push(sorter, &ordered);
	if (sorter->count < CLI_SORTER_MOST)
		return;
	/* One that is missing does not come any more: on to the next gap. */
	tell_first(sorter);
	tell_what_is_due(sorter);
}

void cli_sorter_flush(struct cli_sorter *sorter)
{
	while (sorter->count)
		tell_first(sorter);
}

void cli_sorter_reset(struct cli_sorter *sorter)
{
	free(sorter->heap);
	*sorter = (struct cli_sorter){.tell = sorter->tell, .data = sorter->data};
}
