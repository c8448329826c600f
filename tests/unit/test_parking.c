/*
 * Parked chunks against a vendor with real bytes: dead memory leaves the device without a mapping of its own, and
 * has one again before the program uses it. Whichever call fails, nothing is lost.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "logtest.h"

#include <string.h>

#include "exchanges.h"
#include "gate.h"
#include "host_chunks.h"
#include "move.h"
#include "movable_allocation.h"
#include "parking.h"
#include "peer.h"
#include "unpark.h"

#define MS 1000000ull
#define CHUNK (4 * FAKE_SMALL_UNIT)
#define PEER 3

enum { CHUNKS = 4 };

static struct spill_policy policy;
static int context, other_context;

/* By chunk: it has live bytes. */
static bool is_live[CHUNKS];
static unsigned looks_in_vain; /* at a chunk that leaves, and is not marked */

/* The mark comes before the look, so that who takes memory meanwhile sees it. */
static unsigned live_or_not(const struct spill_chunked *of, unsigned index,
                            struct spill_span spans[SPILL_SPANS])
{
	looks_in_vain += !of->chunks[index].on_host && !of->chunks[index].parked;
	spans[0] = (struct spill_span){0, of->chunks[index].bytes};
	return is_live[index];
}

static int begin(void **state)
{
	make_folder(state);
	open_log_at(in_folder("log"));
	return !spill_log_active();
}

static int teardown(void **state)
{
	fake_vendor_reset_mover(0);
	return 0;
}

static int setup(void **state)
{
	begin_exchanges(&policy, &context, CHUNK, (CHUNKS + 2) * CHUNK, 0);
	spill_parking_reset();
	assert_true(spill_peer_add(&(struct spill_peer_pair){.backend = &fake_vendor_backend,
	                                                     .owner = {0, &context},
	                                                     .user = {PEER, &other_context},
	                                                     .generation = UINT64_MAX}));
	memset(is_live, 0, sizeof(is_live));
	looks_in_vain = 0;
	return 0;
}

/* -- a segment ---------------------------------------------------------------------------------- */

static unsigned char *bytes_of(const struct spill_chunked *of, unsigned index, int device)
{
	return fake_vendor_bytes(spill_chunked_address(of, index), device);
}

static struct spill_chunked *make(void)
{
	struct spill_place_request want = {&fake_vendor_backend, &policy, 0, &context, CHUNKS * CHUNK, 0,
	                                   SPILL_UNLIMITED};
	struct spill_chunked *of = make_allocation(&spill_place_movable, &want);
	fake_vendor_backend.vmm->allow(of->base.ptr, of->range, PEER);
	spill_chunked_enlist(of);
	of->live = live_or_not;
	for (unsigned i = 0; i < CHUNKS; i++)
		memset(bytes_of(of, i, 0), 10 + (int)i, CHUNK);
	return of;
}

static void change_sides(struct spill_chunked *of, unsigned first, unsigned end, uint64_t keep)
{
	struct spill_exchange exchange = {.backend = &fake_vendor_backend, .keep = keep};
	spill_mover_lock();
	for (unsigned i = first; i < end; i++)
		spill_exchange_add(&exchange, of, i);
	if (exchange.goes.count + exchange.comes.count)
		spill_exchange_carry_out(&exchange, spill_clock_ns() + 50 * MS);
	if (!spill_exchange_kept())
		spill_exchange_reset(); /* what this one made is no reason to keep less */
	spill_mover_unlock();
}

/* Chunk 0 leaves, and its memory becomes the place. Nothing else is kept. Then it is back. */
static struct spill_chunked *make_with_place(void)
{
	struct spill_chunked *of = make();
	is_live[0] = true;
	change_sides(of, 0, 1, CHUNK);
	assert_false(of->chunks[0].parked);
	assert_int_equal(spill_exchange_kept(), 0);
	change_sides(of, 0, 1, 0);
	assert_int_equal(bytes_of(of, 0, 0)[7], 10);
	looks_in_vain = 0;
	return of;
}

