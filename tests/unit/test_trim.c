/*
 * What is given back for a request, in which order, and when that waits. All that trim.c calls is replaced: each call is told
 * in a word, and gives what the case says.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "account.h"
#include "capture.h"
#include "deferred.h"
#include "device_memory.h"
#include "engine_ordered.h"
#include "fake_clock.h"
#include "host_chunks.h"
#include "memory_limit.h"
#include "minmax.h"
#include "mover.h"
#include "ordered_pool.h"
#include "quiesce.h"
#include "said.h"
#include "shared_chunks.h"
#include "trim.h"
#include "vendor_pool.h"

#define MS 1000000ull
#define DEVICE 1
#define NUMBER 7 /* of the last free in stream order */

static const struct spill_vendor_moves moves;
static const struct spill_backend vendor = {.moves = &moves}, still = {0};
static int context;

/* What each call gives, and what there is. Bytes of the device, if nothing else is said. */
struct world {
	uint64_t free, limit, held;
	uint64_t first;         /* of deferred frees that have passed */
	uint64_t waiting, poll; /* of others: all, and what passes between two looks */
	uint64_t pool, ordered; /* at a trim without a wait */
	uint64_t unused, unused_ordered;
	uint64_t wait, late_pool; /* in a wait for the device, and at the trim behind it */
	unsigned busy_waits;      /* so many waits end too early */
	uint64_t wait_ns;
	bool captures;
};

static struct world world;
static unsigned polls, waits;
static uint64_t host_held, kept; /* of the host: all, and what a drop gives back */

static uint64_t give(uint64_t bytes)
{
	world.free += bytes;
	return bytes;
}

/* -- in place of what trim.c calls ------------------------------------------------------------------------- */

bool spill_capture_any(void)
{
	return world.captures;
}

uint64_t spill_account_device_held(int device)
{
	return world.held;
}

uint64_t spill_account_host_held(void)
{
	return host_held;
}

uint64_t spill_device_limit(const struct spill_backend *backend, int device)
{
	return world.limit;
}

int spill_device_memory(const struct spill_backend *backend, int device, uint64_t *free, uint64_t *total)
{
	*free = world.free;
	return 0;
}

struct spill_bytes spill_deferred_collect(const struct spill_backend *backend, int device, bool may_wait)
{
	bool first = !may_wait && !fake_clock.sleeps;
	uint64_t given = first ? world.first : spill_min(world.poll, world.waiting);
	if (first)
		say("collect", may_wait);
	else
		polls++;
	world.waiting -= first ? 0 : given;
	if (may_wait) {
		kept += given;
		return (struct spill_bytes){.host = given};
	}
	return (struct spill_bytes){.device = give(given)};
}

struct spill_bytes spill_deferred_pending(const struct spill_backend *backend, int device)
{
	return (struct spill_bytes){.device = world.waiting, .host = world.waiting};
}

void spill_deferred_drop(const struct spill_backend *backend, int device)
{
	assert_int_equal(device, -1);
	if (!polls)
		say("drop", 0);
	host_held -= kept;
	kept = 0;
}

uint64_t spill_host_chunks_drop(const struct spill_backend *backend)
{
	say("chunks", 0);
	return 0;
}

void spill_shared_chunks_trim(const struct spill_backend *backend, int device, const void *owner)
{
	assert_ptr_equal(owner, &context);
	say("shared", (uint64_t)device);
}

uint64_t spill_vendor_pool_trim(const struct spill_backend *backend, int device, bool on_host)
{
	uint64_t given = waits ? world.late_pool : world.pool;
	say(on_host ? "host pools" : "pools", (uint64_t)device);
	return give(given);
}

uint64_t spill_vendor_pool_unused(const struct spill_backend *backend, int device)
{
	return world.unused;
}

uint64_t spill_ordered_unused(const struct spill_backend *backend, int device)
{
	return world.unused_ordered;
}

uint64_t spill_ordered_number(void)
{
	return NUMBER;
}

void spill_ordered_idle(const struct spill_backend *backend, int device, uint64_t number)
{
	say("idle", number);
}

uint64_t spill_ordered_trim(const struct spill_backend *backend, int device, uint64_t bytes)
{
	say("ordered", bytes);
	return give(spill_min(bytes, world.ordered));
}

void spill_ordered_trim_host(const struct spill_backend *backend, int device)
{
	say("host ordered", (uint64_t)device);
}

bool spill_quiesce_synchronize(const struct spill_backend *backend, int device, uint64_t deadline_ns)
{
	assert_true(spill_mover_is_mine());
	assert_int_equal(deadline_ns, fake_clock.ns + 50 * MS);
	if (!waits++)
		say("wait", (uint64_t)device);
	give(world.wait);
	fake_clock.ns += world.wait_ns;
	return waits > world.busy_waits;
}

