/* The reserve of each device: kept from requests once the device has begun to spill, with few looks; grown by what loads need. */
#define SETUP setup
#include "unit.h"
#include "captures.h"
#include "contexts.h"
#include "fake_objects.h"

#include <string.h>

#include "demote.h"
#include "fake_clock.h"
#include "chunked.h"
#include "movable.h"
#include "reserve_keeper.h"
#include "reserve_pieces.h"
#include "process.h"
#include "trim.h"
#include "note.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define MS 1000000ull

static struct spill_policy policy;
static struct spill_backend vendor;
static uint64_t total_bytes, free_bytes[2], pool_bytes; /* what a pool does not use */
static int memory_result;                               /* of the question for these */
static unsigned looks, notes, trims;
static char noted[256]; /* the last */

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
	if (strcmp(code, "movable") == 0) /* of spill_movable_forbid */
		return;
	assert_string_equal(code, "reserve");
	strncpy(noted, text, sizeof(noted) - 1);
	assert_true(strstr(text, ": cuLoad needed") || strstr(text, ": NCCL or its like works") ||
	            strstr(text, ": nothing can move there, and so nothing makes room"));
	notes++;
}

static int memory(int device, uint64_t *free, uint64_t *total)
{
	looks++;
	*free = free_bytes[device];
	*total = total_bytes;
	return memory_result;
}

/* The pool's memory is not charged, so its use is of no matter. */
static int pool_reserved(void *pool, uint64_t *bytes)
{
	*bytes = pool_bytes;
	return 0;
}

static int pool_unused(void *pool, uint64_t *bytes)
{
	return pool_reserved(pool, bytes);
}

static int pool_trim(void *pool)
{
	trims++;
	free_bytes[0] += pool_bytes;
	pool_bytes = 0;
	return 0;
}

static int pool_default(int device, void **pool)
{
	*pool = &pool_bytes;
	return device;
}
static const struct spill_vendor_devices devices = {.memory = memory};
static const struct spill_vendor_pools pools = {.reserved = pool_reserved,
                                                .unused = pool_unused,
                                                .trim = pool_trim,
                                                .device_default = pool_default,
                                                .current = pool_default};

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 64 * MIB};
	vendor = (struct spill_backend){.devices = &devices, .pools = &pools};
	fake_clock_use(1000 * MS);
	spill_process_use_policy(&policy);
	total_bytes = 16 * GIB;
	free_bytes[0] = free_bytes[1] = GIB;
	pool_bytes = 0;
	memory_result = 0;
	looks = notes = trims = 0;
	spill_reserve_pieces_reset();
	spill_reserve_keeper_reset();
	return 0;
}

static const struct spill_vendor_moves moves;

/* As the engine asks. */
static bool asks(int device, uint64_t bytes)
{
	const struct spill_taking taking = {bytes, bytes};
	return spill_reserve_allows_at_once(device, bytes, fake_clock.ns) ||
	       spill_reserve_allows(&vendor, device, &taking, "", NULL);
}

/* And the driver serves. */
static bool served(int device, uint64_t bytes)
{
	if (!asks(device, bytes))
		return false;
	free_bytes[device] -= bytes;
	spill_reserve_answered(device, bytes);
	return true;
}

TEST(begins_by_device)
{
	assert_false(spill_reserve_is_kept(0));
	assert_false(spill_reserve_any());
	spill_reserve_begin(1);
	assert_true(spill_reserve_is_kept(1));
	assert_false(spill_reserve_is_kept(0));
	assert_true(spill_reserve_any());
	spill_reserve_begin(SPILL_DEVICES);
	spill_reserve_begin(-1);
	assert_false(spill_reserve_is_kept(SPILL_DEVICES));
	assert_false(spill_reserve_is_kept(-1));
}

TEST(nothing_to_keep)
{
	policy.device_reserves[0] = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	spill_reserve_begin(0);
	assert_false(spill_reserve_is_kept(0));
}

