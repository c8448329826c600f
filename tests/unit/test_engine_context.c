/*
 * The end of a context, by calls as the stubs make them. What libspill keeps for a context ends with it, and nothing
 * of another one does. What it keeps for a device ends with the last context.
 */
#define SETUP setup
#define TEARDOWN teardown
#define KEEPS_DESCRIPTORS /* the socket of ipc_export.c */
#include "unit.h"

#include <string.h>

#include "account.h"
#include "captures.h"
#include "chunked.h"
#include "contexts.h"
#include "deferred.h"
#include "exchange.h"
#include "fake_vendor.h"
#include "mover.h"
#include "graph_access.h"
#include "host_chunks.h"
#include "ipc.h"
#include "ledger.h"
#include "copier.h"
#include "note.h"
#include "peer.h"
#include "process.h"
#include "registry.h"
#include "request.h"
#include "shared_chunks.h"
#include "vendor_pool.h"
#include "unpark.h"

#define MIB (1ull << 20)
#define CHUNK (2 * MIB)

static struct spill_policy policy;
static struct spill_backend backend;
static struct spill_vendor_pools pools;
static int mine, others;

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
}

/* -- what fake_vendor lacks ------------------------------------------------------------------------- */

static void *primary_context; /* NULL: the device has no active one */
static uint64_t primary_id;
static unsigned forgotten; /* contexts, by the vendor's own bookkeeping */

static bool primary(int device, void **context)
{
	if (primary_context)
		*context = primary_context;
	return primary_context;
}

static uint64_t id(void *context)
{
	return context == primary_context ? primary_id : 7;
}

static void ended(const struct spill_context_end *end)
{
	forgotten += end->context == &mine;
}

static unsigned greens; /* of `others`, that libspill knows */

static bool green_ends(void *green, int *device)
{
	bool known = green == &others && greens;
	greens -= known;
	*device = 0;
	return known;
}

static bool green_made(void *green, int device)
{
	assert_true(green == &others && device == 0);
	greens++;
	return true;
}

static const struct spill_vendor_contexts contexts = {
    .primary = primary, .id = id, .green_made = green_made, .green_ends = green_ends, .ended = ended};

static int owner(void *stream, int *device, void **context)
{
	*device = 0;
	*context = stream;
	return 0;
}

static const struct spill_vendor_streams streams = {.owner = owner};

static int setup(void **state)
{
	fake_vendor_reset_mover(1024 * MIB);
	fake_vendor.granule = fake_vendor.host_granule = CHUNK; /* as the chunk map needs it */
	fake_vendor.can |= SPILL_CAN_HOST;
	backend = fake_vendor_backend;
	pools = *fake_vendor_backend.pools;
	pools.outlive_contexts = true;
	backend.pools = &pools;
	backend.contexts = &contexts;
	backend.streams = &streams;
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &backend);
	fake_vendor_policy(&policy);
	policy.log_stderr = SPILL_STDERR_OFF;
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	spill_process_use_policy(&policy);
	spill_account_reset();
	spill_copier_reset();
	spill_exchange_reset();
	spill_fork_lock_take(&spill_vendor_pool_fork_lock);
	spill_fork_lock_release(&spill_vendor_pool_fork_lock, true); /* forgets all */
	primary_context = NULL;
	primary_id = forgotten = 0;
	spill_contexts_made(&backend, 0, &mine);
	spill_contexts_made(&backend, 0, &others);
	return 0;
}

static void (*in_call)(void); /* during the driver's call, once */

static void end_by(enum spill_op op, void *context, int result)
{
	struct spill_request request = {.op = op, .api = "end", .context = context};
	unsigned asked = 0;
	while (spill_request_next(&request)) {
		asked++;
		if (in_call)
			in_call();
		in_call = NULL;
		request.result = result;
	}
	assert_int_equal(asked, 1);
	assert_int_equal(request.result, result);
	assert_int_equal(spill_thread.depth, 0);
	assert_false(spill_mover_is_mine());
}

static void end(void *context)
{
	end_by(SPILL_OP_CONTEXT_DESTROY, context, 0);
}

static int teardown(void **state)
{
	end(&mine);
	end(&others);
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 0);
	return 0;
}

