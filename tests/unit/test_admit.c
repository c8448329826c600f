/*
 * The accounts through the life of requests, which are driven as the stubs do it. They say what is alive
 * and no more, and at the end nothing. A program cannot see a wrong account at once: its next requests
 * would have too much room, or too little. Also who refused a request, and what a free leaves behind.
 */
#define SETUP setup
#define TEARDOWN nothing_left
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "account.h"
#include "captures.h"
#include "chunked.h"
#include "contexts.h"
#include "deferred.h"
#include "exchange.h"
#include "fake_libc.h"
#include "fake_objects.h"
#include "fake_vendor.h"
#include "host_chunks.h"
#include "ledger.h"
#include "movable.h"
#include "note.h"
#include "process.h"
#include "registry.h"
#include "request.h"
#include "reserve_keeper.h"
#include "rules.h"
#include "shared_chunks.h"
#include "vendor_pool.h"

#define MIB (1ull << 20)
#define OUT_OF_MEMORY FAKE_OUT_OF_MEMORY

static struct spill_policy policy;
static struct spill_rules rules;
static struct fake_pool theirs;
static unsigned notes, asked; /* asked: how often the driver was */
static bool refuses;          /* the driver has no room */
static struct spill_backend backend;

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
	notes++;
}

/* -- what fake_vendor lacks for whole requests ----------------------------------------------------------- */

/* The driver takes whole blocks. */
static uint64_t footprint(uint64_t bytes)
{
	return (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

static int owner_result;
static bool stream_captures;

static int owner(void *stream, int *device, void **context)
{
	if (owner_result)
		return owner_result;
	*device = 0;
	*context = fake_vendor.context;
	return 0;
}

static bool capturing(void *stream)
{
	return stream_captures;
}

static int their_pool(int device, void **pool)
{
	*pool = &theirs;
	return 0;
}

static int unused_bytes(void *pool, uint64_t *bytes)
{
	*bytes = theirs.reserved - theirs.used;
	return 0;
}

static uint64_t bytes_at[64]; /* of pieces of pools, by their number */

static int pool_free(uint64_t ptr, void *stream, bool per_thread)
{
	theirs.used -= bytes_at[ptr % 64];
	return 0;
}

static const struct spill_vendor_streams streams = {.owner = owner, .capturing = capturing};
static struct spill_vendor_memory memory;
static struct spill_vendor_pools pools;

static int setup(void **state)
{
	fake_libc_reset();
	fake_vendor_reset(1024 * MIB);
	fake_vendor.context = &policy;
	backend = fake_vendor_backend;
	memory = *fake_vendor_backend.memory;
	memory.footprint = footprint;
	pools = *fake_vendor_backend.pools;
	pools.current = pools.device_default = their_pool;
	pools.unused = unused_bytes;
	pools.free = pool_free;
	pools.outlive_contexts = true;
	backend.memory = &memory;
	backend.pools = &pools;
	backend.streams = &streams;
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &backend);
	theirs = (struct fake_pool){.place = SPILL_PLACE_DEVICE};
	fake_vendor_policy(&policy);
	policy.movable_enable = SPILL_SWITCH_OFF;
	policy.log_stderr = SPILL_STDERR_OFF;
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	rules = (struct spill_rules){0};
	USE_FAKE_OBJECTS({0, SIZE_MAX, "/x/program"});
	spill_process_use_policy(&policy);
	spill_rules_reset();
	spill_movable_reset();
	spill_reserve_keeper_reset();
	spill_fork_lock_take(&spill_vendor_pool_fork_lock);
	spill_fork_lock_release(&spill_vendor_pool_fork_lock, true); /* forgets all */
	notes = asked = 0;
	refuses = stream_captures = false;
	owner_result = 0;
	return 0;
}

static void limit_device(uint64_t bytes)
{
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, bytes};
}

/* A rule for all requests, with a cap. */
static void cap(uint64_t bytes)
{
	struct spill_rule *rule = &rules.rule[rules.count++];
	*rule = (struct spill_rule){.set = SPILL_RULE_HAS_CAP, .cap = bytes};
	strcpy(rule->name, "capped");
	spill_rules_index(&rules);
	policy.rules = &rules;
}

static void holds(uint64_t device, uint64_t rule)
{
	assert_int_equal(spill_account_device_held(0), device);
	assert_int_equal(spill_account_rule_held(0), rule);
}

