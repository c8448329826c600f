/*
 * Memory in stream order: whose memory it is, what its pool may take, and what is made in its place. The functions of this
 * kind of memory are called as admit.c calls them. All that they call is replaced.
 */
#define SETUP setup
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "admit.h"
#include "capture.h"
#include "contexts.h"
#include "deferred.h"
#include "engine_ordered.h"
#include "memory_limit.h"
#include "movable.h"
#include "ordered_pool.h"
#include "peer.h"
#include "place.h"
#include "process.h"
#include "registry.h"
#include "reserve_keeper.h"
#include "reserve_pieces.h"
#include "said.h"
#include "trim.h"
#include "vendor_pool.h"

enum { DEVICE = 2, POOL_DEVICE = 3, PTR = 4096, BYTES = 100, FAILED = 1 };

static struct spill_policy policy;
static const struct spill_alloc_kind_ops *kind;
static int stream_context, pool_context, stream, stream_name, their_pool, current_pool, own;
#define OWN ((struct spill_ordered_pool *)&own)
static char pool_record, managed_record;
#define RECORD ((struct spill_vendor_pool *)&pool_record)
#define MANAGED ((struct spill_vendor_pool *)&managed_record)

/* What the replaced functions answer. */
static bool no_owner, no_current, no_figures, wanted, admits, charges, settles, decides, captures, no_entry,
    gated, in_capture, beside, serves_on_host, falls, reuses, no_placement, no_device;
static int pool_device, alloc_result;
static unsigned contexts;
static uint64_t limit, held, unused, reserved, out;
static enum spill_substitute served_by_segments;
static enum spill_place place;
static const char *pool_error, *charge_error;
static struct spill_vendor_pool *managed_pool;
static struct spill_placement made, reused;
static struct spill_allocation entry;
static struct spill_place_request asked;
static struct spill_pool_request pool_request;

static int stream_owner(void *given, int *device, void **context)
{
	assert_ptr_equal(given, &stream);
	*device = DEVICE;
	*context = &stream_context;
	return no_owner ? FAILED : 0;
}

static bool current_device(int *device, void **context)
{
	*device = DEVICE;
	*context = &stream_context;
	return !no_device;
}

static int current(int device, void **pool)
{
	*pool = &current_pool;
	return no_current ? FAILED : 0;
}

static int pool_unused(void *pool, uint64_t *bytes)
{
	*bytes = unused;
	return 0;
}

static int pool_reserved(void *pool, uint64_t *bytes)
{
	*bytes = reserved;
	return no_figures ? FAILED : 0;
}

static int pool_alloc(void *pool, uint64_t bytes, void *its_stream, bool per_thread, uint64_t *ptr)
{
	say("alloc", bytes);
	*ptr = PTR;
	return alloc_result;
}

static int pool_free(uint64_t ptr, void *its_stream, bool per_thread)
{
	assert_ptr_equal(its_stream, &stream);
	say("free", ptr);
	return 0;
}

static const char *error_name(int error)
{
	return "vendor's error";
}

static const struct spill_vendor_devices devices = {.current = current_device};
static const struct spill_vendor_streams streams = {.owner = stream_owner};
static struct spill_vendor_pools pools;
static struct spill_backend backend;
static const struct spill_backend *found;

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	return found;
}

/* -- the vendor's pools ------------------------------------------------------------------------------------------------ */

int spill_vendor_pool_device(const struct spill_backend *vendor, const void *handle, int device)
{
	assert_ptr_equal(handle, &their_pool);
	assert_int_equal(device, DEVICE);
	return pool_device;
}

enum spill_place spill_vendor_pool_place(const struct spill_backend *vendor, void *handle)
{
	return place;
}

struct spill_vendor_pool *spill_vendor_pool_of(const struct spill_backend *vendor, void *handle, int device)
{
	say("pool", handle == &their_pool);
	return RECORD;
}

bool spill_vendor_pool_admit(struct spill_vendor_pool *pool, struct spill_request *request,
                             struct spill_ask *ask, uint64_t given)
{
	assert_ptr_equal(pool, RECORD);
	say("admit", given);
	return admits;
}

void spill_vendor_pool_retract(struct spill_vendor_pool *pool, uint64_t bytes, uint64_t charged)
{
	assert_int_equal(bytes, BYTES);
	say("retract", charged);
}

bool spill_vendor_pool_settle(struct spill_vendor_pool *pool)
{
	say("settle", pool == MANAGED);
	return settles;
}

