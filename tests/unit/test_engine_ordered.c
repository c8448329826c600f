/*
 * Requests in stream order that segments serve, driven as the stubs do it: what a new segment gets, what
 * each failure leaves behind, and when segments end.
 */
#define SETUP setup
#define TEARDOWN nothing_left
#include "logtest.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "account.h"
#include "captures.h"
#include "contexts.h"
#include "deferred.h"
#include "ended.h"
#include "engine_ordered.h"
#include "exchange.h"
#include "exporting.h"
#include "fake_libc.h"
#include "fake_objects.h"
#include "fake_vendor.h"
#include "gate.h"
#include "host_chunks.h"
#include "ledger.h"
#include "movable.h"
#include "movable_allocation.h"
#include "copier.h"
#include "move.h"
#include "note.h"
#include "ordered_pool.h"
#include "parking.h"
#include "peer.h"
#include "place.h"
#include "process.h"
#include "registry.h"
#include "request.h"
#include "reserve.h"
#include "rules.h"
#include "vendor_pool.h"

#define MIB (1ull << 20)
#define LARGE (20 * MIB)

static struct spill_policy policy;
static struct spill_rules rules;
static struct fake_pool theirs;
static unsigned asked;       /* how often the driver was */
static unsigned kept_ranges; /* the mover's */
static int context, peer_context;
static struct spill_backend backend;

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
}

/* In place of probe.c, whose trial needs memory of the host with bytes. */
enum spill_probe spill_probe(const struct spill_backend *vendor, int device)
{
	return spill_gate_prepare() ? SPILL_PROBE_WORKS : SPILL_PROBE_FAILS;
}

/* -- what fake_vendor lacks for whole requests ----------------------------------------------------- */

static int owner(void *stream, int *device, void **its_context)
{
	*device = 0;
	*its_context = &context;
	return 0;
}

static bool capturing(void *stream)
{
	return false;
}

static int their_pool(int device, void **pool)
{
	*pool = &theirs;
	return 0;
}

static int unused_bytes(void *pool, uint64_t *bytes)
{
	*bytes = 0;
	return 0;
}

static const struct spill_vendor_streams streams = {.owner = owner, .capturing = capturing};
static struct spill_vendor_pools pools;

static int setup(void **state)
{
	fake_libc_reset();
	fake_vendor_reset_mover(1024 * MIB);
	fake_vendor.granule = fake_vendor.host_granule = 2 * MIB; /* as the chunk map needs it */
	fake_vendor.context = &context;
	backend = fake_vendor_backend;
	pools = *fake_vendor_backend.pools;
	pools.current = pools.device_default = their_pool;
	pools.unused = unused_bytes;
	pools.outlive_contexts = true;
	backend.pools = &pools;
	backend.streams = &streams;
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &backend);
	theirs = (struct fake_pool){.place = SPILL_PLACE_DEVICE};
	fake_vendor_policy(&policy);
	policy.movable_enable = SPILL_SWITCH_ON;
	policy.log_stderr = SPILL_STDERR_OFF;
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	rules = (struct spill_rules){0};
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	spill_process_use_policy(&policy);
	spill_account_reset();
	spill_rules_reset();
	spill_movable_reset();
	spill_copier_reset();
	spill_reserve_reset();
	spill_contexts_made(&backend, 0, &context);
	spill_fork_lock_take(&spill_vendor_pool_fork_lock);
	spill_fork_lock_release(&spill_vendor_pool_fork_lock, true); /* forgets all */
	assert_true(spill_copier_prepare(&backend, 0, &context));
	kept_ranges = fake_vendor.ranges;
	asked = 0;
	return 0;
}

static uint64_t made_by_driver(void)
{
	static uint64_t made;
	asked++;
	return (uint64_t)1 << 50 | ++made << 30;
}

static int allocate_from(const void *site, uint64_t *ptr, uint64_t bytes)
{
	struct spill_request request = {
	    .op = SPILL_OP_ALLOC_ASYNC, .api = "ordered", .caller = site, .out = ptr, .bytes = bytes};
	while (spill_request_next(&request))
		*ptr = made_by_driver();
	assert_int_equal(spill_thread.depth, 0);
	return request.result;
}

static int allocate(uint64_t *ptr, uint64_t bytes)
{
	return allocate_from(&policy, ptr, bytes);
}