/* Its memory is the host's. What a load needs does not bring the reserve back. */
TEST(a_device_that_is_left_out)
{
	spill_reserve_leave_out(0);
	spill_reserve_leave_out(SPILL_DEVICES);
	spill_reserve_leave_out(-1);
	assert_int_equal(spill_reserve_size(0), 0);
	assert_int_equal(spill_reserve_size(1), 64 * MIB);
	assert_false(spill_reserve_begin(0));
	assert_false(spill_reserve_is_kept(0));
	assert_false(spill_reserve_grow(0, 100 * MIB));
	assert_int_equal(spill_reserve_size(0), 0);
	assert_true(spill_reserve_begin(1));
	assert_true(spill_reserve_is_kept(1));
}

/* A look lasts until what it left is given out, or is old. */
TEST(few_looks)
{
	spill_reserve_begin(0);
	for (unsigned i = 0; i < 100; i++)
		assert_true(served(0, 4 * MIB));
	assert_int_equal(looks, 1);
	fake_clock.ns += SPILL_RESERVE_LOOK_MS * MS;
	assert_true(served(0, 4 * MIB));
	assert_int_equal(looks, 2);
}

/* With more than an eighth of the device free, a look lasts ten times as long. */
TEST(fewer_looks_with_much_room)
{
	static const unsigned after[] = {1, 8, 1}, expected[2][3] = {{2, 3, 4}, {1, 1, 2}};
	spill_reserve_begin(0);
	for (unsigned more = 0; more < 2; more++) {
		free_bytes[0] = 2 * GIB + more;
		fake_clock.ns += 10 * SPILL_RESERVE_LOOK_MS * MS;
		looks = 0;
		assert_true(served(0, 4 * MIB));
		for (unsigned i = 0; i < 3; i++) {
			free_bytes[0] = 2 * GIB + more;
			fake_clock.ns += after[i] * SPILL_RESERVE_LOOK_MS * MS;
			assert_true(served(0, 4 * MIB));
			assert_int_equal(looks, expected[more][i]);
		}
	}
}

TEST(leaves_it)
{
	spill_reserve_begin(0);
	while (served(0, 4 * MIB))
		;
	assert_in_range(free_bytes[0], 64 * MIB, 68 * MIB - 1);
	/* Small requests share blocks of 2 MiB: none begins one that it must not. */
	free_bytes[0] = 66 * MIB - 1;
	assert_false(asks(0, 4096));
	free_bytes[0] = 66 * MIB;
	assert_true(asks(0, 4096));
}

/* Others take memory between two looks. */
TEST(a_look_grows_old)
{
	spill_reserve_begin(0);
	assert_true(served(0, 2 * MIB));
	free_bytes[0] = 70 * MIB;
	assert_true(spill_reserve_allows_at_once(0, 4 * MIB, fake_clock.ns)); /* it is not known yet */
	spill_reserve_answered(0, 4 * MIB);
	fake_clock.ns += SPILL_RESERVE_LOOK_MS * MS;
	assert_false(asks(0, 8 * MIB));
	assert_true(asks(0, 6 * MIB));
}

/* A refusal is never by an old look. */
TEST(a_free_is_seen_at_once)
{
	spill_reserve_begin(0);
	free_bytes[0] = 64 * MIB;
	assert_false(asks(0, 2 * MIB));
	free_bytes[0] += 20 * MIB;
	assert_true(asks(0, 20 * MIB));
}

TEST(each_device_has_its_own)
{
	spill_reserve_begin(0);
	spill_reserve_begin(1);
	free_bytes[0] = 64 * MIB;
	assert_false(asks(0, 2 * MIB));
	assert_true(served(1, 512 * MIB));
	assert_false(asks(0, 2 * MIB));
	looks = 0;
	assert_true(served(1, 128 * MIB));
	assert_int_equal(looks, 0);
}

/* Two threads at once: what the driver is being asked for counts as taken. */
TEST(what_is_pending_counts)
{
	spill_reserve_begin(0);
	free_bytes[0] = 264 * MIB;
	assert_true(asks(0, 150 * MIB));
	assert_false(asks(0, 100 * MIB));
	spill_reserve_answered(0, 150 * MIB); /* refused */
	assert_true(asks(0, 100 * MIB));
}

