/*
 * Whether memory is made movable, and the vendor calls that this costs. Below movable.above it
 * costs only a question for free memory now and then. The trial move is a real one and leaves
 * nothing behind. Also the reasons against movable memory.
 */
#define SETUP begin
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "account.h"
#include "captures.h"
#include "fake_vendor.h"
#include "fake_clock.h"
#include "fake_objects.h"
#include "gate.h"
#include "movable.h"
#include "copier.h"
#include "move.h"
#include "process.h"
#include "memory_limit.h"
#include "note.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TOTAL (80 * GIB)
#define CHUNKS (4 * MIB) /* of the trial: two granules */

/* -- a process --------------------------------------------------------------------------------------------- */

static struct spill_policy policy;
static char notes[16][512];
static unsigned note_count;

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
	assert_string_equal(code, "movable");
	assert_true(note_count < 16);
	snprintf(notes[note_count++], sizeof(notes[0]), "%s", text);
}

/* -- a device, of which every call is counted -------------------------------------------------------------- */

/* Calls of the trial during which another thread may do something. */
enum call { COPIER_CREATE, HOST_ALLOC };

static struct {
	unsigned memory, others, prepared, marks;
	uint64_t used;                     /* by other processes */
	void (*meanwhile)(enum call call); /* another thread's doing during a call of the trial */
	unsigned devices, can;
	int current;
	bool no_context, not_prepared, makes_views, no_mark, wrong_bytes, never_passes;
} vendor;

/* Copies that were given to the stream, done when it is asked for the third time. */
static struct {
	uint64_t to, from, bytes;
} copies[16];
static unsigned copy_count, asked;
static struct spill_backend backend;

static int vendor_memory(int device, uint64_t *free, uint64_t *total)
{
	vendor.memory++;
	*total = TOTAL;
	*free = TOTAL - vendor.used;
	return 0;
}

static int vendor_memory_fails(int device, uint64_t *free, uint64_t *total)
{
	vendor.memory++;
	return 201;
}

static unsigned vendor_capabilities(int device)
{
	vendor.others++;
	return vendor.can;
}

static unsigned vendor_devices(struct spill_log_device *list, unsigned room)
{
	vendor.others++;
	return vendor.devices < room ? vendor.devices : room;
}

static bool vendor_current(int *device, void **context)
{
	vendor.others++;
	*device = vendor.current;
	*context = &vendor;
	return !vendor.no_context;
}

static void meanwhile(enum call call)
{
	if (vendor.meanwhile)
		vendor.meanwhile(call);
}

static bool refuses(void)
{
	vendor.others++;
	return ++fake_vendor.calls == fake_vendor.fail_from;
}

/* Addresses that can be read: a mapping that is missing is seen by the counts, a copy that is missing by the bytes. */
static int vendor_reserve(uint64_t bytes, uint64_t alignment, uint64_t *va)
{
	/* The mover prepares: what it has is kept, and its streams come next. */
	vendor.makes_views = bytes > CHUNKS;
	if (vendor.makes_views) {
		*va = 1;
		return 0;
	}
	if (refuses())
		return backend.out_of_memory;
	assert_int_equal(bytes, CHUNKS);
	void *there =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(there, MAP_FAILED);
	*va = (uint64_t)(uintptr_t)there;
	fake_vendor.ranges++;
	return 0;
}

static int vendor_unreserve(uint64_t va, uint64_t bytes)
{
	fake_vendor.ranges--;
	return munmap((void *)(uintptr_t)va, bytes);
}

static int vendor_host_alloc(uint64_t bytes, uint64_t *ptr, void **host)
{
	static _Alignas(4096) unsigned char page[8192];
	meanwhile(HOST_ALLOC);
	if (spill_capture_any())
		return 900; /* not permitted in a capture */
	if (refuses())
		return backend.out_of_memory;
	assert_true(bytes <= sizeof(page));
	*host = page;
	*ptr = (uint64_t)(uintptr_t)page;
	fake_vendor.hosts++;
	return 0;
}

static int vendor_copier_create(int device, void *context, void **stream)
{
	if (!vendor.makes_views && refuses())
		return backend.out_of_memory;
	*stream = &copies;
	if (vendor.makes_views)
		return 0;
	meanwhile(COPIER_CREATE);
	fake_vendor.events++;
	return 0;
}

static void vendor_copier_destroy(int device, void *context, void *stream)
{
	assert_int_equal(copy_count, 0);
	fake_vendor.events--;
}

