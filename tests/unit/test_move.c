/*
 * The mover against a vendor with real bytes. Whichever call fails, every chunk is at its old or
 * its new place. Its content is right for all devices that may use it, and nothing leaks.
 */
#include <pthread.h>
#define SETUP setup
#include "unit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ended.h"
#include "account.h"
#include "fake_vendor.h"
#include "fake_clock.h"
#include "copier.h"
#include "move.h"
#include "peer.h"
#include "chunked.h"
#include "note.h"
#include "unpark.h"

#define CHUNK (4 * FAKE_SMALL_UNIT)
#define PEER 3
#define USER 5 /* of memory that the program maps itself */

enum { CHUNKS = 6 }; /* the last one is a granule */

static struct spill_policy policy;
static int context, other_context;
static unsigned notes;

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
	notes++;
}

static int teardown(void **state)
{
	fake_vendor_reset_mover(0);
	return 0;
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	fake_vendor_reset_mover(64 * CHUNK);
	spill_account_reset();
	spill_copier_reset();
	fake_clock_use(0);
	assert_true(spill_peer_add(&(struct spill_peer_pair){.backend = &fake_vendor_backend,
	                                                     .owner = {0, &context},
	                                                     .user = {PEER, &notes},
	                                                     .generation = UINT64_MAX}));
	notes = 0;
	return 0;
}

/* -- one movable placement, and moves of some of its chunks ------------------------------------------------- */

static unsigned char pattern(unsigned chunk, uint64_t at)
{
	return (unsigned char)(chunk * 37 + at * 11 + (at >> 8) + 1);
}

static bool right(const unsigned char *bytes, unsigned chunk, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (bytes[i] != pattern(chunk, i))
			return false;
	return true;
}

static struct spill_chunked *make(uint64_t bytes)
{
	const char *error = NULL;
	struct spill_place_request want = {&fake_vendor_backend, &policy, 0, &context, bytes, 0,
	                                   SPILL_UNLIMITED};
	struct spill_chunked *made = spill_chunked_of(spill_place_movable.make(&want, &error));
	assert_non_null(made);
	fake_vendor_backend.vmm->allow(made->base.ptr, made->range, PEER);
	for (unsigned i = 0; i < made->count; i++) {
		unsigned char *data = fake_vendor_bytes(spill_chunked_address(made, i), PEER);
		for (uint64_t at = 0; at < made->chunks[i].bytes; at++)
			data[at] = pattern(i, at);
	}
	return made;
}

/* A new home on the other side, charged as those who plan moves do. */
static struct spill_move plan(struct spill_chunked *of, unsigned chunk)
{
	struct spill_move move = {.chunked = of, .index = chunk};
	bool to_host = !of->chunks[chunk].on_host;
	uint64_t bytes = of->chunks[chunk].bytes;
	fake_vendor_backend.physical->create(0, to_host, bytes, &move.handle);
	if (to_host)
		spill_account_physical_add(bytes);
	else
		spill_account_device_add(0, bytes);
	return move;
}

/* What has no use for its handle: the new home's that was not moved into, or the old one's. */
static void settle(const struct spill_move *move)
{
	const struct spill_chunk *chunk = &move->chunked->chunks[move->index];
	if (!chunk->on_host) /* what is left over is of the other side, moved or not */
		spill_account_physical_return(chunk->bytes);
	else
		spill_account_device_return(0, chunk->bytes);
	fake_vendor_backend.physical->release(move->handle);
}

static unsigned move_all(struct spill_move *moves, unsigned count)
{
	spill_mover_lock();
	unsigned moved = spill_move(&fake_vendor_backend, 0, &context, moves, count, NULL);
	spill_mover_unlock();
	return moved;
}

/* Content and access of all chunks, bytes on each side; nothing is left of views and events. */
static void all_is_right(const struct spill_chunked *of)
{
	uint64_t device = 0, host = 0;
	for (unsigned i = 0; i < of->count; i++) {
		const struct spill_chunk *chunk = &of->chunks[i];
		uint64_t va = spill_chunked_address(of, i);
		const unsigned char *bytes = fake_vendor_bytes(va, 0);
		assert_false(chunk->unmapped);
		assert_non_null(bytes);
		assert_ptr_equal(bytes, fake_vendor_content(chunk->handle));
		assert_ptr_equal(bytes, fake_vendor_bytes(va, PEER));
		assert_true(right(bytes, i, chunk->bytes));
		*(chunk->on_host ? &host : &device) += chunk->bytes;
	}
	assert_int_equal(of->base.held.device, device);
	assert_int_equal(of->base.held.host, host);
	assert_int_equal(fake_vendor.events, 0);
}

