/*
 * Exchanges against a vendor with real bytes and a full device. Chunks that come take the room of
 * chunks that leave. Whichever call fails, no byte, handle or account is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "account.h"
#include "exchange.h"
#include "fake_chunks.h"
#include "host_chunks.h"
#include "ledger.h"
#include "chunked.h"

#define CHUNK (4 * FAKE_UNIT)

enum { CHUNKS = 8 };

static struct spill_policy policy;
static int context;
static bool device_is_idle;
static unsigned reported;
static uint64_t reported_bytes;

const struct spill_policy *__wrap_spill_process_policy(void);
const struct spill_policy *__wrap_spill_process_policy(void)
{
	return &policy;
}

uint64_t __wrap_spill_device_limit(const struct spill_backend *backend, int device);
uint64_t __wrap_spill_device_limit(const struct spill_backend *backend, int device)
{
	return SPILL_UNLIMITED;
}

bool __wrap_spill_gate_close(uint64_t deadline_ns);
bool __wrap_spill_gate_close(uint64_t deadline_ns)
{
	return true;
}

bool __wrap_spill_quiesce_wait(const struct spill_backend *backend, int device, uint64_t deadline_ns);
bool __wrap_spill_quiesce_wait(const struct spill_backend *backend, int device, uint64_t deadline_ns)
{
	return device_is_idle;
}

unsigned __wrap_spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES]);
unsigned __wrap_spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES])
{
	return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	return 0;
}

void __wrap_spill_move_batch_report(const struct spill_move_batch *plan, const struct spill_move_reason *why);
void __wrap_spill_move_batch_report(const struct spill_move_batch *plan, const struct spill_move_reason *why)
{
	for (unsigned i = 0; i < plan->count; i++) {
		const struct spill_chunk *chunk = &plan->moves[i].chunked->chunks[plan->moves[i].index];
		assert_true(i == 0 || plan->moves[i].chunked == plan->moves[i - 1].chunked ||
		            plan->moves[i].chunked != plan->moves[0].chunked);
		assert_string_equal(why->reason, "use");
		if (!plan->moves[i].moved)
			continue;
		assert_string_equal(why->what, chunk->on_host ? "demote" : "promote");
		reported++;
		reported_bytes += chunk->bytes;
	}
}

static int teardown(void **state)
{
	fake_chunks_reset(0);
	return 0;
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.host_limit = policy.host_reserve = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
	fake_chunks_reset(CHUNKS * CHUNK);
	spill_account_reset();
	spill_move_reset();
	device_is_idle = true;
	reported = 0;
	reported_bytes = 0;
	return 0;
}

/* -- one allocation with a half of it on each side, and a full device ------------------------------------------ */

static unsigned char pattern(unsigned chunk, uint64_t at)
{
	return (unsigned char)(chunk * 41 + at * 7 + (at >> 8) + 3);
}

static bool change_sides(struct spill_chunked *of, const unsigned *chunks, unsigned count, uint64_t *came)
{
	struct spill_exchange exchange = {.backend = &fake_chunks_backend, .device = 0};
	bool added = true;
	spill_mover_lock();
	for (unsigned i = 0; i < count && added; i++)
		added = spill_exchange_add(&exchange, of, chunks[i]);
	if (exchange.comes.count + exchange.goes.count)
		spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	if (came)
		*came = exchange.came;
	return exchange.ns && added;
}

/* The last chunk is a granule. Then as much of the device as it holds is all there is. */
static struct spill_chunked *make_half(void)
{
	const unsigned leave[] = {4, 5, 6, 7};
	const char *error = NULL;
	struct spill_place_request want = {
	    &fake_chunks_backend, &policy, 0, &context, (CHUNKS - 1) * CHUNK + FAKE_UNIT, 0, SPILL_UNLIMITED};
	struct spill_chunked *made = spill_chunked_of(spill_place_movable.make(&want, &error));
	assert_non_null(made);
	for (unsigned i = 0; i < made->count; i++) {
		unsigned char *data = fake_chunks_bytes(spill_chunked_address(made, i), 0);
		for (uint64_t at = 0; at < made->chunks[i].bytes; at++)
			data[at] = pattern(i, at);
	}
	assert_true(change_sides(made, leave, 4, NULL));
	fake_chunks.device_free = 0;
	reported = 0;
	reported_bytes = 0;
	return made;
}

static uint64_t on_host(const struct spill_chunked *of)
{
	uint64_t host = 0, device = 0;
	for (unsigned i = 0; i < of->count; i++) {
		const unsigned char *bytes = fake_chunks_bytes(spill_chunked_address(of, i), 0);
		assert_non_null(bytes);
		for (uint64_t at = 0; at < of->chunks[i].bytes; at++)
			if (bytes[at] != pattern(i, at))
				fail_msg("chunk %u, byte %u", i, (unsigned)at);
		*(of->chunks[i].on_host ? &host : &device) += of->chunks[i].bytes;
	}
	assert_int_equal(of->base.held.host, host);
	assert_int_equal(of->base.held.device, device);
	assert_int_equal(spill_account_device_held(0), device);
	assert_int_equal(fake_chunks.events, 0);
	return host;
}

static void end(struct spill_chunked *of)
{
	spill_placement_release(&of->base, false);
	spill_host_chunks_drop(&fake_chunks_backend);
	assert_int_equal(fake_chunks.handles, 0);
	assert_int_equal(fake_chunks.mappings, 0);
	assert_int_equal(fake_chunks.broken, 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 0);
}