static struct spill_placement *make(const struct spill_place_ops *place, void *context, uint64_t bytes)
{
	const char *error = NULL;
	struct spill_place_request want = {&backend, &policy, 0, context, bytes, 0, SPILL_UNLIMITED};
	struct spill_placement *made = spill_place_make(place, &want, &error);
	assert_non_null(made);
	return made;
}

/* -- with each context ------------------------------------------------------------------------------ */

TEST(the_vendors_own_records_are_told)
{
	end(&others);
	assert_int_equal(forgotten, 0);
	end(&mine);
	assert_int_equal(forgotten, 1);
	assert_int_equal(spill_contexts_birth(&backend, &mine), 0);
}

static void defer_behind(void *context, const bool *passed)
{
	struct spill_placement *placement = make(&spill_place_split, &others, 4 * CHUNK);
	placement->event = fake_vendor_event(passed);
	placement->event_context = context;
	placement->event_generation = spill_context_generation();
	spill_deferred_add(placement);
}

TEST(no_free_waits_for_its_work)
{
	static const bool never = false;
	defer_behind(&mine, &never);
	defer_behind(&others, &never);
	end(&mine);
	assert_int_equal(spill_deferred_pending(&backend, 0).host, 4 * CHUNK);
	end(&others);
	assert_int_equal(spill_deferred_pending(&backend, 0).host, 0);
}

TEST(its_captures_end)
{
	spill_capture_begun(&backend, &mine, 0);
	end(&others);
	assert_true(spill_capture_any());
	end(&mine);
	assert_false(spill_capture_any());
}

TEST(no_other_device_uses_its_memory)
{
	int list[SPILL_DEVICES];
	const struct spill_peer_pair pair = {.backend = &backend,
	                                     .owner = {0, &mine},
	                                     .user = {3, NULL},
	                                     .generation = spill_context_generation()};
	assert_true(spill_peer_add(&pair));
	end(&others);
	assert_int_equal(spill_peer_devices(&backend, 0, list), 1);
	end(&mine);
	assert_int_equal(spill_peer_devices(&backend, 0, list), 0);
}

TEST(what_it_opened_of_other_processes_is_closed)
{
	char handle[SPILL_IPC_HANDLE_BYTES];
	struct spill_placement *made = make(&spill_place_movable, &others, CHUNK);
	struct spill_ipc_range range;
	uint64_t ptr;
	spill_unpark_pin(spill_chunked_of(made));
	assert_true(spill_ipc_export(made, CHUNK, handle));
	assert_int_equal(spill_ipc_open(&backend, 0, &mine, handle, &ptr), 0);
	end(&mine);
	assert_false(spill_ipc_at(ptr, &range));
	assert_null(fake_vendor_bytes(ptr, 0));
	spill_placement_release(made, false);
}

static void look_at_graph(void *looks, const struct spill_graph_access *access)
{
	++*(unsigned *)looks;
}

/* It is not known whose they are. */
TEST(graphs_are_forgotten)
{
	static const struct spill_graph_range range = {.va = 1, .bytes = 1};
	unsigned looks = 0;
	spill_graph_access_keep(&range, &(struct spill_graph_access){.count = 1, .ranges = &range});
	assert_true(spill_graph_access_look(&range, look_at_graph, &looks));
	end(&mine);
	assert_false(spill_graph_access_look(&range, look_at_graph, &looks));
	assert_int_equal(looks, 1);
}

/* -- the objects that moves use --------------------------------------------------------------------- */

static unsigned streams_made;

static void prepare_in_other(void)
{
	unsigned before = fake_vendor.streams;
	assert_true(spill_copier_prepare(&backend, 0, &others));
	streams_made = fake_vendor.streams - before;
}

/* So moves of other contexts' memory need not wait for the driver's call. */
TEST(moves_get_objects_of_another_context_before_the_call)
{
	assert_true(spill_copier_prepare(&backend, 0, &mine));
	in_call = prepare_in_other;
	end(&mine);
	assert_true(streams_made > 0);
	prepare_in_other();
	assert_int_equal(streams_made, 0);
}

static void drop_last_reference(void)
{
	prepare_in_other();
	primary_context = NULL;
}

