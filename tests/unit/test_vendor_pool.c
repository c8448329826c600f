/*
 * Accounts of the vendor's pools against a vendor that counts. The charge is the bytes that a pool
 * has reserved, or more during a request. Nothing stays charged.
 */
#define SETUP setup
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "account.h"
#include "fake_vendor.h"
#include "fake_libc.h"
#include "ordered_pool.h"
#include "vendor_pool.h"

#define MIB (1ull << 20)

static struct spill_policy policy;
static struct fake_pool theirs; /* a pool of the program's */

static int setup(void **state)
{
	fake_libc_reset();
	fake_vendor_policy(&policy);
	theirs = (struct fake_pool){.place = SPILL_PLACE_DEVICE};
	fake_vendor_reset(1024 * MIB);
	spill_fork_lock_take(&spill_vendor_pool_fork_lock);
	spill_fork_lock_release(&spill_vendor_pool_fork_lock, true); /* forgets all */
	spill_account_reset();
	return 0;
}

/* Decided and charged: false over the limit. */
static bool admit(struct spill_vendor_pool *pool, uint64_t bytes, uint64_t limit, uint64_t *charged)
{
	struct spill_request request = {.bytes = bytes};
	struct spill_ask ask = {.bytes = bytes};
	bool admitted = spill_vendor_pool_admit(pool, &request, &ask, limit);
	assert_int_equal(admitted, request.admission.decision.would == SPILL_VERDICT_DRIVER);
	*charged = request.admission.charged;
	return admitted;
}

/* One request of the program to its own pool, as engine_async.c makes it; false over the limit. */
static bool request(struct spill_vendor_pool *pool, uint64_t bytes, uint64_t limit)
{
	uint64_t charged, ptr;
	if (!admit(pool, bytes, limit, &charged))
		return false;
	assert_true(spill_account_device_held(0) <= limit);
	if (fake_vendor_backend.pools->alloc(&theirs, bytes, NULL, false, &ptr)) {
		spill_vendor_pool_retract(pool, bytes, charged);
		return false;
	}
	spill_vendor_pool_settle(pool);
	return true;
}

static void give(struct spill_vendor_pool *pool, uint64_t bytes)
{
	theirs.used -= bytes;
	spill_vendor_pool_freed(pool, bytes);
}

static struct spill_vendor_pool *their_pool(void)
{
	return spill_vendor_pool_of(&fake_vendor_backend, &theirs, 0);
}

/*
 * Taken for one on the device, a request to a pool on host would be spilled, or refused for a limit
 * of the device. The first test: there is no record yet that could be used again.
 */
TEST(a_pool_without_a_record_is_not_taken_for_another)
{
	static char on_host, later;

	fake_libc_fail(FAKE_calloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	spill_vendor_pool_created(&fake_vendor_backend, &on_host, SPILL_PLACE_HOST, 0);
	fake_libc_reset();
	assert_int_equal(spill_vendor_pool_place(&fake_vendor_backend, &on_host), SPILL_PLACES);
	assert_int_equal(spill_vendor_pool_place(&fake_vendor_backend, NULL), SPILL_PLACE_DEVICE);
	spill_vendor_pool_created(&fake_vendor_backend, &later, SPILL_PLACE_HOST, 0);
	assert_int_equal(spill_vendor_pool_place(&fake_vendor_backend, &later), SPILL_PLACE_HOST);
}

static char default_handle;

static int its_default(int device, void **pool)
{
	*pool = &default_handle;
	return device; /* the others have none */
}

/* The vendor is asked about each handle once. A pool that is no device's default is in another place (CUDA 13). */
TEST(only_the_default_pools_of_devices_need_no_record)
{
	static char elsewhere;
	struct spill_backend vendor = fake_vendor_backend;
	struct spill_vendor_pools of = *vendor.pools;
	of.device_default = its_default;
	vendor.pools = &of;
	assert_int_equal(spill_vendor_pool_place(&vendor, &default_handle), SPILL_PLACE_DEVICE);
	assert_int_equal(spill_vendor_pool_place(&vendor, &elsewhere), SPILL_PLACES);
	of.device_default = fake_vendor_backend.pools->device_default;
	assert_int_equal(spill_vendor_pool_place(&vendor, &default_handle), SPILL_PLACE_DEVICE);
	spill_vendor_pool_found(&vendor, &elsewhere, SPILL_PLACE_MANAGED);
	spill_vendor_pool_found(&vendor, &elsewhere, SPILL_PLACE_MANAGED);
	spill_vendor_pool_found(&vendor, &default_handle, SPILL_PLACE_HOST); /* it is known already */
	assert_int_equal(spill_vendor_pool_place(&vendor, &elsewhere), SPILL_PLACE_MANAGED);
	assert_int_equal(spill_vendor_pool_place(&vendor, &default_handle), SPILL_PLACE_DEVICE);
}

/* Its parent's records serve its own pools, and nothing is charged to them. */
TEST(a_child_has_no_pool)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 20 * MIB, 100 * MIB));
	spill_fork_lock_take(&spill_vendor_pool_fork_lock);
	spill_fork_lock_release(&spill_vendor_pool_fork_lock, true);
	spill_account_reset();
	theirs = (struct fake_pool){.place = SPILL_PLACE_DEVICE};
	assert_null(spill_vendor_pool_handle(pool));
	spill_vendor_pool_created(&fake_vendor_backend, &theirs, SPILL_PLACE_DEVICE, 0);
	struct spill_vendor_pool *own = their_pool();
	assert_ptr_equal(own, pool);
	assert_true(request(own, 20 * MIB, 100 * MIB));
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
	give(own, 20 * MIB);
	spill_vendor_pool_destroyed(&fake_vendor_backend, &theirs);
	assert_int_equal(spill_account_device_held(0), 0);
}

