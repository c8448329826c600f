/*
 * Flights: chunks change sides beside the program's work. The vendor's copies are as late as they may be, so memory
 * that is used too early, or mapped too late, is seen.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "exchanges.h"
#include "captures.h"
#include "chunk_map.h"
#include "chunked.h"
#include "flight.h"
#include "gate.h"
#include "host_chunks.h"
#include "ledger.h"
#include "movable_allocation.h"
#include "note.h"
#include "peer.h"
#include "parking.h"
#include "remap.h"

#define MS 1000000ull
#define CHUNK SPILL_CHUNK_MAP_UNIT

enum { CHUNKS = 6, HALF = 3 };

static struct spill_policy policy;
static int context;
static unsigned notes;
static char last_note[256];

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
	assert_string_equal(code, "overlap");
	snprintf(last_note, sizeof(last_note), "%s", text);
	notes++;
}

static void end_flight(void)
{
	spill_flight_end();
}

static int teardown(void **state)
{
	fake_vendor_reset_mover(0);
	return 0;
}

static int setup(void **state)
{
	begin_exchanges(&policy, &context, CHUNK, CHUNKS * CHUNK, 1000 * MS);
	spill_flight_reset();
	spill_gate_use_flights(end_flight);
	notes = 0;
	return 0;
}

/* -- one allocation, whose second half is on the host, and no room --------------------------------------------- */

static unsigned char pattern(unsigned chunk, uint64_t at)
{
	return (unsigned char)(chunk * 41 + (at >> 9) * 7 + (at >> 13) + 3);
}

static const unsigned none_used[1] = {CHUNKS};
static const unsigned *used = none_used;

static bool is_used(const struct spill_chunked *chunked, unsigned index)
{
	return index == *used;
}

static struct spill_exchange exchange_of(struct spill_chunked *of, const unsigned *chunks, unsigned count)
{
	struct spill_exchange exchange = {.backend = &fake_vendor_backend, .keep = CHUNK};
	for (unsigned i = 0; i < count; i++)
		assert_true(spill_exchange_add(&exchange, of, chunks[i]));
	return exchange;
}

static struct spill_chunked *make_half(void)
{
	const unsigned leave[] = {3, 4, 5};
	struct spill_place_request want = {&fake_vendor_backend, &policy, 0, &context, CHUNKS * CHUNK, 0,
	                                   SPILL_UNLIMITED};
	struct spill_chunked *made = make_allocation(&spill_place_movable, &want);
	spill_chunked_enlist(made);
	for (unsigned i = 0; i < made->count; i++)
		for (uint64_t at = 0; at < CHUNK; at += 512)
			fake_vendor_bytes(spill_chunked_address(made, i), 0)[at] = pattern(i, at);
	spill_mover_lock();
	struct spill_exchange exchange = exchange_of(made, leave, 3);
	spill_exchange_carry_out(&exchange, spill_clock_ns() + 50 * MS);
	spill_exchange_drop();
	spill_mover_unlock();
	assert_int_equal(made->base.held.host, HALF * CHUNK);
	fake_vendor.device_free = 0;
	return made;
}

static bool is_mapped(const struct spill_chunked *of, unsigned chunk)
{
	return fake_vendor_bytes(spill_chunked_address(of, chunk), 0) != NULL;
}

static void check_content(const struct spill_chunked *of)
{
	uint64_t host = 0;
	for (unsigned i = 0; i < of->count; i++) {
		const unsigned char *bytes = fake_vendor_bytes(spill_chunked_address(of, i), 0);
		assert_non_null(bytes);
		for (uint64_t at = 0; at < CHUNK; at += 512)
			if (bytes[at] != pattern(i, at))
				fail_msg("chunk %u, byte %u", i, (unsigned)at);
		host += of->chunks[i].on_host ? CHUNK : 0;
		assert_false(of->chunks[i].unmapped || of->chunks[i].away);
	}
	assert_int_equal(of->base.held.host, host);
	assert_int_equal(of->base.held.device, of->range - host);
}