/* -- the program's calls --------------------------------------------------------------------------------- */

/* Addresses of the driver's own, which no other function of the fake vendor knows. */
static int driver(uint64_t *ptr, uint64_t bytes)
{
	static uint64_t made;
	asked++;
	if (refuses)
		return OUT_OF_MEMORY;
	*ptr = (uint64_t)1 << 50 | ++made << 30;
	return 0;
}

static int finish(struct spill_request *request)
{
	uint64_t *ptr = request->out;
	while (spill_request_next(request))
		request->result = ptr ? driver(ptr, request->bytes) : 0;
	assert_int_equal(spill_thread.depth, 0);
	return request->result;
}

static int allocate(uint64_t *ptr, uint64_t bytes)
{
	return finish(&(struct spill_request){
	    .op = SPILL_OP_ALLOC, .api = "alloc", .caller = &policy, .out = ptr, .bytes = bytes});
}

static int array(uint64_t *ptr, uint64_t bytes)
{
	return finish(&(struct spill_request){
	    .op = SPILL_OP_ARRAY, .api = "array", .caller = &policy, .out = ptr, .bytes = bytes});
}

static void release(uint64_t ptr)
{
	assert_int_equal(finish(&(struct spill_request){.op = SPILL_OP_FREE, .api = "free", .ptr = ptr}), 0);
}

/* In stream order, from the program's pool; its number is in the address. */
static int allocate_ordered(uint64_t *ptr, uint64_t bytes)
{
	static uint64_t number;
	struct spill_request request = {
	    .op = SPILL_OP_ALLOC_ASYNC, .api = "ordered", .caller = &policy, .out = ptr, .bytes = bytes};
	while (spill_request_next(&request)) {
		request.result = driver(ptr, bytes);
		if (request.result)
			continue;
		*ptr |= ++number % 64;
		bytes_at[number % 64] = bytes;
		theirs.used += bytes;
		if (theirs.used > theirs.reserved)
			theirs.reserved = (theirs.used + 32 * MIB - 1) / (32 * MIB) * (32 * MIB);
	}
	assert_int_equal(spill_thread.depth, 0);
	return request.result;
}

static void release_ordered(uint64_t ptr)
{
	struct spill_request request = {.op = SPILL_OP_FREE_ASYNC, .api = "free", .ptr = ptr};
	while (spill_request_next(&request))
		request.result = pool_free(ptr, NULL, false);
	assert_int_equal(request.result, 0);
}

/* What waits for work or for a later request. An event passes at its second look. */
static void drop_kept(void)
{
	for (int look = 0; look < 2; look++)
		spill_deferred_collect(&backend, 0, true);
	spill_deferred_drop(&backend, 0);
	spill_host_chunks_drop(&backend);
	spill_vendor_pool_trim(&backend, 0, true);
	spill_shared_chunks_trim(&backend, 0, NULL);
}

/* Each test gives back what it has taken. */
static int nothing_left(void **state)
{
	struct spill_totals totals;
	fake_libc_reset();
	set_capturing(false);
	spill_vendor_pool_trim(&backend, 0, false);
	spill_vendor_pool_trim(&backend, 0, true);
	holds(0, 0);
	assert_int_equal(spill_account_host_held(), 0);
	assert_int_equal(spill_account_physical_held(), 0);
	assert_int_equal(spill_thread.depth, 0);
	spill_ledger_totals(&totals);
	assert_int_equal(totals.live.device + totals.live.host + totals.live.managed, 0);
	return 0;
}

/* -- plain memory ---------------------------------------------------------------------------------------- */

TEST(what_fits_is_charged_until_its_free)
{
	uint64_t a, b;
	limit_device(10 * MIB);
	cap(9 * MIB);
	assert_int_equal(allocate(&a, 5 * MIB), 0);
	holds(6 * MIB, 5 * MIB); /* the driver takes whole blocks, and a cap counts the program's bytes */
	assert_int_equal(allocate(&b, 4 * MIB), 0);
	holds(10 * MIB, 9 * MIB);
	release(a);
	holds(4 * MIB, 4 * MIB);
	release(b);
}

/*
 * The driver is asked all the same, and serves it. It was never charged, so its free gives nothing
 * back: not what others are charged with.
 */
