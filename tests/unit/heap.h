/* Memory that a call leaves behind. An allocator of a sanitizer says 0, and finds what is lost itself. */
#ifndef SPILL_TEST_HEAP_H
#define SPILL_TEST_HEAP_H

#include <malloc.h>

#include "unit.h"

/* What is done again and again takes no more memory. The first times fill what malloc keeps for each size. */
static void assert_heap_stays(void (*step)(void))
{
	enum { TIMES = 10 };
	for (unsigned i = 0; i < TIMES; i++)
		step();
	size_t before = mallinfo2().uordblks;
	for (unsigned i = 0; i < TIMES; i++)
		step();
	assert_int_equal(mallinfo2().uordblks, before);
}

#endif
