/*
 * Chunk sets, by calls as the stubs make them. Which access lets a set move? When does its end bring back what has left
 * the device? The other calls: test_vmm.c.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "abi/cuda.h"
#include "account.h"
#include "captures.h"
#include "chunk_set.h"
#include "chunked.h"
#include "contexts.h"
#include "exchange.h"
#include "fake_clock.h"
#include "fake_objects.h"
#include "fake_vendor.h"
#include "fake_libc.h"
#include "gate.h"
#include "host_chunks.h"
#include "ledger.h"
#include "movable.h"
#include "copier.h"
#include "note.h"
#include "process.h"
#include "promote.h"
#include "registry.h"
#include "request.h"
#include "reserve.h"

#define MS 1000000ull
#define CHUNK (2ull << 20)

enum { CHUNKS = 8, RANGE = 3 * CHUNKS }; /* of the device, and of the addresses */

static const struct fake_properties on_device = {SPILL_LOCATION_DEVICE, 0};
static struct spill_policy policy;
static struct spill_backend backend;
static struct spill_vendor_physical physical;
static int context;
static const bool yes = true;
static uint64_t range; /* of addresses */

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
}

/* In place of probe.c, whose trial needs memory of the host with bytes. */
enum spill_probe spill_probe(const struct spill_backend *vendor, int device)
{
	return spill_gate_prepare() ? SPILL_PROBE_WORKS : SPILL_PROBE_FAILS;
}

static int create_as(const void *wanted, uint64_t bytes, uint64_t *handle)
{
	return fake_vendor_create(handle, bytes, wanted);
}

static int setup(void **state)
{
	fake_vendor_reset_mover(CHUNKS * CHUNK);
	fake_vendor.granule = fake_vendor.host_granule = CHUNK;
	fake_vendor.total = CHUNKS * CHUNK;
	fake_vendor.context = &context;
	fake_vendor.marks_pass = &yes;
	backend = fake_vendor_backend;
	physical = *backend.physical;
	physical.create_as = create_as;
	backend.physical = &physical;
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &backend);
	fake_vendor_policy(&policy);
	policy.movable_enable = SPILL_SWITCH_ON;
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.log_stderr = SPILL_STDERR_OFF;
	policy.chain =
	    (struct spill_fallback_chain){.count = 2, .step = {SPILL_STEP_DEMOTE, SPILL_STEP_SPLIT}};
	spill_process_use_policy(&policy);
	fake_clock_use(1000 * MS);
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	spill_account_reset();
	spill_copier_reset();
	spill_exchange_reset();
	spill_reserve_reset();
	spill_movable_reset();
	spill_promote_reset();
	spill_contexts_made(&backend, 0, &context);
	return fake_vendor_backend.vmm->reserve(RANGE * CHUNK, CHUNK, &range);
}

/* -- as the stubs do it ----------------------------------------------------------------------------- */

#define CALL(request_op, real, ...) \
	struct spill_request request = {.op = SPILL_OP_##request_op, .api = #real, __VA_ARGS__}; \
	while (spill_request_next(&request)) \
		request.result = real; \
	assert_int_equal(request.result, 0)

static uint64_t create(unsigned chunks)
{
	uint64_t handle = 0;
	CALL(CREATE, fake_vendor_create(&handle, chunks * CHUNK, &on_device), .out = &handle,
	     .bytes = chunks * CHUNK, .properties = &on_device);
	return handle;
}

static unsigned mapped; /* chunks of the range, a bit each */

static unsigned bits(uint64_t va, unsigned chunks)
{
	return ((1u << chunks) - 1) << (va - range) / CHUNK;
}

static void map(uint64_t va, unsigned chunks, uint64_t handle)
{
	CALL(MAP, backend.vmm->map(va, chunks * CHUNK, handle), .ptr = va, .bytes = chunks * CHUNK,
	     .handle = handle);
	mapped |= bits(va, chunks);
}

static void release(uint64_t handle)
{
	CALL(RELEASE, physical.release(handle), .handle = handle);
}

/* The driver's own, of each mapping in the range. */
static int each_mapping(uint64_t va, unsigned chunks, bool unmaps)
{
	int result = 0;
	for (unsigned i = 0; i < chunks; i++, va += CHUNK)
		if (mapped & bits(va, 1))
			result |= unmaps ? backend.vmm->unmap(va, CHUNK) : backend.vmm->allow(va, CHUNK, 0);
	return result;
}

static void unmap(uint64_t va, unsigned chunks)
{
	CALL(UNMAP, each_mapping(va, chunks, true), .ptr = va, .bytes = chunks * CHUNK);
	mapped &= ~bits(va, chunks);
}

static bool moves_wait; /* for the driver's call to give access */

static int allow_each(uint64_t va, unsigned chunks)
{
	moves_wait = spill_mover_is_mine();
	return each_mapping(va, chunks, false);
}

static const CUmemAccessDesc usual = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void access_by(uint64_t va, unsigned chunks, const CUmemAccessDesc *list, unsigned count)
{
	CALL(ACCESS, allow_each(va, chunks), .ptr = va, .bytes = chunks * CHUNK, .properties = list,
	     .mode = count);
	assert_false(spill_mover_is_mine());
}

static void access_to(uint64_t va, unsigned chunks)
{
	access_by(va, chunks, &usual, 1);
}

/* Created, mapped with access and released. */
static void make(uint64_t va, unsigned chunks)
{
	uint64_t handle = create(chunks);
	map(va, chunks, handle);
	access_to(va, chunks);
	release(handle);
}

static int teardown(void **state)
{
	unmap(range, RANGE); /* whatever is mapped there */
	spill_host_chunks_drop(&backend);
	spill_promote_reset();
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 0);
	return 0;
}

