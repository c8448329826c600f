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
#include "chunk_map.h"
#include "chunk_set.h"
#include "fake_libc.h"
#include "fake_vendor.h"
#include "movable_allocation.h"
#include "process.h"
#include "unpark.h"

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

/* The parts that were told of the last block. */
static struct part {
	struct spill_chunked *chunked;
	uint64_t ptr, bytes;
} parts[4];
static unsigned part_count;

static bool note_part(struct spill_chunked *chunked, uint64_t ptr, uint64_t bytes)
{
	assert_true(part_count < sizeof(parts) / sizeof(*parts));
	parts[part_count++] = (struct part){chunked, ptr, bytes};
	return false; /* says nothing */
}

/* The allocation of a block that is in one, or in none: NULL. */
static struct spill_chunked *take(uint64_t ptr, uint64_t bytes)
{
	part_count = 0;
	spill_blocks_taken(ptr, bytes, note_part);
	if (!part_count)
		return NULL;
	assert_true(part_count == 1 && parts[0].ptr == ptr && parts[0].bytes == bytes);
	return parts[0].chunked;
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
	assert_ptr_equal(take(at(512), 512), of);
	assert_string_equal(state_of(of), "l...");
	assert_ptr_equal(take(at(2 * CHUNK - 1), 2), of);
	assert_string_equal(state_of(of), "lll.");
	assert_ptr_equal(take(at(1024), 512), of);
	spill_blocks_given(at(512), 512);
	assert_string_equal(state_of(of), "lll.");
	spill_blocks_given(at(1024), 512);
	assert_string_equal(state_of(of), ".ll.");
	spill_blocks_given(at(2 * CHUNK - 1), 2);
	assert_string_equal(state_of(of), "....");
	assert_ptr_equal(take(at(0), CHUNKS * CHUNK), of);
	assert_string_equal(state_of(of), "llll");
}

/* Of other memory, or of none: to the byte. */
TEST(blocks_elsewhere)
{
	assert_null(take(at(0) - 1, 1));
	assert_null(take(at(CHUNKS * CHUNK), 1));
	spill_blocks_given(at(CHUNKS * CHUNK), 1);
	assert_string_equal(state_of(of), "llll");
	assert_ptr_equal(take(at(CHUNKS * CHUNK - 1), 1), of);
	assert_string_equal(state_of(of), "...l");
}

/* What does not fit together is trusted no more, whatever comes later. */
TEST(reports_that_do_not_fit)
{
	for (unsigned which = 0; which < 2; which++) {
		take(at(0), CHUNK);
		if (which)
			take(at(CHUNK - 1), 1);
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
	take(at(0), CHUNK);
	assert_string_equal(state_of(of), "l...");
	set_capturing(true);
	spill_blocks_given(at(0), CHUNK);
	set_capturing(false);
	assert_string_equal(state_of(of), "llll");
	spill_blocks_fork_lock.forget_parent();
	spill_blocks_follow(of);
	assert_string_equal(state_of(of), "....");
	set_capturing(true);
	take(at(CHUNK), 1);
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
		assert_ptr_equal(take(many[i]->base.ptr, CHUNK), many[i]);
		assert_string_equal(state_of(many[i]), "l");
	}
	for (unsigned i = MANY; i-- > 0;) {
		uint64_t ptr = many[i]->base.ptr;
		end(many[i]);
		assert_null(take(ptr, 1));
		assert_ptr_equal(take(at(0), 1), of);
		spill_blocks_given(at(0), 1);
	}
}

/* -- sets, which the program maps side by side -------------------------------------------------- */

enum { SETS = 3, WHOLE = CHUNKS * CHUNK };

static struct spill_chunked *sets[SETS];
static uint64_t range;

static void map_set(unsigned which, uint64_t va)
{
	spill_mover_lock();
	assert_int_equal(spill_chunk_set_map(sets[which], va, WHOLE), 0);
	spill_chunk_set_accessed(sets[which], va, WHOLE, 1);
	spill_chunk_set_accessed(sets[which], va, WHOLE, 1); /* once more */
	spill_mover_unlock();
}

