/*
 * Exchanges against a vendor with real bytes and a full device. Chunks that come take the room of
 * chunks that leave. Whichever call fails, no byte, handle or account is lost.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "logtest.h"

#include <errno.h>

#include "exchanges.h"
#include "captures.h"
#include "ended.h"
#include "fake_libc.h"
#include "gate.h"
#include "host_chunks.h"
#include "ledger.h"
#include "chunked.h"
#include "movable_allocation.h"

#define MS 1000000ull
#define CHUNK (4 * FAKE_SMALL_UNIT)

enum { CHUNKS = 8 };

static struct spill_policy policy;
static int context;

/* One log for all tests. */
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
	begin_exchanges(&policy, &context, CHUNK, CHUNKS * CHUNK, 0);
	return 0;
}

/* -- one allocation with a half of it on each side, and a full device ------------------------------------------ */

static unsigned char pattern(unsigned chunk, uint64_t at)
{
	return (unsigned char)(chunk * 41 + at * 7 + (at >> 8) + 3);
}

struct reported {
	unsigned chunks;
	uint64_t demoted, promoted; /* bytes */
};

static uint64_t number_of(const cJSON *line, const char *key)
{
	return (uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(line, key));
}

/* By the log's lines of moves since the last call. */
static struct reported reported(void)
{
	static unsigned read;
	struct reported sum = {0};
	struct lines lines = read_lines(in_folder("log"));
	for (; read < lines.count; read++) {
		const cJSON *line = lines.at[read];
		if (strcmp(text_of(line, "kind"), "move") != 0)
			continue;
		bool demoted = strcmp(text_of(line, "what"), "demote") == 0;
		assert_true(demoted || strcmp(text_of(line, "what"), "promote") == 0);
		assert_string_equal(text_of(line, "reason"), "use");
		sum.chunks += (unsigned)number_of(line, "chunks");
		*(demoted ? &sum.demoted : &sum.promoted) += number_of(line, "bytes");
	}
	return sum;
}

static bool change_sides(struct spill_chunked *of, const unsigned *chunks, unsigned count, uint64_t *came)
{
	struct spill_exchange exchange = {.backend = &fake_vendor_backend, .device = 0};
	bool added = true;
	spill_mover_lock();
	for (unsigned i = 0; i < count && added; i++)
		added = spill_exchange_add(&exchange, of, chunks[i]);
	if (exchange.comes.count + exchange.goes.count)
		spill_exchange_carry_out(&exchange, spill_clock_ns() + 50 * MS);
	spill_mover_unlock();
	if (came)
		*came = exchange.came;
	return exchange.ns && added;
}

/* They leave, and their place is on the host now: bringing them is no return. */
static void settle_on_host(struct spill_chunked *of, const unsigned *chunks, unsigned count)
{
	assert_true(change_sides(of, chunks, count, NULL));
	for (unsigned i = 0; i < count; i++)
		of->chunks[chunks[i]].displaced = false;
}

/* An allocation in chunks of that size, with content. */
static struct spill_chunked *make_on(int device, uint64_t bytes, uint64_t chunk)
{
	struct spill_place_request want = {&fake_vendor_backend, &policy, device, &context, bytes, 0,
	                                   SPILL_UNLIMITED};
	policy.movable_chunk.value = chunk;
	struct spill_chunked *made = make_allocation(&spill_place_movable, &want);
	for (unsigned i = 0; i < made->count; i++) {
		unsigned char *data = fake_vendor_bytes(spill_chunked_address(made, i), device);
		for (uint64_t at = 0; at < made->chunks[i].bytes; at++)
			data[at] = pattern(i, at);
	}
	return made;
}

static struct spill_chunked *make(uint64_t bytes, uint64_t chunk)
{
	return make_on(0, bytes, chunk);
}

/* The last chunk is a granule. Then as much of the device as it holds is all there is. */
static struct spill_chunked *make_half(void)
{
	const unsigned leave[] = {4, 5, 6, 7};
	struct spill_chunked *made = make((CHUNKS - 1) * CHUNK + FAKE_SMALL_UNIT, CHUNK);
	assert_true(change_sides(made, leave, 4, NULL));
	fake_vendor.device_free = 0;
	reported();
	return made;
}

static uint64_t on_host(const struct spill_chunked *of)
{
	uint64_t host = 0, device = 0;
	for (unsigned i = 0; i < of->count; i++) {
		const unsigned char *bytes = fake_vendor_bytes(spill_chunked_address(of, i), 0);
		assert_non_null(bytes);
		for (uint64_t at = 0; at < of->chunks[i].bytes; at++)
			if (bytes[at] != pattern(i, at))
				fail_msg("chunk %u, byte %u", i, (unsigned)at);
		*(of->chunks[i].on_host ? &host : &device) += of->chunks[i].bytes;
	}
	assert_int_equal(of->base.held.host, host);
	assert_int_equal(of->base.held.device, device);
	assert_int_equal(spill_account_device_held(0), device);
	assert_int_equal(fake_vendor.events, 0);
	return host;
}