static void release(uint64_t ptr)
{
	struct spill_request request = {.op = SPILL_OP_FREE_ASYNC, .api = "free", .ptr = ptr};
	while (spill_request_next(&request))
		;
	assert_int_equal(request.result, 0);
}

/* All that is not in use ends. For each stream a look places a mark, which passes two looks later. */
static void drop_kept(void)
{
	for (int look = 0; look < 9 && spill_ordered_any(NULL); look++)
		spill_ordered_trim(&backend, 0, UINT64_MAX);
	spill_ordered_trim_host(&backend, 0);
	for (int look = 0; look < 2; look++)
		spill_deferred_collect(&backend, 0, true);
	spill_deferred_drop(&backend, 0);
	spill_host_chunks_drop(&backend);
	spill_parking_forget(&backend, 0);
}

static void expect_nothing(void)
{
	struct spill_totals totals;
	drop_kept();
	assert_false(spill_ordered_any(NULL));
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 0);
	assert_int_equal(fake_vendor.handles, 0);
	assert_int_equal(fake_vendor.mappings, 0);
	assert_int_equal(fake_vendor.ranges, kept_ranges);
	assert_int_equal(fake_vendor.events, 0);
	assert_int_equal(fake_vendor.broken, 0);
	spill_ledger_totals(&totals);
	assert_int_equal(totals.live.device + totals.live.host + totals.live.managed, 0);
}

static int nothing_left(void **state)
{
	fake_libc_reset();
	fake_vendor_fail(0, 0);
	expect_nothing();
	spill_contexts_ended(ENDED(&backend, 0, &context));
	return 0;
}

static struct spill_ordered_pool *pool(void)
{
	return spill_ordered_pool_of(&backend, &theirs);
}

/* -- a new segment --------------------------------------------------------------------------------- */

TEST(a_segment_serves_what_is_freed_again)
{
	uint64_t a, b, c, held;
	assert_int_equal(allocate(&a, LARGE), 0);
	assert_int_equal(asked, 0);
	held = spill_account_device_held(0);
	assert_true(held >= LARGE);
	release(a);
	assert_int_equal(spill_account_device_held(0), held);
	assert_int_equal(allocate(&b, LARGE), 0);
	assert_int_equal(a, b);
	assert_int_equal(spill_account_device_held(0), held);
	assert_int_equal(allocate(&c, 300 * MIB), 0);
	assert_true(spill_account_device_held(0) >= held + 300 * MIB);
	release(b);
	release(c);
}

/* Moved chunks have the access of all peers (move.c), so the others need it as well. */
TEST(a_segment_is_granted_to_peers_from_the_beginning)
{
	const struct spill_peer_pair pair = {.backend = &backend,
	                                     .owner = {.device = 0, .context = NULL},
	                                     .user = {.device = 3, .context = &peer_context}};
	uint64_t a, b;
	assert_int_equal(allocate(&a, LARGE), 0);
	assert_null(fake_vendor_bytes(a, 3));
	assert_true(spill_peer_add(&pair));
	assert_int_equal(allocate(&b, 300 * MIB), 0);
	assert_non_null(fake_vendor_bytes(b, 0));
	for (uint64_t at = 0; at < 300 * MIB; at += SPILL_ORDERED_CHUNK)
		assert_non_null(fake_vendor_bytes(b + at, 3));
	assert_null(fake_vendor_bytes(b, 2));
	spill_peer_remove(&pair);
	release(a);
	release(b);
}

/* A segment's figures in the ledger; a range of it holds nothing of its own. */
TEST(the_ledger_has_the_segment_and_its_ranges)
{
	struct spill_totals totals;
	uint64_t a, b;
	assert_int_equal(allocate(&a, LARGE), 0);
	assert_int_equal(allocate(&b, LARGE), 0);
	spill_ledger_totals(&totals);
	assert_int_equal(totals.live.device, spill_account_device_held(0));
	assert_int_equal(totals.live.device, spill_ordered_segment_bytes(LARGE));
	release(a);
	release(b);
	spill_ledger_totals(&totals);
	assert_int_equal(totals.live.device, spill_ordered_segment_bytes(LARGE));
}

