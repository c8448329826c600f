/*
 * The places against a vendor that counts: where the bytes go, and that nothing stays behind whichever call fails.
 */
#define SETUP setup
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "account.h"
#include "fake_vendor.h"
#include "fake_libc.h"
#include "heap.h"
#include "place.h"
#include "shared_chunks.h"

#define MIB (1ull << 20)

static struct spill_policy policy;

/* What is available on the machine, where a test says it, in KiB; and whether memory is short for everybody. */
static uint64_t available;
static bool pressed;

/* A file of the kernel's, as a file with this content. There are no groups. */
static bool kernel(long arguments[6], long *result)
{
	const char *path = (const char *)arguments[0];
	char text[64] = "full avg10=99.00 ";
	if (!strcmp(path, "/proc/meminfo") && available)
		snprintf(text, sizeof(text), "MemAvailable: %" PRIu64 " kB\n", available >> 10);
	else if (strcmp(path, "/proc/pressure/memory") || !pressed)
		return !strncmp(path, "/proc/pressure", 14) || !strncmp(path, "/proc/self", 10);
	*result = memfd_create("file", 0);
	assert_int_equal(pwrite((int)*result, text, strlen(text), 0), strlen(text));
	return true;
}

static int setup(void **state)
{
	fake_vendor_policy(&policy);
	fake_vendor_reset(1024 * MIB);
	spill_account_reset();
	fake_libc[FAKE_open64].hook = kernel;
	available = 0;
	pressed = false;
	return 0;
}

static struct spill_place_request want(uint64_t bytes, uint64_t device_room)
{
	return (struct spill_place_request){
	    &fake_vendor_backend, &policy, 0, &policy, bytes, device_room, SPILL_UNLIMITED, policy.advice};
}

static void nothing_is_held(void)
{
	spill_shared_chunks_trim(&fake_vendor_backend, 0, &policy);
	assert_int_equal(fake_vendor_alive(), 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 0);
	assert_int_equal(spill_account_physical_held(), 0);
}

TEST(split_takes_the_room_and_puts_the_rest_on_host)
{
	const char *error = NULL;
	struct spill_place_request wanted = want(300 * MIB, 101 * MIB);
	struct spill_placement *placement = spill_place_make(&spill_place_split, &wanted, &error);
	assert_non_null(placement);
	assert_int_equal(placement->held.device, 100 * MIB); /* whole granules of 2 MiB */
	assert_int_equal(placement->held.host, 200 * MIB);
	assert_int_equal(spill_account_device_held(0), 100 * MIB);
	assert_int_equal(spill_account_host_held(), 200 * MIB);
	assert_int_equal(spill_account_physical_held(), 200 * MIB);
	assert_non_null(fake_vendor_bytes(placement->ptr, 0)); /* its device has access to both */
	assert_non_null(fake_vendor_bytes(placement->ptr + 300 * MIB - 1, 0));
	spill_placement_release(placement, false);
	nothing_is_held();
}

/* Whole granules of what is left below the limit. */
TEST(split_takes_what_the_limit_leaves)
{
	static const uint64_t left[] = {0, 1, 2 * MIB - 1, 2 * MIB, 87 * MIB};
	const char *error = NULL;
	struct spill_place_request first = want(100 * MIB, 64 * MIB), second = want(300 * MIB, 300 * MIB);
	struct spill_placement *before = spill_place_make(&spill_place_split, &first, &error);
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		second.device_limit = 64 * MIB + left[i];
		struct spill_placement *placement = spill_place_make(&spill_place_split, &second, &error);
		assert_non_null(placement);
		assert_int_equal(placement->held.device, left[i] / (2 * MIB) * 2 * MIB);
		spill_placement_release(placement, false);
	}
	second.device_limit = 60 * MIB;
	struct spill_placement *placement = spill_place_make(&spill_place_split, &second, &error);
	assert_int_equal(placement->held.device, 0);
	spill_placement_release(placement, false);
	spill_placement_release(before, false);
	nothing_is_held();
}

/* Others take device memory between the look and the call: the driver's word counts. */
TEST(split_moves_to_host_what_the_driver_refuses)
{
	const char *error = NULL;
	struct spill_place_request wanted = want(300 * MIB, 300 * MIB);
	fake_vendor_reset(70 * MIB);
	struct spill_placement *placement = spill_place_make(&spill_place_split, &wanted, &error);
	assert_non_null(placement);
	assert_int_equal(placement->held.device, 64 * MIB);
	assert_int_equal(placement->held.host, 236 * MIB);
	assert_int_equal(spill_account_device_held(0), 64 * MIB);
	spill_placement_release(placement, false);
	nothing_is_held();
}