static void end(struct spill_chunked *of)
{
	spill_ledger_end(spill_ledger_take(of->base.ptr));
	spill_placement_release(&of->base, false);
	spill_host_chunks_drop(&fake_vendor_backend);
	assert_int_equal(fake_vendor.handles, 0);
	assert_int_equal(fake_vendor.mappings, 0);
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 0);
}

/* -- the tests --------------------------------------------------------------------------------------------------- */

TEST(what_leaves_makes_the_room)
{
	const unsigned all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct spill_chunked *of = make_half();
	uint64_t came, before = on_host(of);
	assert_int_equal(before, 3 * CHUNK + FAKE_SMALL_UNIT);
	assert_true(change_sides(of, all, 8, &came));
	assert_int_equal(came, before);
	assert_int_equal(on_host(of), 4 * CHUNK);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(of->chunks[i].on_host, i < 4);
	struct reported moves = reported();
	assert_int_equal(moves.chunks, 8);
	assert_int_equal(moves.demoted, 4 * CHUNK);
	assert_int_equal(moves.promoted, came);
	end(of);
}

/* Both ways at once: some copy of the other way is under way whenever something is remapped, but for the first and the last. */
TEST(both_ways_go_at_once)
{
	const unsigned all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct spill_chunked *of = make_half();
	fake_vendor.most_under_way = 0;
	assert_true(change_sides(of, all, 8, NULL));
	assert_true(fake_vendor.most_under_way >= 2);
	on_host(of);
	end(of);
}

TEST(without_room_nothing_comes)
{
	const unsigned some[] = {4, 5};
	struct spill_chunked *of = make_half();
	uint64_t came, before = on_host(of);
	change_sides(of, some, 2, &came);
	assert_int_equal(came, 0);
	assert_int_equal(on_host(of), before);
	end(of);
}

TEST(a_busy_device_is_left_alone)
{
	const unsigned all[] = {0, 1, 6, 7};
	struct spill_chunked *of = make_half();
	uint64_t came, before = on_host(of);
	fake_vendor.stuck = true;
	assert_false(change_sides(of, all, 4, &came));
	fake_vendor.stuck = false;
	assert_int_equal(came, 0);
	assert_int_equal(on_host(of), before);
	assert_int_equal(reported().chunks, 0);
	end(of);
}

/* Their homes are the same ones, not only of the same side. */
static void handles_of(const struct spill_chunked *of, uint64_t *handles)
{
	for (unsigned i = 0; i < of->count; i++)
		handles[i] = of->chunks[i].handle;
}

/* Those who ask for moves look for captures first. One that has begun since would be broken by a mark. */
TEST(a_capture_that_has_begun_since_is_left_alone)
{
	const unsigned all[] = {0, 1, 6, 7};
	uint64_t before[CHUNKS], after[CHUNKS];
	struct spill_chunked *of = make_half();
	unsigned marks = fake_vendor.marks;
	uint64_t host = on_host(of), came;
	handles_of(of, before);
	set_capturing(true);
	assert_false(change_sides(of, all, 4, &came));
	struct spill_move_batch none = {0};
	uint64_t ns;
	spill_mover_lock();
	const char *error = spill_move_batch_attempt(&none, &fake_vendor_backend, 0, UINT64_MAX, NULL, &ns);
	spill_mover_unlock();
	assert_string_equal(error, spill_refused_by_name(SPILL_REFUSED_BY_CAPTURE));
	assert_int_equal(ns, 0);
	set_capturing(false);
	assert_int_equal(came, 0);
	assert_int_equal(fake_vendor.marks, marks);
	assert_int_equal(spill_gate_state & SPILL_GATE_CLOSED, 0);
	assert_int_equal(on_host(of), host);
	handles_of(of, after);
	assert_memory_equal(before, after, sizeof(before));
	assert_int_equal(reported().chunks, 0);
	assert_true(change_sides(of, all, 4, &came));
	assert_int_equal(came, CHUNK + FAKE_SMALL_UNIT);
	end(of);
}

/* False: that call was not made. */
static bool exchange_without(enum fake_libc_call call, unsigned which)
{
	const unsigned all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct spill_chunked *of = make_half();
	fake_libc_fail(call, which, 1, ENOMEM);
	change_sides(of, all, 8, NULL);
	bool failed = fake_libc[call].calls >= which;
	fake_libc_reset();
	on_host(of);
	end(of);
	fake_vendor_reset_mover(CHUNKS * CHUNK);
	spill_copier_reset();
	return failed;
}

/* Some chunks move then, or none. What was made for the others is given back. */
TEST(no_memory_for_the_lists_of_moves)
{
	unsigned which = 1;
	while (exchange_without(FAKE_realloc, which))
		which++;
	assert_true(which > 3);
	assert_true(exchange_without(FAKE_calloc, 1) && exchange_without(FAKE_calloc, 2));
}