static void end(struct spill_chunked *of)
{
	spill_placement_release(&of->base, false);
	assert_int_equal(fake_vendor.handles, 0);
	assert_int_equal(fake_vendor.mappings, 0);
	assert_true(fake_vendor.ranges <= 1); /* the views' */
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 0);
}

/* -- what works --------------------------------------------------------------------------------------------- */

TEST(chunks_go_and_come_back)
{
	struct spill_chunked *of = make((CHUNKS - 1) * CHUNK + 1);
	struct spill_move moves[CHUNKS];
	uint64_t old[CHUNKS], new[CHUNKS];
	assert_int_equal(of->count, CHUNKS);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < CHUNKS; i++) {
			moves[i] = plan(of, CHUNKS - 1 - i);
			old[i] = of->chunks[CHUNKS - 1 - i].handle;
			new[i] = moves[i].handle;
		}
		assert_int_equal(move_all(moves, CHUNKS), CHUNKS);
		all_is_right(of);
		for (unsigned i = 0; i < CHUNKS; i++) {
			assert_true(moves[i].moved);
			assert_int_equal(moves[i].view, 0);
			assert_int_equal(moves[i].handle, old[i]);
			assert_int_equal(of->chunks[CHUNKS - 1 - i].handle, new[i]);
			assert_int_equal(of->chunks[CHUNKS - 1 - i].on_host, round == 0);
			settle(&moves[i]);
		}
		assert_true(of->moved_at > round * CHUNKS);
		assert_int_equal(spill_account_host_held(), round ? 0 : of->range);
		assert_int_equal(spill_account_physical_held(), round ? 0 : of->range);
		assert_int_equal(spill_account_device_held(0), round ? of->range : 0);
		assert_int_equal(fake_vendor.device_free, 64 * CHUNK - (round ? of->range : 0));
	}
	assert_int_equal(fake_vendor.waits, 0);
	assert_int_equal(fake_vendor.streams, 2); /* one each way */
	end(of);
}

/* Its own device is one like any other, and so are those to which peers or the program give access. */
TEST(memory_of_another_device_is_that_ones_afterwards)
{
	const char *error = NULL;
	struct spill_place_request want = {&fake_vendor_backend, &policy, 1, &context, CHUNK, 0,
	                                   SPILL_UNLIMITED};
	struct spill_chunked *of = spill_chunked_of(spill_place_movable.make(&want, &error));
	struct spill_move move = {.chunked = of};
	assert_true(spill_peer_add(&(struct spill_peer_pair){.backend = &fake_vendor_backend,
	                                                     .owner = {1, &context},
	                                                     .user = {PEER, &notes},
	                                                     .generation = UINT64_MAX}));
	fake_vendor_backend.vmm->allow(of->base.ptr, of->range, PEER);
	of->users = 1u << 1 | 1u << USER;
	fake_vendor_backend.vmm->allow(of->base.ptr, of->range, USER);
	memset(fake_vendor_bytes(of->base.ptr, 1), 7, CHUNK);
	fake_vendor_backend.physical->create(1, true, CHUNK, &move.handle);
	spill_account_physical_add(CHUNK);
	spill_mover_lock();
	assert_int_equal(spill_move(&fake_vendor_backend, 1, &context, &move, 1, NULL), 1);
	spill_mover_unlock();
	assert_null(fake_vendor_bytes(of->base.ptr, 0));
	assert_non_null(fake_vendor_bytes(of->base.ptr, 1));
	assert_ptr_equal(fake_vendor_bytes(of->base.ptr, 1), fake_vendor_bytes(of->base.ptr, PEER));
	assert_ptr_equal(fake_vendor_bytes(of->base.ptr, 1), fake_vendor_bytes(of->base.ptr, USER));
	assert_int_equal(fake_vendor_bytes(of->base.ptr, 1)[CHUNK - 1], 7);
	spill_account_device_return(1, CHUNK);
	fake_vendor_backend.physical->release(move.handle);
	end(of);
	assert_int_equal(spill_account_device_held(1), 0);
}

