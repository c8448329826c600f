/*
 * Places, shared chunks, accounts and ledger from several threads at once: nothing is lost, nothing overlaps, the limit holds
 * at every moment. scripts/check runs it under TSan.
 */
#include <pthread.h>
#include "unit.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "account.h"
#include "fake_vendor.h"
#include "ledger.h"
#include "place.h"
#include "shared_chunks.h"

#define MIB (1ull << 20)

enum { THREADS = 4, ROUNDS = 20000, LIVE = 24 };

static const uint64_t limit = 60 * MIB;
static struct spill_policy policy;
static _Atomic unsigned failures;

/* In a thread: cmocka's assertions jump, which only its own thread may. */
static void expect(bool right)
{
	if (!right)
		atomic_fetch_add(&failures, 1);
}

static struct spill_placement *make(unsigned random)
{
	static const struct spill_place_ops *const places[] = {&spill_place_split, &spill_place_host,
	                                                       &spill_place_managed};
	const char *error = NULL;
	struct spill_place_request want = {
	    .backend = &fake_vendor_backend,
	    .policy = &policy,
	    .context = &policy,
	    /* Mostly small: they meet in the shared chunks, while large ones spend their time in /proc. */
	    .bytes = random % 16 ? 1 + (random >> 8) % (64 << 10) : 2 * MIB + (random >> 8) % (20 * MIB),
	    .device_room = limit,
	    .device_limit = limit,
	};
	return spill_place_make(places[(random >> 4) % 3], &want, &error);
}

/* Ends what is at its address, and sees that it was its own and is gone. */
static void end(const struct spill_allocation *mine)
{
	struct spill_allocation copy;
	expect(spill_ledger_placed(mine->ptr + mine->bytes - 1, &copy) && copy.seq == mine->seq);
	struct spill_allocation *taken = spill_ledger_take(mine->ptr);
	expect(taken && taken->seq == mine->seq);
	if (!taken)
		return;
	expect(!spill_ledger_placed(mine->ptr, &copy));
	spill_placement_release(taken->placement, false);
	spill_ledger_end(taken);
}

static void begin(struct spill_allocation *mine, unsigned random)
{
	struct spill_placement *placement = make(random);
	expect(placement != NULL);
	if (!placement)
		return;
	*mine = (struct spill_allocation){
	    .backend = &fake_vendor_backend,
	    .ptr = placement->ptr,
	    .bytes = placement->bytes,
	    .held = placement->held,
	    .placement = placement,
	};
	expect(spill_ledger_add(mine));
}

static pthread_barrier_t start;

static void *work(void *argument)
{
	struct spill_allocation live[LIVE] = {0};
	pthread_barrier_wait(&start);
	unsigned random = (unsigned)(uintptr_t)argument * 7919 + 1;
	for (int round = 0; round < ROUNDS; round++) {
		random = random * 1103515245u + 12345u;
		struct spill_allocation *mine = &live[(random >> 16) % LIVE];
		if (mine->placement) {
			end(mine);
			mine->placement = NULL;
		} else {
			begin(mine, random >> 3);
		}
		expect(spill_account_device_held(0) <= limit);
	}
	for (int i = 0; i < LIVE; i++)
		if (live[i].placement)
			end(&live[i]);
	return NULL;
}

/* Nothing but charging and giving back, so that threads meet between the look and the charge. */
static void *charge(void *argument)
{
	const struct spill_place_request want = {.device_room = limit, .device_limit = limit};
	pthread_barrier_wait(&start);
	for (int round = 0; round < 200000; round++) {
		uint64_t charged = spill_device_charge(&want, 40 * MIB, 2 * MIB);
		expect(spill_account_device_held(0) <= limit);
		spill_account_device_return(0, charged);
	}
	return NULL;
}

static void run(void *(*body)(void *))
{
	pthread_t threads[THREADS];
	pthread_barrier_init(&start, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&start);
	assert_int_equal(failures, 0);
	assert_int_equal(spill_account_device_held(0), 0);
}

TEST(charges_never_pass_the_limit)
{
	run(charge);
}

TEST(threads_lose_nothing)
{
	struct spill_totals totals;
	spill_policy_default(&policy);
	policy.host_limit = policy.host_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.host_limit.kind = SPILL_AMOUNT_NONE;
	policy.advice.prefetch_below = (struct spill_amount){SPILL_AMOUNT_BYTES, 10 * MIB};
	fake_vendor_reset(2 * limit);
	run(work);
	spill_shared_chunks_trim(&fake_vendor_backend, 0, &policy);
	assert_int_equal(fake_vendor_alive(), 0);
	assert_int_equal(spill_account_host_held(), 0);
	spill_ledger_totals(&totals);
	assert_true(totals.allocs > ROUNDS);
	assert_int_equal(totals.allocs, totals.frees);
	assert_int_equal(totals.live.device + totals.live.host + totals.live.managed, 0);
}
