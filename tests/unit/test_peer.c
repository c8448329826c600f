/*
 * Peer access against a vendor that counts: the accesses that are granted, and the contexts that a
 * free waits for.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "ended.h"
#include "engine.h"
#include "account.h"
#include "fake_vendor.h"
#include "fake_libc.h"
#include "ledger.h"
#include "note.h"
#include "peer.h"
#include "shared_chunks.h"
#include "registry.h"

#define MIB (1ull << 20)

/* A context is the number of its device, times 16, and a number of its own. */
#define CONTEXT(device, number) ((void *)(uintptr_t)((device)*16 + (number)))

static struct spill_backend backend;
static struct spill_vendor_devices devices;
static struct spill_vendor_vmm vmm;
static struct spill_policy policy;
static int device_now;
static void *context_now;

static struct grant {
	uint64_t va, bytes;
	int device;
} grants[512];
static unsigned granted;
static void *waited[64];
static unsigned waits;
static void *dead;

static bool current(int *device, void **context)
{
	*device = device_now;
	*context = context_now;
	return true;
}

static bool context_device(void *context, int *device)
{
	*device = (int)((uintptr_t)context / 16);
	return true;
}

/* The contexts with number 9 are green ones of those with number 1. */
static void *context_owner(void *context)
{
	uintptr_t number = (uintptr_t)context % 16;
	return number == 9 ? (char *)context - 8 : context;
}

static const struct spill_vendor_contexts contexts = {.device = context_device, .owner = context_owner};

static int allow_result;
static unsigned notes;

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
	assert_string_equal(code, "peer");
	notes++;
}

static int allow(uint64_t va, uint64_t bytes, int device)
{
	grants[granted++] = (struct grant){va, bytes, device};
	return allow_result;
}

static int wait(int device, void *context)
{
	waited[waits++] = context ? context : CONTEXT(device, 0);
	return context && context == dead ? 201 : 0;
}

static bool started(spill_resolve_fn *resolve)
{
	return true;
}

static int setup(void **state)
{
	fake_libc_reset();
	fake_vendor_reset(1024 * MIB);
	spill_account_reset();
	fake_vendor_policy(&policy);
	backend = fake_vendor_backend;
	backend.start = started;
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &backend);
	spill_registry_use_backend(SPILL_HIP, &backend);
	devices = *fake_vendor_backend.devices;
	devices.current = current;
	devices.wait = wait;
	vmm = *fake_vendor_backend.vmm;
	vmm.allow = allow;
	backend.devices = &devices;
	backend.vmm = &vmm;
	backend.contexts = &contexts;
	dead = NULL;
	granted = waits = 0;
	return 0;
}

static int teardown(void **state)
{
	struct spill_allocation *entry;
	for (int device = 0; device < 3; device++) {
		struct spill_context_end end = spill_context_end_begin(&backend, device, NULL);
		spill_peer_context_ended(&end);
		while ((entry = spill_ledger_take_of(&end)) != NULL) {
			spill_placement_release(entry->placement, false);
			spill_ledger_end(entry);
		}
		spill_context_end_finish(&end, true); /* the tests behind this one have the same handles */
		spill_shared_chunks_trim(&backend, device, NULL);
	}
	return fake_vendor_alive() ? -1 : 0;
}

/* The current context asks for access to the owner's memory, or gives it up. */
static void peer(void *user, void *owner, unsigned mode, int result)
{
	struct spill_request request = {.op = SPILL_OP_PEER, .context = owner, .mode = mode};
	context_now = user;
	context_device(user, &device_now);
	assert_true(spill_engine_peer(&request));
	request.result = result;
	assert_false(spill_engine_peer(&request));
}