/* Its own word is the truest, once what pools do not use has come back. */
TEST(the_driver_refuses_itself)
{
	spill_reserve_begin(0);
	free_bytes[0] = 10 * MIB;
	assert_true(asks(0, 20 * MIB));
	spill_reserve_answered(0, 20 * MIB);
	assert_int_equal(trims, 1);
	pool_bytes = 5 * MIB; /* not enough for the request either */
	assert_true(asks(0, 20 * MIB));
	spill_reserve_answered(0, 20 * MIB);
	assert_int_equal(trims, 2);
	free_bytes[0] = 10 * MIB;
	pool_bytes = 20 * MIB;
	assert_false(asks(0, 20 * MIB));
	pool_bytes = 100 * MIB;
	free_bytes[0] = 10 * MIB;
	assert_true(asks(0, 20 * MIB));
	spill_reserve_answered(0, 20 * MIB);
	assert_true(asks(0, UINT64_MAX));
}

/* Then the reserve is what is short, whether or not pools had to give back before. */
TEST(the_driver_has_just_enough)
{
	spill_reserve_begin(0);
	free_bytes[0] = 20 * MIB;
	assert_false(asks(0, 20 * MIB));
	assert_int_equal(trims, 0);
	free_bytes[0] = 10 * MIB;
	pool_bytes = 10 * MIB;
	assert_false(asks(0, 20 * MIB));
	assert_int_equal(trims, 1);
}

/* Free memory is told as 0 without a context. */
TEST(what_is_not_known_is_the_driver_s)
{
	spill_reserve_begin(0);
	free_bytes[0] = 0;
	assert_true(asks(0, 20 * MIB));
	spill_reserve_answered(0, 20 * MIB);
	assert_int_equal(trims, 0);
	free_bytes[0] = 10 * MIB;
	for (unsigned fails = 0; fails < 2; fails++) {
		memory_result = (int)fails;
		total_bytes = fails ? 16 * GIB : 0;
		assert_true(asks(0, 5 * MIB));
		spill_reserve_answered(0, 5 * MIB);
		assert_false(spill_reserve_is_short(&vendor, 0, 1));
	}
}

/* A look says what may be given out without another one, to the byte. */
TEST(all_that_a_look_left_is_given_out)
{
	spill_reserve_begin(0);
	free_bytes[0] = 64 * MIB + SPILL_RESERVE_BLOCK + 10 * MIB;
	assert_true(asks(0, 4 * MIB));
	assert_false(spill_reserve_allows_at_once(0, 6 * MIB + 1, fake_clock.ns));
	assert_true(spill_reserve_allows_at_once(0, 6 * MIB, fake_clock.ns));
	assert_false(spill_reserve_allows_at_once(0, 1, fake_clock.ns));
	spill_reserve_answered(0, 10 * MIB);
}

/* Each pause is over when its time has passed. */
TEST(a_pause_ends_with_its_time)
{
	spill_reserve_begin(0);
	free_bytes[0] = 10 * MIB;
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 2); /* in vain */
	fake_clock.ns += SPILL_RESERVE_VAIN_MS * MS - 1;
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 2);
	fake_clock.ns++;
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 4);
}

TEST(no_more_than_an_eighth_is_kept)
{
	policy.device_reserve.value = 8 * GIB;
	spill_reserve_begin(0);
	free_bytes[0] = 3 * GIB;
	assert_true(asks(0, GIB));
	spill_reserve_answered(0, GIB);
	assert_false(asks(0, GIB + 2 * MIB));
	assert_int_equal(spill_reserve_size(0), 8 * GIB);
}

TEST(refilled_by_what_is_not_used)
{
	free_bytes[0] = 10 * MIB;
	pool_bytes = 80 * MIB;
	spill_reserve_whole(&vendor, 0, "", NULL);
	assert_int_equal(looks + trims, 0);
	spill_reserve_begin(0);
	spill_reserve_whole(&vendor, 0, "", NULL);
	assert_int_equal(free_bytes[0], 90 * MIB);
	/* In vain once: a request does not try again for a second. */
	free_bytes[0] = 10 * MIB;
	fake_clock.ns += SPILL_RESERVE_LOOK_MS * MS;
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	trims = looks = 0;
	fake_clock.ns += SPILL_RESERVE_LOOK_MS * MS;
	pool_bytes = 80 * MIB;
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks + trims, 0);
	/* But code does, which may find no room: the program may have freed memory of a pool. */
	spill_reserve_whole(&vendor, 0, "", NULL);
	assert_int_equal(free_bytes[0], 90 * MIB);
}