/* It has the place's memory: whatever is written to one such chunk is in all of them. */
static bool at_the_place(const struct spill_chunked *of, unsigned index)
{
	const struct spill_chunk *chunk = &of->chunks[index];
	unsigned char *here = bytes_of(of, index, 0);
	return chunk->parked && chunk->on_host && here && here == bytes_of(of, index, PEER) &&
	       here != fake_vendor_content(chunk->handle);
}

static bool at_home(const struct spill_chunked *of, unsigned index)
{
	const struct spill_chunk *chunk = &of->chunks[index];
	unsigned char *here = bytes_of(of, index, 0);
	return !chunk->parked && !chunk->unmapped && !chunk->wrong_memory && here &&
	       here == bytes_of(of, index, PEER) && here == fake_vendor_content(chunk->handle);
}

static void end_allocation(struct spill_chunked *of)
{
	spill_ledger_end(spill_ledger_take(of->base.ptr));
	spill_placement_release(&of->base, false);
}

static void end(struct spill_chunked *of)
{
	end_allocation(of);
	spill_mover_lock();
	spill_exchange_drop();
	spill_mover_unlock();
	spill_parking_forget(&fake_vendor_backend, 0);
	spill_host_chunks_drop(&fake_vendor_backend);
	assert_int_equal(fake_vendor.handles, 0);
	assert_int_equal(fake_vendor.mappings, 0);
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(looks_in_vain, 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 0);
}

/* -- leaving ------------------------------------------------------------------------------------ */

TEST(dead_chunks_have_one_place_and_live_ones_their_own)
{
	struct spill_chunked *of = make_with_place();
	is_live[2] = true;
	change_sides(of, 0, CHUNKS, 0);
	assert_true(at_home(of, 0) && at_home(of, 2));
	assert_int_equal(bytes_of(of, 2, 0)[CHUNK - 1], 12);
	assert_true(at_the_place(of, 1) && at_the_place(of, 3));
	assert_ptr_equal(bytes_of(of, 1, 0), bytes_of(of, 3, 0));
	assert_int_equal(of->base.held.host, CHUNKS * CHUNK);
	end(of);
}

TEST(without_a_place_they_are_mapped_on_the_host)
{
	struct spill_chunked *of = make();
	change_sides(of, 0, CHUNKS, 0);
	for (unsigned i = 0; i < CHUNKS; i++)
		assert_true(at_home(of, i));
	looks_in_vain = 0;
	end(of);
}

TEST(other_memory_never_parks)
{
	struct spill_chunked *of = make_with_place();
	of->live = NULL;
	change_sides(of, 0, CHUNKS, 0);
	for (unsigned i = 0; i < CHUNKS; i++)
		assert_true(at_home(of, i) && bytes_of(of, i, 0)[9] == 10 + i);
	end(of);
}

/* An export of the range must not give away the memory that parked chunks have in common. */
TEST(a_pinned_chunk_keeps_what_is_mapped)
{
	struct spill_chunked *of = make_with_place();
	change_sides(of, 0, CHUNKS, CHUNK); /* some memory is kept */
	assert_true(of->chunks[1].parked);
	spill_unpark_pin(of);
	unsigned char *exported = bytes_of(of, 1, 0);
	assert_false(of->chunks[1].parked);
	is_live[1] = true;
	assert_true(spill_unpark(of, spill_chunked_address(of, 1), 1));
	assert_ptr_equal(bytes_of(of, 1, 0), exported);
	assert_true(of->chunks[1].on_host);
	end(of);
}

/* It may be mapped twice, for instance. */
TEST(a_pinned_chunk_never_moves)
{
	struct spill_chunked *of = make_with_place();
	change_sides(of, 0, CHUNKS, CHUNK);
	spill_unpark_pin(of);
	is_live[1] = true;
	assert_true(spill_unpark(of, spill_chunked_address(of, 1), 1));
	assert_true(of->chunks[1].on_host);
	end(of);
}