/* Lines of that kind since the last call, for as many bytes as a segment has. */
static unsigned logged(const char *kind)
{
	static unsigned read;
	unsigned count = 0;
	spill_log_flush();
	struct lines lines = read_lines(in_folder("log"));
	for (; read < lines.count; read++)
		count += !strcmp(text_of(lines.at[read], "kind"), kind) &&
		         cJSON_GetNumberValue(cJSON_GetObjectItem(lines.at[read], "bytes")) ==
		             spill_ordered_segment_bytes(LARGE);
	return count;
}

TEST(the_log_has_the_begin_and_the_end_of_a_segment)
{
	uint64_t a;
	policy.log_level = SPILL_LOG_EACH;
	logged("alloc");
	assert_int_equal(allocate(&a, LARGE), 0);
	assert_int_equal(logged("alloc"), 1);
	release(a);
	assert_int_equal(logged("free"), 0);
	drop_kept();
	assert_int_equal(logged("free"), 1);
}

/* It ends when no call of the program is the reason. */
TEST(the_end_of_a_segment_names_no_call_and_has_its_own_time)
{
	uint64_t a;
	policy.log_level = SPILL_LOG_EACH;
	assert_int_equal(allocate(&a, LARGE), 0);
	release(a);
	drop_kept();
	spill_log_flush();
	struct lines lines = read_lines(in_folder("log"));
	const cJSON *line = lines.at[lines.count - 1];
	assert_string_equal(text_of(line, "kind"), "free");
	assert_false(cJSON_HasObjectItem(line, "api"));
	assert_false(cJSON_HasObjectItem(line, "caller"));
	assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(line, "us")) <
	            1e6 * cJSON_GetNumberValue(cJSON_GetObjectItem(line, "t")));
}

static void nothing(void)
{
}

/* It can move, and the next entry of the gate looks after the reserve. */
TEST(a_segment_takes_part_in_moves)
{
	uint64_t a;
	spill_gate_use(0, nothing);
	atomic_fetch_and(&spill_gate_state, ~(unsigned)SPILL_GATE_MAINTENANCE);
	assert_int_equal(allocate(&a, LARGE), 0);
	assert_int_equal(spill_chunked_on_device(0), spill_ordered_segment_bytes(LARGE));
	assert_true(atomic_load(&spill_gate_state) & SPILL_GATE_MAINTENANCE);
	atomic_fetch_and(&spill_gate_state, ~(unsigned)SPILL_GATE_MAINTENANCE);
	release(a);
}

TEST(each_segment_has_a_name_of_its_own)
{
	uint64_t a, b;
	assert_int_equal(allocate(&a, LARGE), 0);
	assert_int_equal(allocate(&b, 300 * MIB), 0);
	drop_kept(); /* nothing is unused */
	assert_non_null(fake_vendor_bytes(a, 0));
	assert_non_null(fake_vendor_bytes(b, 0));
	release(a);
	drop_kept();
	assert_null(fake_vendor_bytes(a, 0));
	assert_non_null(fake_vendor_bytes(b, 0));
	release(b);
}

/* -- which requests -------------------------------------------------------------------------------- */

/* True: a segment serves it. */
static bool is_served(uint64_t bytes)
{
	uint64_t ptr, unused;
	unsigned before = asked, made = fake_vendor.made_on_device;
	assert_int_equal(allocate(&ptr, bytes), 0);
	bool served = asked == before;
	assert_true(served || fake_vendor.made_on_device == made);
	release(ptr);
	unused = spill_ordered_unused(&backend, 0);
	assert_true(served ? unused >= bytes : !unused);
	drop_kept();
	return served;
}

static void use_rule(unsigned set, enum spill_rule_place place)
{
	rules.count = 1;
	rules.rule[0] = (struct spill_rule){.set = set, .cap = 900 * MIB, .place = place};
	strcpy(rules.rule[0].name, "a");
	spill_rules_index(&rules);
	policy.rules = &rules;
	spill_rules_reset();
}