/* Spilled memory of a context, as the engine makes it; not freed before the end of the test. */
static struct spill_placement *spill(void *context, uint64_t bytes, enum spill_place place)
{
	const char *error = NULL;
	int device;
	context_device(context, &device);
	struct spill_place_request want = {&backend, &policy, device, context, bytes, 0, SPILL_UNLIMITED};
	struct spill_placement *placement = spill_place_make(spill_place_of(place), &want, &error);
	assert_non_null(placement);
	struct spill_allocation allocation = {.backend = &backend,
	                                      .ptr = placement->ptr,
	                                      .bytes = bytes,
	                                      .device = device,
	                                      .context = context,
	                                      .placement = placement};
	assert_true(spill_ledger_add(&allocation));
	spill_peer_placed(placement);
	return placement;
}

static bool has(const struct spill_placement *placement, uint64_t bytes, int device)
{
	for (unsigned i = 0; i < granted; i++)
		if (grants[i].va == placement->ptr && grants[i].bytes == bytes && grants[i].device == device)
			return true;
	return false;
}

/* The value is invalid where the range was freed meanwhile, which does no harm. */
TEST(an_access_that_fails_is_told)
{
	allow_result = backend.invalid_value;
	spill_peer_grant(&backend, 5 * MIB, MIB, 2);
	assert_int_equal(notes, 0);
	allow_result = backend.invalid_value + 1;
	spill_peer_grant(&backend, 5 * MIB, MIB, 2);
	assert_int_equal(notes, 1);
	allow_result = 0;
	spill_peer_grant(&backend, 5 * MIB, MIB, 2);
	assert_int_equal(notes, 1);
	assert_int_equal(granted, 3);
	assert_true(grants[2].va == 5 * MIB && grants[2].bytes == MIB && grants[2].device == 2);
}

TEST(what_is_there_is_granted_at_once)
{
	struct spill_placement *mine = spill(CONTEXT(0, 1), 101 * MIB, SPILL_PLACE_SPLIT);
	struct spill_placement *other = spill(CONTEXT(0, 2), 50 * MIB, SPILL_PLACE_SPLIT);
	granted = 0; /* but for their own device */
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	assert_true(has(mine, 102 * MIB, 1)); /* all that is mapped: granules of 2 MiB */
	assert_false(has(other, 50 * MIB, 1));
	assert_int_equal(granted, 1);
}

TEST(what_comes_is_granted_when_it_is_made)
{
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(2, 1), CONTEXT(0, 1), 1, 0);
	struct spill_placement *mine = spill(CONTEXT(0, 1), 40 * MIB, SPILL_PLACE_SPLIT);
	assert_true(has(mine, 40 * MIB, 1) && has(mine, 40 * MIB, 2));
	granted = 0;
	spill(CONTEXT(1, 1), 40 * MIB, SPILL_PLACE_SPLIT); /* the other way round nobody asked */
	assert_int_equal(granted, 1);
}

/* What a green context owns is its primary context's. */
TEST(a_green_context_as_peer)
{
	struct spill_placement *before = spill(CONTEXT(0, 1), 40 * MIB, SPILL_PLACE_SPLIT);
	peer(CONTEXT(1, 1), CONTEXT(0, 9), 1, 0);
	struct spill_placement *later = spill(CONTEXT(0, 1), 4 * MIB, SPILL_PLACE_SPLIT);
	assert_true(has(before, 40 * MIB, 1) && has(later, 4 * MIB, 1));
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 0, 0);
	granted = 0;
	spill(CONTEXT(0, 1), 40 * MIB, SPILL_PLACE_SPLIT);
	assert_int_equal(granted, 1); /* its own device */
}