/* Every so often, and sooner when so much was given out. */
TEST(the_driver_is_not_asked_at_each_request)
{
	spill_reserve_begin(0);
	free_bytes[0] = spill_reserve_size(0);
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 1);
	fake_clock.ns += SPILL_RESERVE_LOOK_MS * MS - 1;
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 1);
	fake_clock.ns++;
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 2);
	spill_reserve_taken(0, SPILL_RESERVE_TAKEN - 1);
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 2);
	spill_reserve_taken(0, 1);
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 3);
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 3);
}

/* An eighth of what the last look left beyond the reserve is given out before the next one. */
TEST(a_device_with_much_room_is_asked_more_rarely)
{
	uint64_t left = 800 * MIB;
	spill_reserve_begin(0);
	free_bytes[0] = left + spill_reserve_size(0) + SPILL_RESERVE_BLOCK;
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 1);
	spill_reserve_taken(0, left / 8 - 1);
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 1);
	spill_reserve_taken(0, 1);
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 2);
}

/* Where nothing can move, and no pool has memory that it does not use. */
TEST(without_moves_code_is_content_with_one_vain_try_a_second)
{
	spill_reserve_begin(0);
	free_bytes[0] = 10 * MIB;
	for (unsigned ms = 0; ms < SPILL_RESERVE_VAIN_MS; ms++) {
		spill_reserve_whole(&vendor, 0, "", NULL);
		fake_clock.ns += MS;
	}
	assert_in_range(looks, 1, 4);
}

/* So that thousands of loads on a device that stays full cost little. */
TEST(code_looks_more_and_more_rarely_in_vain)
{
	vendor.moves = &moves;
	spill_reserve_begin(0);
	free_bytes[0] = 10 * MIB;
	for (unsigned ms = 0; ms < 1000; ms++) {
		spill_reserve_whole(&vendor, 0, "", NULL);
		fake_clock.ns += MS;
	}
	assert_in_range(looks, 10, 60);
	/* As often as before, once there was room. */
	free_bytes[0] = GIB;
	fake_clock.ns += SPILL_RESERVE_VAIN_MS * MS;
	spill_reserve_whole(&vendor, 0, "", NULL);
	looks = 0;
	for (unsigned ms = 0; ms < 10; ms++) {
		fake_clock.ns += MS;
		spill_reserve_whole(&vendor, 0, "", NULL);
	}
	assert_int_equal(looks, 10);
	/* And so it begins anew: a pause is over when its time has passed, and the next one is twice as long. */
	free_bytes[0] = 10 * MIB;
	fake_clock.ns += MS;
	for (unsigned pause = 1; pause <= 8; pause *= 2) {
		looks = 0;
		spill_reserve_whole(&vendor, 0, "", NULL);
		assert_int_equal(looks, 2);
		fake_clock.ns += pause * MS - 1;
		spill_reserve_whole(&vendor, 0, "", NULL);
		assert_int_equal(looks, 2);
		fake_clock.ns++;
	}
}

/* The pause of requests is one of code only where nothing can move. */
TEST(code_looks_in_a_pause_of_requests_if_memory_can_move)
{
	for (unsigned moving = 0; moving < 2; moving++) {
		setup(NULL);
		vendor.moves = moving ? &moves : NULL;
		spill_reserve_begin(0);
		free_bytes[0] = 10 * MIB;
		spill_reserve_keep(&vendor, 0, 0, "", NULL);
		looks = 0;
		spill_reserve_whole(&vendor, 0, "", NULL);
		assert_int_equal(looks != 0, moving);
	}
}

/* A look of a request is content with half of the reserve. Code that is loaded a moment later is not. */
TEST(code_looks_although_a_request_has_just_looked)
{
	spill_reserve_begin(0);
	free_bytes[0] = 40 * MIB;
	pool_bytes = 32 * MIB;
	spill_reserve_keep(&vendor, 0, 0, "", NULL);
	assert_int_equal(looks, 1);
	assert_int_equal(free_bytes[0], 40 * MIB);
	spill_reserve_whole(&vendor, 0, "", NULL);
	assert_int_equal(free_bytes[0], 72 * MIB);
	/* Once a millisecond: loads come in thousands. */
	free_bytes[0] = 40 * MIB;
	pool_bytes = 32 * MIB;
	spill_reserve_whole(&vendor, 0, "", NULL);
	assert_int_equal(free_bytes[0], 40 * MIB);
	fake_clock.ns += MS;
	spill_reserve_whole(&vendor, 0, "", NULL);
	assert_int_equal(free_bytes[0], 72 * MIB);
}