/* A chunk that is larger than the place: it gets a larger one, when such memory is left. */
TEST(the_place_is_as_large_as_the_largest_chunk)
{
	struct spill_chunked *small = make_with_place();
	policy.movable_chunk.value = 2 * CHUNK;
	change_sides(small, 0, CHUNKS, 0);
	assert_true(at_the_place(small, 1));
	struct spill_chunked *large = make();
	is_live[0] = false;
	assert_int_equal(large->count, CHUNKS / 2);
	change_sides(large, 0, 1, 0);
	assert_true(at_home(large, 0));
	change_sides(large, 0, 1, 0);
	is_live[1] = true;
	change_sides(large, 1, 2, 2 * CHUNK);
	is_live[1] = false;
	change_sides(large, 0, 1, 0);
	assert_true(at_the_place(large, 0));
	/* Who is at the old one stays there. */
	assert_true(at_the_place(small, 1) && bytes_of(small, 1, 0) != bytes_of(large, 0, 0));
	looks_in_vain = 0;
	end_allocation(small);
	end(large);
}

/* It is for one device of one vendor, and for chunks up to its size. */
TEST(who_has_a_place)
{
	static const int no_devices[] = {-1, SPILL_DEVICES};
	struct spill_backend other = fake_vendor_backend;
	assert_true(spill_parking_needs(&fake_vendor_backend, 0, CHUNK));
	struct spill_chunked *of = make_with_place();
	const struct spill_move move = {.chunked = of, .index = 1};
	assert_false(spill_parking_needs(&fake_vendor_backend, 0, CHUNK));
	assert_true(spill_parking_needs(&fake_vendor_backend, 0, CHUNK + 1));
	assert_true(spill_parking_needs(&fake_vendor_backend, 1, CHUNK));
	assert_false(spill_parking_needs(&other, 0, CHUNK + 1)); /* the other vendor's place stays */
	assert_false(spill_parking_begin(&other, 0, &move));
	assert_false(spill_parking_begin(&fake_vendor_backend, 1, &move));
	for (unsigned i = 0; i < 2; i++) {
		assert_false(spill_parking_needs(&fake_vendor_backend, no_devices[i], CHUNK));
		assert_false(spill_parking_begin(&fake_vendor_backend, no_devices[i], &move));
	}
	assert_false(of->chunks[1].parked);
	end(of);
}

/* It is the parent's, and stays with it. */
TEST(a_child_has_no_place)
{
	struct spill_chunked *of = make_with_place();
	const struct spill_move move = {.chunked = of, .index = 1};
	spill_parking_reset();
	assert_true(spill_parking_needs(&fake_vendor_backend, 0, CHUNK));
	assert_false(spill_parking_begin(&fake_vendor_backend, 0, &move));
	end_allocation(of);
	spill_host_chunks_drop(&fake_vendor_backend);
	assert_int_equal(fake_vendor.handles, 1);
}

/* -- coming back -------------------------------------------------------------------------------- */

TEST(a_parked_chunk_comes_without_a_copy)
{
	struct spill_chunked *of = make_with_place();
	change_sides(of, 1, CHUNKS, 0);
	unsigned copies = fake_vendor.copies;
	is_live[1] = true; /* taken, and not handed out yet */
	fake_vendor_fail(0, 0);
	change_sides(of, 1, CHUNKS, 0);
	assert_int_equal(fake_vendor.copies, copies);
	assert_true(fake_vendor.calls < 25); /* to map each on the host first takes three more */
	for (unsigned i = 1; i < CHUNKS; i++)
		assert_true(at_home(of, i) && !of->chunks[i].on_host);
	end(of);
}