/* A segment serves requests to which no rule applies, too. */
TEST(rules_of_which_segments_know_nothing)
{
	use_rule(SPILL_RULE_HAS_PLACE, SPILL_RULE_MOVABLE);
	assert_true(is_served(LARGE));
	use_rule(SPILL_RULE_HAS_PLACE | SPILL_RULE_HAS_CAP, SPILL_RULE_MOVABLE);
	assert_false(is_served(LARGE));
	use_rule(SPILL_RULE_HAS_CAP, SPILL_RULE_MOVABLE);
	assert_false(is_served(LARGE));
	use_rule(SPILL_RULE_HAS_PLACE, SPILL_RULE_DEVICE);
	assert_false(is_served(LARGE));
	use_rule(0, SPILL_RULE_MOVABLE);
	assert_false(is_served(LARGE));
	policy.rules = NULL;
	assert_true(is_served(LARGE));
}

/* movable.min is about segments; movable.above about requests, and a rule overrules that. */
TEST(the_options_of_movable_memory)
{
	policy.movable_min.value = spill_ordered_segment_bytes(LARGE);
	assert_true(is_served(LARGE));
	policy.movable_min.value++;
	assert_false(is_served(LARGE));
	policy.movable_min.value = 0;
	policy.movable_enable = SPILL_SWITCH_OFF;
	assert_false(is_served(LARGE));
	policy.movable_enable = SPILL_SWITCH_AUTO;
	assert_false(is_served(LARGE));
	use_rule(SPILL_RULE_HAS_PLACE, SPILL_RULE_MOVABLE);
	assert_true(is_served(LARGE));
	policy.rules = NULL;
	policy.movable_enable = SPILL_SWITCH_ON;
	policy.mode = SPILL_MODE_OBSERVE;
	assert_false(is_served(LARGE));
}

TEST(pools_and_callers_that_stay_with_the_driver)
{
	static const char site;
	uint64_t ptr;
	spill_exporting_learn(&site, LARGE);
	assert_int_equal(allocate_from(&site, &ptr, LARGE), 0);
	assert_int_equal(asked, 1);
	release(ptr);
	assert_true(is_served(LARGE));
	/* Another device uses the pool's memory. */
	spill_mover_lock();
	spill_ordered_pool_close(pool());
	spill_mover_unlock();
	assert_false(is_served(LARGE));
	struct spill_ordered_pool *ended = spill_ordered_pool_ended(&backend, &theirs);
	assert_true(is_served(LARGE)); /* a new pool with its handle */
	assert_ptr_equal(pool(), ended);
}

/* -- whatever of ours fails ------------------------------------------------------------------------ */

/* False: there was no such call. The driver serves what no segment can. */
static bool one_fails(enum fake_libc_call libc, bool of_vendor, unsigned number)
{
	struct spill_totals totals;
	uint64_t ptr = 0;
	if (of_vendor)
		fake_vendor_fail(number, number + 1);
	else
		fake_libc_fail(libc, number, 1, ENOMEM);
	int result = allocate(&ptr, LARGE);
	// cppcheck-suppress arrayIndexOutOfBoundsCond ; `libc` is not used with of_vendor
	bool failed = of_vendor ? fake_vendor.calls >= number : fake_libc[libc].calls >= number;
	fake_vendor_fail(0, 0);
	fake_libc_reset();
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	spill_ledger_totals(&totals);
	assert_true(totals.live.device >= spill_account_device_held(0)); /* no segment is without an entry */
	assert_true(result || ptr);
	if (!result)
		release(ptr);
	else
		assert_int_equal(result, FAKE_OUT_OF_MEMORY);
	expect_nothing();
	return failed;
}

TEST(nothing_is_lost_whatever_fails)
{
	const enum fake_libc_call libc[] = {FAKE_malloc, FAKE_calloc, FAKE_LIBC_COUNT};
	for (unsigned kind = 0; kind < 3; kind++) {
		unsigned number = 1;
		while (one_fails(libc[kind], kind == 2, number))
			assert_true(++number < 100);
		assert_true(number > 2);
	}
}

/* Within a limit that a whole segment exceeds, there is one of the request's own size. */
TEST(a_segment_is_smaller_where_a_whole_one_finds_no_room)
{
	uint64_t a, b;
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 63 * MIB};
	assert_int_equal(allocate(&a, LARGE), 0);
	assert_int_equal(asked, 0);
	assert_in_range(spill_account_device_held(0), LARGE, LARGE + 16 * MIB);
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
	fake_vendor.device_free = 63 * MIB;
	assert_int_equal(allocate(&b, LARGE), 0);
	assert_int_equal(asked, 0);
	assert_in_range(spill_account_device_held(0), 2 * LARGE, 2 * LARGE + 32 * MIB);
	release(a);
	release(b);
}