/* The unused memory that counts for a request of the pool. */
static uint64_t counts(const void *pool, uint64_t bytes, uint64_t unused)
{
	return spill_reserve_unused(0, &(struct spill_pool_request){pool, bytes, unused, 0});
}

/* A pool with 100 MiB in pieces has grown for 18. */
TEST(pieces_count_again_when_the_program_has_freed_as_much)
{
	static const char pool, other;
	const struct spill_pool_request grown = {&pool, 18 * MIB, 100 * MIB};
	spill_reserve_begin(0);
	assert_int_equal(counts(&pool, 18 * MIB, 100 * MIB), 100 * MIB);
	assert_false(spill_reserve_fell(&vendor, 0, &grown)); /* the device has enough */
	assert_int_equal(counts(&pool, 18 * MIB, 100 * MIB), 100 * MIB);
	free_bytes[0] = 64 * MIB; /* just enough */
	assert_false(spill_reserve_fell(&vendor, 0, &grown));
	free_bytes[0] = 40 * MIB;
	assert_true(spill_reserve_fell(&vendor, 0, &grown));
	fake_clock.ns += 3600 * 1000 * MS; /* no time ends it */
	assert_int_equal(counts(&pool, 18 * MIB, 100 * MIB), 0);
	assert_int_equal(counts(&pool, 36 * MIB, 117 * MIB), 0);
	/* Smaller ones may fit, and other pools may have more. */
	assert_int_equal(counts(&pool, 17 * MIB, 100 * MIB), 100 * MIB);
	assert_int_equal(counts(&other, 18 * MIB, 100 * MIB), 100 * MIB);
	/* The step that was given back is not freed by the program. */
	assert_int_equal(counts(&pool, 18 * MIB, 68 * MIB), 0);
	assert_int_equal(counts(&pool, 18 * MIB, 85 * MIB), 0);
	assert_true(spill_reserve_fell(&vendor, 0, &(struct spill_pool_request){&pool, 18 * MIB, 68 * MIB}));
	assert_int_equal(counts(&pool, 18 * MIB, 86 * MIB), 0); /* too soon */
	fake_clock.ns += SPILL_RESERVE_CLOSED_MS * MS;
	assert_int_equal(counts(&pool, 18 * MIB, 86 * MIB), 86 * MIB);
	assert_int_equal(counts(&pool, 18 * MIB, 68 * MIB), 68 * MIB);
}

/* What the program frees is counted from the least that the pool had. */
TEST(pieces_that_were_used_and_freed)
{
	static const char pool;
	spill_reserve_begin(0);
	free_bytes[0] = 40 * MIB;
	assert_true(spill_reserve_fell(&vendor, 0, &(struct spill_pool_request){&pool, 18 * MIB, 100 * MIB}));
	assert_int_equal(counts(&pool, 18 * MIB, 68 * MIB), 0);
	fake_clock.ns += SPILL_RESERVE_CLOSED_MS * MS;
	assert_int_equal(counts(&pool, 18 * MIB, 85 * MIB), 0);
	assert_int_equal(counts(&pool, 18 * MIB, 86 * MIB), 86 * MIB);
}

/* What the pool of 100 MiB took from the reserve, by figures of the pool a moment later. */
static bool is_in_pool(const void *pool, uint64_t reserved)
{
	return spill_reserve_is_in_pool(&vendor, 0,
	                                &(struct spill_pool_request){pool, MIB, 50 * MIB, reserved});
}