/* Every vendor call in turn fails: the place fails or works around it, and leaves nothing. */
TEST(a_failing_call_leaves_nothing)
{
	const struct spill_place_ops *const places[] = {&spill_place_split, &spill_place_managed,
	                                                &spill_place_host};
	for (size_t place = 0; place < 3; place++) {
		unsigned failures = 0;
		for (unsigned nth = 1; nth <= 24; nth++) {
			const char *error = NULL;
			struct spill_place_request wanted = want(300 * MIB, 100 * MIB);
			fake_vendor_reset(1024 * MIB);
			fake_vendor_fail(nth, nth + 1);
			struct spill_placement *placement = spill_place_make(places[place], &wanted, &error);
			failures += !placement;
			if (!placement)
				assert_non_null(error);
			else
				assert_int_equal(placement->held.host + placement->held.device +
				                     placement->held.managed,
				                 300 * MIB);
			spill_placement_release(placement, false);
			nothing_is_held();
		}
		assert_true(failures > 0);
	}
}

static const struct spill_place_ops *tried;

static void fail_once_at_each_call(void)
{
	const char *error = NULL;
	struct spill_place_request wanted = want(300 * MIB, 100 * MIB);
	for (unsigned nth = 1; nth <= 12; nth++)
		for (unsigned of_libc = 0; of_libc < 3; of_libc++) {
			fake_vendor_fail(of_libc ? 0 : nth, of_libc ? 0 : nth + 1);
			fake_libc_fail(FAKE_calloc, nth, of_libc == 1, ENOMEM);
			fake_libc_fail(FAKE_malloc, nth, of_libc == 2, ENOMEM);
			unsigned alive = fake_vendor_alive();
			struct spill_placement *placement = spill_place_make(tried, &wanted, &error);
			if (!placement)
				assert_int_equal(fake_vendor_alive(), alive);
			spill_placement_release(placement, nth % 2);
			fake_vendor_fail(0, 0);
			fake_libc_fail(FAKE_calloc, 1, 0, 0);
			fake_libc_fail(FAKE_malloc, 1, 0, 0);
			assert_int_equal(spill_account_device_held(0), 0);
			assert_int_equal(spill_account_host_held() + spill_account_physical_held(), 0);
		}
}

TEST(nothing_stays_on_the_heap)
{
	const struct spill_place_ops *const places[] = {
	    &spill_place_split,   &spill_place_managed,   &spill_place_host,       &spill_place_handle,
	    &spill_place_movable, &spill_place_split_set, &spill_place_movable_set};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		tried = places[i];
		assert_heap_stays(fail_once_at_each_call);
	}
}

/* A vendor exports one handle. So that one is on the host, or on the device. */
TEST(a_set_that_is_exported_is_not_split)
{
	const char *error = NULL;
	struct spill_place_request wanted = want(300 * MIB, 100 * MIB);
	struct spill_placement *placement = spill_place_make(&spill_place_split_set, &wanted, &error);
	assert_non_null(placement);
	assert_int_equal(placement->held.device, 100 * MIB);
	spill_placement_release(placement, false);
	wanted.properties = &wanted;
	placement = spill_place_make(&spill_place_split_set, &wanted, &error);
	assert_non_null(placement);
	assert_int_equal(placement->held.device, 0);
	assert_int_equal(placement->held.host, 300 * MIB);
	spill_placement_release(placement, false);
	nothing_is_held();
}

/* A prefetch that fails is no error of the allocation, and holds nothing on the device. */
TEST(a_prefetch_that_fails_is_no_error)
{
	const char *error = NULL;
	struct spill_place_request wanted = want(300 * MIB, 300 * MIB);
	fake_vendor_fail(2, 2 + 1);
	struct spill_placement *placement = spill_place_make(&spill_place_managed, &wanted, &error);
	assert_non_null(placement);
	assert_int_equal(placement->held.device, 0);
	assert_int_equal(spill_account_device_held(0), 0);
	spill_placement_release(placement, false);
	nothing_is_held();
}