static int vendor_copy(int device, void *context, void *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
	assert_int_equal(fake_vendor.mappings, 2);
	assert_ptr_equal(stream, &copies);
	if (refuses())
		return backend.out_of_memory;
	copies[copy_count].to = to;
	copies[copy_count].from = from;
	copies[copy_count++].bytes = bytes;
	return 0;
}

static int vendor_event(int device, void *context, void *stream, bool per_thread, void **event)
{
	if (refuses())
		return backend.out_of_memory;
	assert_ptr_equal(stream, &copies);
	*event = &asked;
	asked = 0;
	fake_vendor.events++;
	return 0;
}

static int vendor_mark(int device, void *context, void **event)
{
	vendor.marks++;
	if (refuses())
		return backend.out_of_memory;
	if (vendor.no_mark)
		return 801;
	*event = &vendor;
	fake_vendor.events++;
	return 0;
}

static bool vendor_passed(int device, void *context, void *event)
{
	assert_ptr_equal(event, &asked); /* nobody waits for the program's work */
	if (vendor.never_passes || ++asked < 3)
		return false;
	for (unsigned i = 0; i < copy_count; i++)
		memcpy((void *)(uintptr_t)copies[i].to, (void *)(uintptr_t)copies[i].from, copies[i].bytes);
	if (vendor.wrong_bytes)
		((unsigned char *)(uintptr_t)copies[copy_count - 1].to)[4095] ^= 1;
	copy_count = 0;
	return true;
}

static void vendor_event_destroy(int device, void *context, void *event)
{
	fake_vendor.events--;
}

/* Of the mover: the last call that it needs before it can move. */
static int vendor_events_ahead(int device, void *context, unsigned count)
{
	vendor.prepared++;
	return vendor.not_prepared ? backend.out_of_memory : 0;
}

static struct spill_vendor_devices devices;
static struct spill_vendor_memory memory;
static struct spill_vendor_vmm vmm;
static const struct spill_vendor_events events = {vendor_event, vendor_passed, vendor_event_destroy};
static const struct spill_vendor_moves moves = {
    .mark = vendor_mark,
    .events_ahead = vendor_events_ahead,
    .copier_create = vendor_copier_create,
    .copier_destroy = vendor_copier_destroy,
    .copy = vendor_copy,
};

static int begin(void **state)
{
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	fake_clock_use(5000000000);
	fake_clock.tick_ns = 1000;
	set_capturing(false);
	clearenv();
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	note_count = copy_count = 0;
	memset(&vendor, 0, sizeof(vendor));
	vendor.devices = 1;
	vendor.can = SPILL_CAN_SPLIT | SPILL_CAN_HOST | SPILL_CAN_MOVE;
	fake_vendor_reset(GIB);
	backend = fake_vendor_backend;
	devices = (struct spill_vendor_devices){.memory = vendor_memory,
	                                        .capabilities = vendor_capabilities,
	                                        .list = vendor_devices,
	                                        .current = vendor_current,
	                                        .wait = fake_vendor_backend.devices->wait};
	memory = *fake_vendor_backend.memory;
	memory.host_alloc = vendor_host_alloc;
	vmm = *fake_vendor_backend.vmm;
	vmm.reserve = vendor_reserve;
	vmm.unreserve = vendor_unreserve;
	backend.devices = &devices;
	backend.memory = &memory;
	backend.vmm = &vmm;
	backend.events = &events;
	backend.moves = &moves;
	spill_copier_reset();
	spill_account_reset();
	spill_movable_reset();
	return 0;
}

/* As the engine does it: charged, asked, and the driver takes it whatever the answer. */
static bool allocate(uint64_t bytes)
{
	spill_account_device_add(0, bytes);
	bool wanted = spill_movable_wanted(&backend, 0, bytes, SPILL_SWITCH_AUTO);
	vendor.used += bytes;
	return wanted;
}

/* Only asked: nothing is held afterwards. */
static bool wanted(uint64_t bytes)
{
	spill_account_device_add(0, bytes);
	bool answer = spill_movable_wanted(&backend, 0, bytes, SPILL_SWITCH_AUTO);
	spill_account_device_return(0, bytes);
	return answer;
}

static void later(uint64_t us)
{
	fake_clock.ns += us * 1000;
}