/* In whole steps, by what the unused bytes lack. */
TEST(a_pool_grows_in_steps)
{
	const uint64_t step = SPILL_MEMPOOL_STEP;
	assert_int_equal(spill_vendor_pool_growth(step, step, SPILL_UNLIMITED), 0);
	assert_int_equal(spill_vendor_pool_growth(step + 1, step, SPILL_UNLIMITED), step);
	assert_int_equal(spill_vendor_pool_growth(step, 0, SPILL_UNLIMITED), step);
	assert_int_equal(spill_vendor_pool_growth(2 * step, step / 2, SPILL_UNLIMITED), 2 * step);
	/* No more than there is room, unless the request needs it. */
	assert_int_equal(spill_vendor_pool_growth(3 * MIB, MIB, 10 * MIB), 10 * MIB);
	assert_int_equal(spill_vendor_pool_growth(3 * MIB, MIB, 2 * MIB), 2 * MIB);
	assert_int_equal(spill_vendor_pool_growth(3 * MIB, MIB, MIB), 2 * MIB);
}

TEST(what_is_reserved_counts)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 20 * MIB, 100 * MIB));
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
	assert_true(request(pool, 40 * MIB, 100 * MIB));
	assert_int_equal(spill_account_device_held(0), 64 * MIB);
	give(pool, 60 * MIB); /* the pool keeps it */
	assert_int_equal(spill_account_device_held(0), 64 * MIB);
	assert_true(request(pool, 64 * MIB, 64 * MIB)); /* and serves it again */
	assert_int_equal(spill_account_device_held(0), 64 * MIB);
	assert_false(request(pool, 1, 64 * MIB));
	give(pool, 64 * MIB);
	assert_int_equal(spill_vendor_pool_trim(&fake_vendor_backend, 0, false), 64 * MIB);
	assert_int_equal(spill_account_device_held(0), 0);
}

/* A pool that has grown past the limit lets nobody in by what it has in pieces. */
TEST(beyond_the_limit_nothing_fits)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 20 * MIB, 100 * MIB));
	theirs.reserved = 128 * MIB;
	assert_true(spill_vendor_pool_settle(pool));
	assert_false(spill_vendor_pool_settle(pool));
	assert_int_equal(spill_account_device_held(0), 128 * MIB);
	assert_false(request(pool, MIB, 100 * MIB));
	assert_true(request(pool, MIB, 128 * MIB));
}

TEST(what_the_vendor_took_back_is_seen)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 90 * MIB, 100 * MIB));
	give(pool, 90 * MIB);
	theirs.reserved = 0;
	assert_false(spill_account_device_held(0) == 0);
	assert_true(spill_vendor_pool_settle_device(&fake_vendor_backend, 0));
	assert_int_equal(spill_account_device_held(0), 0);
	assert_false(spill_vendor_pool_settle_device(&fake_vendor_backend, 0));
}

