/*
 * Audited launches: what a launch does not name is not mapped while it runs, and how it ended is noted.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "account.h"
#include "audit.h"
#include "captures.h"
#include "chunk_map.h"
#include "contexts.h"
#include "ended.h"
#include "fake_clock.h"
#include "fake_vendor.h"
#include "flight.h"
#include "gate.h"
#include "host_chunks.h"
#include "movable_allocation.h"
#include "note.h"
#include "peer.h"
#include "process.h"
#include "registry.h"
#include "unpark.h"

#define CHUNK SPILL_CHUNK_MAP_UNIT

enum { COUNT = 3, CHUNKS = 2 }; /* allocations, chunks of each */

static struct spill_policy policy;
static struct spill_backend vendor;
static struct spill_vendor_devices devices;
static struct spill_vendor_vmm vmm;
static struct spill_chunked *made[COUNT];
static int context, other_context, memory_result;
static unsigned notes, unmapped; /* so far */
static char last_note[512];

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
	assert_string_equal(code, "audit");
	snprintf(last_note, sizeof(last_note), "%s", text);
	notes++;
}

/* In place of registry.c. */
const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	assert_int_equal(domain, SPILL_CUDA_DRIVER);
	return &vendor;
}

static int memory(int device, uint64_t *free, uint64_t *total)
{
	return memory_result ? memory_result : fake_vendor_backend.devices->memory(device, free, total);
}

static int unmap(uint64_t va, uint64_t bytes)
{
	unmapped++;
	return fake_vendor_backend.vmm->unmap(va, bytes);
}

static const char *kernel_name(const void *function)
{
	return function;
}

static struct spill_chunked *make(void)
{
	struct spill_place_request want = {&vendor, &policy, 0, &context, CHUNKS * CHUNK, 0, SPILL_UNLIMITED};
	struct spill_chunked *of = make_allocation(&spill_place_movable, &want);
	spill_chunked_enlist(of);
	return of;
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.movable_audit = true;
	fake_clock_use(1000000000000); /* what is long ago is a time, too */
	spill_process_use_policy(&policy);
	fake_vendor_reset_mover(COUNT * CHUNKS * CHUNK);
	fake_vendor.granule = fake_vendor.host_granule = CHUNK;
	devices = *fake_vendor_backend.devices;
	devices.memory = memory;
	vendor = fake_vendor_backend;
	vendor.devices = &devices;
	vmm = *fake_vendor_backend.vmm;
	vmm.unmap = unmap;
	vendor.vmm = &vmm;
	vendor.kernel_name = kernel_name;
	fake_vendor.context = &context;
	spill_account_reset();
	spill_flight_reset();
	spill_audit_reset();
	spill_contexts_made(&vendor, 0, &context);
	for (unsigned i = 0; i < COUNT; i++)
		made[i] = make();
	notes = unmapped = 0;
	memory_result = 0;
	return 0;
}

static int teardown(void **state)
{
	set_capturing(false);
	spill_mover_lock(); /* maps all */
	spill_mover_unlock();
	for (unsigned i = 0; i < COUNT; i++) {
		spill_ledger_end(spill_ledger_take(made[i]->base.ptr));
		spill_placement_release(&made[i]->base, false);
	}
	assert_int_equal(fake_vendor.mappings, 0);
	assert_int_equal(fake_vendor.broken, 0);
	fake_vendor_reset_mover(0);
	return 0;
}

static bool is_mapped(unsigned which, unsigned chunk)
{
	return fake_vendor_bytes(spill_chunked_address(made[which], chunk), 0) != NULL;
}

/* By allocation, a letter each: all of it is mapped, nothing, or something. */
static const char *mapped(void)
{
	static char text[COUNT + 1];
	for (unsigned i = 0; i < COUNT; i++)
		text[i] = is_mapped(i, 0) != is_mapped(i, 1) ? '?' : is_mapped(i, 0) ? 'm' : '.';
	return text;
}

/* A kernel that names one chunk, or none. */
static struct spill_launch_access launch_of(int which, unsigned chunk)
{
	static char name[] = "saxpy";
	struct spill_launch_access access = {.site = 1, .function = name};
	if (which >= 0)
		access.keys[access.count++] =
		    (uint32_t)(spill_chunked_address(made[which], chunk) >> SPILL_CHUNK_MAP_UNIT_SHIFT);
	return access;
}