void spill_vendor_pool_freed(struct spill_vendor_pool *pool, uint64_t bytes)
{
	say(pool == MANAGED ? "piece freed" : "freed", bytes);
}

uint64_t spill_vendor_pool_growth(uint64_t bytes, uint64_t spare, uint64_t room)
{
	return bytes > spare ? bytes - spare : 0;
}

uint64_t spill_vendor_pool_trim(const struct spill_backend *vendor, int device, bool on_host)
{
	assert_false(on_host);
	say("trim pools", (uint64_t)device);
	return 0;
}

struct spill_vendor_pool *spill_vendor_pool_ours(const struct spill_backend *vendor, int device,
                                                 enum spill_place where, enum spill_location preferred,
                                                 const char **error)
{
	assert_int_equal(where, SPILL_PLACE_MANAGED);
	*error = pool_error;
	return pool_error ? NULL : managed_pool;
}

const char *spill_vendor_pool_charge(struct spill_vendor_pool *pool, uint64_t bytes,
                                     const struct spill_policy *given, uint64_t *charged)
{
	*charged = 60;
	return charge_error;
}

void *spill_vendor_pool_handle(const struct spill_vendor_pool *pool)
{
	return NULL;
}

void spill_vendor_pool_graphs(const struct spill_backend *vendor, int device)
{
	say("graphs", (uint64_t)device);
}

/* -- segments, reserve, accounts ------------------------------------------------------------------------------------------ */

bool spill_ordered_wanted(struct spill_request *request, const struct spill_backend *vendor)
{
	if (wanted)
		request->admission.ordered = OWN;
	return wanted;
}

enum spill_substitute spill_ordered_serve(struct spill_request *request, const struct spill_backend *vendor,
                                          const char **error)
{
	say("segments", 0);
	return served_by_segments;
}

bool spill_ordered_serve_on_host(struct spill_request *request, const struct spill_backend *vendor)
{
	say("segments on the host", 0);
	return serves_on_host;
}

struct spill_ordered_pool *spill_ordered_beside(const struct spill_request *request,
                                                const struct spill_backend *vendor)
{
	return beside ? OWN : NULL;
}

void spill_ordered_count(struct spill_ordered_pool *pool, struct spill_placement *placement)
{
	assert_ptr_equal(pool, OWN);
	say("count", 0);
}

bool spill_reserve_is_in_pool(const struct spill_backend *vendor, int device,
                              const struct spill_pool_request *request)
{
	pool_request = *request;
	return false;
}

uint64_t spill_reserve_unused(int device, const struct spill_pool_request *request)
{
	return request->unused;
}

bool spill_reserve_fell(const struct spill_backend *vendor, int device,
                        const struct spill_pool_request *request)
{
	pool_request = *request;
	say("fell", request->unused);
	return falls;
}

uint64_t spill_reserve_size(int device)
{
	return 64;
}

uint64_t spill_account_device_held(int device)
{
	return held;
}

uint64_t spill_device_limit(const struct spill_backend *vendor, int device)
{
	return limit;
}

bool spill_trim(const struct spill_backend *vendor, int device, uint64_t bytes, bool urgent)
{
	assert_false(urgent);
	say("trim", bytes);
	return false;
}

unsigned spill_contexts_of(const struct spill_backend *vendor, int device, void *list[SPILL_CONTEXTS])
{
	assert_int_equal(device, POOL_DEVICE);
	list[0] = &pool_context;
	return contexts;
}

/* -- requests and places ---------------------------------------------------------------------------------------------------- */

bool spill_admit(struct spill_request *request, const struct spill_alloc_kind_ops *ops)
{
	kind = ops;
	say("admitted", 0);
	return true;
}

bool spill_admit_charge(struct spill_request *request, struct spill_ask *ask, uint64_t given)
{
	assert_true(given == SPILL_UNLIMITED);
	say("charge", 0);
	return charges;
}

bool spill_admit_decide(struct spill_request *request)
{
	say("decide", request->admission.no_segments);
	return decides;
}

struct spill_allocation spill_admit_describe(const struct spill_request *request,
                                             const struct spill_backend *vendor, uint64_t ptr)
{
	return (struct spill_allocation){
	    .backend = vendor, .ptr = ptr, .bytes = request->bytes, .context = request->context};
}