/* -- plain requests, which chunks serve as well -------------------------------------------------------- */

static uint64_t footprint(uint64_t bytes)
{
	return bytes;
}

static int allocate_plain(uint64_t *ptr, uint64_t bytes)
{
	struct spill_request request = {
	    .op = SPILL_OP_ALLOC, .api = "plain", .caller = &policy, .out = ptr, .bytes = bytes};
	while (spill_request_next(&request))
		*ptr = made_by_driver();
	return request.result;
}

static void free_plain(uint64_t ptr)
{
	struct spill_request request = {.op = SPILL_OP_FREE, .api = "free", .ptr = ptr};
	while (spill_request_next(&request))
		;
	assert_int_equal(request.result, 0);
}

static unsigned raised, forgotten; /* last errors */

static int last_error(void)
{
	return 0;
}

static int raise_out_of_memory(void)
{
	raised++;
	return backend.out_of_memory;
}

static void forget_errors(void)
{
	forgotten++;
}

/* What the log says of the last refusal: by whom, and by which steps. */
static const char *refusal(void)
{
	static char told[128];
	spill_log_flush();
	struct lines lines = read_lines(in_folder("log"));
	told[0] = '\0';
	for (unsigned i = 0; i < lines.count; i++) {
		if (strcmp(text_of(lines.at[i], "kind"), "oom") != 0)
			continue;
		snprintf(told, sizeof(told), "%s:", text_of(lines.at[i], "refused_by"));
		const cJSON *step;
		cJSON_ArrayForEach(step, cJSON_GetObjectItem(lines.at[i], "tried"))
		    snprintf(told + strlen(told), sizeof(told) - strlen(told), " %s %s",
		             text_of(step, "place"), text_of(step, "error"));
	}
	return told;
}

/* A chunk is larger than what was asked for: it may not fit where that would. */
TEST(what_the_chunks_of_a_request_answer)
{
	static const struct spill_vendor_last_error errors = {
	    .peek = last_error, .raise_out_of_memory = raise_out_of_memory, .forget = forget_errors};
	static struct spill_vendor_memory memory;
	uint64_t a = 0, wanted = LARGE + MIB;
	memory = *fake_vendor_backend.memory;
	memory.footprint = footprint;
	backend.memory = &memory;
	backend.last_error = &errors;
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {SPILL_STEP_DEMOTE}};
	policy.movable_min.value = wanted;
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, wanted + MIB};
	assert_int_equal(allocate_plain(&a, wanted), 0);
	assert_int_equal(forgotten, 1); /* those of our own calls */
	free_plain(a);
	use_rule(SPILL_RULE_HAS_CAP, 0); /* of the cap nothing stays charged */
	policy.device_limit.value = wanted;
	assert_int_equal(allocate_plain(&a, wanted), backend.out_of_memory);
	assert_string_equal(refusal(), "device.limit: device device.limit demote no movable memory");
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_rule_held(0), 0);
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
	fake_vendor.device_free = wanted;
	assert_int_equal(allocate_plain(&a, wanted), backend.out_of_memory);
	assert_string_equal(refusal(), "driver: device FAKE_OUT_OF_MEMORY demote no movable memory");
	assert_int_equal(asked, 0);
	assert_int_equal(raised, 2);
}

/* -- giving back ----------------------------------------------------------------------------------- */

/* So many unused segments, which no work can use. The first is the largest. */
#define FIRST (19 * SPILL_ORDERED_CHUNK)

static void leave_segments(unsigned count)
{
	uint64_t ptr[8];
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(allocate(&ptr[i], FIRST - i * SPILL_ORDERED_CHUNK), 0);
	for (unsigned i = 0; i < count; i++)
		release(ptr[i]);
	spill_ordered_idle(&backend, 0, UINT64_MAX);
}

TEST(a_trim_ends_as_many_as_needed)
{
	leave_segments(3);
	uint64_t all = spill_account_device_held(0);
	assert_int_equal(spill_ordered_trim(&backend, 0, 0), 0);
	assert_int_equal(spill_ordered_trim(&backend, 0, 1), FIRST);
	assert_int_equal(spill_account_device_held(0), all - FIRST);
	assert_int_equal(spill_ordered_trim(&backend, 0, UINT64_MAX), all - FIRST);
	assert_int_equal(spill_account_device_held(0), 0);
	leave_segments(3);
	assert_int_equal(spill_ordered_trim(&backend, 0, FIRST + 1), 2 * FIRST - SPILL_ORDERED_CHUNK);
}