/* Without host memory for it, or a place in the list, a chunk that leaves is not added, and nothing is kept for it. */
TEST(a_chunk_that_cannot_be_added)
{
	struct spill_chunked *of = make(2 * CHUNK, CHUNK);
	uint64_t held = spill_account_host_held();
	for (unsigned lacks = 0; lacks < 2; lacks++) {
		struct spill_exchange exchange = {.backend = &fake_vendor_backend, .device = 0};
		if (lacks)
			fake_libc_fail(FAKE_realloc, 1, 1, ENOMEM);
		else
			fake_vendor_fail(1, 2);
		spill_mover_lock();
		assert_false(spill_exchange_add(&exchange, of, 0));
		fake_libc_reset();
		fake_vendor_fail(0, 0);
		assert_int_equal(exchange.goes.count, 0);
		spill_host_chunks_drop(&fake_vendor_backend);
		assert_int_equal(spill_account_host_held(), held);
		assert_true(spill_exchange_add(&exchange, of, 0));
		spill_exchange_carry_out(&exchange, UINT64_MAX);
		spill_mover_unlock();
		assert_true(of->chunks[0].on_host);
		assert_true(change_sides(of, (unsigned[]){0}, 1, NULL));
		spill_host_chunks_drop(&fake_vendor_backend);
	}
	on_host(of);
	end(of);
}

/* The home that one left is the next one's: nothing new is made. */
TEST(homes_on_host_are_used_again)
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
TEST(what_is_kept_is_used_or_given_back)
{
	struct spill_chunked *of = make_half();
	struct spill_exchange exchange = {.backend = &fake_vendor_backend, .device = 0, .keep = 2 * CHUNK};
	uint64_t came;
	spill_mover_lock();
	for (unsigned i = 0; i < 5; i++) /* four leave, one comes: three homes are left, two of them kept */
		assert_true(spill_exchange_add(&exchange, of, i));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	assert_int_equal(exchange.came, CHUNK);
	assert_int_equal(spill_exchange_kept(), 2 * CHUNK);
	assert_int_equal(fake_vendor.device_free, CHUNK);
	assert_int_equal(spill_account_device_held(0), CHUNK + 2 * CHUNK);
	fake_vendor.device_free = 0;
	assert_true(change_sides(of, (unsigned[]){5, 6}, 2, &came));
	assert_int_equal(came, 2 * CHUNK);
	assert_int_equal(spill_exchange_kept(), 0);
	exchange = (struct spill_exchange){.backend = &fake_vendor_backend, .device = 0, .keep = CHUNK};
	spill_mover_lock();
	assert_true(spill_exchange_add(&exchange, of, 5));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	assert_int_equal(spill_exchange_kept(), CHUNK);
	spill_exchange_forget(&fake_vendor_backend, 1);
	assert_int_equal(spill_exchange_kept(), CHUNK);
	spill_exchange_forget(&fake_vendor_backend, 0);
	assert_int_equal(spill_exchange_kept(), 0);
	unsigned taken = locks_taken();
	spill_exchange_forget(&fake_vendor_backend, 0);
	assert_int_equal(locks_taken(), taken);
	on_host(of);
	end(of);
}

/* Carries out an exchange of such chunks of several allocations. Returns the times that device memory was made. */
struct part {
	struct spill_chunked *of;
	unsigned chunk;
};

static unsigned made_in_exchange(const struct part *parts, unsigned count, uint64_t keep)
{
	struct spill_exchange exchange = {.backend = &fake_vendor_backend, .device = 0, .keep = keep};
	unsigned before = fake_vendor.made_on_device;
	spill_mover_lock();
	for (unsigned i = 0; i < count; i++)
		assert_true(spill_exchange_add(&exchange, parts[i].of, parts[i].chunk));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	for (unsigned i = 0; i < count; i++) /* each has changed sides */
		assert_true(parts[i].of->chunks[parts[i].chunk].displaced);
	return fake_vendor.made_on_device - before;
}

/* Ends one of several allocations, and what is kept. */
static void end_beside(struct spill_chunked *of)
{
	spill_mover_lock();
	spill_exchange_drop();
	spill_mover_unlock();
	spill_ledger_end(spill_ledger_take(of->base.ptr));
	spill_placement_release(&of->base, false);
}

/*
 * As if the demotions were over before the first promotion: an allocation's line tells what it holds behind it. Each
 * allocation has one line for each way, with the time of the whole exchange and what the device had at its begin.
 */
