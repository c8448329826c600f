/*
 * How chunks are cut and shared: where a block is, which chunk serves which request, and when a chunk is made and goes.
 * The place is replaced, and tells what it makes.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ended.h"
#include "fake_libc.h"
#include "peer.h"
#include "said.h"
#include "shared_chunks.h"

#define KIB 1024ull
#define BEGIN SPILL_SHARED_CHUNKS_ALIGNMENT /* of the first block in its chunk */
#define LARGEST SPILL_SHARED_CHUNKS_LARGEST
#define STEP (64ull << 20) /* between the addresses of chunks */

enum { CHUNKS = 8, BLOCKS = 40 };

static const struct spill_backend vendor, other_vendor;
static int one_context, other_context;
static struct spill_placement backing[CHUNKS];
static unsigned made, refused;
static struct spill_placement *blocks[BLOCKS];

/* -- in place of a place and of peers ---------------------------------------------------------- */

static void release(struct spill_placement *placement, bool context_ended)
{
	say(context_ended ? "ended" : "release", (uint64_t)(placement - backing));
}

static struct spill_placement *make_chunk(const struct spill_place_request *want, const char **error);

static const struct spill_place_ops host = {SPILL_PLACE_HOST, make_chunk, release},
                                    managed = {SPILL_PLACE_MANAGED, make_chunk, release};

static struct spill_placement *make_chunk(const struct spill_place_request *want, const char **error)
{
	assert_int_equal(want->bytes, SPILL_SHARED_CHUNKS_CHUNK);
	assert_int_equal(want->device_room, 0);
	*error = "host.limit";
	if (refused)
		return NULL;
	say("make", made);
	backing[made] = (struct spill_placement){
	    .ops = &host, .backend = want->backend, .device = want->device, .context = want->context};
	backing[made].ptr = (made + 1) * STEP;
	return &backing[made++];
}

void spill_peer_placed(const struct spill_placement *placement)
{
	say("placed", (uint64_t)(placement - backing));
}

/* ---------------------------------------------------------------------------------------------- */

static struct spill_place_request want_of(uint64_t bytes)
{
	return (struct spill_place_request){
	    .backend = &vendor, .context = &one_context, .bytes = bytes, .device_room = 99};
}

static struct spill_placement *take(const struct spill_place_ops *ops, const struct spill_place_request *want)
{
	const char *error = NULL;
	for (unsigned i = 0; i < BLOCKS; i++)
		if (!blocks[i])
			return blocks[i] = spill_shared_chunks_make(ops, want, &error);
	return NULL;
}

/* A block of the usual owner. */
static struct spill_placement *block_of(uint64_t bytes)
{
	const struct spill_place_request want = want_of(bytes);
	return take(&host, &want);
}

static void give(struct spill_placement *block)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		if (blocks[i] == block)
			blocks[i] = NULL;
	spill_placement_release(block, false);
}

/* The number of its chunk, and its place there. */
static unsigned chunk_of(const struct spill_placement *block)
{
	return (unsigned)(block->ptr / STEP - 1);
}

static uint64_t place_of(const struct spill_placement *block)
{
	return block->ptr % STEP;
}

static int setup(void **state)
{
	made = refused = 0;
	fake_libc_reset();
	what_was_said();
	return 0;
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		if (blocks[i])
			give(blocks[i]);
	spill_shared_chunks_context_ended(ENDED(&vendor, 0, &one_context));
	spill_shared_chunks_context_ended(ENDED(&vendor, 0, &other_context));
	for (int device = 0; device < 3; device++)
		spill_shared_chunks_trim(&vendor, device, NULL);
	spill_shared_chunks_trim(&other_vendor, 0, NULL);
	fake_libc_reset();
	return 0;
}

/* -- cutting ----------------------------------------------------------------------------------- */

/* No block has the address of a chunk. Each is aligned as the vendor's own, and holds what it takes. */
TEST(blocks_follow_each_other)
{
	const uint64_t bytes[] = {1, 512, 513, LARGEST},
	               places[] = {BEGIN, BEGIN + 512, BEGIN + 1024, BEGIN + 2048};
	for (unsigned i = 0; i < 4; i++) {
		struct spill_placement *block = block_of(bytes[i]);
		assert_int_equal(chunk_of(block), 0);
		assert_int_equal(place_of(block), places[i]);
		assert_int_equal(block->bytes, bytes[i]);
		assert_int_equal(block->held.host, (bytes[i] + 511) / 512 * 512);
		assert_int_equal(block->held.managed, 0);
	}
	assert_string_equal(what_was_said(), "make:0 placed:0");
}