TEST(what_is_over_the_limit_while_observing_is_in_no_account)
{
	uint64_t a, b, c;
	policy.mode = SPILL_MODE_OBSERVE;
	limit_device(10 * MIB);
	assert_int_equal(allocate(&a, 6 * MIB), 0);
	assert_int_equal(allocate(&b, 6 * MIB), 0);
	holds(6 * MIB, 0);
	assert_int_equal(allocate(&c, 4 * MIB), 0);
	holds(10 * MIB, 0);
	release(b);
	holds(10 * MIB, 0);
	release(a);
	holds(4 * MIB, 0);
	release(c);
}

TEST(what_is_over_a_cap_while_observing_is_in_no_account)
{
	uint64_t a, b;
	policy.mode = SPILL_MODE_OBSERVE;
	cap(10 * MIB);
	assert_int_equal(allocate(&a, 6 * MIB), 0);
	assert_int_equal(allocate(&b, 6 * MIB), 0);
	holds(6 * MIB, 6 * MIB);
	release(b);
	holds(6 * MIB, 6 * MIB);
	release(a);
}

TEST(what_the_driver_refuses_is_charged_no_more)
{
	uint64_t a, b;
	limit_device(100 * MIB);
	cap(100 * MIB);
	policy.chain = (struct spill_fallback_chain){.count = 0};
	for (int observes = 0; observes < 2; observes++) {
		policy.mode = observes ? SPILL_MODE_OBSERVE : SPILL_MODE_SPILL;
		assert_int_equal(allocate(&a, 6 * MIB), 0);
		refuses = true;
		assert_int_equal(allocate(&b, 6 * MIB), OUT_OF_MEMORY);
		assert_int_equal(array(&b, 6 * MIB), OUT_OF_MEMORY);
		holds(6 * MIB, 6 * MIB);
		refuses = false;
		release(a);
		holds(0, 0);
	}
}

TEST(what_is_over_the_limit_is_refused_without_the_driver)
{
	uint64_t a, b;
	limit_device(10 * MIB);
	policy.chain = (struct spill_fallback_chain){.count = 0};
	assert_int_equal(allocate(&a, 6 * MIB), 0);
	asked = 0;
	assert_int_equal(allocate(&b, 6 * MIB), OUT_OF_MEMORY);
	assert_int_equal(array(&b, 6 * MIB), OUT_OF_MEMORY);
	assert_int_equal(asked, 0);
	holds(6 * MIB, 0);
	release(a);
}

/* Refused with its name, by the last one of those that refused. */
static void refused_by(const char *who)
{
	uint64_t ptr;
	struct spill_request request = {
	    .op = SPILL_OP_ALLOC, .api = "alloc", .caller = &policy, .out = &ptr, .bytes = 6 * MIB};
	assert_int_equal(finish(&request), OUT_OF_MEMORY);
	assert_string_equal(request.admission.refused_word, who);
}

TEST(a_refusal_tells_by_whom)
{
	policy.chain = (struct spill_fallback_chain){.count = 0};
	refuses = true;
	refused_by("driver");
	cap(5 * MIB);
	refused_by("rule.cap");
	policy.rules = NULL;
	limit_device(4 * MIB);
	refused_by("device.limit");
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {SPILL_STEP_HOST}};
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 5 * MIB};
	refused_by("host.limit");
}

/* Only the reserve refuses, as a precaution. So the driver is asked in the end, and then it is the one. */
TEST(the_driver_has_the_last_word_before_the_first_spill)
{
	uint64_t a;
	policy.chain = (struct spill_fallback_chain){.count = 0};
	policy.device_reserve.value = 64 * MIB;
	backend.loses_code = true;
	fake_vendor.device_free = 65 * MIB;
	fake_vendor.total = SPILL_RESERVE_DEVICE;
	spill_reserve_keeper_reset();
	asked = 0;
	refuses = true;
	refused_by("driver");
	assert_int_equal(asked, 1);
	refuses = false;
	assert_int_equal(allocate(&a, 6 * MIB), 0);
	release(a);
	assert_true(spill_reserve_begin(0));
	asked = 0;
	refused_by("device.reserve");
	assert_int_equal(asked, 0);
}

