/* proc, proc_spt: HIP's own look-up, which ROCm 5 has not. */
#include "abi/hip_later.h"
#include "hip_api.h"
#include "rows.h"

#define VERSION 702 /* 100 * major + minor: ROCm 7.2, the newest that is simulated */
#define OLD 502     /* of a function that a newer one has taken the name of */

typedef hipError_t resolver(const char *, void **, int, uint64_t, hipDriverProcAddressQueryResult *);
extern __attribute__((weak)) resolver hipGetProcAddress, hipGetProcAddress_spt;

static void *look_up(resolver *resolve, const struct rows_row *row)
{
	void *found = NULL;
	/* For a _spt form that the library lacks HIP gives the other form: that is another row. */
	if (!resolve || !row->linked() ||
	    resolve(row->base, &found, rows_newest(row) ? VERSION : OLD, rows_flags(row), NULL))
		return NULL;
	return found;
}

static void *by_proc(const struct rows_row *row)
{
	return look_up(hipGetProcAddress, row);
}

static void *by_proc_spt(const struct rows_row *row)
{
	return look_up(hipGetProcAddress_spt, row);
}

const struct rows_way rows_ways[] = {{"proc", by_proc}, {"proc_spt", by_proc_spt}, {NULL, NULL}};

int rows_begin(void)
{
	void *pointer;
	return hipMalloc(&pointer, 1 << 20);
}

int rows_last_error(void)
{
	return hipGetLastError();
}
