/*
 * C's atomic operations become those of the model. Include this after all headers of libc and
 * before the code.
 */
#ifndef SPILL_WEAK_ATOMICS_H
#define SPILL_WEAK_ATOMICS_H

#include "weak_memory.h"

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#undef atomic_fetch_or
#undef atomic_fetch_and
#undef atomic_fetch_add
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_weak
#undef atomic_signal_fence

/* The comma drops the qualifiers. */
#define WEAK_TYPE(at) __typeof__((void)0, *(at))
/* Its value may be left unused. */
#define WEAK_MODIFY(at, change, value) \
	({ \
		uint64_t old_ = \
		    weak_modify(at, sizeof(*(at)), change, (uint64_t)(value), memory_order_seq_cst); \
		(WEAK_TYPE(at)) old_; \
	})

#define atomic_load_explicit(at, order) ((WEAK_TYPE(at))weak_load(at, sizeof(*(at)), order))
#define atomic_load(at) atomic_load_explicit(at, memory_order_seq_cst)
#define atomic_store_explicit(at, value, order) weak_store(at, sizeof(*(at)), (uint64_t)(value), order)
#define atomic_store(at, value) atomic_store_explicit(at, value, memory_order_seq_cst)
#define atomic_exchange(at, value) WEAK_MODIFY(at, WEAK_SET, value)
#define atomic_fetch_or(at, value) WEAK_MODIFY(at, WEAK_OR, value)
#define atomic_fetch_and(at, value) WEAK_MODIFY(at, WEAK_AND, value)
#define atomic_fetch_add(at, value) WEAK_MODIFY(at, WEAK_ADD, value)
#define atomic_compare_exchange_strong(at, expected, value) \
	weak_exchange_if(at, sizeof(*(at)), expected, (uint64_t)(value), memory_order_seq_cst)
#define atomic_compare_exchange_weak(at, expected, value) atomic_compare_exchange_strong(at, expected, value)
#define atomic_signal_fence(order) weak_compiler_fence()

#endif