bool spill_admit_record(struct spill_request *request, struct spill_allocation *allocation,
                        enum spill_reason reason)
{
	entry = *allocation;
	say("entry", allocation->ptr);
	return !no_entry;
}

bool spill_admit_count_begin(struct spill_request *request, const struct spill_backend *vendor, bool is_valid)
{
	say("count begins", is_valid);
	return true;
}

void spill_admit_count(struct spill_request *request, struct spill_allocation *allocation,
                       enum spill_place where)
{
	assert_true(allocation->ordered);
	say("counted", where == SPILL_PLACE_HOST);
}

void spill_movable_pool_served(int device, uint64_t bytes)
{
	say("served", bytes);
}

bool spill_capture_any(void)
{
	return captures;
}

bool spill_engine_in_capture(const struct spill_request *request)
{
	return in_capture;
}

bool spill_engine_gated(struct spill_request *request)
{
	return gated;
}

bool spill_engine_pass(struct spill_request *request)
{
	say("pass", request->pass);
	return true;
}

const void *spill_engine_stream(const struct spill_request *request)
{
	return &stream_name;
}

static void release(struct spill_placement *placement, bool context_ended)
{
	say("release", placement == &made);
}

static const struct spill_place_ops ops = {.place = SPILL_PLACE_HOST, .release = release},
                                    other_ops = {.release = release};

const struct spill_place_ops *spill_place_of(enum spill_place where)
{
	return &ops;
}

struct spill_placement *spill_place_make(const struct spill_place_ops *given,
                                         const struct spill_place_request *want, const char **error)
{
	asked = *want;
	say("make", want->bytes);
	*error = no_placement ? "none" : NULL;
	return no_placement ? NULL : &made;
}

struct spill_placement spill_placement_of(const struct spill_place_ops *given,
                                          const struct spill_place_request *want, uint64_t ptr)
{
	return (struct spill_placement){.ops = given,
	                                .backend = want->backend,
	                                .ptr = ptr,
	                                .bytes = want->bytes,
	                                .context = want->context};
}

struct spill_placement *spill_deferred_reuse(const struct spill_deferred_wanted *wanted)
{
	assert_true(wanted->order.stream == &stream_name && wanted->order.context == &stream_context);
	assert_int_equal(wanted->bytes, BYTES);
	say("reuse", wanted->context != NULL);
	return reuses ? &reused : NULL;
}

void spill_peer_placed(const struct spill_placement *placement)
{
	say("peers", 0);
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	pools = (struct spill_vendor_pools){.current = current,
	                                    .unused = pool_unused,
	                                    .reserved = pool_reserved,
	                                    .alloc = pool_alloc,
	                                    .free = pool_free};
	backend = (struct spill_backend){
	    .devices = &devices, .streams = &streams, .pools = &pools, .error_name = error_name};
	found = &backend;
	no_owner = no_current = no_figures = wanted = settles = decides = captures = no_entry = gated =
	    in_capture = beside = serves_on_host = falls = reuses = no_placement = no_device = false;
	admits = charges = true;
	pool_device = POOL_DEVICE;
	contexts = 1;
	alloc_result = 0;
	limit = SPILL_UNLIMITED;
	held = unused = reserved = 0;
	served_by_segments = SPILL_SUBSTITUTE_SERVED;
	place = SPILL_PLACE_DEVICE;
	pool_error = charge_error = NULL;
	managed_pool = MANAGED;
	out = 5;
	made = (struct spill_placement){.ops = &ops, .backend = &backend, .ptr = PTR, .held.host = BYTES};
	reused =
	    (struct spill_placement){.ops = &ops, .backend = &backend, .ptr = 2 * PTR, .held.host = BYTES};
	spill_engine_alloc_async(&(struct spill_request){0});
	what_was_said();
	return 0;
}

static struct spill_request request_of(void *pool)
{
	struct spill_request request = {.out = &out,
	                                .bytes = BYTES,
	                                .stream = &stream,
	                                .pool = pool,
	                                .device = DEVICE,
	                                .context = &stream_context};
	request.admission.stream_context = &stream_context;
	return request;
}

/* -- whose memory it is ------------------------------------------------------------------------------------------------------ */

/* The device, or -1: the vendor is to answer. */
static int prepared(struct spill_request request, void *context)
{
	request.device = -5;
	request.context = request.admission.stream_context = NULL;
	if (!kind->prepare(&request, &backend))
		return -1;
	assert_ptr_equal(request.context, context);
	assert_ptr_equal(request.admission.stream_context, &stream_context);
	return request.device;
}

