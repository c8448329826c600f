/*
 * Numbers of launches, in the order in which they are looked at. They wrap, so the later one of two is that which is
 * less than half of all numbers ahead.
 */
#ifndef SPILL_LAUNCH_NUMBER_H
#define SPILL_LAUNCH_NUMBER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

static inline bool spill_launch_number_is_later(uint32_t number, uint32_t other)
{
	return (int32_t)(number - other) > 0;
}

/* Stores a number, unless a later one is there. Any thread. */
static inline void spill_launch_number_note(_Atomic uint32_t *last, uint32_t number)
{
	uint32_t other = atomic_load_explicit(last, memory_order_relaxed);
	while (spill_launch_number_is_later(number, other) &&
	       !atomic_compare_exchange_weak(last, &other, number))
		;
}

#endif