static void end(struct spill_chunked *of)
{
	spill_ledger_end(spill_ledger_take(of->base.ptr));
	spill_placement_release(&of->base, false);
	spill_mover_lock();
	spill_exchange_drop();
	spill_mover_unlock();
	spill_host_chunks_drop(&fake_vendor_backend);
	spill_parking_forget(&fake_vendor_backend, 0);
	assert_int_equal(fake_vendor.handles, 0);
	assert_int_equal(fake_vendor.mappings, 0);
	assert_int_equal(fake_vendor.events, 0);
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 0);
	assert_int_equal(spill_gate_flight(), 0);
}

static bool fly(struct spill_chunked *of, const unsigned *chunks, unsigned count)
{
	struct spill_exchange exchange = exchange_of(of, chunks, count);
	bool begun = spill_flight_begin(&exchange, is_used);
	assert_int_equal(exchange.comes.count + exchange.goes.count, 0);
	return begun;
}

static uint32_t key_of(const struct spill_chunked *of, unsigned chunk)
{
	return (uint32_t)(spill_chunked_address(of, chunk) >> SPILL_CHUNK_MAP_UNIT_SHIFT);
}

/* -- the tests ------------------------------------------------------------------------------------------------- */

/* Nothing of it is mapped until it lands. Then what came is, and what left is not. */
TEST(what_flies_is_not_mapped)
{
	const unsigned both[] = {0, 3};
	struct spill_chunked *of = make_half();
	spill_mover_lock();
	assert_true(fly(of, both, 2));
	assert_true(spill_flight_is_up());
	assert_false(is_mapped(of, 0) || is_mapped(of, 3));
	assert_true(is_mapped(of, 1) && is_mapped(of, 4));
	assert_int_not_equal(spill_gate_flight(), 0);
	assert_int_equal(spill_flight_land(), CHUNK);
	assert_false(spill_flight_is_up());
	assert_true(is_mapped(of, 3) && !of->chunks[3].on_host);
	assert_true(!is_mapped(of, 0) && of->chunks[0].on_host && of->chunks[0].away);
	assert_int_not_equal(spill_gate_flight(), 0);
	assert_int_equal(spill_flight_end(), 0);
	spill_mover_unlock();
	check_content(of);
	end(of);
}

/* The second quarter and the last one of each chunk; nothing of chunk 1, and of chunk 4. */
static unsigned two_quarters(const struct spill_chunked *of, unsigned index,
                             struct spill_span spans[SPILL_SPANS])
{
	spans[0] = (struct spill_span){CHUNK / 4, CHUNK / 4};
	spans[1] = (struct spill_span){3 * CHUNK / 4, CHUNK / 4};
	return index == 1 || index == 4 ? 0 : 2;
}

static void check_quarters(const struct spill_chunked *of, unsigned chunk)
{
	const unsigned char *bytes = fake_vendor_content(of->chunks[chunk].handle);
	for (uint64_t at = 0; at < CHUNK; at += 512)
		if (at / (CHUNK / 4) % 2)
			if (bytes[at] != pattern(chunk, at))
				fail_msg("chunk %u, byte %u", chunk, (unsigned)at);
}

/* No work uses what flies, so what is free of it is dead. */
TEST(only_what_is_in_use_is_copied)
{
	const unsigned dead[] = {1, 4}, both[] = {0, 3};
	struct spill_chunked *of = make_half();
	of->live = two_quarters;
	spill_mover_lock();
	unsigned copies = fake_vendor.copies;
	assert_true(fly(of, dead, 2));
	assert_int_equal(spill_flight_land(), CHUNK);
	assert_true(of->chunks[1].on_host && is_mapped(of, 4) && !of->chunks[4].on_host);
	assert_int_equal(fake_vendor.copies, copies);
	fake_vendor.copied_bytes = 0;
	assert_true(fly(of, both, 2));
	assert_int_equal(spill_flight_land(), CHUNK);
	assert_int_equal(fake_vendor.copied_bytes, CHUNK);
	check_quarters(of, 0);
	check_quarters(of, 3);
	spill_flight_end();
	spill_mover_unlock();
	of->live = NULL;
	end(of);
}