/* -- the tests --------------------------------------------------------------------------------------------------- */

static void what_leaves_makes_the_room(void **state)
{
	const unsigned all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct spill_chunked *of = make_half();
	uint64_t came, before = on_host(of);
	assert_int_equal(before, 3 * CHUNK + FAKE_UNIT);
	assert_true(change_sides(of, all, 8, &came));
	assert_int_equal(came, before);
	assert_int_equal(on_host(of), 4 * CHUNK);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(of->chunks[i].on_host, i < 4);
	assert_int_equal(reported, 8);
	assert_int_equal(reported_bytes, came + 4 * CHUNK);
	end(of);
}

/* Both ways at once: some copy of the other way is under way whenever something is remapped, but for the first and the last. */
static void both_ways_go_at_once(void **state)
{
	const unsigned all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct spill_chunked *of = make_half();
	fake_chunks.most_under_way = 0;
	assert_true(change_sides(of, all, 8, NULL));
	assert_true(fake_chunks.most_under_way >= 2);
	on_host(of);
	end(of);
}

static void without_room_nothing_comes(void **state)
{
	const unsigned some[] = {4, 5};
	struct spill_chunked *of = make_half();
	uint64_t came, before = on_host(of);
	change_sides(of, some, 2, &came);
	assert_int_equal(came, 0);
	assert_int_equal(on_host(of), before);
	end(of);
}

static void a_busy_device_is_left_alone(void **state)
{
	const unsigned all[] = {0, 1, 6, 7};
	struct spill_chunked *of = make_half();
	uint64_t came, before = on_host(of);
	device_is_idle = false;
	assert_false(change_sides(of, all, 4, &came));
	assert_int_equal(came, 0);
	assert_int_equal(on_host(of), before);
	assert_int_equal(reported, 0);
	end(of);
}

/* The home that one left is the next one's: nothing new is made. */
static void homes_on_host_are_used_again(void **state)
{
	const unsigned all[] = {0, 1, 2, 4, 5, 6};
	struct spill_chunked *of = make_half();
	assert_true(change_sides(of, all, 6, NULL));
	uint64_t held = spill_account_host_held();
	for (unsigned round = 0; round < 5; round++)
		assert_true(change_sides(of, all, 6, NULL));
	assert_int_equal(spill_account_host_held(), held);
	on_host(of);
	end(of);
}

/* Device memory that is kept for the next exchange is that one's to begin with, counts as held, and is given back when nobody needs it. */
static void what_is_kept_is_used_or_given_back(void **state)
{
	struct spill_chunked *of = make_half();
	struct spill_exchange exchange = {.backend = &fake_chunks_backend, .device = 0, .keep = 2 * CHUNK};
	uint64_t came;
	spill_mover_lock();
	for (unsigned i = 0; i < 5; i++) /* four leave, one comes: three homes are left, two of them kept */
		assert_true(spill_exchange_add(&exchange, of, i));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	assert_int_equal(exchange.came, CHUNK);
	assert_int_equal(spill_exchange_kept(), 2 * CHUNK);
	assert_int_equal(fake_chunks.device_free, CHUNK);
	assert_int_equal(spill_account_device_held(0), CHUNK + 2 * CHUNK);
	fake_chunks.device_free = 0;
	assert_true(change_sides(of, (unsigned[]){5, 6}, 2, &came));
	assert_int_equal(came, 2 * CHUNK);
	assert_int_equal(spill_exchange_kept(), 0);
	exchange = (struct spill_exchange){.backend = &fake_chunks_backend, .device = 0, .keep = CHUNK};
	spill_mover_lock();
	assert_true(spill_exchange_add(&exchange, of, 5));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	assert_int_equal(spill_exchange_kept(), CHUNK);
	spill_exchange_forget(&fake_chunks_backend, 1);
	assert_int_equal(spill_exchange_kept(), CHUNK);
	spill_exchange_forget(&fake_chunks_backend, 0);
	assert_int_equal(spill_exchange_kept(), 0);
	on_host(of);
	end(of);
}

static void whatever_fails_nothing_is_lost(void **state)
{
	const unsigned all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	bool failed = true;
	for (unsigned call = 1; failed; call++) {
		fake_chunks_reset(CHUNKS * CHUNK);
		spill_move_reset();
		struct spill_chunked *of = make_half();
		fake_chunks_fail(call, call + 1);
		change_sides(of, all, 8, NULL);
		failed = fake_chunks.calls >= call;
		fake_chunks_fail(0, 0);
		on_host(of);
		spill_placement_release(&of->base, false);
		spill_host_chunks_drop(&fake_chunks_backend);
		assert_int_equal(fake_chunks.broken, 0);
		assert_int_equal(spill_account_device_held(0), 0);
		assert_int_equal(spill_account_host_held(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(what_leaves_makes_the_room, setup, teardown),
	    cmocka_unit_test_setup_teardown(both_ways_go_at_once, setup, teardown),
	    cmocka_unit_test_setup_teardown(without_room_nothing_comes, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_busy_device_is_left_alone, setup, teardown),
	    cmocka_unit_test_setup_teardown(homes_on_host_are_used_again, setup, teardown),
	    cmocka_unit_test_setup_teardown(what_is_kept_is_used_or_given_back, setup, teardown),
	    cmocka_unit_test_setup_teardown(whatever_fails_nothing_is_lost, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
