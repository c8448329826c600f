/*
 * spill_malloc and spill_free (shim/torch.c): which vendor they ask, in which order, and what a failure does. All that they call is
 * replaced, and tells its name. The vendor is found once in a process, so each case runs in a child.
 */
#include "childtest.h"

#include <string.h>

#include "process.h"
#include "real.h"
#include "registry.h"
#include "request.h"
#include "said.h"
#include "vendor_pool.h"

void *spill_malloc(size_t bytes, int device, void *stream);
void spill_free(void *pointer, size_t bytes, int device, void *stream);

#define STREAM ((void *)9)
#define POOL ((struct spill_vendor_pool *)0x100)

static bool loaded[SPILL_DOMAINS] = {[SPILL_CUDA_DRIVER] = true};
static bool has_all = true, off, captured;
static struct spill_vendor_pool *pool = POOL;
static unsigned refused_enters;
static unsigned served = 1;        /* so many times the vendor is asked */
static int results[4];             /* of the vendor's calls, in turn */
static unsigned vendor_calls;      /* and their number */
static struct spill_request asked; /* the last one that the engine saw */

void *spill_real_resolve(enum spill_domain domain, const char *symbol)
{
	CHECK(!strcmp(symbol, domain == SPILL_HIP ? "hipInit" : "cuInit"));
	say("resolve", domain);
	return loaded[domain] ? &loaded : NULL;
}

bool spill_shim_ready(void)
{
	return !off;
}

/* -- the vendors ------------------------------------------------------------------------------------------ */

static bool start_cuda(spill_resolve_fn *resolve)
{
	CHECK(resolve == spill_real_resolve);
	say("start", SPILL_CUDA_DRIVER);
	return has_all;
}

static bool start_hip(spill_resolve_fn *resolve)
{
	CHECK(resolve == spill_real_resolve);
	say("start", SPILL_HIP);
	return true;
}

static int enter(int device, void **before)
{
	say("enter", (unsigned)device);
	*before = &pool;
	return refused_enters && refused_enters-- ? 1 : 0;
}

static void leave(void *before)
{
	CHECK(before == &pool);
	say("leave", 1);
}

static bool is_capturing(void *stream)
{
	CHECK(stream == STREAM);
	say("capturing", captured);
	return captured;
}

static int pool_alloc(void *handle, uint64_t bytes, void *stream, bool per_thread, uint64_t *ptr)
{
	CHECK(handle == (void *)0x200 && stream == STREAM && !per_thread);
	say("from-pool", bytes);
	*ptr = 0x5000;
	return results[vendor_calls++];
}

static int pool_free(uint64_t ptr, void *stream, bool per_thread)
{
	CHECK(stream == STREAM && !per_thread);
	say("to-pool", ptr);
	return results[vendor_calls++];
}

static int device_alloc(uint64_t bytes, uint64_t *ptr)
{
	say("plain", bytes);
	*ptr = 0x6000;
	return results[vendor_calls++];
}

static int device_free(uint64_t ptr)
{
	say("free-plain", ptr);
	return results[vendor_calls++];
}

static const struct spill_vendor_devices devices = {.enter = enter, .leave = leave};
static const struct spill_vendor_streams streams = {.capturing = is_capturing};
static const struct spill_vendor_memory memory = {.device_alloc = device_alloc, .device_free = device_free};
static const struct spill_vendor_pools pools = {.alloc = pool_alloc, .free = pool_free};

#define GROUPS .devices = &devices, .streams = &streams, .memory = &memory, .pools = &pools
const struct spill_backend spill_backend_cuda = {.start = start_cuda, GROUPS},
                           spill_backend_hip = {.start = start_hip, GROUPS};
static const struct spill_backend in_use = {GROUPS};

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	say("in-use", domain);
	return &in_use;
}

/* -- the engine ------------------------------------------------------------------------------------------- */

static const struct spill_backend *asked_backend;

