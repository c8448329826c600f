/*
 * The trial of a device: which calls it makes in which order, what it judges, and what it gives back. The vendor, the gate
 * and the mover are replaced, and say what is asked of them. test_movable.c has what a trial means.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "capture.h"
#include "chunked.h"
#include "fake_clock.h"
#include "gate.h"
#include "movable.h"
#include "mover.h"
#include "said.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

enum { UNIT = 8192, BYTES = 4096, DEVICE = 1, OUT_OF_MEMORY = 2, REFUSED = 700 };

static unsigned char there[2][UNIT], page[2 * BYTES];
static struct {
	unsigned can, copied, looks;
	const char *refused; /* calls with this word are refused, from the one with this number on, from 1 */
	unsigned refused_from, called;
	int error;
	bool unprepared, no_context, shut, mine, capturing, captures_later, loses_copies;
	unsigned passes_at; /* copies have passed at this look. 0: never */
	int current;
	uint64_t granularity;
} world;

static int answer(const char *word, uint64_t number)
{
	say(word, number);
	if (!world.refused || strcmp(word, world.refused) != 0 || ++world.called < world.refused_from)
		return 0;
	return world.error;
}

/* -- in place of the vendor -------------------------------------------------------------------- */

/* An address as the tests tell it. */
static uint64_t place_of(uint64_t va)
{
	uint64_t in_page = va - (uintptr_t)page, in_chunks = va - (uintptr_t)there;
	return in_page < sizeof(page) ? in_page : 10000 + in_chunks;
}

static unsigned vendor_capabilities(int device)
{
	return world.can;
}

static bool vendor_current(int *device, void **context)
{
	*device = world.current;
	*context = page;
	return !world.no_context;
}

static int vendor_host_alloc(uint64_t bytes, uint64_t *ptr, void **host)
{
	assert_int_equal(bytes, sizeof(page));
	*host = page;
	*ptr = (uintptr_t)page;
	return answer("page", 0);
}

static int vendor_create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	assert_true(device == DEVICE && bytes == UNIT);
	*handle = on_host ? 20 : 10;
	return answer("create", *handle);
}

static int vendor_release(uint64_t handle)
{
	return answer("release", handle);
}

static int vendor_reserve(uint64_t bytes, uint64_t alignment, uint64_t *va)
{
	assert_true(bytes == 2 * UNIT && alignment == UNIT);
	*va = (uintptr_t)there;
	return answer("reserve", 0);
}

static int vendor_unreserve(uint64_t va, uint64_t bytes)
{
	assert_true(va == (uintptr_t)there && bytes == 2 * UNIT);
	return answer("unreserve", 0);
}

static int vendor_map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	assert_int_equal(bytes, UNIT);
	assert_int_equal(place_of(va), handle == 10 ? 10000 : 10000 + UNIT);
	return answer("map", handle);
}

static int vendor_unmap(uint64_t va, uint64_t bytes)
{
	assert_int_equal(bytes, UNIT);
	return answer("unmap", place_of(va));
}

static int vendor_allow(uint64_t va, uint64_t bytes, int device)
{
	assert_true(va == (uintptr_t)there && bytes == 2 * UNIT);
	return answer("allow", (uint64_t)device);
}

static int vendor_copier_create(int device, void *context, void **stream)
{
	assert_ptr_equal(context, page);
	int error = answer("stream", 0);
	*stream = error ? NULL : there;
	return error;
}

static void vendor_copier_destroy(int device, void *context, void *stream)
{
	assert_ptr_equal(stream, there);
	say("end stream", 0);
}

/* Carried out at once, but who copies does not know that. */
static int vendor_copy(int device, void *context, void *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
	assert_true(stream == there && bytes == BYTES);
	if (++world.copied == 1)
		assert_int_equal(place_of(to), 10000);
	int error = answer("copy", place_of(to));
	if (!error && !world.loses_copies)
		memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
	return error;
}

static int vendor_mark(int device, void *context, void **event)
{
	*event = page;
	return answer("mark", 0);
}

static int vendor_record(int device, void *context, void *stream, bool per_thread, void **event)
{
	assert_true(stream == there && !per_thread);
	world.looks = 0;
	*event = &world;
	return answer("record", 0);
}