/* The program has its memory, but there is no entry that could give the charge back. */
TEST(what_has_no_entry_is_in_no_account)
{
	uint64_t a;
	limit_device(10 * MIB);
	cap(10 * MIB);
	for (unsigned nth = 1; nth < 4; nth++) {
		fake_libc_fail(FAKE_malloc, nth, FAKE_LIBC_FOR_EVER, ENOMEM);
		fake_libc_fail(FAKE_calloc, nth, FAKE_LIBC_FOR_EVER, ENOMEM);
		assert_int_equal(allocate(&a, 6 * MIB), 0);
		fake_libc_reset();
		release(a);
		holds(0, 0);
	}
	assert_true(notes > 0);
}

static int pin(uint64_t *ptr, uint64_t bytes)
{
	return finish(&(struct spill_request){
	    .op = SPILL_OP_ALLOC_HOST, .api = "pin", .caller = &policy, .out = ptr, .bytes = bytes});
}

/* Pinned memory is lost for spilled data, unless there is no entry that could give it back. */
TEST(what_the_program_pins_is_charged_to_the_host)
{
	uint64_t a, b;
	assert_int_equal(pin(&a, 5 * MIB), 0);
	fake_libc_fail(FAKE_malloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	fake_libc_fail(FAKE_calloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	assert_int_equal(pin(&b, 7 * MIB), 0);
	fake_libc_reset();
	assert_int_equal(spill_account_host_held(), 5 * MIB);
	holds(0, 0);
	release(b);
	assert_int_equal(spill_account_host_held(), 5 * MIB);
	release(a);
}

/* Of a split, the device has its part and the host the rest, and so have the accounts. */
TEST(what_is_placed_is_charged_where_it_is)
{
	uint64_t a, b;
	limit_device(10 * MIB);
	cap(100 * MIB);
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {SPILL_STEP_SPLIT}};
	assert_int_equal(allocate(&a, 6 * MIB), 0);
	asked = 0;
	assert_int_equal(allocate(&b, 8 * MIB), 0);
	assert_int_equal(asked, 0);
	holds(10 * MIB, 10 * MIB);
	assert_int_equal(spill_account_host_held(), 4 * MIB);
	assert_int_equal(spill_account_physical_held(), 4 * MIB);
	release(b);
	holds(6 * MIB, 6 * MIB);
	release(a);
}

/* What fits in a shared chunk is not split, and no request in stream order: if it fits, the driver serves it. */
TEST(a_rule_splits_what_does_not_fit_and_what_is_large)
{
	static const struct {
		bool ordered;
		uint64_t bytes, free;
		bool splits;
	} cases[] = {
	    {false, MIB + 1, 64 * MIB, true}, {false, MIB, 64 * MIB, false},    {false, MIB, MIB, false},
	    {false, MIB, MIB - 1, true},      {true, 4 * MIB, 64 * MIB, false},
	};
	rules.rule[0] = (struct spill_rule){.set = SPILL_RULE_HAS_PLACE, .place = SPILL_RULE_SPLIT};
	strcpy(rules.rule[0].name, "split");
	rules.count = 1;
	spill_rules_index(&rules);
	policy.rules = &rules;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t a = 0;
		fake_vendor.device_free = cases[i].free;
		asked = 0;
		assert_int_equal((cases[i].ordered ? allocate_ordered : allocate)(&a, cases[i].bytes), 0);
		assert_int_equal(asked, !cases[i].splits);
		(cases[i].ordered ? release_ordered : release)(a);
		drop_kept();
	}
}

/* -- graphs ---------------------------------------------------------------------------------------------- */

static uint64_t graphs_hold;
static unsigned graphs_asked;

static int graph_reserved(int device, uint64_t *bytes)
{
	graphs_asked++;
	*bytes = graphs_hold;
	return 0;
}

/* What graphs took since counts against a limit. Without one, nobody asks the driver for it. */
TEST(memory_of_graphs_is_asked_for_where_there_is_a_limit)
{
	uint64_t a;
	backend.graph_reserved = graph_reserved;
	policy.chain = (struct spill_fallback_chain){.count = 0};
	graphs_hold = 0;
	spill_vendor_pool_graphs(&backend, 0);
	graphs_hold = 8 * MIB;
	graphs_asked = 0;
	assert_int_equal(allocate(&a, 4 * MIB), 0);
	assert_int_equal(graphs_asked, 0);
	release(a);
	limit_device(10 * MIB);
	refused_by("device.limit");
	assert_true(graphs_asked > 0);
	holds(8 * MIB, 0);
	graphs_hold = 4 * MIB;
	assert_int_equal(allocate(&a, 6 * MIB), 0);
	holds(10 * MIB, 0);
	release(a);
	graphs_hold = 0;
	spill_vendor_pool_settle_graphs(&backend, 0);
}