TEST(a_pool_has_what_it_took_from_the_reserve_until_it_gives_it_back)
{
	static const char pool, other;
	const struct spill_pool_request grown = {&pool, 18 * MIB, 60 * MIB, 132 * MIB};
	for (unsigned refilled = 0; refilled < 2; refilled++) {
		spill_reserve_begin(0);
		free_bytes[0] = 40 * MIB;
		assert_false(is_in_pool(&pool, 132 * MIB));
		assert_true(spill_reserve_fell(&vendor, 0, &grown));
		assert_true(is_in_pool(&pool, 132 * MIB));
		assert_true(is_in_pool(&pool, 164 * MIB));
		assert_false(is_in_pool(&other, 164 * MIB));
		/* Given back; or others have filled the reserve up. */
		if (refilled)
			free_bytes[0] = 64 * MIB;
		assert_false(is_in_pool(&pool, refilled ? 132 * MIB : 100 * MIB));
		free_bytes[0] = 40 * MIB;
		assert_false(is_in_pool(&pool, 132 * MIB));
		spill_reserve_keeper_reset();
	}
}

/* The least request of the pool that did not fit counts. */
TEST(pieces_of_the_least_request)
{
	static const char pool, other;
	spill_reserve_begin(0);
	free_bytes[0] = 40 * MIB;
	assert_true(spill_reserve_fell(&vendor, 0, &(struct spill_pool_request){&pool, 18 * MIB, 100 * MIB}));
	assert_true(spill_reserve_fell(&vendor, 0, &(struct spill_pool_request){&pool, 30 * MIB, 100 * MIB}));
	assert_int_equal(counts(&pool, 18 * MIB, 100 * MIB), 0);
	assert_true(
	    spill_reserve_fell(&vendor, 0, &(struct spill_pool_request){&other, 30 * MIB, 100 * MIB}));
	assert_int_equal(counts(&other, 18 * MIB, 100 * MIB), 100 * MIB);
	assert_int_equal(counts(&other, 30 * MIB, 100 * MIB), 0);
	assert_false(spill_reserve_fell(&vendor, -1, &(struct spill_pool_request){&pool, 1, 1}));
	assert_int_equal(spill_reserve_unused(SPILL_DEVICES, &(struct spill_pool_request){&pool, 1, 5}), 5);
}

static void load(int device, uint64_t bytes, bool refused)
{
	struct spill_code_load load = spill_reserve_load_begin(&vendor, device, refused);
	free_bytes[device] -= bytes;
	spill_reserve_load_end(&vendor, device, &load, "cuLoad");
	free_bytes[device] += bytes;
	fake_clock.ns += MS;
}

TEST(grows)
{
	load(0, 100 * MIB, false); /* before the first spill nobody looks */
	assert_int_equal(looks, 0);
	spill_reserve_begin(0);
	load(0, 64 * MIB, false);
	assert_int_equal(spill_reserve_size(0), 64 * MIB);
	load(0, 100 * MIB, false);
	assert_int_equal(spill_reserve_size(0), 100 * MIB);
	load(0, 90 * MIB, false);
	assert_int_equal(spill_reserve_size(0), 100 * MIB);
	assert_int_equal(spill_reserve_size(1), 64 * MIB);
	load(1, 90 * MIB, true); /* it was refused before: also without a spill */
	assert_int_equal(spill_reserve_size(1), 90 * MIB);
	assert_string_equal(noted,
	                    "device.reserve of device 1 grows to 90.00 MiB: cuLoad needed more than was "
	                    "kept free");
	free_bytes[0] = 8 * GIB;
	load(0, 4 * GIB, false);
	assert_int_equal(spill_reserve_size(0), SPILL_RESERVE_MOST);
	assert_int_equal(notes, 3);
	free_bytes[0] = SPILL_RESERVE_MOST + 20 * MIB;
	assert_false(asks(0, 22 * MIB));
}

static void keep(int device)
{
	fake_clock.ns += SPILL_RESERVE_VAIN_MS * MS;
	spill_reserve_keep(&vendor, device, 0, "", NULL);
}