static void unmap_set(unsigned which)
{
	uint64_t va = sets[which]->base.ptr;
	spill_chunked_delist(sets[which]);
	for (unsigned i = 0; i < CHUNKS; i++)
		assert_int_equal(fake_vendor_backend.vmm->unmap(va + sets[which]->chunks[i].offset, CHUNK),
		                 0);
	spill_chunk_set_unmapped(sets[which], va, true);
}

/* `gap` lies in front of the last one. */
static void make_sets(uint64_t gap)
{
	const char *error = NULL;
	struct spill_place_request want = {&fake_vendor_backend, &policy, 0, &context, WHOLE, 0,
	                                   SPILL_UNLIMITED};
	part_count = 0;
	assert_int_equal(fake_vendor_backend.vmm->reserve((SETS + 1) * WHOLE, FAKE_SMALL_UNIT, &range), 0);
	for (unsigned i = 0; i < SETS; i++) {
		sets[i] = spill_chunked_of(spill_place_movable_set.make(&want, &error));
		assert_non_null(sets[i]);
	}
	for (unsigned i = SETS; i-- > 0;)
		map_set(i, range + i * WHOLE + (i == SETS - 1 ? gap : 0));
}

static void end_sets(void)
{
	for (unsigned i = 0; i < SETS; i++) {
		if (sets[i]->base.ptr)
			unmap_set(i);
		spill_placement_release(&sets[i]->base, false);
	}
}

static void check_part(unsigned number, unsigned set, uint64_t offset, uint64_t bytes)
{
	assert_ptr_equal(parts[number].chunked, sets[set]);
	assert_int_equal(parts[number].ptr, sets[set]->base.ptr + offset);
	assert_int_equal(parts[number].bytes, bytes);
}

TEST(a_block_reaches_over_several)
{
	make_sets(0);
	part_count = 0;
	spill_blocks_taken(range + WHOLE - CHUNK, WHOLE + CHUNK + 1, note_part);
	assert_int_equal(part_count, 3);
	check_part(0, 0, WHOLE - CHUNK, CHUNK);
	check_part(1, 1, 0, WHOLE);
	check_part(2, 2, 0, 1);
	assert_string_equal(state_of(sets[0]), "...l");
	assert_string_equal(state_of(sets[1]), "llll");
	assert_string_equal(state_of(sets[2]), "l...");
	spill_blocks_given(range + WHOLE - CHUNK, WHOLE + CHUNK + 1);
	for (unsigned i = 0; i < SETS; i++)
		assert_string_equal(state_of(sets[i]), "....");
	end_sets();
}

/* Memory that is not followed lies between and behind. */
TEST(parts_that_are_not_followed)
{
	make_sets(CHUNK);
	spill_blocks_end(sets[0]);
	part_count = 0;
	spill_blocks_taken(range, 3 * WHOLE + 2 * CHUNK, note_part);
	assert_int_equal(part_count, 2);
	check_part(0, 1, 0, WHOLE);
	check_part(1, 2, 0, WHOLE);
	spill_blocks_given(range, 3 * WHOLE + 2 * CHUNK);
	assert_string_equal(state_of(sets[0]), "llll");
	assert_string_equal(state_of(sets[1]), "....");
	end_sets();
}

/* Behind memory that never moves, no launch names the rest of a block. */
TEST(a_block_over_a_pinned_set)
{
	for (unsigned which = 0; which < 2; which++) {
		make_sets(0);
		spill_blocks_taken(range, SETS * WHOLE, note_part);
		assert_true(sets[0]->exact_begins && sets[2]->exact_begins);
		part_count = 0;
		if (which) {
			spill_unpark_pin(sets[1]);
		} else {
			spill_blocks_end(sets[1]); /* or it never was one */
			spill_blocks_taken(range, SETS * WHOLE, note_part);
		}
		assert_false(sets[0]->exact_begins || sets[2]->exact_begins);
		unmap_set(0);
		map_set(0, range);
		part_count = 0;
		take(range, CHUNK);
		assert_false(sets[0]->exact_begins);
		end_sets();
		spill_blocks_fork_lock.forget_parent();
		spill_blocks_follow(of);
	}
}