TEST(the_device_of_a_request)
{
	struct spill_request request = request_of(NULL);
	assert_int_equal(prepared(request, &stream_context), DEVICE);
	request.out = NULL;
	assert_int_equal(prepared(request, NULL), -1);
	request = request_of(NULL);
	request.bytes = 0;
	assert_int_equal(prepared(request, NULL), -1);
	no_owner = true;
	assert_int_equal(prepared(request_of(NULL), NULL), -1);
	no_owner = false;
	backend.pools = NULL;
	assert_int_equal(prepared(request_of(NULL), NULL), -1);
}

/* A pool of another device serves the stream, too, if that device has a context that is known. */
TEST(the_device_of_a_pool)
{
	assert_int_equal(prepared(request_of(&their_pool), &pool_context), POOL_DEVICE);
	contexts = SPILL_CONTEXTS;
	assert_int_equal(prepared(request_of(&their_pool), &pool_context), POOL_DEVICE);
	contexts = SPILL_CONTEXTS + 1;
	assert_int_equal(prepared(request_of(&their_pool), NULL), -1);
	contexts = 0;
	assert_int_equal(prepared(request_of(&their_pool), NULL), -1);
	pool_device = DEVICE;
	assert_int_equal(prepared(request_of(&their_pool), &stream_context), DEVICE);
}

/* -- what its pool may take ---------------------------------------------------------------------------------------------------- */

static const char *charged(struct spill_request *request, bool fits)
{
	struct spill_ask ask = {0};
	assert_int_equal(kind->charge(request, &ask, &backend), fits);
	assert_false(request->admission.no_segments);
	return what_was_said();
}

TEST(a_charge)
{
	struct spill_request request = request_of(&their_pool);
	assert_string_equal(charged(&request, true), "charge:0"); /* no limit, so the pool is not looked at */
	assert_true(!request.admission.pool && !request.admission.ordered);
	charges = false;
	charged(&request, false);
	charges = true;
	limit = 500;
	assert_string_equal(charged(&request, true), "pool:1 admit:500");
	assert_ptr_equal(request.admission.pool, RECORD);
	admits = false;
	assert_string_equal(charged(&request, false), "pool:1 admit:500");
	assert_null(request.admission.pool);
	admits = true;
	request.pool = NULL;
	assert_string_equal(charged(&request, true), "pool:0 admit:500");
	no_current = true;
	assert_string_equal(charged(&request, true), "charge:0");
	assert_null(request.admission.pool);
	/* Segments are charged when they are made; unless there can be none. */
	wanted = true;
	request.pool = &their_pool;
	assert_string_equal(charged(&request, true), "charge:0");
	assert_ptr_equal(request.admission.ordered, OWN);
	request.admission.no_segments = true;
	assert_string_equal(charged(&request, true), "pool:1 admit:500");
	assert_null(request.admission.ordered);
}

TEST(a_charge_that_is_returned)
{
	struct spill_request request = request_of(NULL);
	kind->retract(&request, &backend);
	assert_string_equal(what_was_said(), "");
	request.admission.pool = RECORD;
	request.admission.charged = 17;
	kind->retract(&request, &backend);
	assert_string_equal(what_was_said(), "retract:17");
	assert_null(request.admission.pool);
}

/* What is compared after the request: the bytes of a pool that has enough. */
TEST(the_growth_of_a_pool)
{
	struct spill_request request = request_of(NULL);
	unused = 30;
	reserved = 200;
	assert_int_equal(kind->growth(&request, &backend), BYTES - 30);
	assert_true(pool_request.pool == &current_pool && pool_request.unused == 30 &&
	            pool_request.reserved == 200);
	assert_true(request.admission.unused_before == 30 && request.admission.reserved_before == 0);
	unused = BYTES;
	assert_int_equal(kind->growth(&request, &backend), 0);
	assert_true(request.admission.unused_before == BYTES && request.admission.reserved_before == 200);
	no_figures = true;
	assert_int_equal(kind->growth(&request, &backend), BYTES);
	assert_true(!pool_request.unused && !pool_request.reserved);
	no_current = true;
	assert_int_equal(kind->growth(&request, &backend), BYTES);
	assert_null(pool_request.pool);
}