/* Those that the memory touches, to the byte. */
TEST(memory_that_is_handed_out_has_a_mapping)
{
	struct spill_chunked *of = make_with_place();
	change_sides(of, 1, CHUNKS, 0);
	uint64_t second = spill_chunked_address(of, 2);
	assert_true(spill_unpark(of, spill_chunked_address(of, 0), CHUNK));
	assert_true(at_the_place(of, 1));
	assert_true(spill_unpark(of, second, 1));
	assert_true(at_the_place(of, 1) && at_home(of, 2) && of->chunks[2].on_host && at_the_place(of, 3));
	assert_true(spill_unpark(of, second - 1, CHUNK + 2));
	assert_true(at_home(of, 1) && at_home(of, 3));
	end(of);
}

/* Every request asks, so it costs no lock. A chunk behind the last one is none. */
TEST(nothing_is_parked_there)
{
	struct spill_chunked *of = make_with_place();
	change_sides(of, 2, CHUNKS, 0);
	unsigned locks = locks_taken();
	assert_true(spill_unpark(of, of->base.ptr, 2 * CHUNK));
	of->count = 3;
	assert_true(spill_unpark(of, spill_chunked_address(of, 3), CHUNK));
	assert_int_equal(locks_taken(), locks);
	assert_true(spill_unpark(of, of->base.ptr, CHUNKS * CHUNK));
	of->count = CHUNKS;
	assert_true(at_home(of, 2) && at_the_place(of, 3));
	end(of);
}

static unsigned promotions(void)
{
	static unsigned read;
	unsigned found = 0;
	struct lines lines = read_lines(in_folder("log"));
	for (; read < lines.count; read++)
		found += strcmp(text_of(lines.at[read], "kind"), "move") == 0 &&
		         strcmp(text_of(lines.at[read], "what"), "promote") == 0 &&
		         strcmp(text_of(lines.at[read], "reason"), "use") == 0;
	return found;
}

/* It comes to the device at once, and the log tells. */
TEST(kept_memory_is_better_than_the_host)
{
	struct spill_chunked *of = make_with_place();
	change_sides(of, 1, 3, CHUNK);
	assert_int_equal(spill_exchange_kept(), CHUNK);
	promotions();
	assert_true(spill_unpark(of, spill_chunked_address(of, 1), 2 * CHUNK));
	assert_true(at_home(of, 1) && !of->chunks[1].on_host);
	assert_true(at_home(of, 2) && of->chunks[2].on_host);
	assert_false(of->chunks[1].displaced);
	assert_int_equal(spill_exchange_kept(), 0);
	assert_int_equal(of->base.held.device, 3 * CHUNK);
	assert_int_equal(promotions(), 1);
	end(of);
}

/* Without lists there is no exchange, and a chunk of another size does not fit. */
TEST(kept_memory_that_does_not_fit_stays)
{
	struct spill_chunked *of = make_with_place();
	change_sides(of, 1, 3, CHUNK);
	of->chunks[1].bytes -= FAKE_SMALL_UNIT;
	spill_mover_lock();
	assert_false(spill_exchange_bring_parked(of, 1));
	spill_mover_unlock();
	of->chunks[1].bytes += FAKE_SMALL_UNIT;
	assert_true(at_the_place(of, 1));
	assert_int_equal(spill_exchange_kept(), CHUNK);
	/* Nor that of another device. */
	of->base.device = 1;
	spill_mover_lock();
	assert_false(spill_exchange_bring_parked(of, 1));
	spill_mover_unlock();
	of->base.device = 0;
	assert_int_equal(spill_exchange_kept(), CHUNK);
	end(of);
}

/* -- failures ----------------------------------------------------------------------------------- */

