/*
 * The program's own physical memory. After every call, accounts and ledger equal the vendor's
 * state, in any order and whichever call fails.
 */
#include <errno.h>
#include <pthread.h>
#define SETUP setup
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ended.h"
#include "account.h"
#include "fake_libc.h"
#include "ledger.h"
#include "note.h"
#include "process.h"
#include "vmm.h"
#include "fake_vendor.h"
#include "registry.h"
#include "request.h"

#define MIB (1ull << 20)
#define FAILED 7

static const struct fake_properties on_device = {SPILL_LOCATION_DEVICE, 0, .pad = {1, 2, 3}};
static const struct fake_properties on_host = {SPILL_LOCATION_HOST, 0};
static const uint64_t at = 1ull << 40;

/* -- as the stubs do it ---------------------------------------------------------------------------------- */

#define CALL(request_op, real, ...) \
	struct spill_request request = {.op = SPILL_OP_##request_op, .api = #real, __VA_ARGS__}; \
	while (spill_request_next(&request)) \
		request.result = real; \
	return request.result

static int program_create(uint64_t *handle, uint64_t bytes, const struct fake_properties *properties)
{
	CALL(CREATE, fake_vendor_create(handle, bytes, properties), .out = handle, .bytes = bytes,
	     .properties = properties);
}

static int program_release(uint64_t handle)
{
	CALL(RELEASE, fake_vendor_backend.physical->release(handle), .handle = handle);
}

static int program_retain(uint64_t *handle, uint64_t va)
{
	CALL(RETAIN, fake_vendor_retain(handle, va), .out = handle, .ptr = va);
}

static int program_map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	CALL(MAP, fake_vendor_backend.vmm->map(va, bytes, handle), .ptr = va, .bytes = bytes,
	     .handle = handle);
}

static int program_unmap(uint64_t va, uint64_t bytes)
{
	CALL(UNMAP, fake_vendor_backend.vmm->unmap(va, bytes), .ptr = va, .bytes = bytes);
}

static int program_properties(struct fake_properties *properties, uint64_t handle)
{
	CALL(PROPERTIES, fake_vendor_properties(properties, handle), .out = properties, .handle = handle);
}

static struct spill_policy policy;

/* Large granules on host; any call can fail. */
static void vendor_reset(uint64_t device_free)
{
	fake_vendor_reset(device_free);
	fake_vendor.host_granule = 4 * MIB;
	fake_vendor.total = 1024 * MIB;
	fake_vendor.context = &policy;
	fake_vendor.release_fails = true;
	fake_vendor.failure = FAILED;
}

static int setup(void **state)
{
	fake_libc_reset();
	spill_process_use_policy(&policy);
	spill_policy_default(&policy);
	policy.host_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
	policy.log_stderr = SPILL_STDERR_OFF;
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {SPILL_STEP_HOST}};
	vendor_reset(64 * MIB);
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &fake_vendor_backend);
	return 0;
}

static void as_the_vendor_says(void)
{
	struct spill_totals totals;
	spill_ledger_totals(&totals);
	assert_int_equal(spill_account_device_held(0), fake_vendor.device);
	assert_int_equal(spill_account_host_held(), fake_vendor.host);
	assert_int_equal(spill_account_physical_held(), fake_vendor.host);
	assert_int_equal(totals.live.device, fake_vendor.device);
	assert_int_equal(totals.live.host, fake_vendor.host);
}

static void nothing_is_held(void)
{
	assert_int_equal(fake_vendor.device + fake_vendor.host, 0);
	assert_int_equal(fake_vendor.broken, 0);
	as_the_vendor_says();
}

static uint64_t made(uint64_t bytes)
{
	uint64_t handle;
	assert_int_equal(program_create(&handle, bytes, &on_device), 0);
	as_the_vendor_says();
	return handle;
}

static void good(int result)
{
	assert_int_equal(result, 0);
	as_the_vendor_says();
}

static void *unmap_and_release(void *handle)
{
	good(program_unmap(at, 4 * MIB));
	assert_int_equal(program_release(*(uint64_t *)handle), 0);
	return NULL;
}