/* A segment that the ledger has lost is counted nowhere. Its memory comes back all the same. */
TEST(a_segment_without_an_entry_ends_too)
{
	leave_segments(1);
	const struct spill_chunked *segment = spill_chunked_next(NULL);
	struct spill_allocation *entry = spill_ledger_take_handle(segment->name, segment->seq);
	assert_non_null(entry);
	spill_ledger_end(entry);
	assert_int_equal(spill_ordered_trim(&backend, 0, UINT64_MAX), FIRST);
	assert_false(spill_ordered_any(NULL));
	assert_int_equal(spill_account_device_held(0), 0);
}

TEST(a_pool_keeps_what_it_was_told_to_keep)
{
	leave_segments(3);
	uint64_t all = spill_ordered_figures(pool()).reserved;
	spill_ordered_trim_pool(&backend, pool(), all);
	assert_int_equal(spill_account_device_held(0), all);
	spill_ordered_trim_pool(&backend, pool(), all - 1);
	assert_int_equal(spill_account_device_held(0), all - FIRST);
	spill_ordered_keep(pool(), all - FIRST);
	spill_ordered_give_back(&backend);
	assert_int_equal(spill_account_device_held(0), all - FIRST);
	/* An ended pool keeps nothing. */
	struct spill_ordered_pool *ended = spill_ordered_pool_ended(&backend, &theirs);
	spill_ordered_give_back(&backend);
	assert_int_equal(spill_account_device_held(0), 0);
	spill_ordered_keep(ended, 0);
}

/* Memory of the pool that is elsewhere is in the pool's figures until it is freed, in whichever way. */
TEST(what_is_beside_a_pool_is_counted_until_its_free)
{
	static const enum spill_op frees[] = {SPILL_OP_FREE_ASYNC, SPILL_OP_FREE};
	leave_segments(1);
	const struct spill_ordered_figures before = spill_ordered_figures(pool());
	for (unsigned i = 0; i < 2; i++) {
		struct spill_place_request want = {&backend, &policy,        0, &context, 2 * MIB,
		                                   0,        SPILL_UNLIMITED};
		struct spill_chunked *made = make_allocation(&spill_place_split, &want);
		spill_ordered_count(pool(), &made->base);
		assert_int_equal(spill_ordered_figures(pool()).used, before.used + 2 * MIB);
		assert_int_equal(spill_ordered_figures(pool()).reserved, before.reserved + 2 * MIB);
		struct spill_request request = {.op = frees[i], .api = "free", .ptr = made->base.ptr};
		while (spill_request_next(&request))
			;
		assert_int_equal(request.result, 0);
		assert_int_equal(spill_ordered_figures(pool()).used, before.used);
		assert_int_equal(spill_ordered_figures(pool()).reserved, before.reserved);
	}
}

/* Its work has ended with it, whatever marks say. Nothing is given back while another stream captures. */
TEST(a_context_that_ends_leaves_unused_segments_to_the_device)
{
	for (unsigned captures = 0; captures < 2; captures++) {
		struct spill_request request = {.op = SPILL_OP_CONTEXT_DESTROY, .context = &context};
		uint64_t ptr;
		assert_int_equal(allocate(&ptr, LARGE), 0);
		release(ptr);
		fake_vendor.stuck = true;
		set_capturing(captures);
		while (spill_request_next(&request))
			;
		set_capturing(false);
		fake_vendor.stuck = false;
		assert_int_equal(spill_ordered_any(NULL), captures);
		assert_int_equal(spill_account_device_held(0) != 0, captures);
		spill_contexts_made(&backend, 0, &context);
	}
}

/* -- segments on the host -------------------------------------------------------------------------- */

/* The first chunks change sides. */
static void exchange_and_keep(unsigned count, uint64_t keep)
{
	struct spill_exchange exchange = {.backend = &backend, .keep = keep};
	bool held = spill_mover_is_mine();
	if (!held)
		spill_mover_lock();
	struct spill_chunked *segment = spill_chunked_next(NULL);
	for (unsigned i = 0; i < segment->count && i < count; i++)
		assert_true(spill_exchange_add(&exchange, segment, i));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	assert_true(exchange.ns);
	spill_exchange_drop();
	if (!held)
		spill_mover_unlock();
}