struct spill_vendor_pool *spill_vendor_pool_ours(const struct spill_backend *backend, int device,
                                                 enum spill_place place, enum spill_location preferred,
                                                 const char **error)
{
	CHECK(place == SPILL_PLACE_DEVICE && preferred == SPILL_LOCATION_NONE && error);
	asked_backend = backend;
	say("pool", (unsigned)device);
	return pool;
}

void *spill_vendor_pool_handle(const struct spill_vendor_pool *of)
{
	CHECK(of == POOL);
	return (void *)0x200;
}

static const char *name_of(enum spill_op op)
{
	return op == SPILL_OP_ALLOC_ASYNC  ? "alloc-async"
	       : op == SPILL_OP_ALLOC      ? "alloc"
	       : op == SPILL_OP_FREE_ASYNC ? "free-async"
	       : op == SPILL_OP_FREE       ? "free"
	                                   : "other";
}

/* The vendor is asked `served` times, and then the engine is done. */
bool spill_request_next(struct spill_request *request)
{
	static unsigned turn;
	asked = *request;
	if (turn == served) {
		turn = 0;
		return false;
	}
	turn++;
	say(name_of(request->op), request->pass);
	return true;
}

/* -- allocations ------------------------------------------------------------------------------------------ */

static bool are_said(const char *words)
{
	const char *last = what_was_said();
	if (strcmp(last, words) != 0)
		fprintf(stderr, "said: %s\n", last);
	return strcmp(last, words) == 0;
}

#define FOUND "resolve:0 start:0 in-use:0 "
#define AGAIN "in-use:0 "
#define ENTERED "enter:3 capturing:0 pool:3 "

static void *allocate(void)
{
	return spill_malloc(512, 3, STREAM);
}

CHILD_TEST(memory_comes_from_our_pool)
{
	CHECK(allocate() == (void *)0x5000);
	CHECK(are_said(FOUND ENTERED "alloc-async:0 from-pool:512 leave:1"));
	CHECK(asked.op == SPILL_OP_ALLOC_ASYNC && asked.domain == SPILL_CUDA_DRIVER && asked.bytes == 512);
	CHECK(asked.stream == STREAM && asked.pool == (void *)0x200 && !strcmp(asked.api, "spill_malloc"));
	CHECK(asked.caller && asked.out && asked_backend == &in_use);
	CHECK(allocate() == (void *)0x5000); /* the vendor is known */
	CHECK(are_said(AGAIN ENTERED "alloc-async:0 from-pool:512 leave:1"));
}

CHILD_TEST(memory_without_pools_is_plain)
{
	pool = NULL;
	CHECK(allocate() == (void *)0x6000);
	CHECK(are_said(FOUND ENTERED "alloc:0 plain:512 leave:1"));
	CHECK(asked.op == SPILL_OP_ALLOC && !asked.pool);
}

CHILD_TEST(no_bytes_are_no_memory)
{
	CHECK(!spill_malloc(0, 3, STREAM) && are_said(""));
}

CHILD_TEST(the_vendor_is_asked_as_often_as_the_engine_says)
{
	results[0] = 2;
	served = 2;
	CHECK(allocate() == (void *)0x5000);
	CHECK(are_said(FOUND ENTERED "alloc-async:0 from-pool:512 alloc-async:0 from-pool:512 leave:1"));
	served = 0; /* the engine serves it itself: with no address here */
	CHECK(!allocate() && are_said(AGAIN ENTERED "leave:1"));
}

CHILD_TEST(a_failure_is_no_memory)
{
	results[0] = 2;
	CHECK(!allocate() && are_said(FOUND ENTERED "alloc-async:0 from-pool:512 leave:1"));
}

CHILD_TEST(a_device_that_cannot_be_entered)
{
	refused_enters = 1;
	CHECK(!allocate() && are_said(FOUND "enter:3"));
}

/* A graph's node is the vendor's. */
CHILD_TEST(a_captured_call_passes)
{
	captured = true;
	CHECK(allocate() == (void *)0x5000);
	CHECK(are_said(FOUND "enter:3 capturing:1 pool:3 alloc-async:1 from-pool:512 leave:1"));
}