/* Before the vendor answers, another thread unmaps and releases the memory. */
static int retain_beside_its_end(uint64_t *again, uint64_t handle)
{
	pthread_t other;
	assert_int_equal(pthread_create(&other, NULL, unmap_and_release, &handle), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	return fake_vendor_retain(again, at);
}

static int program_retain_beside_its_end(uint64_t *again, uint64_t handle)
{
	CALL(RETAIN, retain_beside_its_end(again, handle), .out = again, .ptr = at);
}

/* Memory that a call asks for stays known until the call is done, and ends with it. */
TEST(memory_that_ends_while_it_is_retained)
{
	uint64_t handle = made(4 * MIB), again = 0;
	good(program_map(at, 4 * MIB, handle));
	assert_int_not_equal(program_retain_beside_its_end(&again, handle), 0);
	nothing_is_held();
}

static int program_retain_in_vain(uint64_t *again)
{
	CALL(RETAIN, FAKE_INVALID, .out = again, .ptr = at);
}

/* Whatever the program's variable has held before. */
TEST(a_retain_that_is_refused_counts_no_handle)
{
	uint64_t handle = made(4 * MIB), again = handle;
	good(program_map(at, 4 * MIB, handle));
	assert_int_equal(program_retain_in_vain(&again), FAKE_INVALID);
	good(program_release(handle));
	good(program_unmap(at, 4 * MIB));
	nothing_is_held();
}

/* llama.cpp: create, map, release at once. */
TEST(memory_lives_by_its_mapping)
{
	uint64_t handle = made(4 * MIB);
	good(program_map(at, 4 * MIB, handle));
	good(program_release(handle));
	assert_int_equal(spill_account_device_held(0), 4 * MIB);
	good(program_unmap(at, 4 * MIB));
	nothing_is_held();
}

/* PyTorch: the handle is kept while the mapping comes and goes. */
TEST(memory_lives_by_its_handle)
{
	uint64_t handle = made(4 * MIB);
	for (int i = 0; i < 3; i++) {
		good(program_map(at, 4 * MIB, handle));
		good(program_unmap(at, 4 * MIB));
	}
	assert_int_equal(spill_account_device_held(0), 4 * MIB);
	good(program_release(handle));
	nothing_is_held();
}

TEST(every_handle_counts)
{
	uint64_t again, handle = made(4 * MIB);
	good(program_map(at, 4 * MIB, handle));
	good(program_retain(&again, at + MIB));
	good(program_release(handle));
	good(program_unmap(at, 4 * MIB));
	assert_int_equal(spill_account_device_held(0), 4 * MIB);
	/* Retained when no handle was left, it is known by its handle again. */
	good(program_map(at, 4 * MIB, again));
	good(program_release(again));
	good(program_retain(&again, at));
	good(program_unmap(at, 4 * MIB));
	assert_int_equal(spill_account_device_held(0), 4 * MIB);
	good(program_release(again));
	nothing_is_held();
}

static void end_handle(uint64_t handle, unsigned ended)
{
	struct spill_vmm_memory *list = spill_vmm_released(spill_vmm_releasing(handle), true);
	for (; list; ended--) {
		struct spill_vmm_memory *next = list->next;
		free(list);
		list = next;
	}
	assert_int_equal(ended, 0);
}

/* A driver may give memory another handle when it is retained. Then that is its name, beside those of others. */
TEST(memory_has_its_last_handle)
{
	const uint64_t names[] = {40, 20, 60, 10, 30, 50, 70};
	struct spill_vmm_memory *memory[7], *ended = NULL;
	bool recorded;
	for (unsigned i = 0; i < 7; i++) {
		memory[i] =
		    spill_vmm_add(&(struct spill_vmm_memory){.handle = names[i], .spilled = true}, &ended);
		assert_non_null(memory[i]);
		assert_null(spill_vmm_mapped(spill_vmm_mapping(names[i]), at + i * MIB, MIB, &recorded));
	}
	for (unsigned i = 0; i < 7; i++) {
		assert_ptr_equal(spill_vmm_retaining(at + i * MIB), memory[i]);
		assert_null(spill_vmm_retained(memory[i], 100 - i));
		for (unsigned other = 0; other < 7; other++) {
			assert_int_equal(spill_vmm_spilled(names[other], NULL), other > i);
			assert_int_equal(spill_vmm_spilled(100 - other, NULL), other <= i);
		}
	}
	assert_null(spill_vmm_unmapped(spill_vmm_unmapping(at, 7 * MIB), true));
	for (unsigned i = 0; i < 7; i++) {
		end_handle(100 - i, 0);
		end_handle(100 - i, 1);
		assert_false(spill_vmm_spilled(100 - i, NULL));
	}
}

TEST(one_unmap_ends_several_mappings)
{
	uint64_t one = made(4 * MIB), two = made(8 * MIB);
	good(program_map(at, 4 * MIB, one));
	good(program_map(at + 4 * MIB, 8 * MIB, two));
	good(program_map(at + 12 * MIB, 4 * MIB, one));
	good(program_map(at + 16 * MIB, 8 * MIB, two));
	good(program_release(one));
	good(program_release(two));
	good(program_unmap(at, 16 * MIB));
	assert_int_equal(spill_account_device_held(0), 8 * MIB);
	good(program_unmap(at + 16 * MIB, 8 * MIB));
	nothing_is_held();
}

static uint64_t shared;

static void release_shared(void)
{
	assert_int_equal(program_release(shared), 0);
}

/* Another thread releases the last handle while the vendor maps it: the mapping keeps it. */
TEST(a_call_under_way_keeps_it)
{
	shared = made(4 * MIB);
	fake_vendor.meanwhile = release_shared;
	good(program_map(at, 4 * MIB, shared));
	assert_int_equal(spill_account_device_held(0), 4 * MIB);
	good(program_unmap(at, 4 * MIB));
	nothing_is_held();
}

/* The vendor may give a released handle's value to new memory while the old is still mapped. */
TEST(a_value_that_comes_back_is_other_memory)
{
	uint64_t again, old = made(4 * MIB);
	good(program_map(at, 4 * MIB, old));
	good(program_release(old));
	fake_vendor.next_handle = old;
	again = made(8 * MIB);
	assert_int_equal(again, old);
	good(program_unmap(at, 4 * MIB));
	assert_int_equal(spill_account_device_held(0), 8 * MIB);
	good(program_map(at, 8 * MIB, again));
	good(program_release(again));
	good(program_unmap(at, 8 * MIB));
	nothing_is_held();
}

/* The same where we did not see the release. */
TEST(a_value_that_comes_back_unseen_is_other_memory)
{
	uint64_t again, old = made(4 * MIB);
	good(program_map(at, 4 * MIB, old));
	assert_int_equal(fake_vendor_backend.physical->release(old), 0);
	fake_vendor.next_handle = old;
	again = made(8 * MIB);
	assert_int_equal(again, old);
	good(program_release(again));
	assert_int_equal(spill_account_device_held(0), 4 * MIB);
	good(program_unmap(at, 4 * MIB));
	nothing_is_held();
}

/* A value that comes back may be that of memory which we do not know: its calls are not those of the old. */
TEST(a_value_that_comes_back_may_be_unknown_memory)
{
	for (unsigned spilled = 0; spilled < 2; spilled++) {
		struct fake_properties seen;
		vendor_reset(spilled ? 0 : 64 * MIB);
		uint64_t unknown, again, old = made(4 * MIB);
		assert_int_equal(fake_vendor.host, spilled * 4 * MIB);
		good(program_map(at, 4 * MIB, old));
		good(program_release(old));
		fake_vendor.next_handle = old;
		assert_int_equal(fake_vendor_create(&unknown, 8 * MIB, &on_host), 0);
		assert_int_equal(unknown, old);
		assert_int_equal(program_properties(&seen, unknown), 0);
		assert_int_equal(seen.where, SPILL_LOCATION_HOST);
		assert_int_equal(program_map(at + 64 * MIB, 8 * MIB, unknown), 0);
		assert_int_equal(program_retain(&again, at + 64 * MIB), 0);
		assert_int_equal(again, old);
		assert_int_equal(program_unmap(at, 4 * MIB), 0);
		assert_int_equal(spill_account_device_held(0) + spill_account_host_held(), 0);
		assert_int_equal(program_release(unknown), 0);
		assert_int_equal(program_release(again), 0);
		assert_int_equal(program_unmap(at + 64 * MIB, 8 * MIB), 0);
		nothing_is_held();
	}
}

/* Ended by calls that we did not see: what takes their value or addresses ends them. */
TEST(what_ended_unseen_is_forgotten)
{
	uint64_t unseen = made(4 * MIB), handle;
	vendor_reset(64 * MIB);
	fake_vendor.next_handle = unseen;
	handle = made(8 * MIB);
	good(program_map(at, 8 * MIB, handle));
	good(program_release(handle));
	vendor_reset(64 * MIB);
	assert_int_equal(program_create(&handle, 4 * MIB, &on_device), 0);
	assert_int_equal(spill_account_device_held(0), 12 * MIB);
	assert_int_equal(program_map(at + 4 * MIB, 4 * MIB, handle), 0);
	as_the_vendor_says();
	good(program_unmap(at + 4 * MIB, 4 * MIB));
	good(program_release(handle));
	nothing_is_held();
}

TEST(what_does_not_fit_is_on_host_and_looks_as_asked)
{
	struct fake_properties seen;
	struct spill_vmm_range range;
	uint64_t first = made(60 * MIB), handle = made(8 * MIB);
	assert_int_equal(fake_vendor.host, 8 * MIB);
	good(program_properties(&seen, handle));
	assert_memory_equal(&seen, &on_device, sizeof(seen));
	assert_false(spill_vmm_spilled_at(at, &range));
	assert_false(spill_vmm_any_spilled());
	good(program_map(at, 8 * MIB, handle));
	assert_true(spill_vmm_any_spilled());
	good(program_map(at + 64 * MIB, 60 * MIB, first));
	assert_false(spill_vmm_spilled_at(at + 64 * MIB, &range));
	assert_true(spill_vmm_spilled_at(at + 8 * MIB - 1, &range));
	assert_int_equal(range.device, 0);
	assert_int_equal(range.va, at);
	assert_int_equal(range.bytes, 8 * MIB);
	assert_false(spill_vmm_spilled_at(at + 8 * MIB, &range));
	good(program_release(handle));
	assert_true(spill_vmm_spilled_at(at, &range));
	good(program_unmap(at, 8 * MIB));
	assert_false(spill_vmm_spilled_at(at, &range));
	assert_false(spill_vmm_any_spilled());
	good(program_release(first));
	good(program_unmap(at + 64 * MIB, 60 * MIB));
	unsigned locks = locks_taken();
	assert_false(spill_vmm_spilled_at(at, &range));
	assert_int_equal(locks_taken(), locks); /* nothing spilled is mapped, and that costs a load */
	/* There is room again. */
	handle = made(8 * MIB);
	assert_int_equal(fake_vendor.device, 8 * MIB);
	good(program_map(at, 8 * MIB, handle));
	assert_false(spill_vmm_spilled_at(at, &range));
	good(program_unmap(at, 8 * MIB));
	good(program_release(handle));
	nothing_is_held();
}

/* Only memory that the program may export gets what an export needs, on the host as on the device. */
TEST(what_may_be_exported_may_be_on_host_too)
{
	const struct fake_properties exported = {SPILL_LOCATION_DEVICE, .exportable = true};
	struct fake_properties seen;
	uint64_t first = made(60 * MIB), plain = made(8 * MIB), handle;
	good(program_create(&handle, 8 * MIB, &exported));
	assert_int_equal(fake_vendor.host, 16 * MIB);
	/* As the driver sees them. */
	good(fake_vendor_properties(&seen, handle));
	assert_int_equal(seen.where, SPILL_LOCATION_HOST);
	assert_true(seen.exportable);
	good(fake_vendor_properties(&seen, plain));
	assert_int_equal(seen.where, SPILL_LOCATION_HOST);
	assert_false(seen.exportable);
	good(program_release(handle));
	good(program_release(plain));
	good(program_release(first));
	nothing_is_held();
}

TEST(a_limit_holds_for_it)
{
	uint64_t one, two, none = 77;
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 8 * MIB};
	one = made(6 * MIB);
	two = made(4 * MIB);
	assert_int_equal(fake_vendor.device, 6 * MIB);
	assert_int_equal(fake_vendor.host, 4 * MIB);
	good(program_release(one));
	good(program_release(two));
	/* A size that the vendor would call wrong is the vendor's to judge, whatever the limit. */
	assert_int_equal(program_create(&one, 9 * MIB, &on_device), FAKE_INVALID);
	/* Refused: the program's handle is as the vendor leaves it. */
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, MIB};
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 2 * MIB};
	assert_int_equal(program_create(&none, 4 * MIB, &on_device), FAKE_OUT_OF_MEMORY);
	assert_int_equal(none, 77);
	nothing_is_held();
}