TEST(the_log_tells_each_way_for_itself)
{
	const unsigned all_of[] = {0, 1, 2}, all_beside[] = {0, 1, 2, 3};
	struct spill_chunked *of = make(4 * CHUNK, CHUNK), *beside = make(4 * CHUNK, CHUNK);
	struct spill_exchange exchange = {.backend = &fake_vendor_backend, .device = 0};
	uint64_t host[3], device[3];
	unsigned count = 0;
	assert_true(change_sides(of, all_of, 3, NULL));
	assert_true(change_sides(beside, all_beside, 4, NULL));
	unsigned before = read_lines(in_folder("log")).count;
	spill_clock_use(NULL);
	uint64_t begin_us = spill_log_now_us();
	spill_mover_lock();
	for (unsigned i = 0; i < 4; i++)
		assert_true(spill_exchange_add(&exchange, of, i) && spill_exchange_add(&exchange, beside, i));
	assert_int_equal(exchange.comes.bytes, 7 * CHUNK);
	assert_int_equal(exchange.goes.bytes, CHUNK);
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	struct lines lines = read_lines(in_folder("log"));
	for (unsigned i = before; i < lines.count; i++)
		if (!strcmp(text_of(lines.at[i], "kind"), "move")) {
			assert_true(count < 3);
			uint64_t t_us =
			    (uint64_t)(cJSON_GetNumberValue(cJSON_GetObjectItem(lines.at[i], "t")) * 1e6 +
			               0.5);
			assert_in_range(t_us - number_of(lines.at[i], "us"), begin_us, t_us);
			assert_true(t_us <= spill_log_now_us());
			assert_int_equal(number_of(cJSON_GetObjectItem(lines.at[i], "seen"), "ours"), CHUNK);
			host[count] = number_of(lines.at[i], "host_bytes");
			device[count++] = number_of(lines.at[i], "device_bytes");
		}
	assert_int_equal(count, 3);
	assert_true(host[0] == 4 * CHUNK && device[0] == 0);
	assert_int_equal(host[1] + host[2], CHUNK);
	assert_int_equal(device[1] + device[2], 7 * CHUNK);
	end_beside(beside);
	on_host(of);
	end(of);
	reported();
}

/* Another device or vendor must not use it, and the end of another device's last context does not give it back. */
TEST(what_is_kept_is_one_devices)
{
	const struct spill_backend other = fake_vendor_backend;
	struct spill_chunked *of = make(CHUNK, CHUNK), *beside = make_on(1, 2 * CHUNK, CHUNK);
	struct spill_exchange exchange = {.backend = &fake_vendor_backend, .device = 1, .keep = CHUNK};
	assert_int_equal(made_in_exchange(&(struct part){of, 0}, 1, CHUNK), 0);
	assert_int_equal(spill_exchange_kept(), CHUNK);
	assert_int_equal(spill_account_device_held(0), CHUNK);
	spill_mover_lock();
	assert_true(spill_exchange_add(&exchange, beside, 0));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_device_held(1), 2 * CHUNK);
	assert_int_equal(spill_exchange_kept(), CHUNK);
	spill_exchange_forget(&fake_vendor_backend, 0);
	spill_exchange_forget(&other, 1);
	assert_int_equal(spill_exchange_kept(), CHUNK);
	exchange = (struct spill_exchange){.backend = &other, .device = 1, .keep = 2 * CHUNK};
	spill_mover_lock();
	assert_true(spill_exchange_add(&exchange, beside, 1));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	assert_int_equal(spill_exchange_kept(), CHUNK);
	spill_exchange_forget(&other, 1);
	assert_int_equal(spill_exchange_kept(), 0);
	assert_int_equal(spill_account_device_held(1), 0);
	spill_host_chunks_drop(&other);
	end_beside(beside);
	end(of);
}

/* That of the memory, or any of the device if that one has ended. */
TEST(copies_are_made_in_a_context_that_lives)
{
	static int first, second;
	struct spill_chunked *of = make(CHUNK, CHUNK);
	spill_contexts_made(&fake_vendor_backend, 0, &first);
	spill_contexts_made(&fake_vendor_backend, 0, &second);
	of->base.context = &second;
	spill_copier_reset();
	assert_true(change_sides(of, (unsigned[]){0}, 1, NULL));
	assert_ptr_equal(fake_vendor.copier_context, &second);
	spill_contexts_ended(ENDED(&fake_vendor_backend, 0, &second));
	spill_copier_context_ended(ENDED(&fake_vendor_backend, 0, &second));
	assert_true(change_sides(of, (unsigned[]){0}, 1, NULL));
	assert_true(fake_vendor.copier_context == &first || fake_vendor.copier_context == &context);
	spill_contexts_ended(ENDED(&fake_vendor_backend, 0, &first));
	on_host(of);
	end(of);
}