/* -- the tests -------------------------------------------------------------------------------------- */

static unsigned enlisted(void)
{
	unsigned count = 0;
	for (struct spill_chunked *set = spill_chunked_next(NULL); set; set = spill_chunked_next(set))
		count += !set->pinned;
	return count;
}

static bool wants_maintenance(void)
{
	return atomic_fetch_and(&spill_gate_state, ~(unsigned)SPILL_GATE_MAINTENANCE) &
	       SPILL_GATE_MAINTENANCE;
}

/* The driver is asked inside the gate: an address whose chunk is just moving has no memory. */
TEST(questions_wait_while_chunks_move)
{
	static const enum spill_op questions[] = {SPILL_OP_ATTR, SPILL_OP_POINTER, SPILL_OP_RANGE};
	for (unsigned i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		struct spill_request request = {.op = questions[i], .api = "ask", .ptr = range};
		assert_true(spill_request_next(&request));
		assert_true(spill_gate_self && atomic_load(&spill_gate_self->inside));
		request.result = FAKE_INVALID;
		assert_false(spill_request_next(&request));
		assert_false(atomic_load(&spill_gate_self->inside));
	}
}

/* What is mapped right behind the range is not told: it would seem to have access to a part. */
TEST(sets_in_the_range_may_move_from_then_on)
{
	uint64_t handle[3];
	for (unsigned i = 0; i < 3; i++) {
		handle[i] = create(2);
		map(range + i * 2 * CHUNK, 2, handle[i]);
	}
	wants_maintenance();
	access_to(range + 8 * CHUNK, 2); /* nothing is there */
	assert_int_equal(enlisted(), 0);
	assert_false(wants_maintenance());
	access_to(range, 4);
	assert_int_equal(enlisted(), 2);
	assert_true(wants_maintenance());
	access_to(range + 4 * CHUNK, 2);
	assert_int_equal(enlisted(), 3);
	for (unsigned i = 0; i < 3; i++)
		release(handle[i]);
}

/* No chunk is out of its place for a moment while the driver goes through them. Without chunks nobody waits. */
TEST(nothing_moves_during_the_call)
{
	uint64_t handle = create(2);
	access_to(range, 2);
	assert_false(moves_wait);
	map(range, 2, handle);
	access_to(range, 2);
	assert_true(moves_wait);
	release(handle);
}

static unsigned locks_in_turn; /* taken while this thread held the mover */

static void note_lock(void)
{
	locks_in_turn += spill_mover_is_mine();
	before_next_lock(note_lock);
}

/* No chunk set was there when the call began, so nothing waited. One that was mapped meanwhile is told in its turn. */
TEST(a_set_that_is_mapped_during_the_call)
{
	uint64_t handle = 0;
	struct spill_request request = {
	    .op = SPILL_OP_ACCESS, .ptr = range, .bytes = 2 * CHUNK, .properties = &usual, .mode = 1};
	assert_true(spill_request_next(&request));
	assert_false(spill_mover_is_mine());
	handle = create(2);
	map(range, 2, handle);
	request.result = allow_each(range, 2);
	locks_in_turn = 0;
	before_next_lock(note_lock);
	assert_false(spill_request_next(&request));
	before_next_lock(NULL);
	assert_true(locks_in_turn > 0);
	assert_false(spill_mover_is_mine());
	assert_int_equal(enlisted(), 1);
	release(handle);
}