/* -- frees ----------------------------------------------------------------------------------------------- */

static void place_on_the_host(uint64_t *ptr)
{
	limit_device(4 * MIB);
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {SPILL_STEP_HOST}};
	assert_int_equal(allocate(ptr, 6 * MIB), 0);
	assert_true(spill_ledger_placed(*ptr, &(struct spill_allocation){0}));
}

/* Memory that was freed in a capture waits for work. A free that waits may end that, one in stream order may not. */
TEST(a_free_ends_what_earlier_frees_left)
{
	uint64_t placed, theirs_too, plain;
	assert_int_equal(allocate_ordered(&theirs_too, MIB), 0);
	assert_int_equal(allocate(&plain, MIB), 0);
	place_on_the_host(&placed);
	set_capturing(true);
	release(placed);
	set_capturing(false);
	assert_int_equal(spill_deferred_pending(&backend, 0).host, 6 * MIB);
	fake_vendor.waits = 0;
	release_ordered(theirs_too);
	assert_int_equal(fake_vendor.waits, 0);
	assert_int_equal(spill_deferred_pending(&backend, 0).host, 6 * MIB);
	release(plain);
	assert_int_equal(fake_vendor.waits, 1);
	assert_int_equal(spill_deferred_pending(&backend, 0).host, 0);
}

static struct spill_vendor_devices devices;
static int last_error, left_error;

static int peek(void)
{
	return last_error;
}

static void forget(void)
{
	last_error = 0;
}

/* Leaves an error even where it succeeds, as a look at work that goes on does with HIP. */
static int wait_with_error(int device, void *context)
{
	last_error = left_error;
	return fake_vendor_backend.devices->wait(device, context);
}

/* Of our own calls it sees none, but its own one stays, and a free that fails has one. */
TEST(a_free_leaves_the_last_error_of_the_program)
{
	static const struct spill_vendor_last_error calls = {.peek = peek, .forget = forget};
	uint64_t a;
	place_on_the_host(&a);
	devices = *backend.devices;
	devices.wait = wait_with_error;
	backend.devices = &devices;
	backend.last_error = &calls;
	fake_vendor.wait_result = left_error = 700;
	struct spill_request failing = {.op = SPILL_OP_FREE, .api = "free", .ptr = a};
	last_error = 0;
	assert_int_equal(finish(&failing), 700);
	assert_int_equal(last_error, 700);
	fake_vendor.wait_result = 0;
	left_error = 600;
	last_error = 0;
	release(a);
	assert_int_equal(last_error, 0);
	place_on_the_host(&a);
	left_error = last_error = 1;
	release(a);
	assert_int_equal(last_error, 1);
}

static struct spill_chunked *make_movable(unsigned chunks)
{
	const uint64_t chunk = 4 * FAKE_SMALL_UNIT;
	const char *error = NULL;
	fake_vendor_reset_mover(64 * chunk);
	fake_vendor.context = &policy;
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, chunk};
	spill_contexts_made(&backend, 0, &policy);
	struct spill_place_request wanted = {&backend, &policy,        0, &policy, chunks * chunk,
	                                     0,        SPILL_UNLIMITED};
	struct spill_chunked *of = spill_chunked_of(spill_place_movable.make(&wanted, &error));
	assert_non_null(of);
	struct spill_allocation entry = {.backend = &backend,
	                                 .context = &policy,
	                                 .ptr = of->base.ptr,
	                                 .bytes = wanted.bytes,
	                                 .placement = &of->base,
	                                 .held = of->base.held};
	assert_true(spill_ledger_add(&entry));
	of->seq = entry.seq;
	spill_chunked_enlist(of);
	return of;
}

/* The one movable allocation, or NULL. */
static struct spill_chunked *movable(void)
{
	spill_mover_lock();
	struct spill_chunked *first = spill_chunked_next(NULL);
	assert_true(!first || !spill_chunked_next(first));
	spill_mover_unlock();
	return first;
}

