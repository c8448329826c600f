/* What a look at the mark asks of the vendor when nothing waits for one. test_ordered_pool.c has marks in use. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>

#include "contexts.h"
#include "fake_vendor.h"
#include "stream_frees.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int context;

TEST(without_frees_there_is_no_mark)
{
	struct spill_stream_frees frees = {0};
	fake_vendor_reset_mover(1 << 20);
	spill_contexts_made(&fake_vendor_backend, 0, &context);
	assert_false(spill_stream_frees_look(&frees, &fake_vendor_backend, &lock));
	assert_int_equal(fake_vendor.marks, 0);
	assert_int_equal(fake_vendor.events, 0);
	assert_false(frees.marking);
}

/* Another thread is about it, and has not passed yet: nothing was settled by this one. */
TEST(one_thread_looks)
{
	struct spill_stream_frees frees = {.marking = true};
	const struct spill_stream_order order = {NULL, &context};
	fake_vendor_reset_mover(1 << 20);
	assert_non_null(spill_stream_frees_make(&frees, &order, 0, SPILL_SMALL_RANGES));
	assert_false(spill_stream_frees_look(&frees, &fake_vendor_backend, &lock));
	assert_true(frees.marking);
	assert_int_equal(fake_vendor.marks, 0);
	free(frees.lists);
}