TEST(handles_of_the_driver_go_to_it)
{
	policy.movable_enable = SPILL_SWITCH_OFF;
	uint64_t handle = create(1);
	assert_false(spill_chunk_set_is(handle));
	struct spill_request mapping = {.op = SPILL_OP_MAP, .ptr = range, .bytes = CHUNK, .handle = handle};
	assert_true(spill_request_next(&mapping));
	mapping.result = backend.vmm->map(range, CHUNK, handle);
	assert_false(spill_request_next(&mapping));
	mapped |= bits(range, 1);
	struct spill_request releasing = {.op = SPILL_OP_RELEASE, .handle = handle};
	assert_true(spill_request_next(&releasing));
	releasing.result = physical.release(handle);
	assert_false(spill_request_next(&releasing));
	assert_int_equal(spill_account_device_held(0), CHUNK);
	unmap(range, 1);
	assert_int_equal(spill_account_device_held(0), 0);
}

/* The vendor has no handle for what libspill made of chunks, and ours would be one. */
TEST(only_plain_memory_has_a_handle_to_retain)
{
	for (enum spill_place place = SPILL_PLACE_DEVICE + 1; place < SPILL_PLACES; place++) {
		bool in_chunks = place == SPILL_PLACE_SPLIT || place == SPILL_PLACE_MOVABLE;
		struct spill_placement placement = {.ptr = range};
		struct spill_allocation entry = {.backend = &backend,
		                                 .ptr = range,
		                                 .bytes = 2 * CHUNK,
		                                 .place = place,
		                                 .placement = &placement};
		assert_true(spill_ledger_add(&entry));
		for (unsigned chunk = 0; chunk < 3; chunk++) { /* the last one is behind it */
			uint64_t out = 0;
			struct spill_request request = {
			    .op = SPILL_OP_RETAIN, .ptr = range + chunk * CHUNK, .out = &out};
			bool asked = !in_chunks || chunk == 2;
			assert_int_equal(spill_request_next(&request), asked);
			if (!asked)
				assert_int_equal(request.result, FAKE_INVALID);
			request.result = FAKE_INVALID;
			if (asked)
				assert_false(spill_request_next(&request));
		}
		spill_ledger_end(spill_ledger_take(range));
	}
}

/* The driver is asked about none of ours, also if it has ended: it takes a handle for an address. */
TEST(properties_of_a_handle_of_ours)
{
	uint64_t handle = create(1);
	for (unsigned ended = 0; ended < 2; ended++) {
		struct fake_properties told = {0};
		struct spill_request request = {.op = SPILL_OP_PROPERTIES, .handle = handle, .out = &told};
		assert_false(spill_request_next(&request));
		assert_int_equal(request.result, ended ? CUDA_ERROR_INVALID_VALUE : 0);
		assert_int_equal(memcmp(&told, &on_device, sizeof(told)) == 0, !ended);
		if (!ended)
			release(handle);
	}
}

