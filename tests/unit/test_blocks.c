/*
 * Blocks that a framework's allocator reports, in allocations of a vendor: which chunks are dead by them.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "account.h"
#include "blocks.h"
#include "captures.h"
#include "fake_libc.h"
#include "fake_vendor.h"
#include "movable_allocation.h"
#include "process.h"

#define CHUNK (4 * FAKE_SMALL_UNIT)

enum { CHUNKS = 4, MANY = 200 };

static struct spill_policy policy;
static int context;
static struct spill_chunked *of;

static struct spill_chunked *make(uint64_t bytes)
{
	struct spill_place_request want = {&fake_vendor_backend, &policy, 0, &context, bytes, 0,
	                                   SPILL_UNLIMITED};
	struct spill_chunked *made = make_allocation(&spill_place_movable, &want);
	spill_blocks_follow(made);
	return made;
}

static void end(struct spill_chunked *which)
{
	spill_ledger_end(spill_ledger_take(which->base.ptr));
	spill_placement_release(&which->base, false);
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	spill_process_use_policy(&policy);
	fake_vendor_reset_mover(2 * MANY * CHUNK);
	spill_account_reset();
	spill_blocks_fork_lock.forget_parent();
	of = make(CHUNKS * CHUNK);
	return 0;
}

static int teardown(void **state)
{
	fake_libc_reset();
	set_capturing(false);
	end(of);
	assert_false(spill_blocks_any());
	assert_int_equal(fake_vendor.handles + fake_vendor.mappings, 0);
	return 0;
}

static uint64_t at(uint64_t offset)
{
	return of->base.ptr + offset;
}

/* By chunk: live or dead. A live one counts as a whole. */
static const char *state_of(const struct spill_chunked *which)
{
	static char text[CHUNKS + 1];
	struct spill_span spans[SPILL_SPANS];
	text[which->count] = 0;
	for (unsigned i = 0; i < which->count; i++) {
		unsigned count = spill_chunked_live(which, i, spans);
		text[i] = count ? 'l' : '.';
		if (count)
			assert_true(count == 1 && !spans[0].offset &&
			            spans[0].bytes == which->chunks[i].bytes);
	}
	return text;
}

TEST(without_a_block_all_is_in_use)
{
	assert_string_equal(state_of(of), "llll");
	spill_blocks_given(at(0), CHUNK);
	assert_string_equal(state_of(of), "llll");
	assert_true(spill_blocks_any());
}

TEST(chunks_without_a_block_are_dead)
{
	assert_ptr_equal(spill_blocks_taken(at(512), 512), of);
	assert_string_equal(state_of(of), "l...");
	assert_ptr_equal(spill_blocks_taken(at(2 * CHUNK - 1), 2), of);
	assert_string_equal(state_of(of), "lll.");
	assert_ptr_equal(spill_blocks_taken(at(1024), 512), of);
	spill_blocks_given(at(512), 512);
	assert_string_equal(state_of(of), "lll.");
	spill_blocks_given(at(1024), 512);
	assert_string_equal(state_of(of), ".ll.");
	spill_blocks_given(at(2 * CHUNK - 1), 2);
	assert_string_equal(state_of(of), "....");
	assert_ptr_equal(spill_blocks_taken(at(0), CHUNKS * CHUNK), of);
	assert_string_equal(state_of(of), "llll");
}

/* Of other memory, or of none: to the byte. */
TEST(blocks_elsewhere)
{
	assert_null(spill_blocks_taken(at(0) - 1, 1));
	assert_null(spill_blocks_taken(at(0) - 1, 2));
	assert_null(spill_blocks_taken(at(CHUNKS * CHUNK), 1));
	assert_null(spill_blocks_taken(at(CHUNKS * CHUNK - 1), 2));
	assert_null(spill_blocks_taken(at(1), UINT64_MAX));
	spill_blocks_given(at(CHUNKS * CHUNK), 1);
	assert_string_equal(state_of(of), "llll");
	assert_ptr_equal(spill_blocks_taken(at(CHUNKS * CHUNK - 1), 1), of);
	assert_string_equal(state_of(of), "...l");
}

