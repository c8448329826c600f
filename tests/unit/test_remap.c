/*
 * Which memory is mapped at a chunk's addresses, for which devices, and what is there after the vendor has refused. The
 * vendor is replaced: it says what is asked of it. test_move.c and test_flight.c have it with real bytes.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "fake_clock.h"
#include "note.h"
#include "peer.h"
#include "remap.h"
#include "said.h"

#define MS 1000000ull

enum { DEVICE = 2, PEER = 4, USER = 7, OWN = 10, NEW = 20, OTHER = 30, CHUNK = 4096 };

static struct {
	struct spill_chunked chunked;
	struct spill_chunk chunks[2];
} made;
static struct spill_move move;
static unsigned calls, fail_from, fail_until; /* calls of the vendor: those in [from, until) fail */

static int answer(const char *word, uint64_t number)
{
	bool fails = ++calls >= fail_from && calls < fail_until;
	if (strlen(said) < 300)
		say(word, fails ? -(int64_t)number : (int64_t)number);
	return fails;
}

static int vendor_map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	assert_true(va == made.chunked.base.ptr + CHUNK && bytes == CHUNK);
	return answer("map", handle);
}

static int vendor_unmap(uint64_t va, uint64_t bytes)
{
	assert_true(va == made.chunked.base.ptr + CHUNK && bytes == CHUNK);
	return answer("unmap", 1);
}

static int vendor_allow(uint64_t va, uint64_t bytes, int device)
{
	assert_true(va == made.chunked.base.ptr + CHUNK && bytes == CHUNK);
	return answer("allow", (uint64_t)device);
}

static const struct spill_vendor_vmm vmm = {.map = vendor_map, .unmap = vendor_unmap, .allow = vendor_allow};
static const struct spill_backend vendor = {.vmm = &vmm};

unsigned spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES])
{
	list[0] = PEER;
	return 1;
}

void spill_note(const char *code, const char *text)
{
	say(strstr(text, "accessible") ? "note access" : "note lost", 0);
}

uint64_t spill_chunked_address(const struct spill_chunked *chunked, unsigned index)
{
	return chunked->base.ptr + chunked->chunks[index].offset;
}

static int setup(void **state)
{
	memset(&made, 0, sizeof(made));
	made.chunked.base.ptr = 1 << 20;
	made.chunked.count = 2;
	made.chunks[1] = (struct spill_chunk){.handle = OWN, .bytes = CHUNK, .offset = CHUNK};
	move = (struct spill_move){.chunked = &made.chunked, .index = 1, .handle = NEW};
	calls = fail_from = fail_until = 0;
	fake_clock_use(0);
	what_was_said();
	return 0;
}

static void refuse(unsigned from, unsigned until)
{
	calls = 0;
	fail_from = from;
	fail_until = until;
}

/* Each of these calls takes the memory that the chunk has, and leaves the handle to the mover. */
static void assert_mapping(bool unmapped, bool wrong)
{
	assert_int_equal(made.chunks[1].unmapped, unmapped);
	assert_int_equal(made.chunks[1].wrong_memory, wrong);
	assert_int_equal(made.chunks[1].handle, OWN);
}

TEST(new_memory_for_all_who_use_it)
{
	made.chunked.users = 1ull << DEVICE | 1ull << USER;
	assert_true(spill_remap_new(&vendor, DEVICE, &move));
	assert_string_equal(what_was_said(), "unmap:1 map:20 allow:2 allow:4 allow:7");
	assert_mapping(false, false);
}

/* Memory that the program maps itself: it gives access by range, to peers as well. */
TEST(a_set_is_for_those_to_whom_the_program_gave_it)
{
	made.chunked.set = true;
	made.chunked.users = 1ull << DEVICE | 1ull << (SPILL_DEVICES - 1);
	assert_true(spill_remap_new(&vendor, DEVICE, &move));
	assert_string_equal(what_was_said(), "unmap:1 map:20 allow:2 allow:31");
}