TEST(a_block_of_managed_memory_is_managed)
{
	struct spill_place_request want = want_of(KIB);
	struct spill_placement *first = take(&managed, &want);
	backing[chunk_of(first)].held.managed = SPILL_SHARED_CHUNKS_CHUNK;
	struct spill_placement *next = take(&managed, &want);
	assert_int_equal(next->held.managed, KIB);
	assert_int_equal(next->held.host, 0);
}

/* The last byte of a chunk is used, and no byte behind it. */
TEST(a_full_chunk)
{
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(place_of(block_of(LARGEST)), BEGIN + i * LARGEST);
	struct spill_placement *rest = block_of(LARGEST - BEGIN);
	assert_int_equal(place_of(rest) + LARGEST - BEGIN, SPILL_SHARED_CHUNKS_CHUNK);
	assert_int_equal(chunk_of(rest), 0);
	assert_int_equal(chunk_of(block_of(1)), 1);
	assert_int_equal(chunk_of(block_of(1)), 1);
	give(rest);
	/* A place that is too small for one serves the next. */
	assert_int_equal(chunk_of(block_of(LARGEST)), 1);
	assert_int_equal(chunk_of(block_of(LARGEST - BEGIN)),
	                 1); /* the newer chunk is the first to be asked */
}

/* Two and three neighbours become one free place, whichever is given back last. */
TEST(neighbours_are_joined)
{
	static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
	                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	for (unsigned order = 0; order < 6; order++) {
		struct spill_placement *three[3];
		for (unsigned i = 0; i < 3; i++)
			three[i] = block_of(4 * KIB);
		struct spill_placement *behind = block_of(KIB);
		uint64_t begin = place_of(three[0]);
		for (unsigned i = 0; i < 3; i++)
			give(three[orders[order][i]]);
		struct spill_placement *whole = block_of(12 * KIB);
		assert_int_equal(place_of(whole), begin);
		assert_int_equal(place_of(block_of(KIB)), begin + 13 * KIB);
		give(behind);
		teardown(NULL);
		setup(NULL);
	}
}

/* A free place that lies apart from the next one is not joined with it. */
TEST(places_that_lie_apart_stay_apart)
{
	struct spill_placement *four[4];
	for (unsigned i = 0; i < 4; i++)
		four[i] = block_of(4 * KIB);
	give(four[2]);
	give(four[0]);
	assert_int_equal(place_of(block_of(8 * KIB)), BEGIN + 16 * KIB);
	assert_int_equal(place_of(block_of(4 * KIB)), BEGIN);
	assert_int_equal(place_of(block_of(4 * KIB)), BEGIN + 8 * KIB);
}

/* -- whose chunk ------------------------------------------------------------------------------- */

static unsigned chunk_for(const struct spill_place_ops *ops, struct spill_place_request want)
{
	return chunk_of(take(ops, &want));
}

/* Of one owner: a context, or where the vendor has none, a device. */
TEST(owners_share_no_chunk)
{
	struct spill_place_request want = want_of(KIB);
	assert_int_equal(chunk_for(&host, want), 0);
	want.device = 1; /* a context is of one device */
	assert_int_equal(chunk_for(&host, want), 0);
	want.context = &other_context;
	assert_int_equal(chunk_for(&host, want), 1);
	want.context = NULL;
	assert_int_equal(chunk_for(&host, want), 1); /* of device 1, whatever its context */
	want.device = 2;
	assert_int_equal(chunk_for(&host, want), 2);
	assert_int_equal(chunk_for(&host, want), 2);
	want.backend = &other_vendor;
	want.device = 0;
	assert_int_equal(chunk_for(&host, want), 3);
	want = want_of(KIB);
	assert_int_equal(chunk_for(&managed, want), 4);
	assert_int_equal(chunk_for(&host, want), 0);
}

/* Managed memory shares its advice. Other memory has none. */
TEST(advice_shares_no_chunk)
{
	struct spill_place_request want = want_of(KIB);
	assert_int_equal(chunk_for(&managed, want), 0);
	want.advice.preferred++;
	assert_int_equal(chunk_for(&managed, want), 1);
	want.advice.accessed_by_device = true;
	assert_int_equal(chunk_for(&managed, want), 2);
	want.advice.accessed_by_host = true;
	assert_int_equal(chunk_for(&managed, want), 3);
	want.advice.read_mostly = true;
	assert_int_equal(chunk_for(&managed, want), 4);
	assert_int_equal(chunk_for(&managed, want), 4);
	assert_int_equal(chunk_for(&managed, want_of(KIB)), 0);
	assert_int_equal(chunk_for(&host, want), 5);
	assert_int_equal(chunk_for(&host, want_of(KIB)), 5);
}

/* Its memory may be gone before the block is used. */
TEST(a_chunk_whose_context_ends_serves_nobody)
{
	block_of(KIB);
	struct spill_context_end end = spill_context_end_begin(&vendor, 0, &one_context);
	assert_int_equal(chunk_of(block_of(KIB)), 1);
	spill_context_end_finish(&end, true);
}