TEST(segments_in_place_of_the_pool)
{
	struct spill_request request = request_of(NULL);
	const char *error = NULL;
	assert_int_equal(kind->substitute(&request, &backend, &error), SPILL_SUBSTITUTE_NONE);
	assert_string_equal(what_was_said(), "");
	request.admission.ordered = OWN;
	assert_int_equal(kind->substitute(&request, &backend, &error), SPILL_SUBSTITUTE_SERVED);
	assert_string_equal(what_was_said(), "segments:0");
	served_by_segments = SPILL_SUBSTITUTE_NONE;
	assert_int_equal(kind->substitute(&request, &backend, &error), SPILL_SUBSTITUTE_LIMIT);
	assert_string_equal(what_was_said(), "segments:0 decide:1");
	assert_string_equal(error, "device.limit");
	decides = true;
	assert_int_equal(kind->substitute(&request, &backend, &error), SPILL_SUBSTITUTE_NONE);
}

/* Is what the vendor served accepted? */
static const struct {
	const char *what;
	bool pool, settles, falls, captures, observes, accepted, short_of_reserve;
	uint64_t held, before, reserved;
	const char *calls;
} answers[] = {
    {"nothing is looked at", .accepted = true, .calls = ""},
    {"within the limit", .pool = true, .settles = true, .held = 500, .accepted = true, .calls = "settle:0"},
    {"no growth", .pool = true, .held = 501, .accepted = true, .calls = "settle:0"},
    {"over the limit", .pool = true, .settles = true, .held = 501,
     .calls = "settle:0 free:5 freed:100 trim pools:2"},
    {"the same in a capture", .pool = true, .settles = true, .held = 501, .captures = true,
     .calls = "settle:0 free:5 freed:100"},
    {"the same while observing", .pool = true, .settles = true, .held = 501, .observes = true,
     .accepted = true, .calls = "settle:0"},
    {"it did not grow", .before = 200, .reserved = 200, .falls = true, .accepted = true, .calls = ""},
    {"it grew, and the reserve is there", .before = 200, .reserved = 250, .accepted = true,
     .calls = "fell:60"},
    {"it took from the reserve", .before = 200, .reserved = 250, .falls = true, .short_of_reserve = true,
     .calls = "fell:60 free:5 trim:64"},
    {"a pool with a limit, too", .pool = true, .before = 200, .reserved = 250, .falls = true,
     .short_of_reserve = true, .calls = "settle:0 fell:60 free:5 freed:100 trim:64"},
    {"it is not asked in a capture", .before = 200, .reserved = 250, .falls = true, .captures = true,
     .accepted = true, .calls = ""},
    {"it was not looked at before", .reserved = 250, .falls = true, .accepted = true, .calls = ""},
};

TEST(answers_that_are_accepted)
{
	limit = 500;
	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct spill_request request = request_of(&their_pool);
		request.admission.pool = answers[i].pool ? RECORD : NULL;
		request.admission.reserved_before = answers[i].before;
		request.admission.unused_before = 10;
		settles = answers[i].settles;
		falls = answers[i].falls;
		captures = answers[i].captures;
		held = answers[i].held;
		reserved = answers[i].reserved;
		policy.mode = answers[i].observes ? SPILL_MODE_OBSERVE : SPILL_MODE_SPILL;
		out = 5;
		bool accepted = kind->accept(&request, &backend);
		const char *calls = what_was_said();
		if (accepted != answers[i].accepted || strcmp(calls, answers[i].calls) ||
		    request.admission.short_of_reserve != answers[i].short_of_reserve)
			fail_msg("%s: %s", answers[i].what, calls);
		assert_int_equal(out, accepted ? 5 : 0);
		assert_true(accepted ? !request.admission.pool == !answers[i].pool : !request.admission.pool);
		assert_int_equal(request.admission.reserved_before,
		                 answers[i].settles && held > limit ? answers[i].before : 0);
	}
	assert_true(pool_request.pool == &their_pool && pool_request.bytes == BYTES &&
	            pool_request.reserved == 250);
	/* Where the vendor does not tell, nothing is known. */
	struct spill_request request = request_of(&their_pool);
	request.admission.reserved_before = 200;
	captures = false;
	no_figures = true;
	assert_true(kind->accept(&request, &backend));
	assert_string_equal(what_was_said(), "");
}