/* -- cases ------------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	static uint64_t begin_ns;
	begin_ns += 1000000 * MS; /* behind all that an earlier case waits for */
	fake_clock_use(begin_ns);
	return 0;
}

static void begin(const struct world *now)
{
	world = *now;
	world.limit = now->limit ? now->limit : UINT64_MAX;
	said[0] = '\0';
	polls = waits = 0;
	fake_clock.sleeps = 0;
	fake_clock.slept_ns = 0;
}

/* A request of 20 bytes, where 15 are free. */
static const struct trim_case {
	const char *what;
	struct world world;
	bool gives;
	const char *calls;
	unsigned polls;
} cases[] = {
    {"enough is free", {.free = 20}, false, "collect:0 pools:1 ordered:0", 0},
    {"nothing gives", {.free = 15}, false, "collect:0 pools:1 ordered:5", 0},
    {"the limit is nearer", {.free = 30, .limit = 25, .held = 10}, false, "collect:0 pools:1 ordered:5", 0},
    {"the device is nearer", {.free = 15, .limit = 40, .held = 10}, false, "collect:0 pools:1 ordered:5", 0},
    {"a free has passed", {.free = 15, .first = 5}, true, "collect:0 pools:1 ordered:0", 0},
    {"a pool gives", {.free = 15, .pool = 4}, true, "collect:0 pools:1 ordered:1", 0},
    {"a pool gives as much as a free",
     {.free = 15, .first = 2, .pool = 2},
     true,
     "collect:0 pools:1 ordered:1",
     0},
    {"segments give", {.free = 15, .ordered = 5, .waiting = 9}, true, "collect:0 pools:1 ordered:5", 0},
    {"segments give as much as a free",
     {.free = 11, .first = 4, .ordered = 4},
     true,
     "collect:0 pools:1 ordered:5",
     0},
    {"just enough frees wait", {.free = 15, .waiting = 5, .poll = 2}, true, "collect:0 pools:1 ordered:5", 3},
    {"more frees wait than it needs",
     {.free = 15, .waiting = 6, .poll = 5},
     true,
     "collect:0 pools:1 ordered:5",
     1},
    {"frees give as much as one before",
     {.free = 10, .first = 5, .waiting = 5, .poll = 5},
     true,
     "collect:0 pools:1 ordered:5",
     1},
    {"too few frees wait", {.free = 15, .waiting = 4, .poll = 4}, false, "collect:0 pools:1 ordered:5", 0},
    {"just enough with segments",
     {.free = 15, .ordered = 2, .waiting = 3, .poll = 3},
     true,
     "collect:0 pools:1 ordered:5",
     1},
    {"frees do not pass", {.free = 15, .waiting = 5}, false, "collect:0 pools:1 ordered:5", 1000},
    {"pools keep too little",
     {.free = 15, .unused = 2, .unused_ordered = 2, .wait = 9},
     false,
     "collect:0 pools:1 ordered:5",
     0},
    {"pools keep just enough",
     {.free = 15, .unused = 4, .unused_ordered = 1, .wait = 2, .late_pool = 1},
     true,
     "collect:0 pools:1 ordered:5 wait:1 pools:1 idle:7 ordered:2",
     0},
    {"a wait gives as much as a free",
     {.free = 10, .first = 5, .unused = 5, .wait = 5},
     true,
     "collect:0 pools:1 ordered:5 wait:1 pools:1 idle:7 ordered:0",
     0},
    {"a wait gives nothing",
     {.free = 15, .unused = 5},
     false,
     "collect:0 pools:1 ordered:5 wait:1 pools:1 idle:7 ordered:5",
     0},
    {"the device stays busy",
     {.free = 15, .unused = 5, .busy_waits = 1, .late_pool = 5},
     false,
     "collect:0 pools:1 ordered:5 wait:1",
     0},
    {"frees leave the rest to pools",
     {.free = 10, .unused = 9, .waiting = 10, .poll = 1, .wait = 4, .limit = 30, .held = 20},
     true,
     "collect:0 pools:1 ordered:10",
     10},
    {"something captures", {.free = 15, .first = 5, .pool = 5, .captures = true}, false, "", 0},
};

TEST(gives_back_for_a_request)
{
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct trim_case *one = &cases[i];
		setup(NULL);
		begin(&one->world);
		if (spill_trim(&vendor, DEVICE, 20, false) != one->gives || strcmp(said, one->calls) ||
		    polls != one->polls)
			fail_msg("%s: %s, %u looks", one->what, said, polls);
		assert_false(spill_mover_is_mine());
		assert_int_equal(fake_clock.slept_ns, polls * 50000);
	}
}