/* Whichever of its calls fails, a request leaves what was charged before, and never less than is in use. */
TEST(a_failing_call_leaves_nothing)
{
	for (unsigned nth = 1; nth <= 3; nth++) {
		setup(state);
		struct spill_vendor_pool *pool = their_pool();
		fake_vendor_fail(nth, nth + 1);
		bool served = request(pool, 40 * MIB, 100 * MIB);
		assert_int_equal(served, nth != 1);
		fake_vendor_fail(0, 0);
		assert_true(spill_account_device_held(0) >= (served ? 40 * MIB : 0));
		if (served)
			give(pool, 40 * MIB);
		else
			assert_int_equal(spill_account_device_held(0), 0);
		spill_vendor_pool_trim(&fake_vendor_backend, 0, false);
		assert_int_equal(spill_account_device_held(0), 0);
	}
}

/* Two ask at once, the second is let in by what the first was charged with, the first is refused. */
TEST(a_retract_leaves_what_others_use)
{
	struct spill_vendor_pool *pool = their_pool();
	uint64_t first, second;
	assert_true(admit(pool, MIB, 100 * MIB, &first));
	assert_int_equal(first, 32 * MIB);
	assert_true(admit(pool, 10 * MIB, 100 * MIB, &second));
	assert_int_equal(second, 0);
	spill_vendor_pool_retract(pool, MIB, first);
	assert_int_equal(spill_account_device_held(0), 10 * MIB);
	spill_vendor_pool_retract(pool, 10 * MIB, second);
	spill_vendor_pool_destroyed(&fake_vendor_backend, &theirs);
	assert_int_equal(spill_account_device_held(0), 0);
}

/* The program has ended the pool meanwhile. */
TEST(the_last_retract_ends_a_pool)
{
	struct spill_vendor_pool *pool = their_pool();
	uint64_t first, second;
	assert_true(admit(pool, MIB, 100 * MIB, &first));
	assert_true(admit(pool, 10 * MIB, 100 * MIB, &second));
	spill_vendor_pool_destroyed(&fake_vendor_backend, &theirs);
	spill_vendor_pool_freed(pool, MIB);
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
	spill_vendor_pool_retract(pool, 10 * MIB, second);
	assert_int_equal(spill_account_device_held(0), 0);
}

/* The program gives back what its pool holds. A pool that holds nothing, and none, are nothing to ask about. */
TEST(a_trim_of_the_program_counts)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 20 * MIB, 100 * MIB));
	give(pool, 20 * MIB);
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
	theirs.reserved = 0;
	spill_vendor_pool_trimmed(&fake_vendor_backend, NULL);
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
	spill_vendor_pool_trimmed(&fake_vendor_backend, &theirs);
	assert_int_equal(spill_account_device_held(0), 0);
	theirs.reserved = 64 * MIB;
	spill_vendor_pool_trimmed(&fake_vendor_backend, &theirs);
	assert_int_equal(spill_account_device_held(0), 0);
}

static _Atomic unsigned not_admitted;

static void *admits_and_frees(void *pool)
{
	const char *error;
	for (unsigned i = 0; i < 20000; i++) {
		struct spill_request request = {.bytes = 1 + i % 7};
		struct spill_ask ask = {.bytes = request.bytes};
		spill_vendor_pool_ours(&fake_vendor_backend, 0, SPILL_PLACE_HOST, SPILL_LOCATION_HOST,
		                       &error);
		not_admitted += !spill_vendor_pool_admit(pool, &request, &ask, SPILL_UNLIMITED);
		if (i % 2)
			spill_vendor_pool_freed(pool, request.bytes);
		else
			spill_vendor_pool_retract(pool, request.bytes, request.admission.charged);
	}
	return NULL;
}

/* No byte is lost, or the pool would be charged for ever, or for less than it has. */
TEST(threads_share_a_pool)
{
	pthread_t threads[4];
	struct spill_vendor_pool *pool = their_pool();
	not_admitted = 0;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, admits_and_frees, pool), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(not_admitted, 0);
	assert_int_equal(fake_vendor.pools, 1);
	spill_vendor_pool_destroyed(&fake_vendor_backend, &theirs);
	assert_int_equal(spill_account_device_held(0), 0);
}