TEST(the_next_copy_is_under_way_while_a_chunk_is_remapped)
{
	struct spill_chunked *of = make(3 * CHUNK);
	struct spill_move moves[] = {plan(of, 0), plan(of, 1), plan(of, 2)};
	assert_int_equal(move_all(moves, 3), 3);
	assert_int_equal(fake_vendor.most_under_way, 1);
	for (unsigned i = 0; i < 3; i++)
		settle(&moves[i]);
	end(of);
}

/* Where the new home is mapped already, it is copied to as it is; its addresses go when it is moved into. */
TEST(a_view_that_came_along_is_used)
{
	struct spill_chunked *of = make(2 * CHUNK);
	struct spill_move moves[] = {plan(of, 1), plan(of, 0)};
	for (unsigned i = 0; i < 2; i++) {
		fake_vendor_backend.vmm->reserve(CHUNK, FAKE_SMALL_UNIT, &moves[i].view);
		fake_vendor_backend.vmm->map(moves[i].view, CHUNK, moves[i].handle);
		fake_vendor_backend.vmm->allow(moves[i].view, CHUNK, 0);
	}
	uint64_t kept = moves[1].view;
	/* The second one is not copied: the view stays with it. */
	fake_vendor_fail(4, 5); /* reserve, stream, events, then the first copy */
	assert_int_equal(move_all(moves, 2), 0);
	assert_true(moves[0].view && moves[1].view == kept && fake_vendor_bytes(kept, 0));
	fake_vendor_fail(0, 0);
	assert_int_equal(move_all(moves, 2), 2);
	assert_int_equal(moves[0].view + moves[1].view, 0);
	all_is_right(of);
	settle(&moves[0]);
	settle(&moves[1]);
	end(of);
}

/* Made before the program has to wait; what is refused then is made later, and what comes back from host has none. */
TEST(new_homes_on_host_are_staged)
{
	struct spill_chunked *of = make(3 * CHUNK);
	struct spill_move moves[] = {plan(of, 0), plan(of, 1), plan(of, 2)};
	unsigned ranges = fake_vendor.ranges, mappings = fake_vendor.mappings;
	for (unsigned nth = 1; nth <= 3; nth++) { /* each of the calls for the first one */
		fake_vendor_fail(nth, nth + 1);
		spill_move_stage(&fake_vendor_backend, 0, moves, 1);
		assert_int_equal(moves[0].view, 0);
		assert_int_equal(fake_vendor.ranges, ranges);
		assert_int_equal(fake_vendor.mappings, mappings);
	}
	fake_vendor_fail(0, 0);
	spill_move_stage(&fake_vendor_backend, 0, moves, 2);
	spill_move_stage(&fake_vendor_backend, 0, moves, 2);
	assert_true(moves[0].view && moves[1].view && !moves[2].view);
	assert_int_equal(fake_vendor.ranges, ranges + 2);
	assert_int_equal(move_all(moves, 3), 3);
	all_is_right(of);
	for (unsigned i = 0; i < 3; i++) {
		settle(&moves[i]);
		moves[i] = plan(of, i);
	}
	spill_move_stage(&fake_vendor_backend, 0, moves, 3);
	assert_int_equal(moves[0].view + moves[1].view + moves[2].view, 0);
	for (unsigned i = 0; i < 3; i++)
		settle(&moves[i]);
	end(of);
}

/* What is prepared once costs no call the second time; in another context it does. */
TEST(a_context_is_prepared_once)
{
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &context));
	unsigned calls = fake_vendor.calls;
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &context));
	assert_int_equal(fake_vendor.calls, calls);
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &policy));
	assert_int_equal(fake_vendor.calls, calls + 1);
}

TEST(chunks_of_any_size_fit_the_views)
{
	policy.movable_chunk.value = 68ull << 20; /* more than what is prepared for */
	fake_vendor_reset_mover(200ull << 20);
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &context));
	struct spill_chunked *of = make(136ull << 20); /* of less than two it would make smaller ones */
	struct spill_move move = plan(of, 0);
	assert_int_equal(of->count, 2);
	assert_int_equal(move_all(&move, 1), 1);
	all_is_right(of);
	settle(&move);
	end(of);
}

/* -- live parts --------------------------------------------------------------------------------- */