/* Its blocks are those of its addresses. */
TEST(a_set_is_mapped_elsewhere)
{
	make_sets(0);
	assert_ptr_equal(take(range, CHUNK), sets[0]);
	assert_string_equal(state_of(sets[0]), "l...");
	assert_true(sets[0]->exact_begins);
	sets[0]->chunks[1].parked = sets[0]->chunks[1].unmapped = sets[0]->chunks[1].wrong_memory = true;
	unmap_set(0);
	assert_string_equal(state_of(sets[0]), "llll");
	assert_false(sets[0]->exact_begins);
	assert_null(take(range, CHUNK));
	map_set(0, range + SETS * WHOLE);
	assert_false(sets[0]->chunks[1].parked || sets[0]->chunks[1].unmapped ||
	             sets[0]->chunks[1].wrong_memory);
	assert_null(take(range, CHUNK));
	assert_string_equal(state_of(sets[0]), "llll");
	assert_ptr_equal(take(range + SETS * WHOLE + CHUNK, 1), sets[0]);
	assert_string_equal(state_of(sets[0]), ".l..");
	end_sets();
}

/* Who else knows what is in use in it, goes on. */
TEST(the_end_of_another_kind)
{
	struct spill_place_request want = {&fake_vendor_backend, &policy, 0, &context, CHUNK, 0,
	                                   SPILL_UNLIMITED};
	struct spill_chunked *other = make_allocation(&spill_place_movable, &want);
	other->exact_begins = true;
	spill_blocks_end(other);
	assert_true(other->exact_begins);
	end(other);
}

/* -- where buffers begin ------------------------------------------------------------------------ */

static bool begins(uint64_t ptr)
{
	struct spill_chunk_map_entry entry;
	assert_true(spill_chunk_map_of(ptr, &entry) && entry.exact);
	return entry.begun;
}

/* Of the native allocator only where memory moves beside kernels. */
TEST(a_block_is_one_buffer)
{
	const uint64_t unit = SPILL_CHUNK_MAP_UNIT, bytes = 16 * unit;
	end(of);
	fake_vendor_reset_mover(2 * bytes);
	policy.movable_chunk.value = 4 * unit;
	struct spill_chunked *large = make(bytes);
	spill_chunked_enlist(large);
	uint64_t ptr = large->base.ptr;
	assert_false(large->exact_begins);
	take(ptr, bytes);
	assert_false(large->exact_begins);
	end(large);
	fake_vendor_reset_mover(2 * bytes);
	policy.movable_follow = SPILL_FOLLOW_OVERLAP;
	spill_process_use_policy(&policy);
	large = make(bytes);
	spill_chunked_enlist(large);
	ptr = large->base.ptr;
	take(ptr, bytes);
	assert_true(large->exact_begins);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(begins(ptr + i * unit), !i);
	spill_blocks_given(ptr, bytes);
	take(ptr, 6 * unit);
	take(ptr + 6 * unit, 10 * unit);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(begins(ptr + i * unit), !i || i == 6);
	/* What does not fit says nothing for sure. */
	take(ptr, 1);
	assert_false(large->exact_begins);
	take(ptr, 1);
	assert_false(large->exact_begins);
	end(large);
	of = make(bytes);
}

/* Its first block would be missing. */
TEST(without_memory_nothing_is_dead)
{
	fake_libc_fail(FAKE_calloc, 1, 1, ENOMEM);
	assert_ptr_equal(take(at(0), CHUNK), of);
	assert_false(spill_blocks_any());
	assert_null(take(at(CHUNK), CHUNK));
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
	assert_null(take(others[more - 1]->base.ptr, 1));
	assert_ptr_equal(take(many[7]->base.ptr, 1), many[7]);
	while (more)
		end(others[--more]);
	for (unsigned i = 0; i < MANY; i++)
		end(many[i]);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