/* A chunk that moves gets the access of whole devices, to read and write. A set with another one stays. */
TEST(another_kind_of_access_lets_a_set_stay)
{
	static const CUmemAccessDesc others[] = {
	    {{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
	    {{CU_MEM_LOCATION_TYPE_DEVICE, -1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
	    {{CU_MEM_LOCATION_TYPE_DEVICE, SPILL_DEVICES}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
	    {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READ}};
	for (unsigned i = 0; i <= sizeof(others) / sizeof(others[0]); i++) {
		bool known = i == sizeof(others) / sizeof(others[0]);
		const CUmemAccessDesc last = {{CU_MEM_LOCATION_TYPE_DEVICE, SPILL_DEVICES - 1},
		                              CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
		const CUmemAccessDesc both[] = {usual, known ? last : others[i]};
		uint64_t handle = create(1);
		map(range, 1, handle);
		access_by(range, 1, both, 2);
		assert_int_equal(enlisted(), known);
		unmap(range, 1);
		release(handle);
	}
}

TEST(an_access_that_is_refused_changes_nothing)
{
	uint64_t handle = create(1);
	struct spill_request request = {
	    .op = SPILL_OP_ACCESS, .ptr = range, .bytes = CHUNK, .properties = &usual, .mode = 1};
	map(range, 1, handle);
	while (spill_request_next(&request))
		request.result = FAKE_INVALID;
	assert_int_equal(request.result, FAKE_INVALID);
	assert_int_equal(enlisted(), 0);
	assert_false(spill_mover_is_mine());
	release(handle);
}

static uint64_t away(void)
{
	uint64_t sum = 0;
	for (struct spill_chunked *set = spill_chunked_next(NULL); set; set = spill_chunked_next(set))
		sum += spill_chunked_away(set);
	return sum / CHUNK;
}

/* The time until something comes back, at most a few seconds. */
static uint64_t time_until_return(void)
{
	uint64_t before = away(), begin = fake_clock.ns;
	while (away() == before && fake_clock.ns < begin + 3000 * MS) {
		fake_clock.ns += MS;
		spill_promote_maintain();
	}
	return (fake_clock.ns - begin) / MS;
}

/* It was made while nothing could move. From its access on the device is looked at, until it has come. */
TEST(a_set_on_the_host_comes_once_it_has_access)
{
	make(range, CHUNKS / 2);
	assert_true(time_until_return() > 2000); /* nothing is away */
	uint64_t handle;
	set_capturing(true);
	handle = create(CHUNKS);
	set_capturing(false);
	map(range + CHUNKS * CHUNK, CHUNKS, handle);
	unmap(range, CHUNKS / 2);
	access_to(range + CHUNKS * CHUNK, CHUNKS);
	assert_int_equal(away(), CHUNKS / 2);
	assert_in_range(time_until_return(), 1, SPILL_PROMOTE_LOOK_MS + 2);
	release(handle);
}

/* Else it would be looked at much later: the last look found the device full. */
TEST(what_has_left_comes_back_soon_after_an_end)
{
	make(range, CHUNKS);
	make(range + CHUNKS * CHUNK, CHUNKS / 2);
	assert_int_equal(away(), CHUNKS / 2);
	for (uint64_t end = fake_clock.ns + (SPILL_PROMOTE_QUIET_MS + 2) * MS; fake_clock.ns < end;
	     fake_clock.ns += MS)
		spill_promote_maintain();
	assert_int_equal(away(), CHUNKS / 2);
	unmap(range + CHUNKS * CHUNK, CHUNKS / 2);
	assert_in_range(time_until_return(), SPILL_PROMOTE_QUIET_MS - 2, SPILL_PROMOTE_QUIET_MS + 2);
	assert_int_equal(away(), 0);
}

static int refuse_to_unmap(uint64_t va, uint64_t bytes)
{
	return FAKE_INVALID;
}

static struct spill_vendor_vmm vmm_that_tells;
static bool map_is_alone; /* no chunk moves */

static int map_and_tell(uint64_t va, uint64_t bytes, uint64_t handle)
{
	const struct spill_chunked *set = spill_chunked_next(NULL);
	map_is_alone = spill_mover_is_mine() && (!set || set->pinned);
	return fake_vendor_backend.vmm->map(va, bytes, handle);
}

static int map_without_memory(uint64_t handle)
{
	struct spill_request request = {.op = SPILL_OP_MAP, .ptr = range, .bytes = CHUNK, .handle = handle};
	fake_libc_fail(FAKE_malloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	assert_false(spill_request_next(&request));
	fake_libc_reset();
	return request.result;
}

/* A move between the question whether a set is mapped and its next mapping would miss that one. */
TEST(what_is_mapped_twice_stays)
{
	uint64_t handle = create(2);
	map(range, 2, handle);
	access_to(range, 2);
	struct spill_request part = {
	    .op = SPILL_OP_MAP, .ptr = range + 4 * CHUNK, .bytes = CHUNK, .handle = handle};
	assert_false(spill_request_next(&part));
	assert_int_equal(part.result, backend.invalid_value);
	assert_int_equal(enlisted(), 1);
	vmm_that_tells = *backend.vmm;
	vmm_that_tells.map = map_and_tell;
	backend.vmm = &vmm_that_tells;
	map(range + 2 * CHUNK, 2, handle);
	backend.vmm = fake_vendor_backend.vmm;
	assert_true(map_is_alone);
	assert_int_equal(enlisted(), 0);
	release(handle);
}

/* The last: where the driver refuses to undo it, the memory stays for good. */
TEST(a_mapping_without_a_record_is_undone)
{
	struct spill_vendor_vmm vmm = *backend.vmm;
	uint64_t handle = create(1);
	assert_int_equal(map_without_memory(handle), backend.out_of_memory);
	assert_null(fake_vendor_bytes(range, 0));
	map(range, 1, handle);
	unmap(range, 1);
	vmm.unmap = refuse_to_unmap;
	backend.vmm = &vmm;
	assert_int_equal(map_without_memory(handle), 0);
	backend.vmm = fake_vendor_backend.vmm;
	release(handle);
	assert_int_equal(spill_account_device_held(0), CHUNK);
	spill_account_reset();
	backend.vmm->unmap(range, CHUNK);
}