/* Of each chunk: two parts, and nothing of every fourth one. */
static unsigned two_parts(const struct spill_chunked *of, unsigned index,
                          struct spill_span spans[SPILL_SPANS])
{
	uint64_t bytes = of->chunks[index].bytes;
	if (index % 4 == 3)
		return 0;
	spans[0] = (struct spill_span){bytes / 8, bytes / 8};
	spans[1] = (struct spill_span){bytes / 2, bytes / 4};
	return 2;
}

/* The content of the parts. *others: bytes beside them that are right, too. */
static bool parts_are_right(const struct spill_chunked *of, unsigned index, uint64_t *others)
{
	struct spill_span spans[SPILL_SPANS];
	const unsigned char *bytes = fake_vendor_content(of->chunks[index].handle);
	unsigned count = two_parts(of, index, spans);
	bool is_right = true;
	for (uint64_t at = 0; at < of->chunks[index].bytes; at++) {
		bool live = false, same = bytes[at] == pattern(index, at);
		for (unsigned i = 0; i < count; i++)
			live |= at - spans[i].offset < spans[i].bytes;
		is_right &= !live || same;
		*others += !live && same;
	}
	return is_right;
}

/* There, and back from memory that is copied to a view, or to the place itself. */
static void move_live_parts(bool staged)
{
	struct spill_chunked *of = make((CHUNKS - 1) * CHUNK + 1);
	struct spill_move moves[CHUNKS];
	of->live = two_parts;
	for (unsigned round = 0; round < 2; round++) {
		uint64_t others = 0;
		for (unsigned i = 0; i < CHUNKS; i++)
			moves[i] = plan(of, i);
		if (staged)
			spill_move_stage(&fake_vendor_backend, 0, moves, CHUNKS);
		fake_vendor.copied_bytes = 0;
		assert_int_equal(move_all(moves, CHUNKS), CHUNKS);
		/* Three eighths of each chunk; the fourth has none. */
		assert_int_equal(fake_vendor.copied_bytes, (of->range - CHUNK) * 3 / 8);
		for (unsigned i = 0; i < CHUNKS; i++) {
			assert_true(parts_are_right(of, i, &others));
			if (moves[i].view)
				spill_view_end(&fake_vendor_backend, moves[i].view, of->chunks[i].bytes);
			settle(&moves[i]);
		}
		assert_true(others < of->range / 16); /* by chance */
	}
	assert_int_equal(fake_vendor.events, 0);
	end(of);
}

TEST(only_live_parts_are_copied)
{
	move_live_parts(false);
}

TEST(only_live_parts_are_copied_back_into_the_place)
{
	move_live_parts(true);
}

/*
 * The second copy of a chunk is refused, and so are a few waits for the first one: its target stays
 * until the first one has ended.
 */
static void refuse_second_copy(bool back, unsigned waits)
{
	struct spill_chunked *of = make(CHUNK);
	struct spill_move move = plan(of, 0);
	uint64_t others = 0;
	of->live = two_parts;
	if (back) {
		spill_move_stage(&fake_vendor_backend, 0, &move, 1);
		assert_int_equal(move_all(&move, 1), 1);
		settle(&move);
		move = plan(of, 0);
	}
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &context));
	/* A mapping with access; or an unmapping, a mapping and access for two. Then the first copy. */
	unsigned call = back ? 6 : 4, copies = fake_vendor.copies;
	fake_vendor_fail(call, call + 1 + waits);
	assert_int_equal(move_all(&move, 1), 0);
	assert_int_equal(fake_vendor.copies, copies + 1);
	assert_true(fake_vendor.waits > waits);
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(of->chunks[0].on_host, back);
	assert_false(of->chunks[0].unmapped);
	assert_true(parts_are_right(of, 0, &others));
	fake_vendor_fail(0, 0);
	assert_int_equal(move_all(&move, 1), 1);
	assert_true(parts_are_right(of, 0, &others));
	if (move.view)
		spill_view_end(&fake_vendor_backend, move.view, CHUNK);
	settle(&move);
	end(of);
}

TEST(a_refused_copy_waits_for_the_earlier_ones)
{
	refuse_second_copy(false, 0);
}

TEST(a_refused_copy_waits_for_the_earlier_ones_on_the_way_back)
{
	refuse_second_copy(true, 0);
}

TEST(a_refused_copy_waits_until_the_vendor_has_waited)
{
	refuse_second_copy(false, 2);
}

TEST(a_refused_copy_waits_until_the_vendor_has_waited_on_the_way_back)
{
	refuse_second_copy(true, 2);
}