/* Nothing else than host memory can stand for it, and only for what host memory can do. */
TEST(refusals)
{
	static const struct fake_properties tiles = {SPILL_LOCATION_DEVICE, 0, true};
	uint64_t handle;
	vendor_reset(0);
	assert_int_equal(program_create(&handle, 4 * MIB, &tiles), FAKE_OUT_OF_MEMORY);
	unsigned calls = fake_vendor.calls;
	assert_int_equal(program_create(&handle, 2 * MIB, &on_device),
	                 FAKE_OUT_OF_MEMORY);           /* a granule there is 4 */
	assert_int_equal(fake_vendor.calls, calls + 1); /* and nobody asked for it */
	policy.chain.step[0] = SPILL_STEP_MANAGED;
	assert_int_equal(program_create(&handle, 4 * MIB, &on_device), FAKE_OUT_OF_MEMORY);
	policy.chain.step[0] = SPILL_STEP_SPLIT;
	good(program_create(&handle, 4 * MIB, &on_device));
	good(program_release(handle));
	policy.mode = SPILL_MODE_OBSERVE;
	assert_int_equal(program_create(&handle, 4 * MIB, &on_device), FAKE_OUT_OF_MEMORY);
	nothing_is_held();
}

TEST(host_memory_that_the_program_wants_is_its_own)
{
	struct fake_properties seen;
	struct spill_vmm_range range;
	uint64_t handle;
	good(program_create(&handle, 4 * MIB, &on_host));
	assert_int_equal(spill_account_host_held(), 4 * MIB);
	good(program_map(at, 4 * MIB, handle));
	assert_false(spill_vmm_spilled_at(at, &range));
	good(program_properties(&seen, handle));
	assert_int_equal(seen.where, SPILL_LOCATION_HOST);
	good(program_release(handle));
	good(program_unmap(at, 4 * MIB));
	nothing_is_held();
}