static void *before(int which)
{
	const struct spill_launch_access access = launch_of(which, 1);
	return spill_audit_before(&access);
}

static const char *told(void)
{
	last_note[0] = 0;
	spill_audit_tell();
	return last_note;
}

TEST(only_what_is_named_is_mapped)
{
	void *audited = before(1);
	assert_non_null(audited);
	assert_string_equal(mapped(), ".m.");
	assert_true(spill_audit_after(audited));
	assert_true(spill_audit_after(before(2)));
	assert_string_equal(mapped(), "..m");
	assert_true(spill_audit_after(before(-1)));
	assert_string_equal(mapped(), "...");
	struct spill_launch_access all = launch_of(0, 0);
	for (unsigned i = 1; i < COUNT; i++)
		all.keys[all.count++] = launch_of((int)i, 0).keys[0];
	assert_true(spill_audit_after(spill_audit_before(&all)));
	assert_string_equal(mapped(), "mmm");
	assert_int_equal(spill_gate_flight(), 0);
	assert_int_equal(notes, 0);
}

/* What is named keeps its mapping. Only the keys of the launch count, and none behind the end of an allocation. */
TEST(what_is_named_is_never_unmapped)
{
	struct spill_launch_access access = launch_of(0, 0);
	access.keys[1] = launch_of(1, 0).keys[0];
	assert_true(spill_audit_after(spill_audit_before(&access)));
	assert_string_equal(mapped(), "m..");
	assert_int_equal(unmapped, 2 * CHUNKS);
	access.keys[0] = launch_of(0, CHUNKS - 1).keys[0] + 1;
	assert_true(spill_audit_after(spill_audit_before(&access)));
	assert_string_equal(mapped(), "...");
	assert_int_equal(unmapped, 3 * CHUNKS);
}

/* Others first have all mapped: they take the mover, or the gate makes them wait. */
TEST(who_is_not_audited_finds_all)
{
	before(0);
	assert_int_not_equal(spill_gate_flight(), 0);
	spill_mover_lock();
	spill_mover_unlock();
	assert_string_equal(mapped(), "mmm");
	assert_int_equal(spill_gate_flight(), 0);
}

/* The gate lets an audited launch in as it is, and its unmapped memory stays so. */
TEST(the_gate_knows_who_is_audited)
{
	before(0);
	assert_true(spill_gate_enter(spill_gate_self));
	spill_gate_leave(spill_gate_self);
	assert_string_equal(mapped(), "m..");
	struct spill_launch_access access = launch_of(0, 0);
	before(0);
	access.unknown = true;
	assert_null(spill_audit_before(&access));
	assert_true(spill_gate_enter(spill_gate_self));
	spill_gate_leave(spill_gate_self);
	assert_string_equal(mapped(), "mmm");
}

/* Each chunk is listed once. */
TEST(any_number_of_launches)
{
	for (int i = 0; i < 5000; i++)
		assert_non_null(before(i % COUNT));
	assert_string_equal(mapped(), ".m.");
	assert_true(made[0]->chunks[0].away && made[2]->chunks[1].away);
}

/* Nobody knows what they use, so nothing is unmapped for them. */
TEST(launches_that_cannot_be_checked)
{
	struct spill_launch_access access = launch_of(0, 0);
	access.unknown = true;
	assert_null(spill_audit_before(&access));
	access.unknown = false;
	access.count = SPILL_LAUNCH_ACCESS_KEYS;
	assert_null(spill_audit_before(&access));
	set_capturing(true);
	assert_null(before(0));
	set_capturing(false);
	spill_contexts_made(&vendor, 0, &other_context);
	assert_null(before(0));
	spill_contexts_ended(ENDED(&vendor, 0, &other_context));
	fake_vendor.context = NULL;
	assert_null(before(0));
	fake_vendor.context = &context;
	vendor.moves = NULL;
	assert_null(before(0));
	vendor.moves = fake_vendor_backend.moves;
	spill_gate_enter(spill_gate_self);
	assert_null(before(0)); /* the gate does not close for who is inside */
	spill_gate_leave(spill_gate_self);
	assert_string_equal(mapped(), "mmm");
	assert_true(spill_audit_after(before(0)));
	assert_string_equal(told(),
	                    "1 launches used only memory that their parameters name. 7 were not checked: "
	                    "graphs, and work whose parameters are not known, or that did not end in 10 s");
}