/* No bytes: what needs no wait, and no segments. */
TEST(gives_back_for_no_request)
{
	begin(&(struct world){.waiting = 9, .unused = 9, .pool = 1});
	assert_true(spill_trim(&vendor, DEVICE, 0, true));
	assert_string_equal(said, "collect:0 pools:1 ordered:0");
}

/* A look at frees takes time, too. */
TEST(waits_50_ms_for_frees)
{
	begin(&(struct world){.waiting = 5});
	fake_clock.tick_ns = 5 * MS;
	assert_false(spill_trim(&vendor, DEVICE, 5, false));
	assert_int_equal(polls, 9);
}

static unsigned waits_of(const struct spill_backend *backend, int device, bool urgent)
{
	waits = polls = 0;
	world.free = 15;
	world.held = 0;
	fake_clock.sleeps = 0;
	spill_trim(backend, device, 20, urgent);
	return waits;
}

/* Waits take a tenth of the time, and a hundredth while they give nothing. Who is urgent waits all the same. */
TEST(waits_for_the_device_now_and_then)
{
	static const unsigned pauses[] = {10, 100};
	for (unsigned i = 0; i < 2; i++) {
		begin(&(struct world){.unused = 5, .wait = i ? 0 : 1, .wait_ns = 3 * MS});
		assert_int_equal(waits_of(&vendor, DEVICE, false), 1);
		uint64_t again_ns = fake_clock.ns + (uint64_t)pauses[i] * 3 * MS;
		assert_int_equal(waits_of(&vendor, DEVICE, false), 0);
		fake_clock.ns = again_ns - 1;
		assert_int_equal(waits_of(&vendor, DEVICE, false), 0);
		fake_clock.ns = again_ns;
		assert_int_equal(waits_of(&vendor, DEVICE, false), 1);
		assert_int_equal(waits_of(&vendor, DEVICE, true), 1);
		fake_clock.ns += 1000 * MS;
	}
}

TEST(waits_for_devices_that_can_move)
{
	begin(&(struct world){.unused = 5});
	assert_int_equal(waits_of(&still, DEVICE, true), 0);
	assert_int_equal(waits_of(&vendor, -1, true), 0);
	assert_int_equal(waits_of(&vendor, 0, true), 1);
	assert_int_equal(waits_of(&vendor, SPILL_DEVICES - 1, true), 1);
	assert_int_equal(waits_of(&vendor, SPILL_DEVICES, true), 0);
}

/* An urgent request asks again, after a pause for others, for a second. */
TEST(an_urgent_request_waits_longer)
{
	const struct {
		unsigned busy, waits;
		bool urgent;
	} tries[] = {{2, 3, true}, {UINT32_MAX, 20, true}, {2, 1, false}};
	for (unsigned i = 0; i < 3; i++) {
		setup(NULL);
		begin(&(struct world){.unused = 5, .wait_ns = 49 * MS, .busy_waits = tries[i].busy});
		assert_int_equal(waits_of(&vendor, DEVICE, tries[i].urgent), tries[i].waits);
		assert_int_equal(fake_clock.sleeps, tries[i].waits - (tries[i].busy == 2));
		assert_int_equal(fake_clock.slept_ns, fake_clock.sleeps * MS);
	}
}

#define HOST_CALLS "drop:0 chunks:0 host pools:1 host ordered:1 shared:1"

/* A request of 3 bytes of the host. Frees that have passed are kept until they are dropped. */
static const struct host_case {
	const char *what;
	struct world world;
	bool gives;
	unsigned polls;
} host_cases[] = {
    {"nothing gives", {0}, false, 0},
    {"as much is kept", {.first = 3, .waiting = 9, .poll = 9}, true, 0},
    {"less is kept", {.first = 2, .waiting = 9, .poll = 1}, true, 1},
    {"frees give it", {.waiting = 9, .poll = 1}, true, 3},
    {"all frees are not enough", {.waiting = 2, .poll = 1}, true, 2},
    {"frees do not pass", {.waiting = 9}, false, 1000},
    {"something captures", {.first = 3, .captures = true}, false, 0},
};

TEST(gives_back_memory_of_the_host)
{
	for (unsigned i = 0; i < sizeof(host_cases) / sizeof(host_cases[0]); i++) {
		const struct host_case *one = &host_cases[i];
		begin(&one->world);
		host_held = 100;
		kept = one->world.first;
		if (spill_trim_host(&vendor, DEVICE, &context, 3) != one->gives || polls != one->polls ||
		    strcmp(said, one->world.captures ? "" : HOST_CALLS))
			fail_msg("%s: %s, %u looks", one->what, said, polls);
		assert_int_equal(fake_clock.slept_ns, polls * 50000);
	}
}