/* On a full device the driver takes long to make memory again that was just released (docs/measurements.md). */
TEST(memory_of_its_size_is_waited_for)
{
	struct spill_chunked *large = make(4 * CHUNK, CHUNK),
	                     *small = make(8 * FAKE_SMALL_UNIT, FAKE_SMALL_UNIT);
	struct part kept[8], both[4] = {{large, 2}, {large, 0}, {large, 3}, {large, 1}};
	settle_on_host(large, (unsigned[]){0, 1}, 2);
	for (unsigned i = 0; i < 8; i++)
		kept[i] = (struct part){small, i};
	assert_int_equal(made_in_exchange(kept, 8, 2 * CHUNK), 0);
	assert_int_equal(spill_exchange_kept(), 2 * CHUNK);
	fake_vendor.device_free = 0;
	assert_int_equal(made_in_exchange(both, 4, 2 * CHUNK), 0);
	assert_int_equal(spill_exchange_kept(), 2 * CHUNK);
	end_beside(small);
	on_host(large);
	end(large);
}

/* Nobody leaves memory of the middle size. It is made of small pieces, because the large one is wanted. */
TEST(memory_is_made_of_what_nobody_wants)
{
	struct spill_chunked *large = make(2 * CHUNK, CHUNK), *middle = make(CHUNK, CHUNK / 2),
	                     *small = make(CHUNK, FAKE_SMALL_UNIT);
	const struct part leave[] = {{large, 0}, {small, 0}, {small, 1}, {small, 2}, {small, 3}};
	const struct part come[] = {{middle, 0}, {large, 0}};
	assert_true(change_sides(middle, (unsigned[]){0}, 1, NULL));
	assert_int_equal(made_in_exchange(leave, 5, 2 * CHUNK), 0);
	assert_int_equal(spill_exchange_kept(), 2 * CHUNK);
	fake_vendor.device_free = 0;
	middle->chunks[0].displaced = large->chunks[0].displaced = false;
	assert_int_equal(made_in_exchange(come, 2, 2 * CHUNK), 1);
	assert_int_equal(spill_exchange_kept(), CHUNK / 2);
	assert_int_equal(fake_vendor.device_free, 0);
	end_beside(small);
	end_beside(middle);
	assert_int_equal(on_host(large), 0);
	end(large);
}

/* The order of the moves since that copy. L and M left, l and m came. M is half as large as L. */
static void order_is(unsigned before, const char *wanted)
{
	char seen[FAKE_COPIES + 1] = {0};
	assert_in_range(fake_vendor.copies - before, 0, FAKE_COPIES);
	for (unsigned i = before; i < fake_vendor.copies; i++) {
		const struct fake_copy *copy = &fake_vendor.copy[i % FAKE_COPIES];
		assert_true(copy->bytes == CHUNK || copy->bytes == CHUNK / 2);
		seen[i - before] = (copy->bytes == CHUNK ? "Ll" : "Mm")[copy->from_host];
	}
	assert_string_equal(seen, wanted);
}

/* Each takes over what one has left two places ahead of it, so that no copy waits for another. */
TEST(those_of_one_size_take_turns)
{
	struct spill_chunked *of = make(6 * CHUNK, CHUNK);
	const struct part parts[] = {{of, 0}, {of, 1}, {of, 2}, {of, 3}, {of, 4}, {of, 5}};
	settle_on_host(of, (unsigned[]){3, 4, 5}, 3);
	fake_vendor.device_free = 0;
	unsigned before = fake_vendor.copies;
	assert_int_equal(made_in_exchange(parts, 6, 0), 0);
	order_is(before, "LLlLll");
	on_host(of);
	end(of);
}

/* None of their size leaves: they come between those that leave, as soon as there is memory to make theirs of. */
TEST(what_is_made_does_not_wait_for_all_that_leave)
{
	struct spill_chunked *large = make(3 * CHUNK, CHUNK), *middle = make(CHUNK, CHUNK / 2);
	const struct part parts[] = {{large, 0}, {large, 1}, {large, 2}, {middle, 0}, {middle, 1}};
	settle_on_host(middle, (unsigned[]){0, 1}, 2);
	fake_vendor.device_free = 0;
	unsigned before = fake_vendor.copies;
	assert_int_equal(made_in_exchange(parts, 5, 0), 2);
	order_is(before, "LLmLm");
	end_beside(middle);
	on_host(large);
	end(large);
}

TEST(one_is_made_of_the_memory_of_several)
{
	struct spill_chunked *large = make(2 * CHUNK, CHUNK), *middle = make(3 * CHUNK, CHUNK / 2);
	const struct part parts[] = {{middle, 0}, {middle, 1}, {middle, 2}, {middle, 3},
	                             {middle, 4}, {middle, 5}, {large, 0},  {large, 1}};
	settle_on_host(large, (unsigned[]){0, 1}, 2);
	fake_vendor.device_free = 0;
	unsigned before = fake_vendor.copies;
	assert_int_equal(made_in_exchange(parts, 8, 0), 2);
	order_is(before, "MMMlMMlM");
	end_beside(middle);
	on_host(large);
	end(large);
}

