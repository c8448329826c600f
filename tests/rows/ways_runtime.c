/* The runtime's own functions have no look-up beyond the loader's. */
#include "cudart_api.h"
#include "rows.h"

const struct rows_way rows_ways[] = {{NULL, NULL}};

int rows_begin(void)
{
	void *pointer;
	return cudaMalloc(&pointer, 1 << 20);
}

int rows_last_error(void)
{
	return cudaGetLastError();
}
