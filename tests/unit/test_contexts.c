/*
 * Which contexts there are: those named, the primary and the current one, each once, until they end; never a wrong few when
 * there are too many.
 */
#include <pthread.h>
#define SETUP setup
#include "unit.h"

#include <stdatomic.h>

#include "ended.h"
#include "contexts.h"

static char contexts[1000]; /* their addresses are contexts */
static void *primary, *now; /* of device 0; NULL: none */

static bool has_primary(int device, void **context)
{
	if (device || !primary)
		return false;
	*context = primary;
	return true;
}

static bool current(int *device, void **context)
{
	if (!now)
		return false;
	*device = 0;
	*context = now;
	return true;
}

static const struct spill_backend vendor = {
    .contexts = &(const struct spill_vendor_contexts){.primary = has_primary},
    .devices = &(const struct spill_vendor_devices){.current = current},
};
static const struct spill_backend other_vendor = {
    .devices = &(const struct spill_vendor_devices){.current = current},
};

static int setup(void **state)
{
	primary = now = NULL;
	spill_fork_lock_take(&spill_contexts_fork_lock);
	spill_fork_lock_release(&spill_contexts_fork_lock, true); /* nothing is known */
	return 0;
}

static unsigned count(const struct spill_backend *backend, int device)
{
	void *list[SPILL_CONTEXTS + 1];
	list[SPILL_CONTEXTS] = &list;
	unsigned there = spill_contexts_of(backend, device, list);
	assert_ptr_equal(list[SPILL_CONTEXTS], &list); /* no more than there is room for */
	return there;
}

static bool has(int device, const void *context)
{
	void *list[SPILL_CONTEXTS];
	unsigned found = 0, there = spill_contexts_of(&vendor, device, list);
	assert_true(there <= SPILL_CONTEXTS);
	for (unsigned i = 0; i < there; i++)
		found += list[i] == context;
	assert_true(found <= 1);
	return found;
}

TEST(each_is_known_once_until_it_ends)
{
	assert_int_equal(count(&vendor, 0), 0);
	spill_contexts_made(&vendor, 0, &contexts[0]);
	spill_contexts_made(&vendor, 0, &contexts[0]);
	spill_contexts_made(&vendor, 1, &contexts[1]);
	spill_contexts_made(&vendor, 0, &contexts[0]);
	spill_contexts_made(&vendor, 0, NULL);
	assert_true(has(0, &contexts[0]) && has(1, &contexts[1]));
	assert_int_equal(count(&vendor, 0), 1);
	assert_int_equal(count(&vendor, 1), 1);
	assert_int_equal(count(&other_vendor, 0), 0);
	spill_contexts_ended(ENDED(&vendor, 1, &contexts[1]));
	spill_contexts_ended(ENDED(&other_vendor, 0, &contexts[0]));
	assert_int_equal(count(&vendor, 1), 0);
	assert_true(has(0, &contexts[0]));
}

/* A handle that comes back is another context, also for the thread that named the old one last. */
TEST(a_handle_comes_back)
{
	spill_contexts_made(&vendor, 0, &contexts[0]);
	uint64_t first = spill_contexts_birth(&vendor, &contexts[0]);
	assert_int_not_equal(first, 0);
	spill_contexts_made(&vendor, 0, &contexts[0]);
	assert_int_equal(spill_contexts_birth(&vendor, &contexts[0]), first);
	spill_contexts_ended(ENDED(&vendor, 0, &contexts[0]));
	assert_int_equal(spill_contexts_birth(&vendor, &contexts[0]), 0);
	spill_contexts_made(&vendor, 1, &contexts[0]);
	assert_int_not_equal(spill_contexts_birth(&vendor, &contexts[0]), first);
	assert_true(has(1, &contexts[0]));
	assert_int_equal(count(&vendor, 0), 0);
}

/* The thread that ended a context comes late: its handle is a new context's, which stays known, as another one. */
TEST(a_handle_is_given_anew_while_its_end_is_under_way)
{
	spill_contexts_made(&vendor, 0, &contexts[0]);
	uint64_t first = spill_contexts_birth(&vendor, &contexts[0]);
	struct spill_context_end end = spill_context_end_begin(&vendor, 0, &contexts[0]);
	spill_contexts_created(&vendor, 0, &contexts[0]);
	assert_int_not_equal(spill_contexts_birth(&vendor, &contexts[0]), first);
	spill_contexts_ended(&end);
	assert_true(has(0, &contexts[0]));
	spill_contexts_ended(ENDED(&vendor, 0, &contexts[0]));
	assert_int_equal(count(&vendor, 0), 0);
}

/* Nobody sees a primary context made anew: it is found in use. */
TEST(a_context_in_use_again_is_another_one)
{
	spill_contexts_made(&vendor, 0, &contexts[0]);
	uint64_t first = spill_contexts_birth(&vendor, &contexts[0]);
	struct spill_context_end end = spill_context_end_begin(&vendor, 0, &contexts[0]);
	spill_contexts_made(&vendor, 0, &contexts[0]);
	spill_contexts_ended(&end);
	assert_true(has(0, &contexts[0]));
	assert_int_not_equal(spill_contexts_birth(&vendor, &contexts[0]), first);
	spill_contexts_ended(ENDED(&vendor, 0, &contexts[0]));
}

