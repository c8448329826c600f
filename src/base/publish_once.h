/*
 * Publishes a result once, without a lock that others wait for. Each thread that needs the result
 * computes it, and the first copy wins. This is for results that take calls into the loader or the
 * vendor. With a lock, a thread inside the loader (a constructor in dlopen) could wait for ever for
 * the thread that computes.
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

/* True for the thread that publishes and calls spill_publish_done. Others wait for it. */
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

/* Copies this thread's result, unless another thread has published one. */
static inline void spill_publish(_Atomic int *state, void *to, const void *from, size_t size)
{
	if (!spill_publish_begin(state))
		return;
	memcpy(to, from, size);
	spill_publish_done(state);
}

#endif