/* Nothing is left of the trial but its page. */
static void nothing_is_left(unsigned pages)
{
	assert_int_equal(fake_vendor.ranges + fake_vendor.handles + fake_vendor.mappings, 0);
	assert_int_equal(fake_vendor.events, 0);
	assert_int_equal(fake_vendor.hosts, pages);
	assert_int_equal(fake_vendor.device_free, GIB);
}

static void noted(unsigned count, const char *text)
{
	if (note_count != count || !strstr(notes[count - 1], text))
		fail_msg("%u notes, the last: %s", note_count, note_count ? notes[note_count - 1] : "");
}

/* -- how full the device is -------------------------------------------------------------------------------- */

/* Fast enough that no look grows old. Up to the line no call but the question, a few times; behind it every request. */
TEST(below_the_line_nothing_is_called)
{
	fake_clock.tick_ns = 10;
	vendor.used = 3 * GIB;
	while (vendor.used + 2 * MIB <= TOTAL / 2) {
		assert_false(allocate(2 * MIB));
		assert_int_equal(vendor.others, 0);
		assert_int_equal(fake_vendor.calls + vendor.prepared, 0);
	}
	assert_in_range(vendor.memory, 10, 25);
	for (int i = 0; i < 100; i++)
		assert_true(allocate(2 * MIB));
	assert_in_range(vendor.memory, 10, 30);
	assert_int_equal(note_count, 0);
}

TEST(small_requests_never_ask)
{
	vendor.used = TOTAL;
	for (int i = 0; i < 100; i++) {
		later(1000000);
		assert_false(wanted(2 * MIB - 1));
	}
	assert_int_equal(vendor.memory + vendor.others, 0);
	assert_true(wanted(2 * MIB));
}

/* Others fill the device: seen when the look is old, and not before. */
TEST(what_others_take_is_seen_in_time)
{
	fake_clock.tick_ns = 0;
	assert_false(wanted(2 * MIB));
	vendor.used = TOTAL;
	later(99999);
	assert_false(wanted(2 * MIB));
	assert_int_equal(vendor.memory, 1);
	later(1);
	assert_true(wanted(2 * MIB));
	assert_int_equal(vendor.memory, 2);
	/* And gives it back. */
	vendor.used = 0;
	assert_true(wanted(2 * MIB));
	later(100000);
	assert_false(wanted(2 * MIB));
}

/*
 * A request is no part of the held memory: a large request says nothing about the small one behind
 * it.
 */
TEST(requests_of_all_sizes)
{
	fake_clock.tick_ns = 0;
	vendor.used = TOTAL / 10 * 6;
	assert_true(wanted(30 * GIB));
	assert_true(wanted(2 * MIB));
	vendor.used = 0;
	later(100000);
	assert_true(wanted(TOTAL));
	assert_false(wanted(2 * MIB));
}

/* With the request, not before it: the first 60 % of an empty device are above the line. */
TEST(the_request_counts)
{
	assert_false(wanted(TOTAL / 2));
	assert_true(wanted(TOTAL / 2 + 1));
	policy.movable_above.value = 0;
	assert_true(wanted(2 * MIB));
	policy.movable_above.value = 100000;
	assert_false(wanted(TOTAL));
	assert_true(wanted(TOTAL + 1));
}

/* device.limit is this process's device; its own account is all there is to look at. */
TEST(a_limit_is_a_device_of_its_own)
{
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 4 * GIB};
	assert_false(allocate(2 * GIB));
	unsigned asked_driver = vendor.memory;
	assert_true(allocate(2 * MIB));
	assert_int_equal(vendor.memory, asked_driver);
	/* The device may be full with a limit far away. */
	policy.device_limit.value = 70 * GIB;
	vendor.used = TOTAL - GIB;
	later(200000);
	assert_true(wanted(2 * MIB));
}

TEST(no_answer_about_memory_is_no)
{
	vendor.used = TOTAL;
	devices.memory = vendor_memory_fails;
	assert_false(wanted(GIB));
	assert_false(spill_movable_wanted(&backend, -1, GIB, SPILL_SWITCH_AUTO));
	assert_false(spill_movable_wanted(&backend, SPILL_DEVICES, GIB, SPILL_SWITCH_AUTO));
	assert_int_equal(vendor.memory, 1);
	devices.memory = vendor_memory;
	assert_true(wanted(GIB)); /* what failed was no look */
}