TEST(a_handle_is_no_address)
{
	struct spill_allocation copy;
	uint64_t plain = made(60 * MIB), spilled = made(8 * MIB);
	struct spill_allocation *entry = spill_ledger_take(plain);
	assert_null(entry);
	assert_null(spill_ledger_take(spilled));
	assert_false(spill_ledger_placed(spilled, &copy));
	/* No context's end is theirs, nor a device's. */
	assert_null(spill_ledger_take_of(ENDED(&fake_vendor_backend, 0, NULL)));
	assert_null(spill_ledger_take_of(ENDED(&fake_vendor_backend, 0, fake_vendor.context)));
	good(program_release(plain));
	good(program_release(spilled));
	nothing_is_held();
}

/* Some work of a program that repeats what failed, once. Returns how many calls failed. */
static unsigned work(void)
{
	unsigned failed = 0;
	uint64_t one = 0, two = 0, again = 0;
#define REPEAT(call) \
	if (call) { \
		failed++; \
		as_the_vendor_says(); \
		assert_int_equal(call, 0); \
	} \
	as_the_vendor_says()
	REPEAT(program_create(&one, 40 * MIB, &on_device));
	REPEAT(program_create(&two, 40 * MIB, &on_device));
	REPEAT(program_map(at, 40 * MIB, one));
	REPEAT(program_release(one));
	REPEAT(program_map(at + 40 * MIB, 40 * MIB, two));
	REPEAT(program_retain(&again, at + 40 * MIB));
	REPEAT(program_release(two));
	REPEAT(program_unmap(at, 80 * MIB));
	REPEAT(program_release(again));
#undef REPEAT
	nothing_is_held();
	return failed;
}