/* -- when a chunk goes ------------------------------------------------------------------------- */

/* One empty chunk stays for the next request. */
TEST(one_empty_chunk_stays)
{
	struct spill_placement *large[17];
	for (unsigned i = 0; i < 17; i++)
		large[i] = block_of(LARGEST);
	assert_int_equal(made, 3);
	what_was_said();
	for (unsigned i = 0; i < 17; i++)
		give(large[i]);
	assert_int_equal(strlen(what_was_said()), 2 * strlen("release:0") + 1);
	block_of(LARGEST);
	assert_string_equal(what_was_said(), "");
}

/* An empty chunk of another owner is not the one that stays. */
TEST(each_owner_keeps_one)
{
	struct spill_place_request theirs = want_of(KIB);
	theirs.context = &other_context;
	struct spill_placement *ours = block_of(KIB), *other = take(&host, &theirs);
	what_was_said();
	give(ours);
	give(other);
	assert_string_equal(what_was_said(), "");
	spill_shared_chunks_trim(&vendor, 0, &other_context);
	assert_string_equal(what_was_said(), "release:1");
	spill_shared_chunks_trim(&other_vendor, 0, &one_context);
	assert_string_equal(what_was_said(), "");
	spill_shared_chunks_trim(&vendor, 0, &one_context);
	assert_string_equal(what_was_said(), "release:0");
}

TEST(a_chunk_in_use_is_not_trimmed)
{
	struct spill_placement *block = block_of(KIB);
	what_was_said();
	spill_shared_chunks_trim(&vendor, 0, &one_context);
	spill_shared_chunks_context_ended(ENDED(&vendor, 0, &one_context));
	assert_string_equal(what_was_said(), "");
	give(block);
}

/* The vendor has released its memory, or is about to: it is not trimmed. */
TEST(a_chunk_ends_with_its_context)
{
	give(block_of(KIB));
	what_was_said();
	struct spill_context_end end = spill_context_end_begin(&vendor, 0, &one_context);
	spill_shared_chunks_trim(&vendor, 0, &one_context);
	assert_string_equal(what_was_said(), "");
	spill_shared_chunks_context_ended(&end);
	assert_string_equal(what_was_said(), "ended:0");
	spill_context_end_finish(&end, false);
}

/* The last block of one is freed while the context ends. One that outlives it is none to keep beside it. */
TEST(an_empty_chunk_of_an_ending_context_is_no_surplus)
{
	struct spill_placement *old = block_of(KIB);
	struct spill_context_end end = spill_context_end_begin(&vendor, 0, &one_context);
	struct spill_placement *new = block_of(KIB);
	what_was_said();
	give(old);
	give(new);
	assert_string_equal(what_was_said(), "");
	spill_shared_chunks_context_ended(&end);
	assert_string_equal(what_was_said(), "ended:0");
	spill_context_end_finish(&end, false);
	spill_shared_chunks_trim(&vendor, 0, &one_context);
	assert_string_equal(what_was_said(), "release:1");
}

static void visit(const struct spill_placement *chunk, void *data)
{
	assert_ptr_equal(data, &one_context);
	say("visit", (uint64_t)(chunk - backing));
}

TEST(each_chunk_is_visited_once)
{
	struct spill_place_request theirs = want_of(KIB);
	theirs.context = &other_context;
	block_of(KIB);
	take(&host, &theirs);
	what_was_said();
	unsigned locks = locks_taken();
	spill_shared_chunks_each(visit, &one_context);
	assert_int_equal(locks_taken(), locks + 1);
	assert_string_equal(what_was_said(), "visit:1 visit:0");
}

/* -- failures ---------------------------------------------------------------------------------- */

TEST(a_place_that_refuses)
{
	const char *error = NULL;
	const struct spill_place_request want = want_of(KIB);
	refused = true;
	assert_null(spill_shared_chunks_make(&host, &want, &error));
	assert_string_equal(error, "host.limit");
	assert_string_equal(what_was_said(), "");
	refused = false;
	assert_non_null(block_of(KIB));
	assert_string_equal(what_was_said(), "make:0 placed:0");
}

/* Of a block, of what its release needs, of a chunk and of its first free place. */
TEST(without_memory_for_bookkeeping)
{
	for (unsigned call = 1; call <= 4; call++) {
		const char *error = NULL;
		const struct spill_place_request want = want_of(KIB);
		fake_libc_fail(FAKE_calloc, call, 1, ENOMEM);
		assert_null(spill_shared_chunks_make(&host, &want, &error));
		assert_string_equal(error, "no memory for bookkeeping");
		fake_libc_reset();
	}
	assert_string_equal(what_was_said(), "");
}