TEST(a_destroyed_pool_counts_until_its_last_free)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 20 * MIB, 100 * MIB));
	spill_vendor_pool_destroyed(&fake_vendor_backend, &theirs);
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
	/* A new pool with its handle is another one. */
	spill_vendor_pool_created(&fake_vendor_backend, &theirs, SPILL_PLACE_DEVICE, 0);
	assert_ptr_not_equal(their_pool(), pool);
	spill_vendor_pool_freed(pool, 20 * MIB);
	assert_int_equal(spill_account_device_held(0), 0);
	/* And its bookkeeping is used again. */
	spill_vendor_pool_created(&fake_vendor_backend, &fake_vendor, SPILL_PLACE_HOST, 0);
	assert_ptr_equal(spill_vendor_pool_of(&fake_vendor_backend, &fake_vendor, 0), pool);
	assert_int_equal(spill_vendor_pool_place(&fake_vendor_backend, &fake_vendor), SPILL_PLACE_HOST);
}

/*
 * The vendor has ended it with its context, or by a call that is not hooked. The bytes of its frees
 * come back to the account that they are charged to, and those of the new pool to its own.
 */
TEST(a_pool_whose_end_was_not_seen)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 20 * MIB, 100 * MIB));
	spill_vendor_pool_created(&fake_vendor_backend, &theirs, SPILL_PLACE_HOST, 0);
	struct spill_vendor_pool *later = their_pool();
	assert_ptr_not_equal(later, pool);
	assert_int_equal(spill_vendor_pool_place(&fake_vendor_backend, &theirs), SPILL_PLACE_HOST);
	assert_null(spill_vendor_pool_handle(pool));
	assert_int_equal(spill_account_device_held(0), 32 * MIB); /* a free of it may still come */
	theirs = (struct fake_pool){.place = SPILL_PLACE_HOST, .reserved = 64 * MIB};
	assert_false(spill_vendor_pool_settle(pool)); /* not with the figures of the new one */
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
	assert_true(spill_vendor_pool_settle(later));
	assert_int_equal(spill_account_host_held(), 64 * MIB);
	spill_vendor_pool_freed(pool, 20 * MIB);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 64 * MIB);
	spill_vendor_pool_destroyed(&fake_vendor_backend, &theirs);
	assert_int_equal(spill_account_host_held(), 0);
}

static void made_again(void)
{
	spill_vendor_pool_created(&fake_vendor_backend, &theirs, SPILL_PLACE_DEVICE, 0);
}

/* The vendor's figures are of another pool by now: the charge of the ended one stays. */
TEST(a_pool_that_ends_while_the_vendor_is_asked)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 20 * MIB, 100 * MIB));
	theirs.reserved = 96 * MIB;
	fake_vendor.meanwhile = made_again;
	assert_false(spill_vendor_pool_settle(pool));
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
	spill_vendor_pool_freed(pool, 20 * MIB);
	assert_int_equal(spill_account_device_held(0), 0);
	/* Nobody is asking about it any more, so its record is used again. */
	static char later;
	spill_vendor_pool_created(&fake_vendor_backend, &later, SPILL_PLACE_DEVICE, 0);
	assert_ptr_equal(spill_vendor_pool_of(&fake_vendor_backend, &later, 0), pool);
}

static void made_again_and_used(void)
{
	made_again();
	theirs.used = 90 * MIB;
}

TEST(a_pool_that_ends_while_it_is_trimmed)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 20 * MIB, 100 * MIB));
	fake_vendor.meanwhile = made_again_and_used;
	spill_vendor_pool_trim(&fake_vendor_backend, 0, false);
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
	spill_vendor_pool_freed(pool, 20 * MIB);
	assert_int_equal(spill_account_device_held(0), 0);
}

/* Even if nothing of it is in use: its record is another pool's only when nobody asks about it any more. */
TEST(an_empty_pool_that_ends_while_the_vendor_is_asked)
{
	struct spill_vendor_pool *pool = their_pool();
	fake_vendor.meanwhile = made_again;
	assert_false(spill_vendor_pool_settle(pool));
	assert_ptr_not_equal(their_pool(), pool);
}