/* -- vendors ---------------------------------------------------------------------------------------------- */

CHILD_TEST(hip_where_cuda_is_not_loaded)
{
	loaded[SPILL_CUDA_DRIVER] = false;
	CHECK(!allocate() && are_said("resolve:0 resolve:2"));
	spill_free(&loaded, 512, 3, STREAM);
	CHECK(are_said("resolve:0 resolve:2 resolve:0 resolve:2")); /* it is made once more */
	loaded[SPILL_HIP] = true;
	CHECK(allocate() == (void *)0x5000 && asked.domain == SPILL_HIP);
	CHECK(
	    are_said("resolve:0 resolve:2 start:2 in-use:2 " ENTERED "alloc-async:0 from-pool:512 leave:1"));
	CHECK(allocate() == (void *)0x5000 && asked.domain == SPILL_HIP);
	CHECK(are_said("in-use:2 " ENTERED "alloc-async:0 from-pool:512 leave:1"));
}

CHILD_TEST(hip_where_cuda_lacks_a_function)
{
	has_all = false;
	loaded[SPILL_HIP] = true;
	CHECK(allocate() == (void *)0x5000 && asked.domain == SPILL_HIP);
	CHECK(are_said("resolve:0 start:0 resolve:2 start:2 in-use:2 " ENTERED
	               "alloc-async:0 from-pool:512 leave:1"));
}

/* libspill is off, or the call comes from one of its own: the vendor's functions are called past the engine. */
CHILD_TEST(calls_past_the_engine)
{
	for (unsigned own = 0; own < 2; own++) {
		off = !own;
		spill_thread.depth = own;
		CHECK(allocate() == (void *)0x5000 && asked_backend == &spill_backend_cuda);
		CHECK(own ? are_said(ENTERED "alloc-async:1 from-pool:512 leave:1")
		          : are_said("resolve:0 start:0 " ENTERED "alloc-async:1 from-pool:512 leave:1"));
	}
	spill_thread.depth = 0;
}

/* -- frees ------------------------------------------------------------------------------------------------ */

static void give_back(void)
{
	spill_free((void *)0x5000, 512, 3, STREAM);
}

CHILD_TEST(a_free_is_in_stream_order)
{
	give_back();
	CHECK(are_said(FOUND ENTERED "free-async:0 to-pool:20480 leave:1"));
	CHECK(asked.ptr == 0x5000 && asked.stream == STREAM && !strcmp(asked.api, "spill_free"));
	CHECK(asked.caller && asked.domain == SPILL_CUDA_DRIVER);
	pool = NULL;
	give_back();
	CHECK(are_said(AGAIN ENTERED "free:0 free-plain:20480 leave:1"));
	spill_free(NULL, 512, 3, STREAM);
	CHECK(are_said(""));
}

/* Once, and then as one that waits. Nobody else would free it. */
CHILD_TEST(a_free_that_fails_is_made_once_more)
{
	results[0] = results[1] = 1;
	give_back();
	CHECK(are_said(FOUND ENTERED "free-async:0 to-pool:20480 free:0 free-plain:20480 leave:1"));
	pool = NULL;
	vendor_calls = 0;
	give_back();
	CHECK(are_said(AGAIN ENTERED "free:0 free-plain:20480 free:0 free-plain:20480 leave:1"));
}

/* One that waits would end the capture. */
CHILD_TEST(a_captured_free_that_fails_is_not_made_again)
{
	captured = true;
	results[0] = 1;
	give_back();
	CHECK(are_said(FOUND "enter:3 capturing:1 pool:3 free-async:1 to-pool:20480 leave:1"));
}

CHILD_TEST(a_device_is_entered_once_more)
{
	refused_enters = 1;
	give_back();
	CHECK(are_said(FOUND "enter:3 " AGAIN ENTERED "free-async:0 to-pool:20480 leave:1"));
	refused_enters = 2;
	give_back();
	CHECK(are_said(AGAIN "enter:3 " AGAIN "enter:3"));
}
