/*
 * Once, without a lock that others wait behind: whoever needs the result makes it, and the first copy wins. For what is
 * made by calls into the loader or the vendor: a thread that waited for such a maker while it held the loader's
 * lock (a constructor that runs in dlopen) would wait for ever.
 */
#ifndef SPILL_PUBLISH_ONCE_H
#define SPILL_PUBLISH_ONCE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum spill_published { SPILL_UNPUBLISHED, SPILL_PUBLISHING, SPILL_PUBLISHED };

static inline bool spill_is_published(const _Atomic int *state)
{
	return atomic_load_explicit(state, memory_order_acquire) == SPILL_PUBLISHED;
}

/* True for the one thread that is to publish, and then calls spill_publish_done; the others return when it has. */
static inline bool spill_publish_begin(_Atomic int *state)
{
	int fresh = SPILL_UNPUBLISHED;
	if (atomic_compare_exchange_strong(state, &fresh, SPILL_PUBLISHING))
		return true;
	while (!spill_is_published(state))
		sched_yield();
	return false;
}

static inline void spill_publish_done(_Atomic int *state)
{
	atomic_store_explicit(state, SPILL_PUBLISHED, memory_order_release);
}

/* Copies what this thread made, unless another's copy is there already. */
static inline void spill_publish(_Atomic int *state, void *to, const void *from, size_t size)
{
	if (!spill_publish_begin(state))
		return;
	memcpy(to, from, size);
	spill_publish_done(state);
}

#endif