/* The groups count pinned and managed memory. */
TEST(only_split_is_physical)
{
	static const struct spill_place_ops *const places[] = {&spill_place_managed, &spill_place_host};
	const char *error = NULL;
	struct spill_place_request wanted = want(300 * MIB, 0);
	for (size_t i = 0; i < 2; i++) {
		struct spill_placement *placement = spill_place_make(places[i], &wanted, &error);
		assert_non_null(placement);
		assert_int_equal(spill_account_host_held(), 300 * MIB);
		assert_int_equal(spill_account_physical_held(), 0);
		spill_placement_release(placement, false);
	}
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 299 * MIB};
	assert_null(spill_place_make(&spill_place_split, &wanted, &error));
	nothing_is_held();
}

static void check_refusal(uint64_t limit, uint64_t held, uint64_t asked, uint64_t room)
{
	const struct spill_refusal *refusal = spill_host_refusal();
	assert_int_equal(refusal->limit, limit);
	assert_int_equal(refusal->held, held);
	assert_int_equal(refusal->asked, asked);
	assert_int_equal(refusal->room, room);
}

/* And with figures, of which advice is made. */
TEST(host_limit_refuses_by_name)
{
	const char *error = NULL;
	struct spill_place_request wanted = want(300 * MIB, 0), first = want(100 * MIB, 0);
	available = 1000 * MIB;
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 399 * MIB};
	policy.host_reserve.value = 50 * MIB;
	struct spill_placement *placement = spill_place_make(&spill_place_host, &first, &error);
	assert_null(spill_place_make(&spill_place_host, &wanted, &error));
	assert_string_equal(error, "host.limit");
	check_refusal(399 * MIB, 100 * MIB, 300 * MIB, 950 * MIB);
	policy.host_limit.kind = SPILL_AMOUNT_NONE;
	policy.host_reserve.value = 701 * MIB;
	assert_null(spill_place_make(&spill_place_split, &wanted, &error));
	assert_string_equal(error, "host.reserve");
	check_refusal(701 * MIB, 1000 * MIB, 300 * MIB, 299 * MIB);
	spill_placement_release(placement, false);
	nothing_is_held();
}

/* Pressure refuses only where memory is short: below twice the reserve. */
TEST(host_pressure_refuses_by_name)
{
	static const struct spill_place_ops *const places[] = {&spill_place_split, &spill_place_managed,
	                                                       &spill_place_host};
	const char *error = NULL;
	struct spill_place_request wanted = want(2 * MIB, 0);
	policy.host_reserve.value = 100 * MIB;
	for (size_t i = 0; i < 3; i++)
		for (int on = 0; on < 2; on++)
			for (int little = 0; little < 2; little++) {
				pressed = on;
				available = 200 * MIB - (little ? 2 : 0);
				struct spill_placement *placement =
				    spill_place_make(places[i], &wanted, &error);
				assert_int_equal(placement != NULL, !(on && little));
				if (!placement) {
					assert_string_equal(error, "host.pressure");
					check_refusal(0, 0, 0, 0);
				}
				spill_placement_release(placement, false);
				spill_shared_chunks_trim(&fake_vendor_backend, 0, &policy);
			}
	nothing_is_held();
}

/* A chunk of an ended context is not handed out to a new one with the same handle, and goes with the end alone. */
TEST(a_chunk_of_an_ended_context_serves_nobody)
{
	const char *error = NULL;
	struct spill_place_request wanted = want(4096, 0);
	wanted.context = &policy;
	struct spill_placement *old = spill_place_make(&spill_place_host, &wanted, &error);
	assert_non_null(old);
	struct spill_context_end end = spill_context_end_begin(&fake_vendor_backend, 0, &policy);
	struct spill_placement *new = spill_place_make(&spill_place_host, &wanted, &error);
	assert_non_null(new);
	assert_true(new->ptr > old->ptr + SPILL_SHARED_CHUNKS_CHUNK ||
	            old->ptr > new->ptr + SPILL_SHARED_CHUNKS_CHUNK);
	spill_placement_release(old, true);
	spill_placement_release(new, false);
	spill_shared_chunks_context_ended(&end);
	assert_int_equal(spill_account_host_held(), SPILL_SHARED_CHUNKS_CHUNK);
	spill_shared_chunks_trim(&fake_vendor_backend, 0, &policy);
	assert_int_equal(spill_account_host_held(), 0);
}