/* -- what fails --------------------------------------------------------------------------------------------- */

static void plan_four(struct spill_chunked *of, struct spill_move *moves)
{
	static const unsigned chunks[] = {5, 4, 0, 2};
	for (unsigned i = 0; i < 4; i++)
		moves[i] = plan(of, chunks[i]);
}

/* Moves to the host with views of their homes there, planned to come back from there. */
static void send_staged(struct spill_chunked *of, struct spill_move *moves)
{
	spill_move_stage(&fake_vendor_backend, 0, moves, 4);
	assert_int_equal(move_all(moves, 4), 4);
	for (unsigned i = 0; i < 4; i++)
		settle(&moves[i]);
	plan_four(of, moves);
}

/*
 * Moves to the host, or `back` from views there, with calls [from, end) failing. Returns the calls made; *lost: chunks that no call
 * could map.
 */
static unsigned with_failures(bool back, unsigned from, unsigned end_at, unsigned *lost, unsigned *count)
{
	struct spill_chunked *of = make((CHUNKS - 1) * CHUNK + 1);
	struct spill_move moves[4];
	uint64_t homes[4][2];
	plan_four(of, moves);
	if (back)
		send_staged(of, moves);
	for (unsigned i = 0; i < 4; i++) {
		homes[i][0] = of->chunks[moves[i].index].handle;
		homes[i][1] = moves[i].handle;
	}
	fake_vendor_fail(from, end_at);
	*count = move_all(moves, 4);
	unsigned calls = fake_vendor.calls, moved = 0;
	fake_vendor_fail(0, 0);
	*lost = 0;
	for (unsigned i = 0; i < 4; i++) {
		const struct spill_chunk *chunk = &of->chunks[moves[i].index];
		moved += moves[i].moved;
		assert_int_equal(chunk->on_host, moves[i].moved != back);
		assert_int_equal(chunk->handle, homes[i][moves[i].moved]);
		assert_int_equal(moves[i].handle, homes[i][!moves[i].moved]);
		assert_int_equal(moves[i].view != 0, back && moves[i].moved);
		assert_true(right(fake_vendor_content(chunk->handle), moves[i].index, chunk->bytes));
		*lost += chunk->unmapped ||
		         !fake_vendor_bytes(spill_chunked_address(of, moves[i].index), 0) ||
		         !fake_vendor_bytes(spill_chunked_address(of, moves[i].index), PEER);
	}
	assert_int_equal(*count, moved);
	if (!*lost)
		all_is_right(of);
	for (unsigned i = 0; i < 4; i++) {
		if (moves[i].view)
			spill_view_end(&fake_vendor_backend, moves[i].view, of->chunks[moves[i].index].bytes);
		settle(&moves[i]);
	}
	/* A view that could not be unmapped keeps its memory: of that no more than one a failure. */
	unsigned stuck = fake_vendor.mappings;
	for (unsigned i = 0; i < of->count; i++)
		stuck -= (!of->chunks[i].unmapped || of->chunks[i].wrong_memory) + (of->chunks[i].view != 0);
	assert_true(stuck <= end_at - from);
	spill_placement_release(&of->base, false);
	assert_int_equal(fake_vendor.handles, 0);
	assert_int_equal(fake_vendor.mappings, stuck);
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(spill_account_device_held(0) + spill_account_host_held(), 0);
	return calls;
}

static void any_one_failure_harms_nothing(bool back, void **state)
{
	unsigned lost, count, partial = 0, calls = UINT32_MAX;
	for (unsigned nth = 1; nth <= calls; nth++) {
		setup(state);
		unsigned made = with_failures(back, nth, nth + 1, &lost, &count);
		assert_int_equal(lost, 0);
		assert_int_equal(notes, fake_vendor.mappings); /* only of a view that stays */
		partial += count > 0 && count < 4;
		if (made < nth)
			break;
	}
	assert_int_equal(count, 4); /* the last round: nothing failed any more */
	assert_true(partial > 10);
}

TEST(any_one_failure_on_the_way_out_harms_nothing)
{
	any_one_failure_harms_nothing(false, state);
}

TEST(any_one_failure_on_the_way_back_harms_nothing)
{
	any_one_failure_harms_nothing(true, state);
}