TEST(a_failing_call_changes_nothing)
{
	assert_int_equal(work(), 0);
	unsigned calls = fake_vendor.calls, failed = 0;
	assert_true(calls >= 10);
	for (unsigned nth = 1; nth <= calls; nth++) {
		vendor_reset(64 * MIB);
		fake_vendor_fail(nth, nth + 1);
		failed += work();
	}
	/* A create that the device refuses is on host instead, and so no failure. */
	assert_true(failed >= calls - 3);
}

/* Leaves the test's own process as it was: what is lost for good, as some things here, is lost in a child. */
static bool in_a_child(bool (*holds)(void))
{
	int status;
	pid_t child = fork();
	if (child == 0)
		_exit(holds() ? 0 : 1);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/*
 * No memory for a node of the trees: nothing is given back early, nothing is kept that the program does not
 * know.
 */
static bool survives_without_memory(void)
{
	struct spill_totals totals;
	uint64_t handle = 0;
	fake_libc_fail(FAKE_tsearch, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	bool good = program_create(&handle, 4 * MIB, &on_device) == 0;
	good = good && spill_account_device_held(0) == 0; /* not accounted, and noted */
	good = good && program_release(handle) == 0 && fake_vendor.device == 0;
	fake_vendor.device_free = 0;
	good = good && program_create(&handle, 4 * MIB, &on_device) == FAKE_OUT_OF_MEMORY;
	good = good && fake_vendor.host == 0 && spill_account_host_held() == 0;
	fake_vendor.device_free = 64 * MIB;
	fake_libc_reset();
	good = good && program_create(&handle, 4 * MIB, &on_device) == 0;
	fake_libc_fail(FAKE_tsearch, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	/* A mapping that cannot be followed is undone, and the program gets an out of memory. */
	good = good && program_map(at, 4 * MIB, handle) == FAKE_OUT_OF_MEMORY;
	fake_libc_reset();
	fake_libc_fail(FAKE_malloc, 1, 1, ENOMEM);
	good = good && program_map(at, 4 * MIB, handle) == FAKE_OUT_OF_MEMORY;
	good = good && program_release(handle) == 0 && fake_vendor.device == 0;
	spill_ledger_totals(&totals);
	good = good && spill_account_device_held(0) == 0 && totals.live.device == 0;
	/* Unless it cannot be undone. */
	fake_libc_reset();
	good = good && program_create(&handle, 4 * MIB, &on_device) == 0;
	fake_libc_fail(FAKE_tsearch, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	fake_vendor_fail(2, 3);
	good = good && program_map(at, 4 * MIB, handle) == 0;
	fake_libc_reset();
	good = good && program_release(handle) == 0 && program_unmap(at, 4 * MIB) == 0;
	spill_ledger_totals(&totals); /* for ever: rather that than too little */
	return good && spill_account_device_held(0) == 4 * MIB && totals.live.device == 4 * MIB;
}

TEST(without_memory_for_bookkeeping)
{
	assert_true(in_a_child(survives_without_memory));
}

/* Random work of several threads, each with addresses of its own. */
#define THREADS 4

static void *busy(void *data)
{
	uint64_t base = at + ((uint64_t)(uintptr_t)data << 32), handle[8] = {0}, random = (uintptr_t)data + 1;
	bool is_mapped[8] = {false};
	for (int round = 0; round < 4000; round++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		unsigned i = random >> 40 & 7, what = random >> 50 & 3;
		uint64_t va = base + i * 16 * MIB, bytes = (i + 1) * 2 * MIB;
		if (what == 0 && !handle[i] && !is_mapped[i])
			program_create(&handle[i], bytes, &on_device);
		else if (what == 1 && handle[i] && !is_mapped[i])
			is_mapped[i] = program_map(va, bytes, handle[i]) == 0;
		else if (what == 2 && handle[i] && program_release(handle[i]) == 0)
			handle[i] = 0;
		else if (what == 3 && is_mapped[i])
			is_mapped[i] = program_unmap(va, bytes) != 0;
	}
	for (unsigned i = 0; i < 8; i++) {
		if (handle[i])
			program_release(handle[i]);
		if (is_mapped[i])
			program_unmap(base + i * 16 * MIB, (i + 1) * 2 * MIB);
	}
	return NULL;
}

TEST(several_threads)
{
	pthread_t thread[THREADS];
	struct spill_totals before, after;
	spill_ledger_totals(&before);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, busy, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	nothing_is_held();
	spill_ledger_totals(&after);
	assert_true(after.spills > before.spills);
	assert_int_equal(after.allocs - before.allocs, after.frees - before.frees);
}

static bool begins_empty(void)
{
	struct spill_vmm_range range;
	uint64_t first, handle;
	bool good = program_create(&first, 64 * MIB, &on_device) == 0 &&
	            program_create(&handle, 8 * MIB, &on_device) == 0 &&
	            program_map(at, 8 * MIB, handle) == 0 && spill_vmm_spilled_at(at, &range);
	spill_fork_lock_take(&spill_vmm_fork_lock);
	spill_fork_lock_release(&spill_vmm_fork_lock, true);
	unsigned locks = locks_taken();
	good = good && !spill_vmm_spilled_at(at, &range) && locks_taken() == locks;
	return good && !spill_vmm_spilled(handle, NULL) && !spill_vmm_releasing(first);
}

TEST(a_forked_child_begins_empty)
{
	assert_true(in_a_child(begins_empty));
}
