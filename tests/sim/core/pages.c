/*
 * Makes pages present before they are used, all at once. Where a hypervisor follows page tables, a page fault takes 12 us and more.
 * In one call a page takes 0.2 us there (docs/measurements.md, "What the tests take").
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core_internal.h"

/* Less is not worth the call. */
#define LEAST ((uint64_t)64 << 10)

#if defined(MADV_POPULATE_READ) && defined(MADV_POPULATE_WRITE)
void pages_ready(const void *start, uint64_t bytes, bool written)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = (uint64_t)start / page * page;
	int error = errno;

	/* What is out of reach stays so: the access faults. An older kernel knows no such advice. */
	if (bytes >= LEAST)
		madvise((void *)first, round_up((uint64_t)start + bytes, page) - first,
		        written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	errno = error;
}
#else
void pages_ready(const void *start, uint64_t bytes, bool written)
{
	(void)start, (void)bytes, (void)written;
}
#endif