TEST(off_and_on)
{
	vendor.used = TOTAL;
	policy.movable_enable = SPILL_SWITCH_OFF;
	assert_false(wanted(GIB));
	assert_false(spill_movable_may_move(&backend, 0));
	assert_int_equal(vendor.memory + vendor.others, 0);
	policy.movable_enable = SPILL_SWITCH_ON;
	vendor.used = 0;
	assert_true(wanted(2 * MIB));
	assert_false(wanted(MIB));
	assert_int_equal(vendor.memory, 0);
	assert_int_equal(note_count, 0);
}

static bool wanted_by_a_rule(void)
{
	return spill_movable_wanted(&backend, 0, GIB, SPILL_SWITCH_ON);
}

TEST(a_rule_without_effect_is_told_why)
{
	policy.movable_enable = SPILL_SWITCH_OFF;
	assert_false(wanted_by_a_rule());
	noted(1, "a rule has place = movable, and movable.enable is off");
	spill_movable_reset();
	policy.movable_enable = SPILL_SWITCH_AUTO;
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {SPILL_STEP_HOST}};
	assert_false(wanted_by_a_rule());
	noted(2, "a rule has place = movable, and oom.chain has no demote");
	spill_movable_reset();
	spill_policy_default(&policy);
	assert_true(wanted_by_a_rule());
	spill_movable_reset();
	vendor.can = SPILL_CAN_SPLIT | SPILL_CAN_HOST;
	assert_false(wanted_by_a_rule());
	noted(3, "a rule has place = movable, and this device or its driver cannot move memory");
	/* Without a rule nobody has asked for it. */
	spill_movable_reset();
	assert_false(wanted(GIB));
	assert_int_equal(note_count, 3);
}

/* -- the trial --------------------------------------------------------------------------------------------- */

TEST(the_trial_is_made_once)
{
	policy.movable_enable = SPILL_SWITCH_ON;
	assert_true(wanted(GIB));
	nothing_is_left(1);
	unsigned calls = fake_vendor.calls;
	assert_true(calls >= 12);
	assert_true(wanted(GIB));
	assert_true(spill_movable_may_move(&backend, 0));
	assert_int_equal(fake_vendor.calls, calls);
	assert_int_equal(vendor.prepared, 2);
}

/* Whichever call finds no memory: nothing is left over, nothing is said, and a while later it is tried again. */
TEST(no_memory_for_the_trial)
{
	for (unsigned at = 1;; at++) {
		begin(NULL);
		policy.movable_enable = SPILL_SWITCH_ON;
		fake_vendor_fail(at, at + 1);
		if (wanted(GIB)) {
			assert_int_equal(at, fake_vendor.calls + 1);
			assert_int_equal(at, 15);
			return;
		}
		assert_int_equal(note_count, 0);
		unsigned calls = fake_vendor.calls;
		assert_false(wanted(GIB));
		assert_int_equal(fake_vendor.calls, calls);
		/* Copies before the failure are waited for. */
		nothing_is_left(at > 9 ? 1 : 0);
		fake_vendor_fail(0, 0);
		later(100000);
		assert_true(wanted(GIB));
		assert_int_equal(fake_vendor.ranges + fake_vendor.handles + fake_vendor.mappings +
		                     (unsigned)fake_vendor.events,
		                 0);
	}
}

TEST(wrong_bytes_are_for_good)
{
	vendor.used = TOTAL;
	vendor.wrong_bytes = true;
	assert_false(wanted(GIB));
	noted(1, "a trial move of a chunk did not work on this device (set movable.enable = off");
	nothing_is_left(1);
	unsigned calls = fake_vendor.calls;
	vendor.wrong_bytes = false;
	later(10000000);
	assert_false(wanted(GIB));
	assert_false(spill_movable_may_move(&backend, 0));
	assert_int_equal(fake_vendor.calls, calls);
	assert_int_equal(note_count, 1);
}

TEST(a_driver_without_marks)
{
	vendor.used = TOTAL;
	vendor.no_mark = true;
	assert_false(wanted(GIB));
	nothing_is_left(0);
	assert_int_equal(note_count, 1);
}

/* A copy that does not end is not waited for for ever, and its memory is not taken away from under it. */
TEST(a_copy_that_does_not_end)
{
	vendor.used = TOTAL;
	vendor.never_passes = true;
	fake_clock.tick_ns = 1000000;
	uint64_t before = fake_clock.ns;
	assert_false(wanted(GIB));
	assert_in_range(fake_clock.ns - before, 1000000000, 1100000000);
	assert_int_equal(fake_vendor.mappings, 2);
	assert_int_equal(note_count, 1);
}