/* The last chunk on the host is freed, so no exchange comes that would use what the last one kept. */
TEST(a_free_gives_back_what_exchanges_keep)
{
	struct spill_chunked *of = make_movable(2);
	struct spill_exchange exchange = {.backend = &backend, .device = 0, .keep = of->chunk_bytes};
	const uint64_t ptr = of->base.ptr, chunk = of->chunk_bytes;
	spill_mover_lock();
	assert_true(spill_exchange_add(&exchange, of, 0));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	assert_int_equal(spill_exchange_kept(), chunk);
	release(ptr);
	assert_int_equal(spill_exchange_kept(), 0);
	drop_kept();
	assert_int_equal(fake_vendor.handles + fake_vendor.mappings, 0);
}

static void live_on_device(uint64_t bytes)
{
	struct spill_totals totals;
	spill_ledger_totals(&totals);
	assert_int_equal(totals.live.device, bytes);
	assert_int_equal(spill_account_device_held(0), bytes);
}

/* The memory stays the program's, and can move, as if nobody had tried. */
TEST(a_free_that_fails_changes_nothing)
{
	uint64_t plain, ordered;
	struct spill_chunked *of = make_movable(2);
	const uint64_t ptr = of->base.ptr, bytes = of->base.bytes;
	struct spill_request failing = {.op = SPILL_OP_FREE, .api = "free", .ptr = ptr};
	of->grows = true;
	fake_vendor.wait_result = 700;
	assert_int_equal(finish(&failing), 700);
	fake_vendor.wait_result = 0;
	assert_ptr_equal(movable(), of);
	assert_false(of->grows); /* not a new request of its call site */
	live_on_device(bytes);
	/* In stream order, of a stream that the vendor does not know. */
	struct spill_request unknown = {.op = SPILL_OP_FREE_ASYNC, .api = "free", .ptr = ptr};
	owner_result = 400;
	assert_int_equal(finish(&unknown), 400);
	owner_result = 0;
	assert_ptr_equal(movable(), of);
	live_on_device(bytes);
	release(ptr);
	assert_null(movable());
	live_on_device(0);
	/* The vendor's own. */
	assert_int_equal(allocate(&plain, 2 * MIB), 0);
	assert_int_equal(allocate_ordered(&ordered, MIB), 0);
	for (unsigned which = 0; which < 2; which++) {
		struct spill_request refused = {.op = which ? SPILL_OP_FREE_ASYNC : SPILL_OP_FREE,
		                                .api = "free",
		                                .ptr = which ? ordered : plain};
		while (spill_request_next(&refused))
			refused.result = 700;
		assert_int_equal(refused.result, 700);
	}
	struct spill_totals totals;
	spill_ledger_totals(&totals);
	assert_int_equal(totals.live.device, 3 * MIB);
	release(plain);
	release_ordered(ordered);
}

/* Nothing waits then. The memory is the program's no more, and stays where it is until it is released. */
TEST(a_free_in_a_capture_is_over_for_the_program)
{
	struct spill_chunked *of = make_movable(2);
	const uint64_t ptr = of->base.ptr, bytes = of->base.bytes;
	struct spill_totals totals;
	unsigned waits = fake_vendor.waits;
	spill_ledger_totals(&totals);
	uint64_t frees = totals.frees;
	set_capturing(true);
	/* In stream order the vendor gives the answer: it knows no such memory. */
	stream_captures = true;
	struct spill_request ordered = {.op = SPILL_OP_FREE_ASYNC, .api = "free", .ptr = ptr};
	unsigned times = 0;
	for (; spill_request_next(&ordered); times++)
		ordered.result = 1;
	assert_int_equal(times, 1);
	assert_int_equal(ordered.result, 1);
	assert_ptr_equal(movable(), of);
	stream_captures = false;
	release(ptr);
	set_capturing(false);
	assert_int_equal(fake_vendor.waits, waits);
	assert_null(movable());
	spill_ledger_totals(&totals);
	assert_int_equal(totals.live.device, 0);
	assert_int_equal(totals.frees, frees + 1);
	assert_int_equal(spill_account_device_held(0), bytes);
	assert_int_equal(spill_deferred_pending(&backend, 0).device, bytes);
	drop_kept();
	live_on_device(0);
	assert_int_equal(fake_vendor.handles + fake_vendor.mappings, 0);
}