TEST(shared_chunks_too)
{
	struct spill_placement *before = spill(CONTEXT(0, 1), 4096, SPILL_PLACE_SPLIT);
	granted = 0;
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	assert_int_equal(granted, 1);
	assert_true(grants[0].va <= before->ptr && before->ptr < grants[0].va + grants[0].bytes);
	/* A block of the same chunk has it; a chunk of a new context gets it. */
	spill(CONTEXT(0, 1), 4096, SPILL_PLACE_SPLIT);
	assert_int_equal(granted, 1);
	peer(CONTEXT(1, 1), CONTEXT(2, 1), 1, 0);
	granted = 0;
	struct spill_placement *later = spill(CONTEXT(2, 1), 4096, SPILL_PLACE_SPLIT);
	assert_int_equal(granted, 2); /* its own device, and the peer's */
	assert_int_equal(grants[1].device, 1);
	assert_true(grants[1].va <= later->ptr && later->ptr < grants[1].va + grants[1].bytes);
}

/* The vendor makes both usable by every device of the process. */
TEST(host_and_managed_need_nothing)
{
	spill(CONTEXT(0, 1), 4 * MIB, SPILL_PLACE_HOST);
	spill(CONTEXT(0, 1), 4 * MIB, SPILL_PLACE_MANAGED);
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	spill(CONTEXT(0, 1), 4 * MIB, SPILL_PLACE_HOST);
	spill(CONTEXT(0, 1), 4 * MIB, SPILL_PLACE_MANAGED);
	assert_int_equal(granted, 0);
}

TEST(a_refused_call_grants_nothing)
{
	spill(CONTEXT(0, 1), 4 * MIB, SPILL_PLACE_SPLIT);
	granted = 0;
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 217);
	spill(CONTEXT(0, 1), 4 * MIB, SPILL_PLACE_HOST);
	assert_int_equal(granted, 0);
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 0, 705); /* nor does a refused one take it back */
	granted = 0;
	spill(CONTEXT(0, 1), 4 * MIB, SPILL_PLACE_SPLIT);
	assert_int_equal(granted, 2);
}

TEST(taken_back_it_is_not_granted_to_new_memory)
{
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 0, 0);
	spill(CONTEXT(0, 1), 4 * MIB, SPILL_PLACE_SPLIT);
	assert_int_equal(granted, 1);
	assert_int_equal(grants[0].device, 0);
	assert_int_equal(spill_peer_wait(&backend, 0, CONTEXT(0, 1)), 0);
	assert_int_equal(waits, 1);
}

static bool waited_for(void *context)
{
	for (unsigned i = 0; i < waits; i++)
		if (waited[i] == context)
			return true;
	return false;
}

TEST(a_free_waits_for_all_who_may_use_it)
{
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0); /* once is enough */
	peer(CONTEXT(2, 5), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(2, 1), CONTEXT(0, 2), 1, 0);
	peer(CONTEXT(0, 1), CONTEXT(1, 1), 1, 0);
	assert_int_equal(spill_peer_wait(&backend, 0, CONTEXT(0, 1)), 0);
	assert_int_equal(waits, 3);
	assert_true(waited_for(CONTEXT(0, 1)) && waited_for(CONTEXT(1, 1)) && waited_for(CONTEXT(2, 5)));
}

TEST(a_dead_peer_does_not_keep_memory)
{
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(2, 1), CONTEXT(0, 1), 1, 0);
	dead = CONTEXT(1, 1);
	assert_int_equal(spill_peer_wait(&backend, 0, CONTEXT(0, 1)), 0);
	assert_true(waited_for(CONTEXT(2, 1)));
	dead = CONTEXT(0, 1);
	assert_int_equal(spill_peer_wait(&backend, 0, CONTEXT(0, 1)), 201);
}

TEST(an_ended_context_is_forgotten_on_both_sides)
{
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(0, 1), CONTEXT(1, 1), 1, 0);
	peer(CONTEXT(2, 1), CONTEXT(0, 1), 1, 0);
	spill_peer_context_ended(ENDED(&backend, 1, CONTEXT(1, 1)));
	spill_peer_wait(&backend, 0, CONTEXT(0, 1));
	assert_int_equal(waits, 2);
	assert_false(waited_for(CONTEXT(1, 1)));
	waits = 0;
	spill_peer_wait(&backend, 1, CONTEXT(1, 1));
	assert_int_equal(waits, 1);
}

