/*
 * Calls about the program's pools, and calls that wait for work: what is recorded, shared, counted and given back. All that
 * engine_pool.c calls is replaced, but the mover.
 */
#define SETUP setup
#include "unit.h"

#include "abi/cuda.h"
#include "capture.h"
#include "engine.h"
#include "engine_ordered.h"
#include "mover.h"
#include "ordered_pool.h"
#include "registry.h"
#include "said.h"
#include "unpark.h"
#include "vendor_pool.h"

enum { OWNER = 3, CURRENT = 1, NUMBER = 77 };

static char handle, properties, descriptions, vendor_record, own, context, stream_context, stream,
    stream_name;
#define OWN ((struct spill_ordered_pool *)&own)
#define VENDOR_RECORD ((struct spill_vendor_pool *)&vendor_record)

/* What the replaced functions answer. */
static enum spill_place place; /* of a new pool, and of the pool of the call */
static bool special, has_own, captures, any, too_many;
static int owner, default_of, users[4], owner_result;
static struct spill_chunked segments[2];
static unsigned told; /* of the segments */
static bool has_current;

static bool current(int *device, void **its_context)
{
	if (!has_current)
		return false;
	*device = CURRENT;
	*its_context = &context;
	return true;
}

static enum spill_place place_of(const void *given, int *device)
{
	assert_ptr_equal(given, &properties);
	if (place == SPILL_PLACE_DEVICE)
		*device = OWNER;
	return place;
}

static bool is_special(const void *given)
{
	assert_ptr_equal(given, &properties);
	return special;
}

static int share(const void *given, unsigned index, uint64_t va, uint64_t bytes)
{
	assert_ptr_equal(given, &descriptions);
	assert_true(spill_mover_is_mine());
	assert_int_equal(bytes, va + 1);
	say("share", va + index);
	return 0;
}

static enum spill_place place_at(const void *given, unsigned type)
{
	assert_ptr_equal(given, &properties);
	assert_int_equal(type, 2);
	return place;
}

static int share_device(const void *given, unsigned index)
{
	assert_ptr_equal(given, &descriptions);
	return users[index];
}

static int stream_owner(void *given, int *device, void **its_context)
{
	assert_ptr_equal(given, &stream);
	*device = CURRENT;
	if (!owner_result)
		*its_context = &stream_context;
	return owner_result;
}

static const struct spill_vendor_devices devices = {.current = current};
static const void *green_context;

static const void *green(void)
{
	return green_context;
}

static const struct spill_vendor_streams streams = {.owner = stream_owner, .green = green};
static struct spill_vendor_pools pools;
static struct spill_backend backend;
static const struct spill_backend *found;

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	return found;
}

bool spill_capture_any(void)
{
	return captures;
}

const void *spill_engine_stream(const struct spill_request *request)
{
	return &stream_name;
}

bool spill_engine_pool_shared(const struct spill_backend *vendor, int from, int user)
{
	assert_int_equal(from, OWNER);
	say("allow", (uint64_t)user);
	return !too_many;
}

/* -- the vendor's pools -------------------------------------------------------------------------------------- */

void spill_vendor_pool_created(const struct spill_backend *vendor, void *pool, enum spill_place where,
                               int device)
{
	assert_ptr_equal(pool, &handle);
	assert_int_equal(where, place);
	say("created", (uint64_t)device);
}

void spill_vendor_pool_found(const struct spill_backend *vendor, void *pool, enum spill_place where)
{
	assert_ptr_equal(pool, &handle);
	say("found", where);
}

struct spill_vendor_pool *spill_vendor_pool_destroyed(const struct spill_backend *vendor, const void *pool)
{
	assert_ptr_equal(pool, &handle);
	say("destroyed", 0);
	return VENDOR_RECORD;
}

void spill_vendor_pool_alive(struct spill_vendor_pool *pool, void *its_handle)
{
	assert_ptr_equal(pool, VENDOR_RECORD);
	assert_ptr_equal(its_handle, &handle);
	say("alive", 0);
}

void spill_vendor_pool_trimmed(const struct spill_backend *vendor, const void *pool)
{
	assert_ptr_equal(pool, &handle);
	say("trimmed", 0);
}

int spill_vendor_pool_device(const struct spill_backend *vendor, const void *pool, int device)
{
	return owner;
}

enum spill_place spill_vendor_pool_place(const struct spill_backend *vendor, void *pool)
{
	return place;
}