/* Two for a block, two for a chunk: each fails once, and then nothing is kept (under ASan, not even on the heap). */
TEST(a_small_request_without_memory_is_refused)
{
	for (unsigned nth = 1; nth <= 4; nth++) {
		const char *error = NULL;
		struct spill_place_request wanted = want(4096, 0);
		fake_libc_fail(FAKE_calloc, nth, 1, ENOMEM);
		assert_null(spill_place_make(&spill_place_host, &wanted, &error));
		assert_int_equal(fake_libc[FAKE_calloc].calls, nth + nth % 2); /* they are made in pairs */
		fake_libc_fail(FAKE_calloc, 1, 0, 0);
		assert_string_equal(error, "no memory for bookkeeping");
		nothing_is_held();
	}
}

TEST(managed_is_prefetched_only_below_and_only_if_it_fits)
{
	const char *error = NULL;
	policy.advice.prefetch_below = (struct spill_amount){SPILL_AMOUNT_BYTES, 200 * MIB};
	struct {
		uint64_t bytes, room, prefetched;
	} cases[] = {{100 * MIB, 100 * MIB, 100 * MIB}, {100 * MIB, 99 * MIB, 0}, {200 * MIB, 500 * MIB, 0}};
	for (size_t i = 0; i < 3; i++) {
		struct spill_place_request wanted = want(cases[i].bytes, cases[i].room);
		fake_vendor_reset(1024 * MIB);
		struct spill_placement *placement = spill_place_make(&spill_place_managed, &wanted, &error);
		assert_non_null(placement);
		assert_int_equal(placement->held.managed, cases[i].bytes);
		assert_int_equal(placement->held.device, cases[i].prefetched);
		assert_int_equal(fake_vendor.prefetched, cases[i].prefetched);
		spill_placement_release(placement, false);
		nothing_is_held();
	}
}

static char advised[8]; /* a letter for each call */
static struct spill_vendor_memory memory;
static struct spill_backend with_advice;

static int note_advice(char letter, uint64_t bytes, int device)
{
	assert_int_equal(bytes, 100 * MIB);
	assert_int_equal(device, 0);
	advised[strlen(advised)] = letter;
	return FAKE_INVALID; /* a refused hint is no error */
}

static int prefers(uint64_t ptr, uint64_t bytes, enum spill_location where, int device)
{
	return note_advice(where == SPILL_LOCATION_HOST ? 'h' : 'd', bytes, device);
}

static int accessed(uint64_t ptr, uint64_t bytes, enum spill_location where, int device)
{
	return note_advice(where == SPILL_LOCATION_HOST ? 'H' : 'D', bytes, device);
}

static int read_mostly(uint64_t ptr, uint64_t bytes, int device)
{
	return note_advice('r', bytes, device);
}

TEST(managed_memory_gets_the_advice_of_the_policy)
{
	static const struct {
		struct spill_managed_advice advice;
		const char *calls;
	} cases[] = {
	    {{.preferred = SPILL_LOCATION_NONE}, ""},
	    {{.preferred = SPILL_LOCATION_HOST}, "h"},
	    {{.preferred = SPILL_LOCATION_DEVICE, .accessed_by_host = true}, "dH"},
	    {{.preferred = SPILL_LOCATION_NONE, .accessed_by_device = true, .read_mostly = true}, "rD"},
	};
	const char *error = NULL;
	with_advice = fake_vendor_backend;
	memory = *fake_vendor_backend.memory;
	memory.advise_preferred = prefers;
	memory.advise_accessed_by = accessed;
	memory.advise_read_mostly = read_mostly;
	with_advice.memory = &memory;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spill_place_request wanted = want(100 * MIB, 0);
		wanted.backend = &with_advice;
		wanted.advice = cases[i].advice;
		memset(advised, 0, sizeof(advised));
		struct spill_placement *placement = spill_place_make(&spill_place_managed, &wanted, &error);
		assert_non_null(placement);
		assert_string_equal(advised, cases[i].calls);
		spill_placement_release(placement, false);
	}
	nothing_is_held();
}