static _Atomic bool destroyed;

static void *destroy(void *unused)
{
	spill_vendor_pool_destroyed(&fake_vendor_backend, &theirs);
	destroyed = true;
	return NULL;
}

static struct spill_vendor_pool *asked_about;
static pthread_t destroyer;
static bool destroyed_too_early;

/* The other thread has come as far as it can. If it goes on all the same, the yields let it. */
static void destroyed_by_another(void)
{
	assert_int_equal(pthread_create(&destroyer, NULL, destroy, NULL), 0);
	while (spill_vendor_pool_handle(asked_about))
		sched_yield();
	for (int i = 0; i < 1000 && !destroyed; i++)
		sched_yield();
	destroyed_too_early = destroyed;
}

/* The vendor may not be asked about a pool that it has destroyed. So the destroyer waits for who is asking. */
TEST(a_destroy_waits_for_a_call_about_the_pool)
{
	asked_about = their_pool();
	destroyed = false;
	fake_vendor.meanwhile = destroyed_by_another;
	spill_vendor_pool_settle(asked_about);
	pthread_join(destroyer, NULL);
	assert_false(destroyed_too_early);
}

/* Nothing of it is in use, so nothing stays charged, and its record is the new pool's. */
TEST(an_empty_pool_whose_end_was_not_seen)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 20 * MIB, 100 * MIB));
	give(pool, 20 * MIB);
	spill_vendor_pool_created(&fake_vendor_backend, &theirs, SPILL_PLACE_DEVICE, 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_ptr_equal(their_pool(), pool);
	assert_true(request(pool, MIB, 100 * MIB));
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
}

TEST(a_refused_destroy_changes_nothing)
{
	struct spill_vendor_pool *pool = their_pool();
	assert_true(request(pool, 20 * MIB, 100 * MIB));
	assert_ptr_equal(spill_vendor_pool_destroyed(&fake_vendor_backend, &theirs), pool);
	spill_vendor_pool_alive(pool, &theirs);
	assert_ptr_equal(their_pool(), pool);
	assert_int_equal(spill_account_device_held(0), 32 * MIB);
}

/* Ours on host keeps the most it ever had, and goes whole when nothing of it is in use. */
TEST(ours_on_host)
{
	const char *error;
	uint64_t charged, ptr;
	struct spill_vendor_pool *pool =
	    spill_vendor_pool_ours(&fake_vendor_backend, 0, SPILL_PLACE_HOST, SPILL_LOCATION_HOST, &error);
	assert_non_null(pool);
	assert_ptr_equal(
	    spill_vendor_pool_ours(&fake_vendor_backend, 0, SPILL_PLACE_HOST, SPILL_LOCATION_HOST, &error),
	    pool);
	assert_int_equal(fake_vendor.pools, 1);
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 100 * MIB};
	assert_null(spill_vendor_pool_charge(pool, 40 * MIB, &policy, &charged));
	assert_int_equal(
	    fake_vendor_backend.pools->alloc(spill_vendor_pool_handle(pool), 40 * MIB, NULL, false, &ptr), 0);
	spill_vendor_pool_settle(pool);
	assert_int_equal(spill_account_host_held(), 64 * MIB);
	assert_string_equal(spill_vendor_pool_charge(pool, 64 * MIB, &policy, &charged), "host.limit");
	assert_int_equal(spill_vendor_pool_trim(&fake_vendor_backend, 0, true), 0); /* in use */
	assert_int_equal(fake_vendor.pools, 1);
	spill_vendor_pool_freed(pool, 40 * MIB);
	fake_vendor.pool[0].reserved = 0; /* as the vendor says, and it is not true */
	spill_vendor_pool_settle(pool);
	assert_int_equal(spill_account_host_held(), 64 * MIB);
	assert_int_equal(spill_vendor_pool_trim(&fake_vendor_backend, 0, true), 64 * MIB);
	assert_int_equal(fake_vendor.pools, 0);
	assert_int_equal(spill_account_host_held(), 0);
}

/* Ours on the device keeps all that it has. Its memory in stream order is ours, and that on the host is not. */
static const void *allowed[4];
static unsigned allowed_count;

static int note_allowed(void *pool, int device)
{
	assert_int_equal(device, 5);
	allowed[allowed_count++] = pool;
	return 0;
}