/* The vendor's plain free of such memory does not wait, so ours is behind a mark of the work of its context. */
TEST(a_plain_free_of_memory_in_stream_order_waits_behind_its_context)
{
	uint64_t ptr;
	bool passed = false;
	fake_vendor_reset_mover(1024 * MIB);
	fake_vendor.can |= SPILL_CAN_HOST;
	fake_vendor.context = &policy;
	fake_vendor.no_pools = true;
	fake_vendor.marks_pass = &passed;
	spill_contexts_made(&backend, 0, &policy);
	limit_device(4 * MIB);
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {SPILL_STEP_HOST}};
	assert_int_equal(allocate_ordered(&ptr, 6 * MIB), 0);
	assert_true(spill_ledger_placed(ptr, &(struct spill_allocation){0}));
	unsigned waits = fake_vendor.waits, marks = fake_vendor.marks;
	release(ptr);
	assert_int_equal(fake_vendor.waits, waits);
	assert_int_equal(fake_vendor.marks, marks + 1);
	assert_int_equal(spill_deferred_pending(&backend, 0).host, 6 * MIB);
	spill_deferred_poll(&backend, false);
	assert_int_equal(spill_deferred_pending(&backend, 0).host, 6 * MIB);
	passed = true;
	spill_deferred_poll(&backend, false);
	assert_int_equal(spill_deferred_pending(&backend, 0).host, 0);
	drop_kept();
}

/* -- whatever of ours fails ------------------------------------------------------------------------------ */

typedef int call(uint64_t *ptr, uint64_t bytes);
typedef void give_back(uint64_t ptr);

/* With memory for everything but the call of libc or of the vendor with that number. False: there was none. */
static bool one_fails(call *take, give_back *give, enum fake_libc_call libc, bool of_vendor, unsigned number)
{
	uint64_t ptr = 0;
	if (of_vendor)
		fake_vendor_fail(number, number + 1);
	else
		fake_libc_fail(libc, number, 1, ENOMEM);
	int result = take(&ptr, 6 * MIB);
	// cppcheck-suppress arrayIndexOutOfBoundsCond ; `libc` is not used with of_vendor
	bool failed = of_vendor ? fake_vendor.calls >= number : fake_libc[libc].calls >= number;
	fake_vendor_fail(0, 0);
	fake_libc_reset();
	if (result == 0)
		give(ptr);
	else
		assert_int_equal(result, OUT_OF_MEMORY);
	drop_kept();
	holds(0, 0);
	assert_int_equal(spill_account_host_held(), 0);
	assert_int_equal(spill_account_physical_held(), 0);
	assert_int_equal(fake_vendor_alive(), 0);
	assert_int_equal(fake_vendor.broken, 0);
	return failed;
}

/* The device has 4 MiB left for 6, and the step must serve. */
static void each_fails(call *take, give_back *give, enum spill_step step)
{
	const enum fake_libc_call libc[] = {FAKE_malloc, FAKE_calloc, FAKE_LIBC_COUNT};
	limit_device(4 * MIB);
	cap(100 * MIB);
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {step}};
	for (unsigned kind = 0; kind < 3; kind++) {
		unsigned number = 1;
		while (one_fails(take, give, libc[kind], kind == 2, number))
			assert_true(++number < 100);
		assert_true(number > 1);
	}
}

TEST(one_failure_in_a_split)
{
	each_fails(allocate, release, SPILL_STEP_SPLIT);
}

TEST(one_failure_on_the_host)
{
	each_fails(allocate, release, SPILL_STEP_HOST);
}

TEST(one_failure_in_managed_memory)
{
	each_fails(allocate, release, SPILL_STEP_MANAGED);
}

TEST(one_failure_in_stream_order_on_the_host)
{
	each_fails(allocate_ordered, release_ordered, SPILL_STEP_HOST);
}

TEST(one_failure_in_stream_order_in_managed_memory)
{
	each_fails(allocate_ordered, release_ordered, SPILL_STEP_MANAGED);
}

/* -- in stream order ------------------------------------------------------------------------------------- */

TEST(the_growth_of_a_pool_is_charged)
{
	uint64_t a, b;
	limit_device(100 * MIB);
	assert_int_equal(allocate_ordered(&a, 20 * MIB), 0);
	assert_int_equal(allocate_ordered(&b, 20 * MIB), 0);
	holds(64 * MIB, 0);
	release_ordered(a);
	release_ordered(b);
	holds(64 * MIB, 0); /* the pool has it */
}