/* The second of two copies of a chunk is refused: it stays, and the first one ends before it is mapped. */
TEST(a_refused_copy_of_a_part)
{
	const unsigned both[] = {0, 3};
	for (unsigned nth = 1; nth <= 30; nth++) {
		struct spill_chunked *of = make_half();
		of->live = two_quarters;
		spill_mover_lock();
		struct spill_exchange exchange = exchange_of(of, both, 2);
		fake_vendor_fail(nth, nth + 1);
		if (spill_flight_begin(&exchange, is_used))
			spill_flight_land();
		fake_vendor_fail(0, 0);
		spill_flight_end();
		spill_mover_unlock();
		check_quarters(of, 0);
		check_quarters(of, 3);
		end(of);
		setup(NULL);
	}
}

/* What is away comes back without having been mapped on the host. */
TEST(what_is_away_flies_again)
{
	const unsigned out[] = {0, 3}, back[] = {0, 1};
	struct spill_chunked *of = make_half();
	spill_mover_lock();
	assert_true(fly(of, out, 2));
	spill_flight_land();
	uint64_t before = spill_gate_flight();
	assert_true(fly(of, back, 2));
	assert_true(spill_gate_flight() > before);
	assert_int_equal(spill_flight_land(), CHUNK);
	assert_true(is_mapped(of, 0) && !is_mapped(of, 1));
	spill_flight_end();
	spill_mover_unlock();
	check_content(of);
	end(of);
}

/* Memory of its size that nobody left is used first: the next flight then has spares. */
TEST(spares_of_a_flight_serve_the_next)
{
	const unsigned leave[] = {0, 1, 3}, come[] = {4};
	struct spill_chunked *of = make_half();
	spill_mover_lock();
	assert_true(fly(of, leave, 3));
	spill_flight_land();
	assert_int_equal(spill_exchange_kept(), CHUNK);
	unsigned made = fake_vendor.made_on_device;
	assert_true(fly(of, come, 1));
	assert_int_equal(spill_flight_land(), CHUNK);
	assert_int_equal(fake_vendor.made_on_device, made);
	spill_flight_end();
	spill_mover_unlock();
	check_content(of);
	end(of);
}

/* Work reaches a chunk from anywhere in its allocation, but in memory with exact begins. */
TEST(who_touches_a_flight)
{
	const unsigned both[] = {0, 3};
	struct spill_chunked *of = make_half();
	uint32_t inside[] = {key_of(of, 5)}, behind[] = {key_of(of, 5) + 1, key_of(of, 0) - 1};
	spill_mover_lock();
	assert_true(fly(of, both, 2));
	assert_true(spill_flight_touches(inside, 1));
	assert_false(spill_flight_touches(behind, 2));
	spill_flight_land();
	assert_true(spill_flight_touches(inside, 1));
	spill_flight_map(behind, 2);
	assert_false(is_mapped(of, 0));
	spill_flight_map(inside, 1);
	assert_true(is_mapped(of, 0));
	assert_false(spill_flight_touches(inside, 1));
	assert_int_equal(spill_gate_flight(), 0);
	of->exact_begins = true;
	struct spill_span reach = spill_flight_reach(of, 5);
	assert_int_equal(reach.offset, spill_chunked_address(of, 5));
	assert_int_equal(reach.bytes, CHUNK);
	of->exact_begins = false;
	spill_mover_unlock();
	check_content(of);
	end(of);
}

/* The last look is with the gate closed. Who would come into the memory of a chunk that stays does not come. */
TEST(what_is_in_use_stays)
{
	static const unsigned first = 0;
	const unsigned both[] = {0, 3};
	struct spill_chunked *of = make_half();
	used = &first;
	spill_mover_lock();
	assert_true(fly(of, both, 2));
	assert_true(is_mapped(of, 0));
	assert_int_equal(spill_flight_land(), 0);
	assert_false(of->chunks[0].on_host);
	assert_true(of->chunks[3].on_host);
	spill_flight_end();
	spill_mover_unlock();
	used = none_used;
	check_content(of);
	end(of);
}