/* Memory that never flies stays mapped. */
TEST(pinned_memory_stays)
{
	spill_unpark_pin(made[2]);
	assert_true(spill_audit_after(before(0)));
	assert_string_equal(mapped(), "m.m");
}

TEST(memory_of_another_device_stays)
{
	made[2]->base.device = 1;
	assert_true(spill_audit_after(before(0)));
	made[2]->base.device = 0;
	assert_string_equal(mapped(), "m.m");
}

TEST(a_launch_that_fails_is_named_once)
{
	memory_result = FAKE_INVALID;
	assert_true(spill_audit_after(before(0)));
	assert_int_equal(notes, 1);
	char expected[256];
	snprintf(
	    expected, sizeof(expected),
	    "saxpy ended with %s: it used memory that none of its parameters names, or no memory at all. So "
	    "movable.follow = overlap is not for this program",
	    vendor.error_name(FAKE_INVALID));
	assert_string_equal(last_note, expected);
	assert_null(before(0)); /* its context is dead */
	assert_string_equal(told(), "");
	spill_audit_reset();
	void *audited = before(0), *nested = before(1);
	assert_ptr_equal(audited, nested);
	spill_audit_after(audited);
	spill_audit_after(nested);
	assert_int_equal(notes, 2);
}

TEST(a_kernel_without_a_name)
{
	vendor.kernel_name = NULL;
	memory_result = FAKE_INVALID;
	spill_audit_after(before(0));
	assert_int_equal(strncmp(last_note, "a kernel ended with ", 20), 0);
	spill_audit_reset();
	vendor.kernel_name = kernel_name;
	struct spill_launch_access copy = launch_of(0, 0);
	copy.function = NULL;
	spill_audit_after(spill_audit_before(&copy));
	assert_int_equal(strncmp(last_note, "a kernel ended with ", 20), 0);
}

/* It may wait for the program, which is not kept for longer than that. */
TEST(a_launch_that_does_not_end)
{
	void *audited = before(0);
	fake_vendor.stuck = true;
	uint64_t start_ns = fake_clock.ns;
	assert_true(spill_audit_after(audited));
	assert_int_equal(fake_clock.ns - start_ns, 10000000000);
	assert_null(before(1)); /* the device is busy */
	fake_vendor.stuck = false;
	assert_int_equal(strncmp(told(), "0 launches used only memory that their parameters name. 2 ", 58),
	                 0);
}

TEST(a_capture_is_not_waited_for)
{
	void *audited = before(0);
	set_capturing(true);
	uint64_t start_ns = fake_clock.ns;
	assert_true(spill_audit_after(audited));
	assert_int_equal(fake_clock.ns, start_ns);
	set_capturing(false);
	assert_int_equal(strncmp(told(), "0 launches used only memory that their parameters name. 1 ", 58),
	                 0);
}

TEST(nothing_is_told_without_it)
{
	assert_string_equal(told(), "");
	spill_audit_after(before(0));
	policy.movable_audit = false;
	assert_false(spill_audit_wanted());
	assert_string_equal(told(), "");
	policy.movable_audit = true;
	assert_true(spill_audit_wanted());
	assert_string_not_equal(told(), "");
	vendor.moves = NULL;
	assert_null(before(0));
	assert_int_equal(strncmp(told(), "1 launches used only memory that their parameters name. 1 ", 58),
	                 0);
}

/* The stopwatch of a launch that is timed is another's. */
TEST(other_results_are_left_alone)
{
	int stopwatch;
	errno = ERANGE;
	assert_false(spill_audit_after(&stopwatch));
	before(0);
	assert_int_equal(errno, ERANGE);
}

int main(void)
{
	if (!spill_gate_prepare())
		return 1;
	spill_gate_join(0);
	return run_unit_tests(NULL, NULL);
}
