#include "retry.h"

#include <string.h>

#include "glob.h"

static const struct spill_retrier retriers[] = {
#define RETRIER(caller, operations, unless) {caller, operations, unless},
#include "retriers.def"
};

const struct spill_retrier *spill_retrier_find(const char *path, enum spill_retry operation)
{
	for (size_t i = 0; i < sizeof(retriers) / sizeof(retriers[0]); i++) {
		const struct spill_retrier *row = &retriers[i];

		if ((row->operations & operation) && spill_glob_object(row->caller, path))
			return row;
	}
	return NULL;
}

static bool is_same_kind(const struct spill_failure *a, const struct spill_failure *b)
{
	return a->caller == b->caller && a->device == b->device && a->operation == b->operation;
}

bool spill_failure_repeats(const struct spill_failure *pending, const struct spill_failure *now,
                           uint64_t window_us)
{
	return pending->bytes && now->bytes >= pending->bytes && is_same_kind(pending, now) &&
	       now->time_us - pending->time_us <= window_us;
}

struct spill_failure *spill_failure_slot(struct spill_failure pending[SPILL_FAILURES],
                                         const struct spill_failure *now)
{
	struct spill_failure *slot = &pending[0];

	for (unsigned i = 0; i < SPILL_FAILURES; i++) {
		if (pending[i].bytes && is_same_kind(&pending[i], now))
			return &pending[i];
		if (slot->bytes && (!pending[i].bytes || pending[i].time_us < slot->time_us))
			slot = &pending[i];
	}
	return slot;
}

void spill_failure_served(struct spill_failure *pending, const struct spill_failure *now, uint64_t window_us)
{
	if (now->operation != SPILL_RETRY_PHYSICAL && spill_failure_repeats(pending, now, window_us))
		pending->bytes = 0;
}

void spill_failure_mapped(struct spill_failure *pending, uintptr_t caller)
{
	if (pending->operation == SPILL_RETRY_PHYSICAL && pending->caller == caller)
		pending->bytes = 0;
}