TEST(a_device_ends)
{
	spill_contexts_made(&vendor, 0, &contexts[0]);
	spill_contexts_made(&vendor, 0, &contexts[1]);
	spill_contexts_made(&vendor, 1, &contexts[2]);
	spill_contexts_ended(ENDED(&vendor, 0, NULL));
	assert_int_equal(count(&vendor, 0), 0);
	assert_int_equal(count(&vendor, 1), 1);
}

/* Nobody has named them. */
TEST(the_primary_and_the_current_one_are_asked_for)
{
	primary = &contexts[0];
	assert_true(has(0, primary));
	now = &contexts[1];
	assert_true(has(0, primary) && has(0, now));
	assert_int_equal(count(&vendor, 0), 2);
	assert_int_equal(count(&vendor, 1), 0);
	now = primary;
	spill_contexts_ended(ENDED(&vendor, 0, &contexts[1]));
	assert_int_equal(count(&vendor, 0), 1);
	spill_contexts_ended(ENDED(&vendor, 0, primary));
	now = primary = NULL;
	assert_int_equal(count(&vendor, 0), 0);
}

/* A mark in it is behind all work of the process only if there is no other one. */
TEST(the_only_one)
{
	assert_null(spill_contexts_only(&vendor, 0));
	spill_contexts_made(&vendor, 0, &contexts[0]);
	assert_ptr_equal(spill_contexts_only(&vendor, 0), &contexts[0]);
	assert_null(spill_contexts_only(&vendor, 1));
	spill_contexts_made(&vendor, 1, &contexts[1]);
	assert_null(spill_contexts_only(&vendor, 0));
	spill_contexts_ended(ENDED(&vendor, 1, &contexts[1]));
	spill_contexts_made(&vendor, 0, &contexts[2]);
	assert_null(spill_contexts_only(&vendor, 0));
	spill_contexts_ended(ENDED(&vendor, 0, &contexts[0]));
	assert_ptr_equal(spill_contexts_only(&vendor, 0), &contexts[2]);
}

/* All that fit are listed, and one more is too many; then a slot is free again. */
TEST(too_many_are_said_to_be)
{
	for (int i = 0; i < SPILL_CONTEXTS; i++)
		spill_contexts_made(&vendor, 0, &contexts[i]);
	for (int i = 0; i < SPILL_CONTEXTS; i++)
		assert_true(has(0, &contexts[i]));
	spill_contexts_made(&vendor, 0, &contexts[SPILL_CONTEXTS]);
	assert_int_equal(count(&vendor, 0), SPILL_CONTEXTS + 1);
	spill_contexts_made(&vendor, 0, &contexts[SPILL_CONTEXTS + 1]);
	assert_int_equal(count(&vendor, 0), SPILL_CONTEXTS + 1);
	spill_contexts_ended(ENDED(&vendor, 0, &contexts[0]));
	spill_contexts_ended(ENDED(&vendor, 0, &contexts[1]));
	assert_int_equal(count(&vendor, 0), SPILL_CONTEXTS);
}

/* One that found no slot could be anywhere: from then on no device's are known. */
TEST(what_is_lost_is_not_forgotten)
{
	for (unsigned i = 0; i < sizeof(contexts); i++)
		spill_contexts_made(&vendor, (int)i, &contexts[i]);
	for (unsigned i = 0; i < sizeof(contexts); i++)
		spill_contexts_ended(ENDED(&vendor, (int)i, &contexts[i]));
	assert_int_equal(count(&vendor, 0), SPILL_CONTEXTS + 1);
}

enum { THREADS = 4, ROUNDS = 5000 };
static _Atomic unsigned failures;

/* Each with contexts of its own, on the same device; what a thread has named is there until it ends it. */
static void *work(void *argument)
{
	char *mine = &contexts[16 * (uintptr_t)argument];
	for (int round = 0; round < ROUNDS; round++) {
		char *one = &mine[round % 16];
		spill_contexts_made(&vendor, 0, one);
		spill_contexts_made(&vendor, 0, one);
		uint64_t birth = spill_contexts_birth(&vendor, one);
		void *list[SPILL_CONTEXTS];
		unsigned there = spill_contexts_of(&vendor, 0, list), found = 0;
		for (unsigned i = 0; i < there && i < SPILL_CONTEXTS; i++)
			found += list[i] == one;
		spill_contexts_ended(ENDED(&vendor, 0, one));
		if (!birth || found != 1 || there > THREADS || spill_contexts_birth(&vendor, one))
			atomic_fetch_add(&failures, 1);
	}
	return NULL;
}

TEST(threads_lose_none)
{
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(failures, 0);
	assert_int_equal(count(&vendor, 0), 0);
}