/* Nobody claimed that it can: only who insists hears of it. */
TEST(a_device_that_cannot)
{
	vendor.used = TOTAL;
	vendor.can = SPILL_CAN_SPLIT | SPILL_CAN_HOST;
	assert_false(wanted(GIB));
	assert_false(spill_movable_may_move(&backend, 0));
	assert_int_equal(note_count, 0);
	begin(NULL);
	policy.movable_enable = SPILL_SWITCH_ON;
	vendor.can = SPILL_CAN_HOST;
	assert_false(wanted(GIB));
	assert_false(wanted(GIB));
	noted(1, "cannot move memory");
	assert_int_equal(fake_vendor.calls, 0);
}

/* In the same chips; unless the user wrote a chain, or knows better. */
TEST(a_device_with_the_hosts_memory)
{
	vendor.used = TOTAL;
	vendor.can |= SPILL_IS_INTEGRATED;
	assert_false(wanted(GIB));
	assert_false(spill_movable_may_move(&backend, 0));
	assert_int_equal(note_count, 0);
	begin(NULL);
	policy.movable_enable = SPILL_SWITCH_ON;
	vendor.can |= SPILL_IS_INTEGRATED;
	assert_false(wanted(GIB));
	assert_false(wanted(GIB));
	noted(1, "the device's memory is the host's");
	assert_int_equal(fake_vendor.calls, 0);
	begin(NULL);
	policy.movable_enable = SPILL_SWITCH_ON;
	policy.device_memory = SPILL_MEMORY_DISCRETE;
	vendor.can |= SPILL_IS_INTEGRATED;
	assert_true(wanted(GIB));
	begin(NULL);
	policy.movable_enable = SPILL_SWITCH_ON;
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {SPILL_STEP_DEMOTE}};
	vendor.can |= SPILL_IS_INTEGRATED;
	assert_true(wanted(GIB));
}

TEST(not_in_a_capture_nor_without_a_context)
{
	vendor.used = TOTAL;
	set_capturing(true);
	assert_false(wanted(GIB));
	set_capturing(false);
	vendor.no_context = true;
	assert_false(wanted(GIB));
	assert_int_equal(fake_vendor.calls, 0);
	vendor.no_context = false;
	later(100000);
	assert_true(wanted(GIB));
	/* Known already, a capture elsewhere is the mover's matter. */
	set_capturing(true);
	assert_true(wanted(GIB));
	vendor.not_prepared = true;
	spill_copier_reset();
	assert_false(wanted(GIB));
	assert_int_equal(note_count, 0);
}

static void capture_before_the_mark(enum call call)
{
	if (call == COPIER_CREATE)
		set_capturing(true);
}

/* A mark would break the capture. It is the program's, so the trial says nothing and is made again later. */
TEST(a_capture_that_begins_before_the_mark)
{
	vendor.used = TOTAL;
	vendor.meanwhile = capture_before_the_mark;
	assert_false(wanted(GIB));
	assert_int_equal(vendor.marks, 0);
	nothing_is_left(0);
	assert_int_equal(note_count, 0);
	assert_int_equal(spill_gate_state & SPILL_GATE_CLOSED, 0);
	assert_false(spill_mover_busy());
	vendor.meanwhile = NULL;
	set_capturing(false);
	later(100000);
	assert_true(wanted(GIB));
	assert_int_equal(vendor.marks, 1);
}

/* Its mode forbids the trial's next call. */
static void capture_behind_the_mark(enum call call)
{
	if (call == HOST_ALLOC)
		set_capturing(true);
}

TEST(a_capture_that_begins_behind_the_mark)
{
	vendor.used = TOTAL;
	vendor.meanwhile = capture_behind_the_mark;
	assert_false(wanted(GIB));
	assert_int_equal(vendor.marks, 1);
	assert_int_equal(note_count, 0);
	vendor.meanwhile = NULL;
	set_capturing(false);
	later(100000);
	assert_true(wanted(GIB));
}

static _Atomic int inside; /* a thread's call: 0 not yet, 1 it does not return, 2 it may */

static void *call_that_does_not_return(void *unused)
{
	spill_gate_join(0);
	bool outer = spill_gate_enter(spill_gate_self);
	inside = 1;
	while (inside == 1)
		sched_yield();
	if (outer)
		spill_gate_leave(spill_gate_self);
	return NULL;
}