int spill_vendor_pool_default_of(const struct spill_backend *vendor, const void *pool)
{
	return default_of;
}

/* -- segments ------------------------------------------------------------------------------------------------ */

struct spill_ordered_pool *spill_ordered_pool_made(const struct spill_backend *vendor, int device,
                                                   const void *pool)
{
	assert_ptr_equal(pool, &handle);
	say("made", (uint64_t)device);
	return OWN;
}

struct spill_ordered_pool *spill_ordered_pool_of(const struct spill_backend *vendor, const void *pool)
{
	return has_own ? OWN : NULL;
}

struct spill_ordered_pool *spill_ordered_pool_ended(const struct spill_backend *vendor, const void *pool)
{
	assert_ptr_equal(pool, &handle);
	say("ended", 0);
	return has_own ? OWN : NULL;
}

void spill_ordered_pool_alive(struct spill_ordered_pool *pool, const void *its_handle)
{
	assert_ptr_equal(its_handle, &handle);
	say("own alive", pool != NULL);
}

void spill_ordered_pool_close(struct spill_ordered_pool *pool)
{
	assert_ptr_equal(pool, OWN);
	assert_true(spill_mover_is_mine());
	say("close", 0);
}

struct spill_chunked *spill_ordered_next_closed(struct spill_ordered_pool *pool)
{
	assert_true(spill_mover_is_mine());
	return told < 2 ? &segments[told++] : NULL;
}

void spill_unpark_pin_held(struct spill_chunked *chunked)
{
	assert_true(spill_mover_is_mine());
	say("pin", chunked->base.ptr);
}

void spill_ordered_trim_pool(const struct spill_backend *vendor, struct spill_ordered_pool *pool,
                             uint64_t keep)
{
	assert_ptr_equal(pool, OWN);
	say("trim", keep);
}

struct spill_ordered_figures spill_ordered_figures(struct spill_ordered_pool *pool)
{
	return (struct spill_ordered_figures){.used = 1, .most_used = 2, .reserved = 3, .most_reserved = 4};
}

void spill_ordered_keep(struct spill_ordered_pool *pool, uint64_t bytes)
{
	say("keep", bytes);
}

void spill_ordered_restart(struct spill_ordered_pool *pool, bool used, bool reserved)
{
	assert_ptr_equal(pool, OWN);
	say("restart", (uint64_t)(used + 2 * reserved));
}

bool spill_ordered_any(struct spill_ordered_pool *pool)
{
	assert_null(pool);
	return any;
}

uint64_t spill_ordered_number(void)
{
	return NUMBER;
}

void spill_ordered_done(const struct spill_backend *vendor, const struct spill_stream_order *order,
                        uint64_t number)
{
	assert_int_equal(number, NUMBER);
	assert_true(order->stream == NULL || order->stream == &stream_name);
	say(order->stream ? "stream done" : "context done", order->context == &stream_context);
}

void spill_ordered_give_back(const struct spill_backend *vendor)
{
	say("give back", 0);
}

static int setup(void **state)
{
	pools = (struct spill_vendor_pools){.place_at = place_at,

	                                    .place = place_of,
	                                    .special = is_special,
	                                    .share = share,
	                                    .share_device = share_device};
	backend = (struct spill_backend){.devices = &devices, .streams = &streams, .pools = &pools};
	found = &backend;
	place = SPILL_PLACE_DEVICE;
	special = captures = too_many = false;
	has_own = any = has_current = true;
	owner = OWNER;
	default_of = -1;
	owner_result = 0;
	told = 0;
	for (unsigned i = 0; i < 2; i++) {
		segments[i].base.ptr = 100 * (i + 1);
		segments[i].range = segments[i].base.ptr + 1;
	}
	what_was_said();
	return 0;
}

/* -- calls --------------------------------------------------------------------------------------------------- */

/* The call, whose vendor answers `result`. Returns what was said, first or behind that. */
static const char *call(struct spill_request request, int result)
{
	request.pool = &handle;
	assert_true(spill_engine_pool(&request));
	assert_false(request.pass);
	request.result = result;
	assert_false(spill_engine_pool(&request));
	assert_int_equal(request.result, result);
	assert_false(spill_mover_is_mine());
	return what_was_said();
}

TEST(without_pools_the_call_is_passed_on)
{
	for (unsigned i = 0; i < 2; i++) {
		struct spill_request request = {.op = SPILL_OP_POOL_DESTROY, .pool = &handle};
		backend.pools = NULL;
		found = i ? &backend : NULL;
		assert_true(spill_engine_pool(&request));
		assert_true(request.pass);
		assert_string_equal(what_was_said(), "");
	}
}

