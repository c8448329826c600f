#include "scratch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

/* A slot for each thread that may wait for the log. An untouched page costs nothing. */
#define SLOTS 32
#define ALL UINT32_MAX

/* Not on pages of its own: then all of .bss would be, and no variable of it on the page of .data. */
static _Alignas(64) char slots[SLOTS][SPILL_SCRATCH];
/* A bit for each slot. After a fork, slots of threads that the child lacks stay taken. */
static _Atomic uint32_t taken;

void *spill_scratch_take(void)
{
	uint32_t now = atomic_load_explicit(&taken, memory_order_relaxed);
	while (now != ALL) {
		unsigned slot = (unsigned)__builtin_ctz(~now);
		if (atomic_compare_exchange_weak_explicit(&taken, &now, now | 1u << slot,
		                                          memory_order_acquire, memory_order_relaxed))
			return slots[slot];
	}
	int error = errno;
	void *pages = mmap(NULL, SPILL_SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = error;
	return pages == MAP_FAILED ? NULL : pages;
}

void spill_scratch_give_back(void *room)
{
	size_t offset = (uintptr_t)room - (uintptr_t)slots;
	if (offset < sizeof(slots))
		atomic_fetch_and_explicit(&taken, ~(1u << (offset / SPILL_SCRATCH)), memory_order_release);
	else if (room)
		munmap(room, SPILL_SCRATCH);
}
