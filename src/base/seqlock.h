/*
 * Several figures that are read together, without a lock: readers never wait and writers never wait for readers. An odd version
 * is one that is being written. Who finds it odd, or changed behind the reading, has read nothing, and decides itself what that means.
 * Each member is atomic and is read and written by the functions below: acquire and release at each instead of a fence, which TSan
 * does not know.
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

/* False if another thread is writing: nobody waits for it, and what this one has to say is left out. */
static inline bool spill_seq_write_begin(spill_seqlock *lock)
{
	uint32_t version = atomic_load_explicit(lock, memory_order_relaxed);
	return !(version & 1) && atomic_compare_exchange_strong(lock, &version, version + 1);
}

/* The same for who is alone by other means (a mutex), without an instruction that locks the bus. */
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

/* True if all that was read since belongs together. */
static inline bool spill_seq_read_end(const spill_seqlock *lock, uint32_t version)
{
	return version && !(version & 1) && version == atomic_load_explicit(lock, memory_order_relaxed);
}

/* Plain data as words. pre: `count` words of 8 bytes on both sides, between the begin and the end of a writing or a reading */
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