/* What does not fit together is trusted no more, whatever comes later. */
TEST(reports_that_do_not_fit)
{
	for (unsigned which = 0; which < 2; which++) {
		spill_blocks_taken(at(0), CHUNK);
		if (which)
			spill_blocks_taken(at(CHUNK - 1), 1);
		else
			spill_blocks_given(at(0), CHUNK + 1);
		assert_string_equal(state_of(of), "llll");
		spill_blocks_given(at(0), CHUNK);
		assert_string_equal(state_of(of), "llll");
		end(of);
		of = make(CHUNKS * CHUNK);
	}
}

/* Memory of graphs is in use although its blocks were taken back. */
TEST(from_a_capture_on_all_is_in_use)
{
	spill_blocks_taken(at(0), CHUNK);
	assert_string_equal(state_of(of), "l...");
	set_capturing(true);
	spill_blocks_given(at(0), CHUNK);
	set_capturing(false);
	assert_string_equal(state_of(of), "llll");
	spill_blocks_fork_lock.forget_parent();
	spill_blocks_follow(of);
	assert_string_equal(state_of(of), "....");
	set_capturing(true);
	spill_blocks_taken(at(CHUNK), 1);
	set_capturing(false);
	assert_string_equal(state_of(of), "llll");
}

/* Any number, made in any order of addresses, and ended in another. */
TEST(many_allocations)
{
	struct spill_chunked *many[MANY];
	for (unsigned i = 0; i < MANY; i++)
		many[i] = make(CHUNK);
	for (unsigned i = 0; i < MANY; i += 2)
		end(many[i]);
	for (unsigned i = 0; i < MANY; i += 2)
		many[i] = make(CHUNK);
	for (unsigned i = 0; i < MANY; i++) {
		assert_ptr_equal(spill_blocks_taken(many[i]->base.ptr, CHUNK), many[i]);
		assert_string_equal(state_of(many[i]), "l");
	}
	for (unsigned i = MANY; i-- > 0;) {
		uint64_t ptr = many[i]->base.ptr;
		end(many[i]);
		assert_null(spill_blocks_taken(ptr, 1));
		assert_ptr_equal(spill_blocks_taken(at(0), 0), of);
	}
}

/* A set is the program's to map, and its addresses change. */
TEST(sets_are_not_followed)
{
	end(of);
	struct spill_place_request want = {&fake_vendor_backend, &policy, 0, &context, CHUNKS * CHUNK, 0,
	                                   SPILL_UNLIMITED};
	of = make_allocation(&spill_place_movable, &want);
	of->set = true;
	spill_blocks_follow(of);
	assert_false(spill_blocks_any());
	of->set = false;
	spill_blocks_follow(of);
	assert_true(spill_blocks_any());
}

/* Its first block would be missing. */
TEST(without_memory_nothing_is_dead)
{
	fake_libc_fail(FAKE_calloc, 1, 1, ENOMEM);
	assert_ptr_equal(spill_blocks_taken(at(0), CHUNK), of);
	assert_false(spill_blocks_any());
	assert_null(spill_blocks_taken(at(CHUNK), CHUNK));
	assert_string_equal(state_of(of), "llll");
}

TEST(without_memory_nothing_is_followed)
{
	spill_blocks_end(of);
	struct spill_chunked *many[MANY];
	for (unsigned i = 0; i < MANY; i++)
		many[i] = make(CHUNK);
	fake_libc_fail(FAKE_realloc, 1, 1, ENOMEM);
	unsigned more = 0;
	struct spill_chunked *others[1000];
	for (; fake_libc[FAKE_realloc].calls == 0; more++)
		others[more] = make(FAKE_SMALL_UNIT);
	fake_libc_reset();
	assert_null(spill_blocks_taken(others[more - 1]->base.ptr, 1));
	assert_ptr_equal(spill_blocks_taken(many[7]->base.ptr, 1), many[7]);
	while (more)
		end(others[--more]);
	for (unsigned i = 0; i < MANY; i++)
		end(many[i]);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