/* One of its size has just left. Its memory is waited for, while another leaves, even where there is room. */
TEST(what_waits_for_its_size_lets_another_leave)
{
	struct spill_chunked *large = make(2 * CHUNK, CHUNK), *middle = make(CHUNK, CHUNK / 2);
	const struct part parts[] = {{large, 0}, {large, 1}, {middle, 0}, {middle, 1}};
	settle_on_host(middle, (unsigned[]){0}, 1);
	fake_vendor.device_free = CHUNK;
	unsigned before = fake_vendor.copies;
	assert_int_equal(made_in_exchange(parts, 4, 0), 0);
	order_is(before, "MLmL");
	end_beside(middle);
	on_host(large);
	end(large);
}

/*
 * Two leave, and one of another size comes: it is made. Then a part of what is left over stays free, so that the next
 * one is not made of memory that was given back just now. What fits is taken over all the same.
 */
TEST(room_is_left_for_what_must_be_made)
{
	struct spill_chunked *large = make(4 * CHUNK, CHUNK), *middle = make(CHUNK, CHUNK / 2);
	const struct part other[] = {{large, 0}, {large, 1}, {middle, 0}}, same[] = {{large, 2}, {large, 0}};
	assert_true(change_sides(middle, (unsigned[]){0, 1}, 2, NULL));
	fake_vendor.device_free = 0;
	middle->chunks[0].displaced = false;
	assert_int_equal(made_in_exchange(other, 3, 2 * CHUNK), 1);
	assert_int_equal(spill_exchange_kept() + fake_vendor.device_free, 2 * CHUNK - CHUNK / 2);
	assert_true(fake_vendor.device_free >= CHUNK / 2);
	large->chunks[0].displaced = large->chunks[2].displaced = false;
	assert_int_equal(made_in_exchange(same, 2, 2 * CHUNK), 0);
	end_beside(middle);
	on_host(large);
	end(large);
}

/* What had to be made counts an eighth less with each exchange. So in the end as much is kept as before. */
TEST(what_had_to_be_made_is_forgotten_with_time)
{
	struct spill_chunked *large = make(2 * CHUNK, CHUNK), *middle = make(CHUNK / 2, CHUNK / 2),
	                     *small = make(20 * FAKE_SMALL_UNIT, FAKE_SMALL_UNIT);
	const struct part come = {middle, 0}, first = {large, 0}, last = {large, 1};
	const uint64_t keep = CHUNK + CHUNK / 8;
	settle_on_host(middle, (unsigned[]){0}, 1);
	assert_int_equal(made_in_exchange(&come, 1, keep), 1);
	assert_int_equal(made_in_exchange(&first, 1, keep), 0);
	assert_int_equal(spill_exchange_kept(), 0);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(made_in_exchange(&(struct part){small, i}, 1, 0), 0);
	assert_int_equal(made_in_exchange(&last, 1, keep), 0);
	assert_int_equal(spill_exchange_kept(), CHUNK);
	end_beside(small);
	end_beside(middle);
	assert_int_equal(on_host(large), 2 * CHUNK);
	end(large);
}

/* What others need of the device is none of its room, however many chunks come. */
TEST(the_reserve_of_the_device_stays_free)
{
	struct spill_chunked *of = make_half();
	uint64_t came;
	policy.device_reserve.value = CHUNK;
	fake_vendor.device_free = 3 * CHUNK;
	change_sides(of, (unsigned[]){4, 5, 6}, 3, &came);
	assert_int_equal(came, 2 * CHUNK);
	assert_int_equal(fake_vendor.device_free, CHUNK);
	on_host(of);
	end(of);
}

/* One more than the clock shows: 0 means that none began. */
TEST(the_moves_take_the_time_of_the_clock)
{
	struct spill_chunked *of = make(CHUNK, CHUNK);
	struct spill_exchange exchange = {.backend = &fake_vendor_backend, .device = 0};
	uint64_t begin = spill_clock_ns();
	spill_mover_lock();
	assert_true(spill_exchange_add(&exchange, of, 0));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	assert_in_range(exchange.ns, 1, spill_clock_ns() - begin + 1);
	end(of);
}

static uint64_t wait_for_busy_device(struct spill_chunked *of, uint64_t wait_us)
{
	struct spill_move move = {.chunked = of, .index = 4};
	struct spill_move_batch batch = {0};
	uint64_t begin = spill_clock_ns();
	assert_true(spill_move_batch_add(&batch, &move));
	spill_mover_lock();
	const char *error = spill_move_batch_carry_out(&batch, &fake_vendor_backend, 0, wait_us);
	spill_mover_unlock();
	assert_string_equal(error, "movable.wait: the device is busy");
	spill_move_batch_end(&batch);
	return spill_clock_ns() - begin;
}