/* A context on another device, and a library that exchanges memory. */
TEST(grows_where_libraries_work_together)
{
	static char one, other;
	USE_FAKE_OBJECTS({0, 1, ""}, {1, 1, "/usr/lib/libc.so.6"}, {2, 1, "/x/nccl/lib/libnccl.so.2"});
	spill_reserve_begin(0);
	spill_contexts_made(&vendor, 0, &one);
	keep(0);
	assert_int_equal(spill_reserve_size(0), 64 * MIB);
	spill_contexts_made(&vendor, 1, &other);
	USE_FAKE_OBJECTS({0, 1, ""}, {1, 1, "/usr/lib/libc.so.6"});
	keep(0);
	assert_int_equal(spill_reserve_size(0), 64 * MIB);
	assert_int_equal(notes, 0);
	USE_FAKE_OBJECTS({0, 1, ""}, {1, 1, "/usr/lib/libc.so.6"}, {2, 1, "/x/nccl/lib/libnccl.so.2"});
	keep(0);
	assert_int_equal(spill_reserve_size(0), SPILL_RESERVE_TOGETHER);
	assert_int_equal(notes, 1);
	/* Nobody looks again. The other device is looked at when its memory is short. */
	unsigned looked = fake_object_looks;
	keep(0);
	assert_int_equal(fake_object_looks, looked);
	assert_int_equal(spill_reserve_size(1), 64 * MIB);
	spill_reserve_begin(1);
	keep(1);
	assert_int_equal(spill_reserve_size(1), SPILL_RESERVE_TOGETHER);
}

/* A look visits all objects of the process. One that found nothing is repeated after a second, not at each request. */
TEST(libraries_are_looked_for_once_a_second)
{
	static char one, other;
	USE_FAKE_OBJECTS({0, 1, ""}, {1, 1, "/usr/lib/libc.so.6"});
	spill_reserve_begin(0);
	spill_contexts_made(&vendor, 0, &one);
	spill_contexts_made(&vendor, 1, &other);
	keep(0);
	for (unsigned second = 0; second < 3; second++) {
		unsigned looked = fake_object_looks, ms;
		for (ms = 0; ms + SPILL_RESERVE_LOOK_MS < SPILL_RESERVE_VAIN_MS;
		     ms += SPILL_RESERVE_LOOK_MS) {
			fake_clock.ns += SPILL_RESERVE_LOOK_MS * MS;
			spill_reserve_keep(&vendor, 0, 0, "", NULL);
		}
		assert_int_equal(fake_object_looks, looked);
		fake_clock.ns += (SPILL_RESERVE_VAIN_MS - ms) * MS;
		spill_reserve_keep(&vendor, 0, 0, "", NULL);
		assert_true(fake_object_looks > looked);
	}
}

TEST(grows_by_nothing_else)
{
	spill_reserve_begin(0);
	struct spill_code_load load = spill_reserve_load_begin(&vendor, 0, false);
	spill_reserve_taken(0, 200 * MIB); /* by another thread */
	free_bytes[0] -= 200 * MIB;
	spill_reserve_load_end(&vendor, 0, &load, "cuLoad");
	assert_int_equal(spill_reserve_size(0), 64 * MIB);
	assert_int_equal(notes, 0);
}

/* What a device of that size keeps, if a request asks there. */
static uint64_t kept_of(uint64_t total)
{
	total_bytes = total;
	vendor.loses_code = true;
	spill_reserve_is_at_risk(&vendor, 0, fake_clock.ns);
	fake_clock.ns += SPILL_RESERVE_LOOK_MS * MS;
	spill_reserve_is_at_risk(&vendor, 0, fake_clock.ns);
	return spill_reserve_size(0);
}

/* Four times as much as otherwise, once, and not more than 256 MiB. Not on a small device. */
TEST(more_is_kept_where_nothing_can_move)
{
	static const struct {
		uint64_t option, total, kept;
	} cases[] = {{64, 4096, 256}, {16, 4096, 64},  {65, 4096, 256},  {256, 4096, 256}, {300, 4096, 300},
	             {0, 4096, 0},    {64, 2048, 256}, {200, 2048, 256}, {64, 2047, 64}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		setup(NULL);
		policy.device_reserve.value = cases[i].option * MIB;
		policy.movable_enable = SPILL_SWITCH_OFF;
		assert_int_equal(kept_of(cases[i].total * MIB), cases[i].kept * MIB);
		assert_int_equal(notes, cases[i].kept != cases[i].option);
	}
	/* Where memory can move, it makes room. */
	setup(NULL);
	vendor.moves = &moves;
	assert_int_equal(kept_of(4096 * MIB), 64 * MIB);
	/* And for that reason it cannot any more. */
	spill_movable_forbid("a test");
	assert_int_equal(kept_of(4096 * MIB), 256 * MIB);
	spill_movable_reset();
}

