/*
 * A model of aarch64's memory order, for tests. The operations of two threads are recorded while
 * their code runs (weak_atomics.h). Then every execution that the architecture allows is tried: a
 * thread executes its operations in any order that their memory orders permit (Arm Architecture
 * Reference Manual, "Definition of the Arm memory model"). An acquire is taken for LDAPR, the weaker
 * one of the two instructions for it.
 *
 * An operation on a location that is not watched is executed and forgotten. Branches and stored
 * values are those of the recorded run. So a test judges only executions in which the code would go
 * the same way.
 */
#ifndef SPILL_WEAK_MEMORY_H
#define SPILL_WEAK_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Forgets everything. */
void weak_reset(void);
/* The initial value is that of this moment. pre: size <= 8 */
void weak_watch(const volatile void *at, size_t size);
/* Another initial value. pre: it is watched */
void weak_start_with(const volatile void *at, uint64_t value);
/* From here on, operations are recorded as those of this thread, 0 or 1. */
void weak_record(unsigned thread);
/* From here on, operations are executed and forgotten. */
void weak_stop(void);

/* What the loads of each thread got, in program order. A read-modify-write is a load, too. */
struct weak_execution {
	const uint64_t *loads[2];
};

/* True if an execution is allowed in which `is_bad` holds. */
bool weak_allows(bool (*is_bad)(const struct weak_execution *execution));

unsigned weak_operations(void); /* the number of recorded ones */
/* Makes one relaxed, or leaves out a barrier. False: it was relaxed. */
bool weak_weaken(unsigned operation);
void weak_restore(void);

/* Until weak_stop, loads of watched locations get these values, in turn, and nothing is stored. */
void weak_replay(const uint64_t *loads);

uint64_t weak_load(const volatile void *at, size_t size, memory_order order);
void weak_store(volatile void *at, size_t size, uint64_t value, memory_order order);
enum weak_change { WEAK_SET, WEAK_OR, WEAK_AND, WEAK_ADD };
uint64_t weak_modify(volatile void *at, size_t size, enum weak_change change, uint64_t value,
                     memory_order order);
bool weak_exchange_if(volatile void *at, size_t size, void *expected, uint64_t value, memory_order order);
/*
 * membarrier(2), PRIVATE_EXPEDITED. It orders what the other thread does before and after some point of
 * its instructions. Only a fence keeps the compiler from moving an operation past that point.
 */
void weak_barrier_of_all(void);
void weak_compiler_fence(void);

#endif
