/*
 * Several figures that are read together, without a lock: readers and writers never wait for each
 * other. The version is odd during a write. A reader that finds it odd, or changed after reading,
 * has no valid figures and decides whether to try again. Each member is atomic and is accessed by
 * the functions below. They use acquire and release at each access instead of a fence, because TSan
 * does not know fences.
 */
#ifndef SPILL_SEQLOCK_H
#define SPILL_SEQLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef _Atomic uint32_t spill_seqlock; /* 0: never written */

#define spill_seq_get(member) atomic_load_explicit(&(member), memory_order_acquire)
#define spill_seq_set(member, value) atomic_store_explicit(&(member), value, memory_order_release)

/* False if another thread is writing. This thread does not wait, and leaves out its write. */
static inline bool spill_seq_write_begin(spill_seqlock *lock)
{
	uint32_t version = atomic_load_explicit(lock, memory_order_relaxed);
	return !(version & 1) && atomic_compare_exchange_strong(lock, &version, version + 1);
}

/* The same if a mutex already excludes other writers; it needs no locked instruction. */
static inline void spill_seq_write_alone(spill_seqlock *lock)
{
	atomic_store_explicit(lock, atomic_load_explicit(lock, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
}

static inline void spill_seq_write_end(spill_seqlock *lock)
{
	atomic_store_explicit(lock, atomic_load_explicit(lock, memory_order_relaxed) + 1,
	                      memory_order_release);
}

static inline uint32_t spill_seq_read_begin(const spill_seqlock *lock)
{
	return spill_seq_get(*lock);
}

/* True if all figures that were read since the begin belong together. */
static inline bool spill_seq_read_end(const spill_seqlock *lock, uint32_t version)
{
	return version && !(version & 1) && version == atomic_load_explicit(lock, memory_order_relaxed);
}

/* Copies `count` words of 8 bytes. pre: between the begin and the end of a write or read */
static inline void spill_seq_put(_Atomic uint64_t *to, const uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		spill_seq_set(to[i], from[i]);
}

static inline void spill_seq_take(uint64_t *to, const _Atomic uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = spill_seq_get(from[i]);
}

#endif