/* Only a device of ours, by a driver that loses code, where something is kept. */
TEST(code_is_at_risk)
{
	vendor.loses_code = true;
	assert_true(spill_reserve_is_at_risk(&vendor, 0, fake_clock.ns));
	assert_false(spill_reserve_is_at_risk(&vendor, -1, fake_clock.ns));
	assert_false(spill_reserve_is_at_risk(&vendor, SPILL_DEVICES, fake_clock.ns));
	/* The answer is asked for again when it is as old as a look may be. */
	policy.mode = SPILL_MODE_OBSERVE;
	assert_true(spill_reserve_is_at_risk(&vendor, 0, fake_clock.ns + SPILL_RESERVE_LOOK_MS * MS - 1));
	assert_false(spill_reserve_is_at_risk(&vendor, 0, fake_clock.ns + SPILL_RESERVE_LOOK_MS * MS));
	policy.mode = SPILL_MODE_SPILL;
	policy.device_reserves[1] = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	assert_false(spill_reserve_is_at_risk(&vendor, 1, fake_clock.ns));
}

TEST(nothing_stays_nothing)
{
	policy.device_reserve.value = 0;
	load(0, 100 * MIB, true);
	assert_int_equal(spill_reserve_size(0), 0);
	assert_int_equal(notes, 0);
}

TEST(loads_are_measured_now_and_then)
{
	spill_reserve_begin(0);
	assert_true(spill_reserve_load_begin(&vendor, 0, false).free);
	assert_false(spill_reserve_load_begin(&vendor, 0, false).free);
	assert_true(spill_reserve_load_begin(&vendor, 0, true).free);
	fake_clock.ns += MS;
	assert_true(spill_reserve_load_begin(&vendor, 0, false).free);
}

/* The driver would be asked, and that is no part of the capture. */
TEST(in_a_capture_no_load_is_measured)
{
	spill_reserve_begin(0);
	assert_false(spill_reserve_load_begin(&vendor, -1, true).free);
	set_capturing(true);
	assert_false(spill_reserve_load_begin(&vendor, 0, true).free);
	set_capturing(false);
	struct spill_code_load load = spill_reserve_load_begin(&vendor, 0, true);
	assert_true(load.free);
	free_bytes[0] -= 100 * MIB;
	looks = 0;
	set_capturing(true);
	spill_reserve_load_end(&vendor, 0, &load, "cuLoad");
	set_capturing(false);
	spill_reserve_load_end(&vendor, -1, &load, "cuLoad");
	assert_int_equal(looks, 0);
	assert_int_equal(spill_reserve_size(0), 64 * MIB);
	spill_reserve_load_end(&vendor, 0, &load, "cuLoad");
	assert_int_equal(spill_reserve_size(0), 100 * MIB);
}

/* What these tests begin with. */
TEST(the_first_state)
{
	static const char pool;
	vendor.loses_code = true;
	assert_true(spill_reserve_begin(0));
	assert_true(spill_reserve_has_begun() && spill_reserve_is_kept(0));
	load(0, 100 * MIB, false);
	free_bytes[0] = 40 * MIB;
	assert_true(spill_reserve_fell(&vendor, 0, &(struct spill_pool_request){&pool, 18 * MIB, 100 * MIB}));
	spill_reserve_pieces_reset();
	spill_reserve_keeper_reset();
	assert_false(spill_reserve_has_begun());
	assert_false(spill_reserve_is_kept(0));
	assert_int_equal(spill_reserve_size(0), 64 * MIB);
	assert_int_equal(counts(&pool, 18 * MIB, 100 * MIB), 100 * MIB);
	/* Nor is the answer of a moment ago known, whether code is at risk. */
	free_bytes[0] = SPILL_RESERVE_DEVICE;
	assert_true(spill_reserve_is_at_risk(&vendor, 0, fake_clock.ns));
	vendor.loses_code = false;
	assert_true(spill_reserve_is_at_risk(&vendor, 0, fake_clock.ns));
	spill_reserve_keeper_reset();
	looks = 0;
	load(0, 100 * MIB, false); /* nothing is watched */
	assert_int_equal(looks, 0);
	assert_false(spill_reserve_is_at_risk(&vendor, 0, fake_clock.ns));
}