static void exchange_chunks(unsigned count)
{
	exchange_and_keep(count, 0);
}

/* Where memory follows its use, a free range comes to the device when it is used. */
TEST(a_range_on_the_host_is_used_if_memory_follows_its_use)
{
	static const enum spill_follow follow[] = {SPILL_FOLLOW_AUTO, SPILL_FOLLOW_ON, SPILL_FOLLOW_OFF};
	for (unsigned i = 0; i < 3; i++) {
		uint64_t old, new;
		policy.movable_follow = follow[i];
		assert_int_equal(allocate(&old, LARGE), 0);
		release(old);
		exchange_chunks(4);
		assert_int_equal(spill_account_device_held(0), 0);
		assert_int_equal(allocate(&new, LARGE), 0);
		assert_int_equal(asked, 0);
		assert_int_equal(old == new, follow[i] != SPILL_FOLLOW_OFF);
		release(new);
		expect_nothing();
	}
}

/* Dead chunks have no mapping of their own (parking.h). If they cannot have one, others serve the request. */
TEST(a_parked_range_is_mapped_before_it_is_handed_out)
{
	for (unsigned refused = 0; refused < 2; refused++) {
		uint64_t a, b;
		assert_int_equal(allocate(&a, LARGE), 0);
		const struct spill_chunked *segment = spill_chunked_next(NULL);
		exchange_and_keep(1, SPILL_ORDERED_CHUNK);
		release(a);
		exchange_chunks(segment->count);
		assert_false(segment->chunks[0].parked);
		assert_true(segment->chunks[1].parked && segment->chunks[segment->count - 1].parked);
		fake_vendor_fail(refused ? 1 : 0, refused ? 1000 : 0);
		int result = allocate(&b, LARGE);
		fake_vendor_fail(0, 0);
		assert_int_equal(!result && b == a, !refused);
		assert_int_equal(segment->chunks[1].parked, refused);
		if (!result)
			release(b);
		expect_nothing();
	}
}

TEST(unused_segments_on_the_host_end)
{
	uint64_t a, b;
	assert_int_equal(allocate(&a, LARGE), 0);
	exchange_chunks(4);
	assert_int_equal(allocate(&b, 300 * MIB), 0);
	uint64_t on_device = spill_account_device_held(0);
	release(a);
	release(b);
	spill_ordered_idle(&backend, 0, UINT64_MAX);
	assert_int_equal(fake_vendor.host, spill_ordered_segment_bytes(LARGE));
	spill_ordered_trim_host(&backend, 0);
	spill_host_chunks_drop(&backend);
	assert_int_equal(fake_vendor.host, 0);
	assert_int_equal(spill_account_device_held(0), on_device);
	assert_int_equal(spill_ordered_unused(&backend, 0), on_device);
}

static void *move_meanwhile(void *locked)
{
	spill_mover_lock();
	sem_post(locked);
	while (!spill_mover_wanted())
		;
	exchange_chunks(2);
	spill_mover_unlock();
	return NULL;
}

/* Chunks may leave the device until the mover is free. Only what was still there comes back. */
TEST(a_segment_that_moves_while_it_ends)
{
	uint64_t whole = spill_ordered_segment_bytes(LARGE), a;
	pthread_t mover;
	sem_t locked;
	assert_int_equal(allocate(&a, LARGE), 0);
	release(a);
	spill_ordered_idle(&backend, 0, UINT64_MAX);
	assert_int_equal(sem_init(&locked, 0, 0), 0);
	assert_int_equal(pthread_create(&mover, NULL, move_meanwhile, &locked), 0);
	while (sem_wait(&locked))
		;
	assert_int_equal(spill_ordered_trim(&backend, 0, UINT64_MAX), whole - 2 * SPILL_ORDERED_CHUNK);
	pthread_join(mover, NULL);
}

/* One log for all tests. */
static int begin(void **state)
{
	make_folder(state);
	open_log_at(in_folder("log"));
	return !spill_log_active();
}

int main(void)
{
	return run_unit_tests(begin, remove_folder);
}