static bool vendor_passed(int device, void *context, void *event)
{
	assert_ptr_equal(event, &world);
	return ++world.looks == world.passes_at;
}

static void vendor_event_destroy(int device, void *context, void *event)
{
	say("end event", event == page);
}

static const struct spill_vendor_devices devices = {.capabilities = vendor_capabilities,
                                                    .current = vendor_current};
static const struct spill_vendor_memory memory = {.host_alloc = vendor_host_alloc};
static const struct spill_vendor_physical physical = {.create = vendor_create, .release = vendor_release};
static const struct spill_vendor_vmm vmm = {.reserve = vendor_reserve,
                                            .unreserve = vendor_unreserve,
                                            .map = vendor_map,
                                            .unmap = vendor_unmap,
                                            .allow = vendor_allow};
static const struct spill_vendor_events events = {vendor_record, vendor_passed, vendor_event_destroy};
static const struct spill_vendor_moves moves = {.mark = vendor_mark,
                                                .copier_create = vendor_copier_create,
                                                .copier_destroy = vendor_copier_destroy,
                                                .copy = vendor_copy};
static const struct spill_backend vendor = {.devices = &devices,
                                            .memory = &memory,
                                            .physical = &physical,
                                            .vmm = &vmm,
                                            .events = &events,
                                            .moves = &moves,
                                            .out_of_memory = OUT_OF_MEMORY},
                                  without_moves = {.devices = &devices};

/* -- in place of the gate and the mover -------------------------------------------------------- */

uint64_t spill_chunked_granularity(const struct spill_backend *backend, int device)
{
	assert_int_equal(device, DEVICE);
	return world.granularity;
}

bool spill_gate_prepare(void)
{
	return !world.unprepared;
}

bool spill_gate_close(uint64_t deadline_ns)
{
	assert_int_equal(deadline_ns - fake_clock.ns, 20 * MS);
	say("close", !world.shut);
	return !world.shut;
}

void spill_gate_open(void)
{
	say("open", 0);
}

bool spill_mover_is_mine(void)
{
	return world.mine;
}

void spill_mover_lock(void)
{
	say("lock", 0);
}

void spill_mover_unlock(void)
{
	say("unlock", 0);
}

bool spill_capture_any(void)
{
	return world.capturing || (world.captures_later && world.copied);
}

/* ---------------------------------------------------------------------------------------------- */

#define MADE "reserve:0 create:10 create:20 map:10 map:20 allow:1 stream:0 "
#define MARKED "lock:0 close:1 mark:0 end event:1 open:0 unlock:0 "
#define COPIED "page:0 copy:10000 copy:18192 copy:14096 copy:4096 "
#define WAITED "record:0 end event:0 "
#define UNDONE "end stream:0 unmap:18192 unmap:10000 release:20 release:10 unreserve:0"

static int setup(void **state)
{
	memset(there, 0, sizeof(there));
	memset(page, 0, sizeof(page));
	memset(&world, 0, sizeof(world));
	world.can = SPILL_CAN_MOVE;
	world.current = DEVICE;
	world.granularity = UNIT;
	world.passes_at = 2;
	world.error = REFUSED;
	fake_clock_use(SECOND);
	what_was_said();
	return 0;
}

static enum spill_probe probe(void)
{
	return spill_probe(&vendor, DEVICE);
}

static void refuse(const char *word, unsigned from, int error)
{
	setup(NULL);
	world.refused = word;
	world.refused_from = from;
	world.error = error;
}

TEST(a_trial_from_begin_to_end)
{
	assert_int_equal(probe(), SPILL_PROBE_WORKS);
	assert_string_equal(what_was_said(), MADE MARKED COPIED WAITED UNDONE);
}

/* A move that asks holds the mover. */
TEST(the_mover_is_held_by_who_asks)
{
	world.mine = true;
	assert_int_equal(probe(), SPILL_PROBE_WORKS);
	assert_string_equal(what_was_said(), MADE "close:1 mark:0 end event:1 open:0 " COPIED WAITED UNDONE);
}