/* One of several references to a primary context ends nothing, and it is not known which is the last. */
TEST(moves_keep_their_objects_until_a_release_has_ended_the_context)
{
	assert_true(spill_copier_prepare(&backend, 0, &mine));
	primary_context = &mine;
	in_call = prepare_in_other;
	end_by(SPILL_OP_PRIMARY_RELEASE, NULL, 0);
	assert_int_equal(streams_made, 0);
	in_call = drop_last_reference;
	end_by(SPILL_OP_PRIMARY_RELEASE, NULL, 0);
	assert_int_equal(streams_made, 0);
	prepare_in_other();
	assert_true(streams_made > 0);
}

/* -- with the last context of a device -------------------------------------------------------------- */

TEST(memory_that_exchanges_keep_ends_with_the_last_context)
{
	struct spill_exchange exchange = {.backend = &backend, .keep = CHUNK};
	struct spill_placement *made = make(&spill_place_movable, NULL, CHUNK);
	spill_mover_lock();
	assert_true(spill_exchange_add(&exchange, spill_chunked_of(made), 0));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	assert_int_equal(spill_exchange_kept(), CHUNK);
	end(&mine);
	assert_int_equal(spill_exchange_kept(), CHUNK);
	end(&others);
	assert_int_equal(spill_exchange_kept(), 0);
	spill_placement_release(made, false);
}

TEST(host_memory_that_is_kept_ends_with_the_last_context)
{
	struct spill_host_chunk chunk;
	assert_null(spill_host_chunk_get(&backend, 0, CHUNK, &chunk));
	spill_host_chunk_put(&backend, 0, &chunk, true);
	end(&mine);
	assert_int_equal(fake_vendor.host, CHUNK);
	end(&others);
	assert_int_equal(fake_vendor.host, 0);
}

/* Of no context, or it would end with that one. */
TEST(placements_that_are_kept_end_with_the_last_context)
{
	struct spill_placement *made = make(&spill_place_host, NULL, 4 * CHUNK);
	made->reusable = true; /* as in stream order */
	spill_deferred_give(made);
	end(&mine);
	assert_int_equal(fake_vendor.hosts, 1);
	end(&others);
	assert_int_equal(fake_vendor.hosts, 0);
}

TEST(shared_chunks_that_are_kept_end_with_the_last_context)
{
	spill_placement_release(make(&spill_place_split, NULL, 4096), false);
	assert_true(fake_vendor.host > 0);
	end(&mine);
	assert_true(fake_vendor.host > 0);
	end(&others);
	assert_int_equal(fake_vendor.host, 0);
}

/* A pool of ours on the host, of which nothing is in use. */
static struct spill_vendor_pool *pool_of_ours(void)
{
	const char *error;
	struct spill_vendor_pool *pool =
	    spill_vendor_pool_ours(&backend, 0, SPILL_PLACE_HOST, SPILL_LOCATION_HOST, &error);
	assert_non_null(pool);
	return pool;
}

TEST(pools_of_ours_end_with_the_last_context)
{
	pool_of_ours();
	end(&mine);
	assert_int_equal(fake_vendor.pools, 1);
	end(&others);
	assert_int_equal(fake_vendor.pools, 0);
}

/* A capture of another device forbids to give memory back. */
TEST(in_a_capture_pools_of_ours_stay)
{
	pool_of_ours();
	set_capturing(true);
	end(&mine);
	end(&others);
	set_capturing(false);
	assert_int_equal(fake_vendor.pools, 1);
	assert_true(spill_vendor_pool_trim(&backend, 0, true) == 0);
	assert_int_equal(fake_vendor.pools, 0);
}

/* HIP's pools end with the device's primary context, so the record has no handle then. */
TEST(pools_that_do_not_outlive_the_context_are_forgotten)
{
	struct spill_vendor_pool *pool = pool_of_ours();
	end(&mine);
	assert_non_null(spill_vendor_pool_handle(pool));
	pool = pool_of_ours();
	pools.outlive_contexts = false;
	end(&others);
	assert_null(spill_vendor_pool_handle(pool));
	assert_int_equal(fake_vendor.pools, 1); /* the vendor has ended it, and we ended none */
}

/* -- has it ended? ---------------------------------------------------------------------------------- */