/* What has begun is ended, and the chunk itself is where it was. */
TEST(a_failure_begins_nothing_more)
{
	struct spill_chunked *of = make(3 * CHUNK);
	struct spill_move moves[] = {plan(of, 0), plan(of, 1), plan(of, 2)};
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &context));
	fake_vendor_fail(10,
	                 11); /* four calls to begin each of two, an unmapping, the mapping in its place */
	assert_int_equal(move_all(moves, 3), 1);
	assert_true(!moves[0].moved && moves[1].moved && !moves[2].moved);
	assert_int_equal(fake_vendor.copies, 2);
	all_is_right(of);
	fake_vendor_fail(0, 0);
	for (unsigned i = 0; i < 3; i++)
		settle(&moves[i]);
	end(of);
}

/*
 * A call that the vendor refuses a few times is tried again. A permanent refusal is reported and
 * remembered.
 */
static void many_failures_lose_no_byte(bool back, void **state)
{
	static const unsigned lengths[] = {2, 3, 5, 9, 100};
	unsigned all_lost = 0;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		unsigned lost, count, made = UINT32_MAX;
		for (unsigned nth = 1; made >= nth - 1; nth++) {
			setup(state);
			made = with_failures(back, nth, nth + lengths[i], &lost, &count);
			if (lost)
				assert_true(notes > 0);
			if (lengths[i] <= 5)
				assert_int_equal(lost, 0);
			assert_true(fake_clock.slept_ns < 3000000000u);
			all_lost += lost;
		}
	}
	assert_true(all_lost > 0); /* or this test has tested nothing */
}

TEST(many_failures_on_the_way_out_lose_no_byte)
{
	many_failures_lose_no_byte(false, state);
}

TEST(many_failures_on_the_way_back_lose_no_byte)
{
	many_failures_lose_no_byte(true, state);
}

/* The next move that meets such a chunk maps it. */
/* A view without access is unmapped. Its addresses serve the next move. */
TEST(a_view_that_is_refused_can_be_had_again)
{
	struct spill_chunked *of = make(2 * CHUNK);
	struct spill_move move = plan(of, 0);
	assert_int_equal(move_all(&move, 1), 1);
	settle(&move);
	unsigned ranges = fake_vendor.ranges;
	move = plan(of, 1);
	fake_vendor_fail(2, 3); /* map, access */
	assert_int_equal(move_all(&move, 1), 0);
	fake_vendor_fail(0, 0);
	assert_int_equal(move_all(&move, 1), 1);
	assert_int_equal(fake_vendor.ranges, ranges);
	settle(&move);
	spill_placement_release(&of->base, false);
	assert_int_equal(fake_vendor.broken, 0);
}

TEST(a_lost_chunk_is_found_again)
{
	struct spill_chunked *of = make(2 * CHUNK);
	struct spill_move move = plan(of, 0);
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &context));
	fake_vendor_fail(6, 100); /* map, allow, copy, event, unmap; the map in its place and all after it */
	uint64_t slept_ns = fake_clock.slept_ns;
	assert_int_equal(move_all(&move, 1), 0);
	assert_int_equal(fake_clock.slept_ns - slept_ns, (1 + 2 + 4 + 8 + 16) * 1000000ull);
	assert_true(of->chunks[0].unmapped);
	assert_true(notes > 0);
	fake_vendor_fail(0, 0);
	assert_int_equal(move_all(&move, 1), 1);
	all_is_right(of);
	settle(&move);
	fake_vendor_backend.vmm->unmap(of->base.ptr + 64 * CHUNK,
	                               CHUNK); /* nothing there: the count below is of this */
	assert_int_equal(fake_vendor.broken, 1);
	fake_vendor.broken = 0;
	spill_placement_release(&of->base, false);
	assert_int_equal(fake_vendor.handles, 0);
	assert_int_equal(fake_vendor.mappings, 1); /* the first view, whose unmapping failed */
}

/* Likewise one whose new home had taken its place when the copy failed, and did not leave it again. */
TEST(a_lost_chunk_is_found_again_behind_what_is_there)
{
	struct spill_chunked *of = make(CHUNK);
	struct spill_move move = plan(of, 0);
	spill_move_stage(&fake_vendor_backend, 0, &move, 1);
	assert_int_equal(move_all(&move, 1), 1);
	settle(&move);
	move = plan(of, 0);
	fake_vendor_fail(5, 100); /* unmap, map, access for two; the copy and all after it */
	assert_int_equal(move_all(&move, 1), 0);
	assert_true(of->chunks[0].unmapped && of->chunks[0].wrong_memory && notes > 0);
	fake_vendor_fail(0, 0);
	assert_int_equal(move_all(&move, 1), 1);
	assert_false(of->chunks[0].wrong_memory);
	all_is_right(of);
	spill_view_end(&fake_vendor_backend, move.view, CHUNK);
	settle(&move);
	end(of);
}