TEST(nothing_is_tried_in_vain)
{
	assert_int_equal(spill_probe(&without_moves, DEVICE), SPILL_PROBE_FAILS);
	world.can = 0;
	assert_int_equal(probe(), SPILL_PROBE_FAILS);
	world.can = SPILL_CAN_MOVE;
	world.granularity = 0;
	assert_int_equal(probe(), SPILL_PROBE_FAILS);
	world.granularity = UNIT;
	world.unprepared = true;
	assert_int_equal(probe(), SPILL_PROBE_FAILS);
	world.no_context = true; /* of this device */
	assert_int_equal(probe(), SPILL_PROBE_LATER);
	world.no_context = false;
	world.current = DEVICE + 1;
	assert_int_equal(probe(), SPILL_PROBE_LATER);
	assert_string_equal(what_was_said(), "");
}

/* It is final, unless memory was short. What was made is given back, the last first. */
TEST(each_refusal)
{
	static const struct {
		const char *word;
		unsigned from;
		const char *said;
	} cases[] = {
	    {"reserve", 1, "reserve:0"},
	    {"create", 1, "reserve:0 create:10 unreserve:0"},
	    {"create", 2, "reserve:0 create:10 create:20 release:10 unreserve:0"},
	    {"map", 1, "reserve:0 create:10 create:20 map:10 release:20 release:10 unreserve:0"},
	    {"map", 2,
	     "reserve:0 create:10 create:20 map:10 map:20 unmap:10000 release:20 release:10 unreserve:0"},
	    {"mark", 1, MADE "lock:0 close:1 mark:0 open:0 unlock:0 " UNDONE},
	    {"page", 1, MADE MARKED "page:0 " UNDONE},
	    {"copy", 1, MADE MARKED "page:0 copy:10000 " UNDONE},
	    {"copy", 3, MADE MARKED "page:0 copy:10000 copy:18192 copy:14096 " WAITED UNDONE},
	};
	for (unsigned i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		bool no_memory = i % 2;
		refuse(cases[i / 2].word, cases[i / 2].from, no_memory ? OUT_OF_MEMORY : REFUSED);
		assert_int_equal(probe(), no_memory ? SPILL_PROBE_LATER : SPILL_PROBE_FAILS);
		assert_string_equal(what_was_said(), cases[i / 2].said);
	}
}

/* Nobody knows when the copies end. Memory that they may use stays. */
TEST(copies_without_an_event)
{
	refuse("record", 1, REFUSED);
	assert_int_equal(probe(), SPILL_PROBE_FAILS);
	assert_string_equal(what_was_said(), MADE MARKED COPIED "record:0 record:0");
	/* A copy that was refused behind one that does not end. */
	refuse("copy", 2, OUT_OF_MEMORY);
	world.passes_at = 0;
	fake_clock.tick_ns = 100 * MS;
	assert_int_equal(probe(), SPILL_PROBE_LATER);
	assert_string_equal(what_was_said(), MADE MARKED "page:0 copy:10000 copy:18192 record:0");
}

/* Right bytes are not enough: a stream that does not tell its end cannot be waited for. */
TEST(copies_that_do_not_end)
{
	world.passes_at = 0;
	fake_clock.tick_ns = SECOND / 50;
	assert_int_equal(probe(), SPILL_PROBE_FAILS);
	assert_string_equal(what_was_said(), MADE MARKED COPIED "record:0");
	assert_int_equal(memcmp(page, page + BYTES, BYTES), 0);
	assert_int_equal(world.looks, 50);
}

/* The page of a trial before this one: its bytes prove nothing. */
TEST(copies_that_are_lost)
{
	assert_int_equal(probe(), SPILL_PROBE_WORKS);
	world.loses_copies = true;
	assert_int_equal(probe(), SPILL_PROBE_FAILS);
}

TEST(a_capture_or_a_call_is_in_the_way)
{
	world.capturing = true;
	assert_int_equal(probe(), SPILL_PROBE_LATER);
	assert_string_equal(what_was_said(), MADE "lock:0 close:1 open:0 unlock:0 " UNDONE);
	world.capturing = false;
	world.shut = true;
	assert_int_equal(probe(), SPILL_PROBE_LATER);
	assert_string_equal(what_was_said(), MADE "lock:0 close:0 unlock:0 " UNDONE);
	refuse("copy", 2, REFUSED);
	world.captures_later = true;
	assert_int_equal(probe(), SPILL_PROBE_LATER);
}
