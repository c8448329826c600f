/*
 * The driver's rows by the runtime's look-ups, whose first call starts the runtime. entry gives the newest form of a
 * function, version the one of that version; the _ptsz forms are those of a program with per-thread default streams.
 */
#include "cudart_api.h"
#include "rows.h"

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **funcPtr, unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *driverStatus);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **funcPtr,
                                                  unsigned int cudaVersion, unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *driverStatus);

#define ENTRY(function) \
	static void *by_##function(const struct rows_row *row) \
	{ \
		enum cudaDriverEntryPointQueryResult status; \
		void *found = NULL; \
		if (!rows_newest(row)) \
			return NULL; \
		return function(row->base, &found, rows_flags(row), &status) ? NULL : found; \
	}
#define VERSION(function) \
	static void *by_##function(const struct rows_row *row) \
	{ \
		enum cudaDriverEntryPointQueryResult status; \
		void *found = NULL; \
		return function(row->base, &found, (unsigned)row->since, rows_flags(row), &status) ? NULL \
		                                                                                   : found; \
	}
ENTRY(cudaGetDriverEntryPoint)
ENTRY(cudaGetDriverEntryPoint_ptsz)
VERSION(cudaGetDriverEntryPointByVersion)
VERSION(cudaGetDriverEntryPointByVersion_ptsz)

const struct rows_way rows_ways[] = {
    {"entry", by_cudaGetDriverEntryPoint},
    {"entry_ptsz", by_cudaGetDriverEntryPoint_ptsz},
    {"version", by_cudaGetDriverEntryPointByVersion},
    {"version_ptsz", by_cudaGetDriverEntryPointByVersion_ptsz},
    {NULL, NULL},
};

int rows_begin(void)
{
	void *pointer;
	return cudaMalloc(&pointer, 1 << 20);
}

int rows_last_error(void)
{
	return cudaGetLastError();
}
