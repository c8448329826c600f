#include "decode.h"

/* Of the memory's rate, what a CPU may get that computes with what it reads: a margin, not a measurement. */
#define CPU_MARGIN 2

static double milliseconds(uint64_t bytes, double rate)
{
	return (double)bytes / rate / 1e6;
}

double decode_over_link(uint64_t bytes, double copy_rate)
{
	return milliseconds(bytes, copy_rate * DECODE_IN_PLACE);
}

double decode_by_cpu(uint64_t bytes, double memory_rate)
{
	return milliseconds(bytes, memory_rate);
}

enum decode_verdict decode_compare(double copy_rate, double memory_rate)
{
	double in_place = copy_rate * DECODE_IN_PLACE;

	if (memory_rate >= CPU_MARGIN * in_place)
		return DECODE_CPU_FASTER;
	return memory_rate > in_place ? DECODE_CPU_SIMILAR : DECODE_CPU_SLOWER;
}
