#include "victim.h"

#include "minmax.h"

void spill_victim_mark(struct spill_victim *list, unsigned count)
{
	struct spill_victim *newest[SPILL_PRIORITY_HOT + 1] = {0};

	for (unsigned i = 0; i < count; i++) {
		struct spill_victim **of = &newest[list[i].priority];

		list[i].newest = false;
		if (!list[i].dead && (!*of || list[i].seq > (*of)->seq))
			*of = &list[i];
	}
	for (unsigned i = 0; i <= SPILL_PRIORITY_HOT; i++) {
		if (newest[i])
			newest[i]->newest = true;
	}
}

static int compare_seq(uint64_t left, uint64_t right)
{
	return (left > right) - (left < right);
}

int spill_victim_compare(const void *left, const void *right)
{
	const struct spill_victim *a = left, *b = right;

	if (a->dead != b->dead)
		return a->dead ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	if (a->newest != b->newest)
		return a->newest ? 1 : -1;
	if (spill_size_class(a->bytes) != spill_size_class(b->bytes))
		return spill_size_class(a->bytes) > spill_size_class(b->bytes) ? -1 : 1;
	return compare_seq(a->seq, b->seq);
}

int spill_victim_compare_back(const void *left, const void *right)
{
	return spill_victim_compare(right, left);
}