TEST(an_event_that_never_passes_is_not_waited_for_in_vain)
{
	struct spill_chunked *of = make(2 * CHUNK);
	struct spill_move moves[] = {plan(of, 0), plan(of, 1)};
	fake_vendor.stuck = true;
	assert_int_equal(move_all(moves, 2), 2); /* the context says that it is done */
	all_is_right(of);
	settle(&moves[0]);
	settle(&moves[1]);
	moves[0] = plan(of, 0);
	fake_vendor.wait_result = 700;
	assert_int_equal(move_all(moves, 1), 0); /* or that it is dead */
	all_is_right(of);
	settle(&moves[0]);
	assert_int_equal(fake_vendor.events, 0);
	end(of);
}

/* -- contexts ----------------------------------------------------------------------------------------------- */

TEST(a_context_takes_its_streams_along)
{
	struct spill_chunked *of = make(CHUNK);
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &other_context));
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &context)); /* one is enough */
	assert_int_equal(fake_vendor.streams, 2);
	struct spill_move move = plan(of, 0);
	assert_int_equal(move_all(&move, 1), 1);
	assert_ptr_equal(fake_vendor.copier_context, &other_context);
	settle(&move);
	spill_copier_context_ended(ENDED(&fake_vendor_backend, 0, &context)); /* none of its business */
	spill_copier_context_ended(ENDED(&fake_vendor_backend, 0, &other_context));
	move = plan(of, 0);
	assert_int_equal(move_all(&move, 1), 1);
	assert_ptr_equal(fake_vendor.copier_context, &context);
	assert_int_equal(fake_vendor.streams, 4);
	settle(&move);
	end(of);
}

/* A move makes streams in a context until its end begins. Whether they live is not known until the end is over. */
TEST(an_end_takes_along_what_was_made_last)
{
	struct spill_chunked *of = make(CHUNK);
	struct spill_move move = plan(of, 0);
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &other_context));
	spill_copier_give_up(&fake_vendor_backend, 0, &other_context);
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &other_context));
	struct spill_context_end refused = spill_context_end_begin(&fake_vendor_backend, 0, &other_context);
	assert_int_equal(move_all(&move, 1), 0);
	spill_context_end_finish(&refused, true);
	assert_int_equal(fake_vendor.streams, 4);
	struct spill_context_end end_of = spill_context_end_begin(&fake_vendor_backend, 0, &other_context);
	spill_copier_context_ended(&end_of);
	spill_context_end_finish(&end_of, false);
	assert_int_equal(move_all(&move, 1), 1);
	assert_ptr_equal(fake_vendor.copier_context, &context);
	assert_int_equal(fake_vendor.streams, 6);
	settle(&move);
	end(of);
}

TEST(what_cannot_be_prepared_moves_nothing)
{
	/* Address space, a stream, events for the copies and for the context; the third call is for the other stream. */
	static const unsigned calls[] = {1, 2, 4, 5};
	struct spill_backend backend = fake_vendor_backend;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		setup(state);
		fake_vendor_fail(calls[i], calls[i] + 1);
		assert_false(spill_copier_prepare(&fake_vendor_backend, 0, &context));
		assert_int_equal(fake_vendor.streams, calls[i] > 2 ? 2 : 0);
		assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &context));
		assert_int_equal(fake_vendor.streams, 2);
	}
	setup(state);
	assert_false(spill_copier_prepare(&backend, -1, &context));
	assert_false(spill_copier_prepare(&backend, SPILL_DEVICES, &context));
}