TEST(ours_on_the_device)
{
	const char *error;
	struct spill_backend backend = fake_vendor_backend;
	struct spill_vendor_pools pools = *fake_vendor_backend.pools;
	struct spill_vendor_pool *host, *device;
	pools.allow = note_allowed;
	backend.pools = &pools;
	host = spill_vendor_pool_ours(&backend, 0, SPILL_PLACE_HOST, SPILL_LOCATION_HOST, &error);
	device = spill_vendor_pool_ours(&backend, 0, SPILL_PLACE_DEVICE, SPILL_LOCATION_DEVICE, &error);
	assert_null(spill_ordered_pool_of(&backend, spill_vendor_pool_handle(host)));
	struct spill_ordered_pool *pool = spill_ordered_pool_of(&backend, spill_vendor_pool_handle(device));
	assert_non_null(pool);
	assert_true(spill_ordered_kept(pool) == UINT64_MAX);
	/* A peer may use both, and no pool of the program's. */
	spill_vendor_pool_created(&backend, &theirs, SPILL_PLACE_DEVICE, 0);
	spill_vendor_pool_allow(&backend, 0, 5);
	assert_int_equal(allowed_count, 2);
	assert_true(allowed[0] == spill_vendor_pool_handle(host) ||
	            allowed[1] == spill_vendor_pool_handle(host));
	assert_true(allowed[0] == spill_vendor_pool_handle(device) ||
	            allowed[1] == spill_vendor_pool_handle(device));
	spill_vendor_pool_trim(&backend, 0, true);
	spill_fork_lock_take(&spill_vendor_pool_fork_lock);
	spill_fork_lock_release(&spill_vendor_pool_fork_lock, true); /* the vendor is gone */
}

static struct spill_vendor_pool *made_meanwhile;

static void make_ours(void)
{
	const char *error;
	made_meanwhile =
	    spill_vendor_pool_ours(&fake_vendor_backend, 0, SPILL_PLACE_HOST, SPILL_LOCATION_HOST, &error);
}

/* Another thread made it in the time of the vendor's call. There is one pool, and both have it. */
TEST(two_threads_make_a_pool_of_ours)
{
	const char *error;
	fake_vendor.meanwhile = make_ours;
	struct spill_vendor_pool *pool =
	    spill_vendor_pool_ours(&fake_vendor_backend, 0, SPILL_PLACE_HOST, SPILL_LOCATION_HOST, &error);
	assert_non_null(pool);
	assert_null(error);
	assert_ptr_equal(pool, made_meanwhile);
	assert_int_equal(fake_vendor.pools, 1);
	assert_ptr_equal(spill_vendor_pool_handle(pool),
	                 &fake_vendor.pool[1]); /* of the first that came back */
	spill_vendor_pool_trim(&fake_vendor_backend, 0, true);
	assert_int_equal(fake_vendor.pools, 0);
}

static int default_of_1(int device, void **pool)
{
	*pool = &theirs;
	return device != 1;
}

/* A default pool is not made by a call that is seen, so the vendor says whose it is. */
TEST(the_device_of_a_pool)
{
	static char made, of_0, unknown;
	struct spill_backend backend = fake_vendor_backend;
	struct spill_vendor_pools pools = *fake_vendor_backend.pools;
	pools.device_default = default_of_1;
	backend.pools = &pools;
	assert_int_equal(spill_vendor_pool_device(&backend, &theirs, 0), 1);
	assert_int_equal(spill_vendor_pool_device(&backend, &theirs, 1), 1);
	assert_int_equal(spill_vendor_pool_device(&backend, &unknown, 3), 3);
	spill_vendor_pool_created(&backend, &made, SPILL_PLACE_DEVICE, 2);
	assert_int_equal(spill_vendor_pool_device(&backend, &made, 0), 2);
	spill_vendor_pool_created(&backend, &of_0, SPILL_PLACE_DEVICE, 0);
	assert_int_equal(spill_vendor_pool_device(&backend, &of_0, 2), 0);
}