TEST(what_the_vendor_serves)
{
	struct spill_request request = request_of(NULL);
	kind->served(&request, &backend);
	assert_string_equal(what_was_said(), "served:100 entry:5");
	assert_true(entry.place == SPILL_PLACE_DEVICE && entry.held.device == BYTES && entry.ordered &&
	            !entry.mempool);
	assert_false(entry.outlives);
	pools.outlive_contexts = true;
	request.admission.pool = RECORD;
	kind->served(&request, &backend);
	assert_true(entry.mempool == RECORD && entry.outlives);
	what_was_said();
	no_entry = true;
	kind->served(&request, &backend);
	assert_string_equal(what_was_said(), "served:100 entry:5 freed:100");
	request.admission.pool = NULL;
	kind->served(&request, &backend);
	assert_string_equal(what_was_said(), "served:100 entry:5");
}

/* -- what is made in its place ---------------------------------------------------------------------------------------------------- */

static const char *last_error;
static struct spill_place_request place_request;

static bool places(enum spill_step step)
{
	struct spill_request request = request_of(NULL);
	place_request.backend = &backend;
	place_request.device = DEVICE;
	place_request.bytes = BYTES;
	place_request.context = &stream_context;
	place_request.device_room = 77;
	last_error = NULL;
	return kind->place(&request, step, &place_request, &last_error);
}

TEST(memory_of_the_host)
{
	place_request = (struct spill_place_request){0};
	pools.outlive_contexts = beside = true;
	assert_true(places(SPILL_STEP_SPLIT));
	assert_string_equal(what_was_said(),
	                    "segments on the host:0 reuse:0 make:100 entry:4096 peers:0 count:0");
	assert_true(!asked.context && !asked.device_room);
	assert_true(made.reusable && made.event_device == DEVICE && made.event_context == &stream_context);
	assert_true(entry.place == SPILL_PLACE_SPLIT && entry.placement == &made && entry.held.host == BYTES);
	assert_true(entry.ordered && entry.outlives && entry.pool == &current_pool && !entry.context);
	assert_int_equal(out, PTR);
	/* Memory of a context ends with it. */
	made.context = &stream_context;
	beside = false;
	assert_true(places(SPILL_STEP_HOST));
	assert_string_equal(what_was_said(), "reuse:1 make:100 entry:4096 peers:0");
	assert_ptr_equal(asked.context, &stream_context);
	assert_true(!entry.outlives && entry.context == &stream_context);
	pools.outlive_contexts = false;
	made.context = NULL;
	assert_true(places(SPILL_STEP_HOST));
	assert_false(entry.outlives);
}

TEST(memory_that_is_used_again)
{
	place_request = (struct spill_place_request){0};
	reuses = true;
	assert_true(places(SPILL_STEP_SPLIT));
	assert_string_equal(what_was_said(), "segments on the host:0 reuse:0 entry:8192 peers:0");
	reuses = false;
	static const struct {
		const struct spill_place_ops *ops;
		struct spill_bytes held;
		bool reusable;
	} kinds[] = {{&ops, {.host = 1}, true},
	             {&ops, {.host = 1, .device = 1}, false},
	             {&ops, {.managed = 1}, false},
	             {&other_ops, {.host = 1}, false}};
	for (unsigned i = 0; i < 4; i++) {
		made.ops = kinds[i].ops;
		made.held = kinds[i].held;
		assert_true(places(SPILL_STEP_HOST));
		assert_int_equal(made.reusable, kinds[i].reusable);
	}
	what_was_said();
	serves_on_host = true;
	assert_true(places(SPILL_STEP_SPLIT));
	assert_string_equal(what_was_said(), "segments on the host:0");
}

/* The vendor's own free gives a piece back to our pool. */
TEST(a_piece_of_a_managed_pool)
{
	place_request = (struct spill_place_request){0};
	pools.outlive_contexts = true;
	assert_true(places(SPILL_STEP_MANAGED));
	assert_string_equal(what_was_said(), "alloc:100 settle:1 entry:4096 peers:0");
	assert_true(entry.place == SPILL_PLACE_MANAGED && entry.held.managed == BYTES &&
	            entry.placement->by_vendor);
	assert_true(entry.outlives && entry.context == &stream_context);
	spill_placement_release(entry.placement, false);
	assert_string_equal(what_was_said(), "piece freed:100");
	no_entry = true;
	assert_false(places(SPILL_STEP_MANAGED));
	assert_string_equal(what_was_said(), "alloc:100 settle:1 entry:4096 free:4096 piece freed:100");
	assert_string_equal(last_error, "no memory for bookkeeping");
	alloc_result = FAILED;
	assert_false(places(SPILL_STEP_MANAGED));
	assert_string_equal(what_was_said(), "alloc:100 retract:60");
	assert_string_equal(last_error, "vendor's error");
	charge_error = "host.limit";
	assert_false(places(SPILL_STEP_MANAGED));
	assert_string_equal(last_error, "host.limit");
	pool_error = "no pool";
	assert_false(places(SPILL_STEP_MANAGED));
	assert_string_equal(last_error, "no pool");
	assert_string_equal(what_was_said(), "");
}