TEST(a_new_pool)
{
	void *out = &handle;
	struct spill_request request = {.op = SPILL_OP_POOL_CREATE, .out = &out, .properties = &properties};
	assert_string_equal(call(request, 0), "created:3 made:3");
	assert_string_equal(call(request, 1), "");
	special = true;
	assert_string_equal(call(request, 0), "created:3");
	pools.special = NULL;
	assert_string_equal(call(request, 0), "created:3");
	pools.special = is_special;
	special = false;
	place = SPILL_PLACE_HOST;
	assert_string_equal(call(request, 0), "created:1");
	request.properties = NULL;
	assert_string_equal(call(request, 0), "");
}

/* The default pool of a device is one that the vendor itself tells when it is asked (vendor_pool.h). */
TEST(a_pool_that_the_driver_has_elsewhere)
{
	void *out = &handle;
	struct spill_request request = {
	    .op = SPILL_OP_POOL_FIND, .out = &out, .properties = &properties, .mode = 2};
	place = SPILL_PLACE_DEVICE;
	assert_string_equal(call(request, 0), "");
	place = SPILL_PLACE_MANAGED;
	assert_string_equal(call(request, 1), "");
	char expected[32];
	snprintf(expected, sizeof(expected), "found:%d", SPILL_PLACE_MANAGED);
	assert_string_equal(call(request, 0), expected);
}

TEST(a_pool_that_ends)
{
	const struct spill_request request = {.op = SPILL_OP_POOL_DESTROY};
	assert_string_equal(call(request, 0), "destroyed:0 ended:0 trim:0");
	assert_string_equal(call(request, 1), "destroyed:0 ended:0 alive:0 own alive:1");
	has_own = false;
	assert_string_equal(call(request, 0), "destroyed:0 ended:0");
}

TEST(a_pool_that_is_trimmed)
{
	const struct spill_request request = {.op = SPILL_OP_POOL_TRIM, .bytes = 5};
	assert_string_equal(call(request, 0), "trimmed:0 trim:5");
	assert_string_equal(call(request, 1), "");
	has_own = false;
	assert_string_equal(call(request, 0), "trimmed:0");
}

TEST(figures_of_both_parts)
{
	static const struct {
		unsigned mode;
		uint64_t value;
	} figures[] = {{CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 101},
	               {CU_MEMPOOL_ATTR_USED_MEM_HIGH, 102},
	               {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 103},
	               {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 104},
	               {CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 100}};
	for (unsigned i = 0; i < 3 * sizeof(figures) / sizeof(figures[0]); i++) {
		uint64_t value = 100;
		has_own = i % 3 != 1;
		call((struct spill_request){.op = SPILL_OP_POOL_GET,
		                            .mode = figures[i / 3].mode,
		                            .out = i % 3 == 2 ? NULL : &value},
		     0);
		assert_int_equal(value, i % 3 ? 100 : figures[i / 3].value);
	}
}

TEST(a_pool_that_is_changed)
{
	const uint64_t value = 9;
	struct spill_request request = {
	    .op = SPILL_OP_POOL_SET, .mode = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, .properties = &value};
	assert_string_equal(call(request, 0), "keep:9 restart:0");
	request.mode = CU_MEMPOOL_ATTR_USED_MEM_HIGH;
	assert_string_equal(call(request, 0), "restart:1");
	request.mode = CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
	assert_string_equal(call(request, 0), "restart:2");
	/* A device's own pool gets one beside it; that of a pool that is unknown is not asked for. */
	has_own = false;
	assert_string_equal(call(request, 0), "");
	default_of = 0;
	assert_string_equal(call(request, 0), "made:0 restart:2");
	has_own = true;
	assert_string_equal(call(request, 0), "restart:2");
}