TEST(a_vendor_without_such_pools)
{
	const char *error = "?";
	fake_vendor.no_pools = true;
	assert_null(
	    spill_vendor_pool_ours(&fake_vendor_backend, 0, SPILL_PLACE_HOST, SPILL_LOCATION_HOST, &error));
	assert_null(error); /* place it otherwise */
	fake_vendor.no_pools = false;
	fake_vendor_fail(1, 1 + 1);
	assert_null(
	    spill_vendor_pool_ours(&fake_vendor_backend, 0, SPILL_PLACE_HOST, SPILL_LOCATION_HOST, &error));
	assert_string_equal(error, "FAKE_OUT_OF_MEMORY");
}

static unsigned graphs_asked;

static int graph_reserved(int device, uint64_t *bytes)
{
	graphs_asked++;
	*bytes = 3 * MIB;
	return 0;
}

/* Of devices that have no account, and of vendors that cannot tell, nothing is kept. */
TEST(graphs_are_counted_where_their_memory_is_known)
{
	static const int none[] = {-1, SPILL_DEVICES}, some[] = {0, SPILL_DEVICES - 1};
	struct spill_backend backend = fake_vendor_backend;
	spill_vendor_pool_graphs(&backend, 0);
	backend.graph_reserved = graph_reserved;
	for (unsigned i = 0; i < 2; i++)
		spill_vendor_pool_graphs(&backend, none[i]);
	assert_false(spill_vendor_pool_has_graphs());
	for (unsigned i = 0; i < 4; i++) /* the record of the first one serves again */
		spill_vendor_pool_graphs(&backend, some[i % 2]);
	assert_true(spill_vendor_pool_has_graphs());
	for (unsigned i = 0; i < 2; i++)
		spill_vendor_pool_settle_graphs(&backend, none[i]);
	spill_vendor_pool_settle_graphs(&backend, 1);
	assert_int_equal(graphs_asked, 0);
	for (unsigned i = 0; i < 2; i++) {
		spill_vendor_pool_settle_graphs(&backend, some[i]);
		assert_int_equal(graphs_asked, i + 1);
		assert_int_equal(spill_account_device_held(some[i]), 3 * MIB);
	}
}

static struct fake_pool *default_pool, *current_pool; /* NULL: the call fails */

static int tell_pool(struct fake_pool *told, void **pool)
{
	*pool = told;
	return told ? 0 : FAKE_INVALID;
}

static int default_of(int device, void **pool)
{
	return tell_pool(default_pool, pool);
}

static int current_of(int device, void **pool)
{
	return tell_pool(current_pool, pool);
}

static int unused_of(void *pool, uint64_t *bytes)
{
	*bytes = ((struct fake_pool *)pool)->reserved;
	return 0;
}

static int no_trim(void *pool)
{
	return FAKE_INVALID;
}

/* A device's default pool, and its current one, are looked at although no call made them. */
TEST(pools_that_the_program_did_not_make)
{
	for (unsigned known = 0; known < 8; known++) {
		struct spill_backend backend = fake_vendor_backend;
		struct spill_vendor_pools pools = *fake_vendor_backend.pools;
		struct fake_pool first = {.reserved = 32 * MIB};
		struct fake_pool second = {.used = MIB, .reserved = 96 * MIB}; /* keeps a step */
		bool finds_first = known & 1, finds_second = known & 2;
		uint64_t kept = finds_second * 32 * MIB,
		         given = finds_first * 32 * MIB + finds_second * 64 * MIB;
		setup(state);
		pools.device_default = default_of;
		pools.current = current_of;
		pools.unused = unused_of;
		backend.pools = &pools;
		default_pool = finds_first ? &first : NULL;
		current_pool = finds_second ? &second : NULL;
		if (known & 4) /* each call finds them */
			assert_int_equal(spill_vendor_pool_unused(&backend, 0), kept + given);
		assert_int_equal(spill_vendor_pool_trim(&backend, 0, false), given);
		assert_int_equal(spill_vendor_pool_trim(&backend, 0, true), 0);
		assert_int_equal(spill_vendor_pool_unused(&backend, 0), kept);
		second.reserved += 32 * MIB;
		pools.trim = no_trim;
		assert_int_equal(spill_vendor_pool_trim(&backend, 0, false), 0);
	}
	spill_fork_lock_take(&spill_vendor_pool_fork_lock);
	spill_fork_lock_release(&spill_vendor_pool_fork_lock, true); /* the vendor is gone */
}