/* A pool can be told its preferred location, and nothing else. */
TEST(managed_memory_of_its_own)
{
	for (unsigned i = 0; i < 3; i++) {
		place_request = (struct spill_place_request){
		    .advice = {.accessed_by_host = i == 0, .read_mostly = i == 1}};
		managed_pool = i == 2 ? NULL : MANAGED; /* the vendor has none */
		assert_true(places(SPILL_STEP_MANAGED));
		assert_string_equal(what_was_said(), "make:100 entry:4096 peers:0");
		assert_int_equal(asked.device_room, 77);
	}
}

TEST(no_memory_and_no_entry)
{
	place_request = (struct spill_place_request){0};
	no_placement = true;
	assert_false(places(SPILL_STEP_HOST));
	assert_string_equal(what_was_said(), "reuse:1 make:100");
	assert_string_equal(last_error, "none");
	no_placement = false;
	no_entry = true;
	assert_false(places(SPILL_STEP_HOST));
	assert_string_equal(what_was_said(), "reuse:1 make:100 entry:4096 release:1");
	assert_int_equal(out, 5);
}

TEST(what_a_refusal_leaves)
{
	struct spill_request request = request_of(NULL);
	kind->refused(&request);
	assert_int_equal(out, 5);
	backend.clears_pointer = true;
	kind->refused(&request);
	assert_int_equal(out, 0);
}

/* -- calls ---------------------------------------------------------------------------------------------------------------------------- */

static const char *call(void *pool)
{
	struct spill_request request = request_of(pool);
	assert_true(spill_engine_alloc_async(&request));
	return what_was_said();
}

TEST(pools_that_are_not_on_a_device)
{
	assert_string_equal(call(NULL), "admitted:0");
	assert_string_equal(call(&their_pool), "admitted:0");
	place = SPILL_PLACES;
	assert_string_equal(call(&their_pool), "pass:1");
	assert_string_equal(call(NULL), "admitted:0");
	place = SPILL_PLACE_HOST;
	for (int result = 0; result < 2; result++) {
		struct spill_request request = request_of(&their_pool);
		assert_true(spill_engine_alloc_async(&request));
		assert_string_equal(what_was_said(), "count begins:1");
		request.result = result;
		assert_false(spill_engine_alloc_async(&request));
		assert_string_equal(what_was_said(), result ? "" : "counted:1");
	}
	no_owner = true;
	assert_string_equal(call(&their_pool), "count begins:0");
	found = NULL;
	assert_string_equal(call(&their_pool), "admitted:0");
}

/* Not the current pool: the vendor refuses it. */
TEST(a_pool_that_is_null)
{
	struct spill_request request = request_of(NULL);
	request.mode = 1;
	assert_true(spill_engine_alloc_async(&request));
	assert_string_equal(what_was_said(), "pass:1");
}

/* In a capture it is a node of a graph, whose memory is only counted. */
TEST(in_a_capture)
{
	in_capture = true;
	assert_string_equal(call(NULL), "graphs:2 pass:1");
	no_device = true;
	assert_string_equal(call(NULL), "pass:1");
	found = NULL;
	assert_string_equal(call(NULL), "pass:1");
	found = &backend;
	no_device = false;
	struct spill_request request = request_of(NULL);
	request.step = 1; /* it began before the capture */
	assert_true(spill_engine_alloc_async(&request));
	assert_string_equal(what_was_said(), "admitted:0");
}

TEST(nodes_of_graphs)
{
	struct spill_request request = {0};
	gated = true;
	assert_true(spill_engine_graph(&request));
	gated = false;
	assert_false(spill_engine_graph(&request));
	assert_string_equal(what_was_said(), "graphs:2");
	request.result = FAILED;
	assert_false(spill_engine_graph(&request));
	assert_string_equal(what_was_said(), "");
}