/* The pool does not count what was not admitted, and its free takes nothing from the pool. */
TEST(what_a_pool_serves_over_the_limit_while_observing)
{
	uint64_t a, b;
	policy.mode = SPILL_MODE_OBSERVE;
	limit_device(40 * MIB);
	assert_int_equal(allocate_ordered(&a, 20 * MIB), 0);
	holds(32 * MIB, 0);
	assert_int_equal(allocate_ordered(&b, 30 * MIB), 0);
	release_ordered(b);
	struct spill_vendor_pool *pool = spill_vendor_pool_of(&backend, &theirs, 0);
	theirs.reserved = 0; /* the least that is charged for it is what it has in use */
	spill_vendor_pool_settle(pool);
	holds(20 * MIB, 0);
	release_ordered(a);
	spill_vendor_pool_settle(pool);
	holds(0, 0);
}

/* Its pool counts it no more, as nobody will tell of its free. */
TEST(what_has_no_entry_is_not_counted_by_its_pool)
{
	uint64_t a, b;
	limit_device(100 * MIB);
	assert_int_equal(allocate_ordered(&a, 4 * MIB), 0);
	fake_libc_fail(FAKE_malloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	fake_libc_fail(FAKE_calloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	assert_int_equal(allocate_ordered(&b, 8 * MIB), 0);
	fake_libc_reset();
	theirs.reserved = 0; /* the least that is charged for it is what it has in use */
	struct spill_vendor_pool *pool = spill_vendor_pool_of(&backend, &theirs, 0);
	spill_vendor_pool_settle(pool);
	holds(4 * MIB, 0);
	release_ordered(b);
	release_ordered(a);
	spill_vendor_pool_settle(pool);
	holds(0, 0);
}

TEST(what_the_driver_refuses_in_stream_order)
{
	uint64_t a;
	limit_device(100 * MIB);
	cap(100 * MIB);
	policy.chain = (struct spill_fallback_chain){.count = 0};
	refuses = true;
	assert_int_equal(allocate_ordered(&a, 20 * MIB), OUT_OF_MEMORY);
	holds(0, 0);
	struct spill_vendor_pool *pool = spill_vendor_pool_of(&backend, &theirs, 0);
	refuses = false;
	assert_int_equal(allocate_ordered(&a, 4 * MIB), 0);
	theirs.reserved = 0;
	spill_vendor_pool_settle(pool);
	holds(4 * MIB, 4 * MIB);
	release_ordered(a);
	spill_vendor_pool_settle(pool);
	holds(0, 0);
}

/* The vendor gave more than the limit: the memory goes back, and the program hears that there is none. */
TEST(a_pool_that_grows_past_the_limit)
{
	uint64_t a;
	limit_device(40 * MIB);
	policy.chain = (struct spill_fallback_chain){.count = 0};
	theirs.reserved = 64 * MIB; /* in pieces that serve nobody */
	assert_int_equal(allocate_ordered(&a, 20 * MIB), OUT_OF_MEMORY);
	assert_int_equal(a, 0);
	assert_int_equal(theirs.used, 0);
	theirs.reserved = 64 * MIB;
	policy.mode = SPILL_MODE_OBSERVE;
	assert_int_equal(allocate_ordered(&a, 20 * MIB), 0);
	holds(64 * MIB, 0);
	release_ordered(a);
}

/* What a pool gave back makes room within the limit. While a stream captures, the vendor is not asked about that. */
TEST(what_a_pool_gave_back_is_asked_for_outside_captures_only)
{
	uint64_t a, b;
	limit_device(40 * MIB);
	policy.chain = (struct spill_fallback_chain){.count = 0};
	assert_int_equal(allocate_ordered(&a, 20 * MIB), 0);
	release_ordered(a);
	theirs.reserved = 0;
	set_capturing(true);
	unsigned calls = fake_vendor.calls;
	assert_int_equal(allocate(&b, 30 * MIB), OUT_OF_MEMORY);
	holds(32 * MIB, 0);
	assert_int_equal(fake_vendor.calls, calls);
	set_capturing(false);
	assert_int_equal(allocate(&b, 30 * MIB), 0);
	holds(30 * MIB, 0);
	release(b);
}