/* Each refusal leaves the old memory there, with access by all. */
TEST(the_old_memory_comes_back)
{
	static const char *const said_of[] = {
	    "unmap:-1",
	    "unmap:1 map:-20 map:10 allow:2 allow:4",
	    "unmap:1 map:20 allow:-2 unmap:1 map:10 allow:2 allow:4",
	    "unmap:1 map:20 allow:2 allow:-4 unmap:1 map:10 allow:2 allow:4",
	};
	for (unsigned i = 0; i < 4; i++) {
		setup(NULL);
		refuse(i + 1, i + 2);
		assert_false(spill_remap_new(&vendor, DEVICE, &move));
		assert_string_equal(what_was_said(), said_of[i]);
		assert_mapping(false, false);
	}
}

/* Neither memory can be mapped for 31 ms. The chunk is lost until later. */
TEST(a_chunk_that_is_lost_and_found)
{
	refuse(2, UINT32_MAX);
	assert_false(spill_remap_new(&vendor, DEVICE, &move));
	assert_int_equal(fake_clock.slept_ns, 31 * MS);
	assert_string_equal(what_was_said(),
	                    "unmap:1 map:-20 map:-10 map:-20 map:-10 map:-20 map:-10 map:-20 "
	                    "map:-10 map:-20 map:-10 map:-20 note lost:0");
	assert_mapping(true, false);
	assert_false(spill_remap_lost(&vendor, DEVICE, &move));
	assert_mapping(true, false);
	refuse(0, 0);
	what_was_said();
	assert_true(spill_remap_lost(&vendor, DEVICE, &move));
	assert_string_equal(what_was_said(), "map:10 allow:2 allow:4");
	assert_mapping(false, false);
	assert_true(spill_remap_lost(&vendor, DEVICE, &move));
	assert_string_equal(what_was_said(), "");
}

/* Other memory is there that the vendor does not unmap. It is noted as wrong until that succeeds. */
TEST(other_memory_that_stays)
{
	assert_true(spill_remap_other(&vendor, DEVICE, &move, OTHER));
	assert_string_equal(what_was_said(), "unmap:1 map:30 allow:2 allow:4");
	assert_mapping(true, true);
	made.chunks[1].parked = true;
	refuse(1, UINT32_MAX);
	spill_remap_own(&vendor, DEVICE, &move);
	assert_int_equal(fake_clock.slept_ns, 31 * MS);
	assert_non_null(strstr(what_was_said(), "note access:0"));
	assert_mapping(true, true);
	assert_true(made.chunks[1].parked);
	refuse(0, 0);
	spill_remap_own(&vendor, DEVICE, &move);
	assert_string_equal(what_was_said(), "unmap:1 map:10 allow:2 allow:4");
	assert_mapping(false, false);
	assert_false(made.chunks[1].parked);
	spill_remap_own(&vendor, DEVICE, &move); /* its own is there */
	assert_string_equal(what_was_said(), "");
}

/* The new memory is in its place already, and did not get the content. */
TEST(the_old_memory_takes_its_place_again)
{
	spill_remap_old(&vendor, DEVICE, &move);
	assert_string_equal(what_was_said(), "unmap:1 map:10 allow:2 allow:4");
	assert_mapping(false, false);
	refuse(1, UINT32_MAX);
	spill_remap_old(&vendor, DEVICE, &move); /* the new memory stays there */
	assert_mapping(true, true);
}

TEST(no_memory_at_all)
{
	refuse(1, 2);
	assert_false(spill_remap_none(&vendor, DEVICE, &move));
	assert_mapping(false, false);
	assert_true(spill_remap_none(&vendor, DEVICE, &move));
	assert_mapping(true, false);
	assert_string_equal(what_was_said(), "unmap:-1 unmap:1");
	assert_false(spill_remap_none(&vendor, DEVICE, &move)); /* there is none */
	assert_string_equal(what_was_said(), "");
}