TEST(a_capture_forbids_it)
{
	const unsigned both[] = {0, 3};
	struct spill_chunked *of = make_half();
	set_capturing(true);
	spill_mover_lock();
	assert_false(fly(of, both, 2));
	assert_false(spill_flight_is_up());
	spill_mover_unlock();
	set_capturing(false);
	check_content(of);
	end(of);
}

/* Who wants the mover gets it with all chunks mapped. */
TEST(who_takes_the_mover_ends_it)
{
	const unsigned both[] = {0, 3};
	struct spill_chunked *of = make_half();
	for (unsigned way = 0; way < 2; way++) {
		assert_true(spill_mover_trylock_in_flight());
		assert_true(fly(of, both, 2));
		spill_mover_unlock();
		assert_true(spill_mover_trylock_in_flight());
		assert_true(spill_flight_is_up());
		spill_mover_unlock();
		way ? assert_true(spill_mover_trylock()) : spill_mover_lock();
		assert_false(spill_flight_is_up());
		check_content(of);
		spill_mover_unlock();
	}
	end(of);
}

/* Which chunks have others with access, or an unknown end. */
TEST(what_never_flies)
{
	struct spill_chunked *of = make_half();
	assert_true(spill_flight_takes(&fake_vendor_backend, of, 0));
	of->set = true;
	of->users = 1; /* its own device */
	assert_false(spill_flight_takes(&fake_vendor_backend, of, 0));
	of->exact_begins = true;
	assert_true(spill_flight_takes(&fake_vendor_backend, of, 0));
	of->set = of->exact_begins = false;
	of->pinned = true;
	assert_false(spill_flight_takes(&fake_vendor_backend, of, 0));
	of->pinned = false;
	of->users = 3;
	assert_false(spill_flight_takes(&fake_vendor_backend, of, 0));
	of->users = 0;
	of->chunks[0].unmapped = true;
	assert_false(spill_flight_takes(&fake_vendor_backend, of, 0));
	of->chunks[0].away = true;
	assert_true(spill_flight_takes(&fake_vendor_backend, of, 0));
	of->chunks[0].unmapped = of->chunks[0].away = false;
	end(of);
}

/* Each call of the vendor fails once: what was to fly is where it was, or has changed sides, and has its bytes. */
TEST(whatever_fails_nothing_is_lost)
{
	const unsigned chunks[] = {0, 1, 3, 4};
	for (unsigned call = 1, calls = 1; call <= calls; call++) {
		fake_vendor_reset_mover(CHUNKS * CHUNK);
		spill_copier_reset();
		spill_contexts_made(&fake_vendor_backend, 0, &context);
		struct spill_chunked *of = make_half();
		spill_mover_lock();
		fake_vendor_fail(call, call + 1);
		struct spill_exchange exchange = {.backend = &fake_vendor_backend, .keep = CHUNK};
		for (unsigned i = 0; i < 4; i++)
			spill_exchange_add(&exchange, of, chunks[i]);
		if (exchange.comes.count + exchange.goes.count && spill_flight_begin(&exchange, is_used))
			spill_flight_land();
		spill_flight_end();
		calls = fake_vendor.calls;
		fake_vendor_fail(0, 0);
		for (unsigned i = 0; i < of->count; i++) {
			struct spill_move move = {.chunked = of, .index = i};
			spill_remap_lost(&fake_vendor_backend, 0, &move);
		}
		spill_mover_unlock();
		check_content(of);
		end(of);
	}
}

/* The program's work has died. The note says by which error, and nobody waits for long. */
TEST(a_dead_context_is_noted)
{
	const unsigned both[] = {0, 3};
	struct spill_chunked *of = make_half();
	spill_mover_lock();
	assert_true(fly(of, both, 2));
	uint64_t before = spill_clock_ns();
	fake_vendor.stuck = true;
	fake_vendor.wait_result = FAKE_INVALID;
	spill_flight_end();
	assert_true(spill_clock_ns() - before < 500 * MS);
	fake_vendor.stuck = false;
	fake_vendor.wait_result = 0;
	spill_mover_unlock();
	assert_int_equal(notes, 1);
	assert_non_null(strstr(last_note, "movable.follow = overlap"));
	assert_int_equal(spill_gate_flight(), 0);
	assert_false(of->chunks[0].on_host);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