/* It could be about to begin a capture. */
TEST(a_call_that_does_not_return)
{
	pthread_t thread;
	vendor.used = TOTAL;
	fake_clock.tick_ns = 1000000;
	inside = 0;
	assert_int_equal(pthread_create(&thread, NULL, call_that_does_not_return, NULL), 0);
	while (!inside)
		sched_yield();
	assert_false(wanted(GIB));
	inside = 2;
	pthread_join(thread, NULL);
	assert_int_equal(vendor.marks, 0);
	nothing_is_left(0);
	assert_int_equal(note_count, 0);
	assert_int_equal(spill_gate_state & SPILL_GATE_CLOSED, 0);
	later(100000);
	assert_true(wanted(GIB));
}

/* The mover's lock may be held by who asks: preparing takes it. */
TEST(whether_chunks_may_move_prepares_nothing)
{
	assert_true(spill_movable_may_move(&backend, 0));
	assert_int_equal(vendor.prepared, 0);
	assert_int_equal(vendor.memory, 0);
}

/* Asked from another device's context: it cannot be tried from there, and is tried when it can, without a pause. */
TEST(asked_from_another_device)
{
	policy.movable_enable = SPILL_SWITCH_ON;
	vendor.devices = 2;
	assert_false(spill_movable_may_move(&backend, 1));
	assert_int_equal(fake_vendor.calls, 0);
	vendor.current = 1;
	assert_true(spill_movable_may_move(&backend, 1));
}

/* -- what stands against it -------------------------------------------------------------------------------- */

TEST(exported_by_the_environment)
{
	vendor.used = TOTAL;
	setenv("PMI_SIZE", "2", 1);
	assert_false(wanted(GIB));
	unsetenv("PMI_SIZE"); /* looked at once: what a program does to its own environment says nothing */
	assert_false(wanted(GIB));
	assert_false(spill_movable_may_move(&backend, 0));
	noted(1, "one of several ranks shares");
	policy.movable_enable = SPILL_SWITCH_ON;
	assert_true(wanted(GIB));
}

/* Mapped when chunks are there already: they stay where they are. */
TEST(a_library_that_is_mapped_later)
{
	vendor.used = TOTAL;
	assert_true(wanted(GIB));
	assert_true(spill_movable_may_move(&backend, 0));
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""}, {0, 0, "/x/libnvoptix.so.1"});
	assert_false(spill_movable_may_move(&backend, 0));
	assert_false(wanted(GIB));
	noted(1, "OptiX launches");
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	assert_true(spill_movable_may_move(&backend, 0));
}

TEST(a_library_that_is_not_preloaded)
{
	USE_FAKE_OBJECTS({0, 0, ""}, {0, 0, "/lib/libm.so.6"}, {0, 0, "/lib/libc.so.6"},
	                 {0, SIZE_MAX, "/x/libspill.so"});
	policy.movable_enable = SPILL_SWITCH_ON;
	assert_false(wanted(GIB));
	noted(1, "libspill is not preloaded");
	assert_false(spill_movable_may_move(&backend, 0));
	spill_movable_reset();
	USE_FAKE_OBJECTS({0, 0, ""}, {0, SIZE_MAX, "/x/libspill.so"}, {0, 0, "/lib/libc.so.6"});
	assert_true(wanted(GIB));
}

/* Without a limit they are in no account. The driver is asked, and its answer counts. */
TEST(bytes_that_pools_serve_count)
{
	fake_clock.tick_ns = 0;
	assert_false(wanted(2 * MIB));
	vendor.used = TOTAL;
	assert_false(wanted(2 * MIB)); /* the look is young, and this process has taken nothing */
	spill_movable_pool_served(0, MIB);
	assert_false(wanted(2 * MIB));
	spill_movable_pool_served(0, TOTAL / 2);
	assert_true(wanted(2 * MIB));
}

TEST(what_is_forbidden_stays_forbidden)
{
	policy.movable_enable = SPILL_SWITCH_ON;
	assert_true(wanted(GIB));
	spill_movable_forbid("a green context was made");
	spill_movable_forbid("memory was exported");
	assert_false(wanted(GIB));
	assert_false(spill_movable_may_move(&backend, 0));
	noted(1, "a green context was made (set movable.enable = off");
	/* A forked child begins anew. */
	spill_movable_reset();
	assert_true(wanted(GIB));
	policy.movable_enable = SPILL_SWITCH_OFF;
	spill_movable_forbid("memory was exported");
	assert_int_equal(note_count, 1);
}