/* Where the device is too full for the other one, both ways are served by it; then it is asked for again. */
TEST(one_stream_is_enough)
{
	struct spill_chunked *of = make(2 * CHUNK);
	struct spill_move moves[2] = {plan(of, 0)};
	fake_vendor_fail(3, 4); /* address space, a stream, the other stream */
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, &context));
	assert_int_equal(fake_vendor.streams, 1);
	/* Away with one, then that one back and the other away. */
	for (unsigned round = 0; round < 2; round++) {
		fake_vendor_fail(1, 2);
		assert_int_equal(move_all(moves, round + 1), round + 1);
		assert_int_equal(fake_vendor.streams, 1);
		all_is_right(of);
		for (unsigned i = 0; i <= round; i++)
			settle(&moves[i]);
		moves[0] = plan(of, 0);
		moves[1] = plan(of, 1);
	}
	fake_vendor_fail(0, 0);
	assert_int_equal(move_all(moves, 2), 2);
	assert_int_equal(fake_vendor.streams, 2);
	all_is_right(of);
	settle(&moves[0]);
	settle(&moves[1]);
	end(of);
}

/* -- threads ------------------------------------------------------------------------------------------------ */

enum { MAKERS = 3, ROUNDS = 300, MOVES = 4 };

static _Atomic unsigned failures, making, moved;

static void expect(bool is_right)
{
	if (!is_right)
		atomic_fetch_add(&failures, 1);
}

/* Where the content of a chunk can be looked at without the mover in between. */
static void look_at(struct spill_chunked *of)
{
	spill_mover_lock();
	for (unsigned i = 0; i < of->count; i++) {
		const unsigned char *bytes = fake_vendor_bytes(spill_chunked_address(of, i), 0);
		expect(bytes && right(bytes, i, of->chunks[i].bytes));
	}
	spill_mover_unlock();
}

static void *make_and_release(void *argument)
{
	const char *error = NULL;
	unsigned random = (unsigned)(uintptr_t)argument + 1;
	/* On a busy machine the mover gets its first turn late. */
	for (unsigned round = 0; round < ROUNDS || !atomic_load(&moved); round++) {
		random = random * 1103515245u + 12345u;
		struct spill_place_request want = {
		    &fake_vendor_backend, &policy, 0, &context, 1 + (random >> 8) % (3 * CHUNK), 0,
		    SPILL_UNLIMITED};
		struct spill_chunked *of = spill_chunked_of(spill_place_movable.make(&want, &error));
		expect(of);
		if (!of)
			continue;
		for (unsigned i = 0; i < of->count; i++) {
			unsigned char *bytes = fake_vendor_bytes(spill_chunked_address(of, i), 0);
			for (uint64_t at = 0; at < of->chunks[i].bytes; at++)
				bytes[at] = pattern(i, at);
		}
		spill_chunked_enlist(of);
		look_at(of);
		if (random >> 30)
			spill_unpark_pin_at(of->base.ptr + of->range - 1);
		look_at(of);
		if (random & 1)
			spill_chunked_delist(of);
		spill_placement_release(&of->base, false);
	}
	atomic_fetch_sub(&making, 1);
	return NULL;
}

static void *move_some(void *unused)
{
	while (atomic_load(&making)) {
		struct spill_move moves[MOVES];
		unsigned count = 0;
		spill_mover_lock();
		for (struct spill_chunked *of = spill_chunked_next(NULL); of && count < MOVES;
		     of = spill_chunked_next(of))
			for (unsigned i = 0; i < of->count && count < MOVES && !of->pinned; i++)
				moves[count++] = plan(of, i);
		if (count)
			atomic_fetch_add(&moved,
			                 spill_move(&fake_vendor_backend, 0, &context, moves, count, NULL));
		for (unsigned i = 0; i < count; i++)
			settle(&moves[i]);
		spill_mover_unlock();
	}
	return NULL;
}

TEST(releases_and_moves_do_not_meet)
{
	pthread_t makers[MAKERS], mover;
	fake_vendor_reset_mover(1ull << 40);
	making = MAKERS;
	assert_int_equal(pthread_create(&mover, NULL, move_some, NULL), 0);
	for (uintptr_t i = 0; i < MAKERS; i++)
		assert_int_equal(pthread_create(&makers[i], NULL, make_and_release, (void *)i), 0);
	for (unsigned i = 0; i < MAKERS; i++)
		assert_int_equal(pthread_join(makers[i], NULL), 0);
	assert_int_equal(pthread_join(mover, NULL), 0);
	assert_int_equal(failures, 0);
	assert_int_equal(fake_vendor.handles + fake_vendor.mappings + fake_vendor.broken, 0);
	assert_int_equal(spill_account_device_held(0) + spill_account_host_held(), 0);
}

int main(void)
{
	return run_unit_tests(NULL, teardown);
}