TEST(devices_are_listed_once)
{
	int list[SPILL_DEVICES];
	assert_int_equal(spill_peer_devices(&backend, 0, list), 0);
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(1, 2), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(2, 1), CONTEXT(0, 2), 1, 0);
	assert_int_equal(spill_peer_devices(&backend, 0, list), 2);
	assert_int_equal(list[0], 1);
	assert_int_equal(list[1], 2);
	assert_int_equal(spill_peer_devices(&backend, 1, list), 0);
}

/* HIP: the current device may use the named one's memory. */
TEST(without_contexts_it_goes_by_device)
{
	struct spill_request request = {.op = SPILL_OP_PEER, .device = 0, .mode = 1};
	int list[SPILL_DEVICES];
	backend.contexts = NULL;
	device_now = 1;
	context_now = NULL;
	assert_true(spill_engine_peer(&request));
	assert_false(spill_engine_peer(&request));
	assert_int_equal(spill_peer_devices(&backend, 0, list), 1);
	assert_int_equal(list[0], 1);
	assert_int_equal(spill_peer_wait(&backend, 0, NULL), 0);
	assert_int_equal(waits, 2);
	assert_true(waited_for(CONTEXT(0, 0)) && waited_for(CONTEXT(1, 0)));
	/* Its calls with a context say nothing about devices. */
	request = (struct spill_request){.op = SPILL_OP_PEER, .context = CONTEXT(2, 1), .mode = 1};
	assert_true(spill_engine_peer(&request));
	assert_false(spill_engine_peer(&request));
	assert_int_equal(spill_peer_devices(&backend, 0, list), 1);
	spill_peer_context_ended(ENDED(&backend, 1, NULL));
	assert_int_equal(spill_peer_devices(&backend, 0, list), 0);
}

/* Every placement and every free asks for peers. */
TEST(without_peers_it_costs_a_load)
{
	struct spill_placement *placement = spill(CONTEXT(0, 1), 4 * MIB, SPILL_PLACE_SPLIT);
	const struct spill_context_end end = ended_now(&backend, 1, CONTEXT(1, 1));
	unsigned before = locks_taken();
	spill_peer_placed(placement);
	spill_peer_wait(&backend, 0, CONTEXT(0, 1));
	spill_peer_context_ended(&end);
	assert_int_equal(locks_taken() - before, 0);
	/* As soon as there is one, it is found; when it is gone, it costs no more. */
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(2, 1), CONTEXT(0, 1), 1, 0);
	peer(CONTEXT(2, 1), CONTEXT(0, 1), 0, 0);
	before = locks_taken();
	spill_peer_placed(placement);
	assert_true(locks_taken() > before);
	spill_peer_context_ended(ENDED(&backend, 1, CONTEXT(1, 1)));
	before = locks_taken();
	spill_peer_placed(placement);
	assert_int_equal(locks_taken() - before, 0);
	/* A child has none of its parent's. */
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	spill_fork_lock_take(&spill_peer_fork_lock);
	spill_fork_lock_release(&spill_peer_fork_lock, true);
	before = locks_taken();
	spill_peer_placed(placement);
	assert_int_equal(locks_taken() - before, 0);
}

#define MANY 200

/* A kernel of the peer that touches what was left out would fault. */
TEST(all_of_many_is_granted_without_memory)
{
	struct spill_placement *mine[MANY];

	for (unsigned i = 0; i < MANY; i++)
		mine[i] = spill(CONTEXT(0, 1), 2 * MIB, SPILL_PLACE_SPLIT);
	granted = 0;
	fake_libc_fail(FAKE_malloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	fake_libc_fail(FAKE_realloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	peer(CONTEXT(1, 1), CONTEXT(0, 1), 1, 0);
	fake_libc_reset();
	assert_int_equal(granted, MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_true(has(mine[i], 2 * MIB, 1));
}
