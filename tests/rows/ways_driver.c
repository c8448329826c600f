/* proc1, proc2: the driver's own look-up, in its first and second form. */
#include "cuda_api.h"
#include "rows.h"

static void *by_proc1(const struct rows_row *row)
{
	void *found = NULL;
	return cuGetProcAddress(row->base, &found, row->since, rows_flags(row)) ? NULL : found;
}

static void *by_proc2(const struct rows_row *row)
{
	void *found = NULL;
	return cuGetProcAddress_v2(row->base, &found, row->since, rows_flags(row), NULL) ? NULL : found;
}

const struct rows_way rows_ways[] = {{"proc1", by_proc1}, {"proc2", by_proc2}, {NULL, NULL}};