/* By a release, after which the device has this primary context. */
static bool ends(void *now, uint64_t now_id)
{
	uint64_t made = spill_context_generation();
	spill_contexts_made(&backend, 0, &mine);
	uint64_t birth = spill_contexts_birth(&backend, &mine);
	primary_context = &mine;
	primary_id = 5;
	struct spill_request request = {.op = SPILL_OP_PRIMARY_RELEASE, .api = "release"};
	assert_true(spill_request_next(&request));
	assert_ptr_equal(request.context, &mine);
	primary_context = now;
	primary_id = now_id;
	assert_false(spill_request_next(&request));
	bool dead = spill_context_dead(&backend, 0, &mine, made);
	assert_int_equal(spill_contexts_birth(&backend, &mine) != birth, dead);
	return dead;
}

TEST(a_release_ends_the_context_if_it_is_gone)
{
	assert_false(ends(&mine, 5)); /* one of several references */
	assert_true(ends(NULL, 0));
	assert_true(ends(&others, 6));
	assert_true(ends(&mine, 6)); /* made again by another thread */
	primary_context = NULL;
}

/* The end of a green context, with or without the last reference to its primary one; or refused. */
TEST(a_green_context_may_hold_the_last_reference)
{
	static const struct {
		int result;
		bool last;
	} cases[] = {{FAKE_INVALID, false}, {0, false}, {0, true}};
	uint64_t made = spill_context_generation();
	const struct spill_request end = {
	    .op = SPILL_OP_PRIMARY_RELEASE, .mode = 1, .api = "green", .device = 9, .green = &others};
	spill_contexts_made(&backend, 0, &mine);
	greens = 2;
	for (unsigned i = 0; i < 3; i++) {
		struct spill_request request = end;
		primary_context = &mine;
		assert_true(spill_request_next(&request));
		assert_true(request.context == &mine && request.device == 0);
		request.result = cases[i].result;
		primary_context = cases[i].last ? NULL : &mine;
		assert_false(spill_request_next(&request));
		assert_int_equal(spill_context_dead(&backend, 0, &mine, made), cases[i].last);
		assert_int_equal(greens, 2 - i);
	}
	struct spill_request unknown = end;
	assert_true(spill_request_next(&unknown));
	assert_null(unknown.context);
	assert_false(spill_request_next(&unknown));
}

/* Its handle comes back, and work of its default stream may still run. */
TEST(a_later_green_context_has_another_default_stream)
{
	static const bool never = false;
	const struct spill_stream_order order = {&others, &mine};
	struct spill_placement *freed = make(&spill_place_host, &mine, CHUNK);
	struct spill_request request = {
	    .op = SPILL_OP_PRIMARY_RELEASE, .mode = 1, .api = "green", .green = &others};
	freed->reusable = true;
	freed->order = order;
	freed->event = fake_vendor_event(&never);
	freed->event_context = &mine;
	freed->event_generation = spill_context_generation();
	spill_deferred_add(freed);
	primary_context = &mine;
	greens = 1;
	assert_true(spill_request_next(&request));
	assert_false(spill_request_next(&request));
	assert_null(spill_deferred_reuse(
	    &(const struct spill_deferred_wanted){&spill_place_host, &backend, 0, &mine, CHUNK, order}));
	primary_context = NULL;
}

TEST(a_call_that_is_refused_ends_nothing)
{
	uint64_t made = spill_context_generation();
	spill_capture_begun(&backend, &mine, 0);
	end_by(SPILL_OP_CONTEXT_DESTROY, &mine, FAKE_INVALID);
	assert_true(spill_capture_any());
	assert_false(spill_context_dead(&backend, 0, &mine, made));
	assert_true(spill_contexts_birth(&backend, &mine));
}

/* The driver answers it. */
TEST(a_call_without_a_context_ends_nothing)
{
	uint64_t made = spill_context_generation();
	end_by(SPILL_OP_CONTEXT_DESTROY, NULL, FAKE_INVALID);
	end_by(SPILL_OP_PRIMARY_RELEASE, NULL, 0); /* the device has none */
	assert_false(spill_context_dead(&backend, 0, &mine, made));
	assert_int_equal(forgotten, 0);
}