/* Parks, hands out and brings back, with one call that fails. Returns the number of calls. */
static unsigned fail_at(unsigned nth, uint64_t keep)
{
	struct spill_chunked *of = make_with_place();
	is_live[0] = is_live[3] = true;
	fake_vendor_fail(nth, nth + 1);
	change_sides(of, 1, CHUNKS, keep);
	bool mapped = spill_unpark(of, spill_chunked_address(of, 2), CHUNK);
	unsigned calls = fake_vendor.calls;
	fake_vendor_fail(0, 0);
	assert_true(mapped && at_home(of, 2));
	assert_true(at_home(of, 1) || at_the_place(of, 1));
	assert_true(at_home(of, 3) && bytes_of(of, 3, PEER)[5] == 13);
	assert_true(at_home(of, 0) && bytes_of(of, 0, PEER)[5] == 10);
	assert_true(spill_unpark(of, spill_chunked_address(of, 1), CHUNK));
	memset(bytes_of(of, 1, 0), 21, CHUNK);
	is_live[1] = true;
	change_sides(of, 1, 2, 0);
	assert_true(at_home(of, 1) && bytes_of(of, 1, 0)[CHUNK - 1] == 21);
	end(of);
	return calls;
}

TEST(any_call_may_fail)
{
	for (unsigned kept = 0; kept < 2; kept++) {
		unsigned nth = 1;
		for (; fail_at(nth, kept * CHUNK) >= nth; nth++)
			setup(NULL);
		assert_true(nth > 20);
	}
}

/* The driver maps nothing any more. The request fails, and nothing is handed out. */
TEST(a_vendor_that_refuses_for_good)
{
	struct spill_chunked *of = make_with_place();
	change_sides(of, 1, CHUNKS, 0);
	fake_vendor_fail(1, UINT32_MAX);
	assert_false(spill_unpark(of, spill_chunked_address(of, 1), CHUNK));
	fake_vendor_fail(1, 11); /* five tries of two ways for the first of two chunks */
	assert_false(spill_unpark(of, spill_chunked_address(of, 1), 2 * CHUNK));
	assert_true(of->chunks[1].parked && at_home(of, 2));
	fake_vendor_fail(0, 0);
	assert_true(spill_unpark(of, spill_chunked_address(of, 1), CHUNK));
	assert_true(at_home(of, 1));
	end(of);
}

/* The device does not answer: the chunk stays, and is like one that was never to leave. */
TEST(a_move_without_an_end)
{
	struct spill_chunked *of = make_with_place();
	struct spill_host_chunk memory;
	assert_null(spill_host_chunk_get(&fake_vendor_backend, 0, CHUNK, &memory));
	struct spill_move move = {.chunked = of, .index = 1, .handle = memory.handle, .view = memory.view};
	fake_vendor.stuck = true;
	fake_vendor.wait_result = FAKE_INVALID;
	spill_mover_lock();
	assert_int_equal(spill_move(&fake_vendor_backend, 0, &context, &move, 1, NULL), 0);
	spill_mover_unlock();
	fake_vendor.stuck = false;
	fake_vendor.wait_result = 0;
	assert_true(at_home(of, 1) && !of->chunks[1].on_host);
	spill_host_chunk_put(&fake_vendor_backend, 0, &memory, true);
	end(of);
}

/* Its memory goes with the last chunk there. */
TEST(the_last_context_takes_the_place_with_it)
{
	struct spill_chunked *of = make_with_place();
	uint64_t held = spill_account_device_held(0);
	change_sides(of, 1, CHUNKS, 0);
	spill_parking_forget(&fake_vendor_backend, 1);
	spill_parking_forget(&(struct spill_backend){0}, 0);
	unsigned locks = locks_taken();
	spill_parking_forget(&fake_vendor_backend, -1);
	spill_parking_forget(&fake_vendor_backend, SPILL_DEVICES);
	assert_int_equal(locks_taken(), locks);
	assert_int_equal(spill_account_device_held(0), held - 3 * CHUNK);
	spill_parking_forget(&fake_vendor_backend, 0);
	assert_int_equal(spill_account_device_held(0), held - 4 * CHUNK);
	assert_true(at_the_place(of, 1) && at_the_place(of, 3));
	assert_true(spill_unpark(of, spill_chunked_address(of, 1), CHUNK));
	assert_true(at_home(of, 1));
	end(of);
}

int main(void)
{
	return run_unit_tests(begin, remove_folder);
}