/* Access for devices is added to what is and comes. Other access closes the pool, and keeps its segments where they are. */
static const struct {
	const char *what;
	int users[3], owner;
	enum spill_place place;
	bool too_many, none;
	const char *calls;
} shares[] = {
    {"two devices", {2, 0, OWNER}, OWNER, SPILL_PLACE_DEVICE, false, false, "allow:2 allow:0"},
    {"taken back", {SPILL_SHARED_WITH_NOBODY, 2, OWNER}, OWNER, SPILL_PLACE_DEVICE, false, false, "allow:2"},
    {"others",
     {SPILL_SHARED_WITH_OTHERS, 2, OWNER},
     OWNER,
     SPILL_PLACE_DEVICE,
     false,
     false,
     "allow:2 close:0 pin:100 share:100 share:101 share:102 pin:200 share:200 share:201 share:202"},
    {"too many",
     {2, OWNER, OWNER},
     OWNER,
     SPILL_PLACE_DEVICE,
     true,
     false,
     "allow:2 close:0 pin:100 share:100 share:101 share:102 pin:200 share:200 share:201 share:202"},
    {"others, without segments",
     {SPILL_SHARED_WITH_OTHERS, 2, OWNER},
     OWNER,
     SPILL_PLACE_DEVICE,
     false,
     true,
     "allow:2"},
    {"of no device", {SPILL_SHARED_WITH_OTHERS, 2, OWNER}, -1, SPILL_PLACE_DEVICE, false, false, ""},
    {"on the host", {SPILL_SHARED_WITH_OTHERS, 2, OWNER}, OWNER, SPILL_PLACE_HOST, false, false, ""},
};

TEST(a_pool_that_is_shared)
{
	struct spill_request request = {.op = SPILL_OP_POOL_SHARE, .mode = 3, .properties = &descriptions};
	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		setup(NULL);
		memcpy(users, shares[i].users, sizeof(shares[i].users));
		users[3] = 5; /* is not described */
		owner = shares[i].owner;
		place = shares[i].place;
		too_many = shares[i].too_many;
		has_own = !shares[i].none;
		const char *calls = call(request, 0);
		if (strcmp(calls, shares[i].calls))
			fail_msg("%s: %s", shares[i].what, calls);
	}
	setup(NULL);
	pools.share = NULL;
	assert_string_equal(call(request, 0), "");
}

/* The number 0 is a device's, too. */
TEST(a_pool_of_device_0_is_shared)
{
	const struct spill_request request = {
	    .op = SPILL_OP_POOL_SHARE, .mode = 1, .properties = &descriptions};
	owner = 0;
	users[0] = 0;
	assert_string_equal(call(request, 0), "");
	users[0] = SPILL_SHARED_WITH_OTHERS;
	assert_string_equal(call(request, 0), "close:0 pin:100 share:100 pin:200 share:200");
}

/* -- waits --------------------------------------------------------------------------------------------------- */

static const char *wait_with(struct spill_request request, int result)
{
	request.stream = &stream;
	assert_true(spill_engine_synchronize(&request));
	assert_false(request.pass);
	request.result = result;
	assert_false(spill_engine_synchronize(&request));
	return what_was_said();
}

TEST(what_a_wait_has_waited_for)
{
	struct spill_request of_stream = {.mode = SPILL_WAITS_FOR_STREAM},
	                     of_context = {.mode = SPILL_WAITS_FOR_CONTEXT},
	                     of_event = {.mode = SPILL_WAITS_FOR_EVENT};
	assert_string_equal(wait_with(of_stream, 0), "stream done:1 give back:0");
	assert_string_equal(wait_with(of_context, 0), "context done:0 give back:0");
	assert_string_equal(wait_with(of_event, 0), "give back:0");
	assert_string_equal(wait_with(of_stream, 1), "");
	owner_result = 1;
	assert_string_equal(wait_with(of_stream, 0), "give back:0");
	has_current = false;
	assert_string_equal(wait_with(of_context, 0), "give back:0");
	of_context.context = &stream_context; /* the call names it */
	assert_string_equal(wait_with(of_context, 0), "context done:1 give back:0");
	has_current = true;
	assert_string_equal(wait_with(of_context, 0), "context done:1 give back:0");
	of_context.context = NULL;
	green_context =
	    &stream_name; /* only its own work, and libspill knows no more than which frees are the primary's */
	assert_string_equal(wait_with(of_context, 0), "give back:0");
	owner_result = 0;
	assert_string_equal(wait_with(of_stream, 0), "stream done:1 give back:0");
	green_context = NULL;
	captures = true;
	assert_string_equal(wait_with(of_context, 0), "");
}

TEST(without_segments_a_wait_is_passed_on)
{
	for (unsigned i = 0; i < 3; i++) {
		struct spill_request request = {.mode = SPILL_WAITS_FOR_CONTEXT};
		found = i == 1 ? NULL : &backend;
		any = i != 2;
		assert_true(spill_engine_synchronize(&request));
		assert_int_equal(request.pass, i != 0);
	}
}