/* Moves that were not carried out leave the mark of an exchange as it was, and others take it away. */
TEST(a_move_for_room_is_no_exchange)
{
	struct spill_chunked *of = make_half();
	struct spill_move move = {.chunked = of, .index = 0};
	struct spill_move_batch batch = {0};
	struct spill_host_chunk memory;
	of->chunks[0].displaced = true;
	fake_vendor.stuck = true;
	wait_for_busy_device(of, 5000);
	assert_true(of->chunks[4].displaced);
	fake_vendor.stuck = false;
	assert_int_equal(spill_host_chunk_get(&fake_vendor_backend, 0, CHUNK, &memory), 0);
	move.handle = memory.handle;
	move.view = memory.view;
	assert_true(spill_move_batch_add(&batch, &move));
	spill_mover_lock();
	assert_null(spill_move_batch_carry_out(&batch, &fake_vendor_backend, 0, 5000));
	struct spill_bytes moved = spill_move_batch_settle(&batch, &fake_vendor_backend, 0);
	spill_mover_unlock();
	spill_move_batch_end(&batch);
	assert_true(moved.host == CHUNK && moved.device == 0);
	assert_true(of->chunks[0].on_host && !of->chunks[0].displaced);
	on_host(of);
	end(of);
}

static void sides_are(const struct spill_chunked *of, const char *wanted)
{
	char seen[CHUNKS + 1] = {0};
	for (unsigned i = 0; i < of->count; i++)
		seen[i] = of->chunks[i].on_host ? 'h' : 'd';
	assert_string_equal(seen, wanted);
}

static void restore(void)
{
	spill_mover_lock();
	assert_true(spill_restore(&fake_vendor_backend, 0));
	spill_mover_unlock();
}

/* Where one left and another came in its place, the allocation has as much on the device as before. */
TEST(an_allocation_gets_back_what_it_lost)
{
	struct spill_chunked *of = make(6 * CHUNK, CHUNK);
	spill_chunked_enlist(of);
	assert_true(change_sides(of, (unsigned[]){4}, 1, NULL));
	of->chunks[4].displaced = false; /* it had left before the exchange */
	assert_true(change_sides(of, (unsigned[]){0, 1, 2, 4}, 4, NULL));
	sides_are(of, "hhhddd");
	restore();
	sides_are(of, "ddhddd");
	restore();
	sides_are(of, "ddhddd");
	assert_int_equal(on_host(of), CHUNK);
	end(of);
}

/* What came in its place has to leave only where there is no room otherwise. */
TEST(what_fits_exactly_makes_nobody_leave)
{
	struct spill_chunked *left = make(CHUNK, CHUNK), *came = make(CHUNK, CHUNK);
	spill_chunked_enlist(left);
	spill_chunked_enlist(came);
	assert_true(change_sides(left, (unsigned[]){0}, 1, NULL));
	came->chunks[0].displaced = true;
	fake_vendor.device_free = CHUNK;
	restore();
	sides_are(left, "d");
	sides_are(came, "d");
	left->chunks[0].displaced = false;
	assert_true(change_sides(left, (unsigned[]){0}, 1, NULL));
	fake_vendor.device_free = CHUNK - 1;
	restore();
	sides_are(left, "d");
	sides_are(came, "h");
	end_beside(came);
	on_host(left);
	end(left);
}

/* What an exchange kept is room as well, beside what is free. Only for more than both must another chunk leave. */
TEST(kept_memory_is_room_for_what_comes_back)
{
	for (unsigned free = 0; free < 2; free++) {
		struct spill_chunked *left = make(2 * CHUNK, CHUNK), *came = make(CHUNK, CHUNK);
		spill_chunked_enlist(left);
		spill_chunked_enlist(came);
		assert_int_equal(made_in_exchange((struct part[]){{left, 0}, {left, 1}}, 2, CHUNK), 0);
		assert_int_equal(spill_exchange_kept(), CHUNK);
		came->chunks[0].displaced = true;
		fake_vendor.device_free = free * CHUNK;
		restore();
		sides_are(left, "dd");
		sides_are(came, free ? "d" : "h");
		end_beside(came);
		assert_int_equal(on_host(left), 0);
		end(left);
		fake_vendor.device_free = CHUNKS * CHUNK;
	}
}

/* Those that leave may be smaller than the one that comes. */
TEST(as_many_leave_as_the_room_of_what_comes_back)
{
	struct spill_chunked *left = make(CHUNK, CHUNK), *came = make(CHUNK, CHUNK / 2);
	spill_chunked_enlist(left);
	spill_chunked_enlist(came);
	assert_true(change_sides(left, (unsigned[]){0}, 1, NULL));
	came->chunks[0].displaced = came->chunks[1].displaced = true;
	fake_vendor.device_free = 0;
	restore();
	sides_are(left, "d");
	sides_are(came, "hh");
	end_beside(came);
	on_host(left);
	end(left);
}

/* A busy device is left alone, and the caller tries again later. */
TEST(a_restore_of_a_busy_device_is_not_over)
{
	struct spill_chunked *of = make(CHUNK, CHUNK);
	spill_chunked_enlist(of);
	assert_true(change_sides(of, (unsigned[]){0}, 1, NULL));
	fake_vendor.stuck = true;
	spill_mover_lock();
	assert_false(spill_restore(&fake_vendor_backend, 0));
	spill_mover_unlock();
	fake_vendor.stuck = false;
	sides_are(of, "h");
	restore();
	sides_are(of, "d");
	end(of);
}