/* 10,000 of 4 KiB: at most 64 MiB more than their bytes, and each its own aligned piece. */
TEST(small_requests_share_chunks)
{
	enum { COUNT = 10000 };
	static struct spill_placement *placements[COUNT];
	const uint64_t bytes = 4096;
	const char *error = NULL;
	struct spill_place_request wanted = want(bytes, 0);
	for (int i = 0; i < COUNT; i++) {
		placements[i] = spill_place_make(&spill_place_split, &wanted, &error);
		assert_non_null(placements[i]);
		assert_int_equal(placements[i]->ptr % 256, 0);
		if (i)
			assert_int_not_equal(placements[i]->ptr, placements[i - 1]->ptr);
	}
	assert_true(spill_account_host_held() <= COUNT * bytes + 64 * MIB);
	/* Every second one back, and again: the holes are used before a new chunk. */
	uint64_t held = spill_account_host_held();
	for (int i = 0; i < COUNT; i += 2)
		spill_placement_release(placements[i], false);
	for (int i = 0; i < COUNT; i += 2)
		placements[i] = spill_place_make(&spill_place_split, &wanted, &error);
	assert_int_equal(spill_account_host_held(), held);
	for (int i = 0; i < COUNT; i++)
		spill_placement_release(placements[(i * 7919) % COUNT], false);
	assert_true(spill_account_host_held() <= 8 * MIB); /* one chunk stays for the next */
	nothing_is_held();
}

/* Up to 1 MiB, a request takes a part of a chunk of 8 MiB. */
TEST(the_largest_request_that_shares_a_chunk)
{
	const char *error = NULL;
	for (uint64_t more = 0; more < 2; more++) {
		struct spill_place_request wanted = want(SPILL_SHARED_CHUNKS_LARGEST + more, 0);
		struct spill_placement *one = spill_place_make(&spill_place_host, &wanted, &error),
		                       *other = spill_place_make(&spill_place_host, &wanted, &error);
		assert_int_equal(fake_vendor.hosts, more ? 2 : 1);
		spill_placement_release(one, false);
		spill_placement_release(other, false);
		nothing_is_held();
	}
}

/* Advice is given for a whole chunk. So a request that differs in any of it is not in the chunk of others. */
TEST(small_requests_share_chunks_of_their_advice)
{
	enum { OTHERS = 4 };
	struct spill_managed_advice advice[1 + OTHERS];
	struct spill_placement *of_advice[1 + OTHERS], *same;
	const char *error = NULL;
	for (int i = 0; i <= OTHERS; i++)
		advice[i] = (struct spill_managed_advice){.preferred = SPILL_LOCATION_HOST};
	advice[1].preferred = SPILL_LOCATION_DEVICE;
	advice[2].accessed_by_device = true;
	advice[3].accessed_by_host = true;
	advice[4].read_mostly = true;
	for (int i = 0; i <= OTHERS; i++) {
		struct spill_place_request wanted = want(4096, 0);
		wanted.advice = advice[i];
		unsigned alive = fake_vendor_alive();
		of_advice[i] = spill_place_make(&spill_place_managed, &wanted, &error);
		assert_non_null(of_advice[i]);
		assert_int_equal(fake_vendor_alive(), alive + 1);
	}
	for (int i = 0; i <= OTHERS; i++) {
		struct spill_place_request wanted = want(4096, 0);
		wanted.advice = advice[i];
		unsigned alive = fake_vendor_alive();
		same = spill_place_make(&spill_place_managed, &wanted, &error);
		assert_non_null(same);
		assert_int_equal(fake_vendor_alive(), alive);
		spill_placement_release(same, false);
		spill_placement_release(of_advice[i], false);
	}
	nothing_is_held();
}

TEST(pieces_of_a_chunk_do_not_overlap)
{
	enum { COUNT = 2000 };
	static struct spill_placement *placements[COUNT];
	const char *error = NULL;
	unsigned random = 1;
	for (int round = 0; round < 20000; round++) {
		random = random * 1103515245u + 12345u;
		int i = (int)(random >> 8) % COUNT;
		if (placements[i]) {
			spill_placement_release(placements[i], false);
			placements[i] = NULL;
			continue;
		}
		struct spill_place_request wanted = want(1 + (random >> 4) % (64 << 10), 0);
		placements[i] = spill_place_make(&spill_place_host, &wanted, &error);
		assert_non_null(placements[i]);
		if (round % 100)
			continue;
		for (int j = 0; j < COUNT; j++)
			if (j != i && placements[j])
				assert_true(placements[j]->ptr + placements[j]->bytes <= placements[i]->ptr ||
				            placements[i]->ptr + placements[i]->bytes <= placements[j]->ptr);
	}
	for (int i = 0; i < COUNT; i++)
		spill_placement_release(placements[i], false);
	nothing_is_held();
}