static bool is_left_beside(int device)
{
	spill_mover_lock();
	bool left = spill_restore_left(device);
	spill_mover_unlock();
	return left;
}

/* What other devices have lost: a caller that restores one of them goes on with them. */
TEST(other_devices_have_something_to_restore)
{
	struct spill_chunked *of = make(CHUNK, CHUNK);
	spill_chunked_enlist(of);
	assert_false(is_left_beside(0));
	assert_false(is_left_beside(1));
	assert_true(change_sides(of, (unsigned[]){0}, 1, NULL));
	assert_false(is_left_beside(0));
	assert_true(is_left_beside(1));
	restore();
	assert_false(is_left_beside(1));
	end(of);
}

/* No other chunk leaves memory of its size. An allocation that is one chunk is of its own size. */
TEST(an_odd_chunk_of_several_stays)
{
	struct spill_chunked *several = make(CHUNK + FAKE_SMALL_UNIT, CHUNK),
	                     *one = make(2 * FAKE_SMALL_UNIT, CHUNK);
	spill_chunked_enlist(several);
	spill_chunked_enlist(one);
	assert_true(change_sides(several, (unsigned[]){0, 1}, 2, NULL));
	assert_true(change_sides(one, (unsigned[]){0}, 1, NULL));
	restore();
	sides_are(several, "dh");
	sides_are(one, "d");
	end_beside(one);
	on_host(several);
	end(several);
}

static bool has_a_chance(uint64_t wait_us)
{
	spill_mover_lock();
	bool has = spill_move_batch_has_a_chance(&fake_vendor_backend, 0, wait_us);
	spill_mover_unlock();
	return has;
}

/* A look at a busy device counts as a wait. 5 ms are the shortest, and an idle device has all the time again. */
TEST(a_busy_device_is_waited_for_half_as_long_each_time)
{
	const unsigned us = 64000;
	struct spill_chunked *of = make_half();
	assert_true(has_a_chance(us));
	fake_vendor.stuck = true;
	for (unsigned round = 0; round < 2; round++) {
		assert_in_range(wait_for_busy_device(of, us), 64 * MS, 65 * MS);
		assert_in_range(wait_for_busy_device(of, us), 32 * MS, 33 * MS);
		assert_false(has_a_chance(us));
		assert_in_range(wait_for_busy_device(of, us), 8 * MS, 9 * MS);
		assert_in_range(wait_for_busy_device(of, us), 5 * MS, 6 * MS);
		for (unsigned i = 0; i < 20; i++)
			assert_in_range(wait_for_busy_device(of, us), 5 * MS, 6 * MS);
		assert_in_range(wait_for_busy_device(of, 2000), 2 * MS, 3 * MS);
		fake_vendor.stuck = false;
		assert_true(has_a_chance(us));
		fake_vendor.stuck = true;
	}
	fake_vendor.stuck = false;
	assert_true(has_a_chance(us));
	on_host(of);
	end(of);
}

TEST(whatever_fails_nothing_is_lost)
{
	const unsigned all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	bool failed = true;
	for (unsigned call = 1; failed; call++) {
		fake_vendor_reset_mover(CHUNKS * CHUNK);
		spill_copier_reset();
		struct spill_chunked *of = make_half();
		fake_vendor_fail(call, call + 1);
		change_sides(of, all, 8, NULL);
		failed = fake_vendor.calls >= call;
		fake_vendor_fail(0, 0);
		on_host(of);
		spill_ledger_end(spill_ledger_take(of->base.ptr));
		spill_placement_release(&of->base, false);
		spill_host_chunks_drop(&fake_vendor_backend);
		assert_int_equal(fake_vendor.broken, 0);
		assert_int_equal(spill_account_device_held(0), 0);
		assert_int_equal(spill_account_host_held(), 0);
	}
}

/* Its handle stays as it was, and nothing is charged. */
TEST(device_memory_beyond_the_limit_is_refused)
{
	uint64_t handle = 77;
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	assert_false(spill_device_chunk_get(&fake_vendor_backend, 0, CHUNK + 1, &handle));
	fake_vendor_fail(1, 2);
	assert_false(spill_device_chunk_get(&fake_vendor_backend, 0, CHUNK, &handle));
	fake_vendor_fail(0, 0);
	assert_int_equal(handle, 77);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_true(spill_device_chunk_get(&fake_vendor_backend, 0, CHUNK, &handle));
	assert_int_equal(spill_account_device_held(0), CHUNK);
	spill_device_chunk_put(&fake_vendor_backend, 0, CHUNK, handle, 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(fake_vendor.handles, 0);
}

int main(void)
{
	return run_unit_tests(begin, remove_folder);
}
