/* Physical memory that the program maps itself, in chunks: its handle, its mappings, and when it may move. */
#define SETUP setup
#include "unit.h"
#include "account.h"
#include "chunk_set.h"
#include "fake_vendor.h"
#include "unpark.h"

#define CHUNK (4 * FAKE_SMALL_UNIT)
#define BYTES (3 * CHUNK)
#define OTHER 2 /* a device */

static struct spill_policy policy;
static const char properties[] = "as the program wants it";
static unsigned made_as_wanted;
static struct spill_backend backend;
static struct spill_vendor_physical physical;
static uint64_t range; /* twice as long as the memory */

static int create_as(const void *wanted, uint64_t bytes, uint64_t *handle)
{
	assert_ptr_equal(wanted, properties);
	made_as_wanted++;
	return fake_vendor_backend.physical->create(0, false, bytes, handle);
}

static unsigned made_shareable;

static int create_shareable(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	made_shareable++;
	return fake_vendor_backend.physical->create(device, on_host, bytes, handle);
}

static int setup(void **state)
{
	backend = fake_vendor_backend;
	physical = *backend.physical;
	physical.create_as = create_as;
	backend.physical = &physical;
	physical.create_shareable = create_shareable;
	made_as_wanted = made_shareable = 0;
	fake_vendor_policy(&policy);
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	fake_vendor_reset_mover(64 * CHUNK);
	spill_account_reset();
	return fake_vendor_backend.vmm->reserve(2 * BYTES, FAKE_SMALL_UNIT, &range);
}

static struct spill_chunked *make(const struct spill_place_ops *ops, const void *exportable)
{
	const char *error = NULL;
	struct spill_place_request want = {&backend, &policy, 0, &policy, BYTES, 0, SPILL_UNLIMITED};
	want.properties = exportable;
	struct spill_chunked *set = spill_chunked_of(ops->make(&want, &error));
	assert_non_null(set);
	return set;
}

static struct spill_chunked *make_set(void)
{
	return make(&spill_place_movable_set, NULL);
}

static bool may_move(const struct spill_chunked *set)
{
	return set->enlisted && !set->pinned;
}

/* The vendor unmaps the whole, as the program asks. */
static void unmap(struct spill_chunked *set, uint64_t va)
{
	spill_chunked_delist(set);
	for (unsigned i = 0; i < set->count; i++)
		fake_vendor_backend.vmm->unmap(va + set->chunks[i].offset, set->chunks[i].bytes);
	spill_chunk_set_unmapped(set, va, true);
}

static int map_set(struct spill_chunked *set, uint64_t va, uint64_t bytes)
{
	spill_mover_lock();
	int result = spill_chunk_set_map(set, va, bytes);
	spill_mover_unlock();
	return result;
}

static void access_by(struct spill_chunked *set, uint64_t va, uint64_t bytes, uint64_t users)
{
	spill_mover_lock();
	spill_chunk_set_accessed(set, va, bytes, users);
	spill_mover_unlock();
}

static void end(struct spill_chunked *set)
{
	spill_chunked_delist(set);
	spill_placement_release(&set->base, false);
	assert_int_equal(fake_vendor.handles, 0);
	assert_int_equal(fake_vendor.mappings, 0);
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(spill_account_device_held(0) + spill_account_host_held(), 0);
}

TEST(each_has_a_handle_that_no_vendor_has)
{
	struct spill_chunked *one = make_set(), *other = make_set();
	assert_true(spill_chunk_set_is(one->name) && spill_chunk_set_is(other->name));
	assert_int_not_equal(one->name, other->name);
	assert_false(spill_chunk_set_is(one->chunks[0].handle));
	assert_false(spill_chunk_set_is(1ull << 57) || spill_chunk_set_is(UINT64_MAX));
	assert_true(one->set && one->base.ptr == 0 && one->count == 3);
	uint64_t used = other->name;
	spill_placement_release(&other->base, false);
	other = make_set();
	assert_int_not_equal(other->name, used); /* numbers do not come back */
	spill_placement_release(&one->base, false);
	end(other);
}

TEST(all_chunks_are_mapped_in_order)
{
	struct spill_chunked *set = make_set();
	assert_int_equal(map_set(set, range, BYTES), 0);
	assert_int_equal(fake_vendor.mappings, 3);
	assert_true(set->base.ptr == range && !set->pinned && !set->enlisted);
	assert_int_equal(fake_vendor_backend.vmm->allow(range, BYTES, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_ptr_equal(fake_vendor_bytes(range + i * CHUNK, 0),
		                 fake_vendor_content(set->chunks[i].handle));
	unmap(set, range);
	assert_true(set->base.ptr == 0 && set->users == 0);
	end(set);
}

/* The program exports memory that it asked for as such. What it only allocates we hand on, where that is possible. */
TEST(a_set_is_made_as_the_program_asks)
{
	struct spill_chunked *set = make_set();
	assert_int_equal(made_shareable, 0);
	end(set);
	struct spill_chunked *plain = make(&spill_place_movable, NULL);
	assert_int_equal(made_shareable, 3);
	end(plain);
	physical.create_shareable = NULL;
	plain = make(&spill_place_movable, NULL);
	assert_int_equal(made_shareable, 3);
	end(plain);
}

TEST(a_part_is_not_mapped)
{
	struct spill_chunked *set = make_set();
	assert_int_equal(map_set(set, range, BYTES - CHUNK), fake_vendor_backend.invalid_value);
	assert_int_equal(map_set(set, range, BYTES + CHUNK), fake_vendor_backend.invalid_value);
	assert_true(fake_vendor.mappings == 0 && set->base.ptr == 0);
	end(set);
}

TEST(what_the_vendor_refuses_leaves_nothing_mapped)
{
	for (unsigned call = 1; call <= 3; call++) {
		struct spill_chunked *set = make_set();
		fake_vendor_fail(call, call + 1);
		assert_int_not_equal(map_set(set, range, BYTES), 0);
		fake_vendor_fail(0, 0);
		assert_true(fake_vendor.mappings == 0 && set->base.ptr == 0 && !set->pinned);
		assert_int_equal(map_set(set, range, BYTES), 0); /* later it works */
		unmap(set, range);
		end(set);
	}
}

/* Whoever maps it twice sees the same bytes at both, so it stays. The first mapping is the one that counts. */
TEST(mapped_twice_it_stays)
{
	struct spill_chunked *set = make_set();
	assert_int_equal(map_set(set, range, BYTES), 0);
	access_by(set, range, BYTES, 1);
	assert_true(may_move(set));
	spill_unpark_pin(set);
	assert_int_equal(map_set(set, range + BYTES, BYTES), 0);
	assert_int_equal(set->base.ptr, range);
	assert_int_equal(fake_vendor.mappings, 6);
	unmap(set, range + BYTES);
	assert_int_equal(set->base.ptr, range); /* another mapping ended */
	unmap(set, range);
	assert_int_equal(set->base.ptr, 0);
	end(set);
}

TEST(it_may_move_once_its_device_has_access)
{
	struct spill_chunked *set = make_set();
	assert_int_equal(map_set(set, range, BYTES), 0);
	access_by(set, range, BYTES, 1u << OTHER);
	assert_false(set->enlisted || set->pinned);
	access_by(set, range - CHUNK, BYTES + 2 * CHUNK, 1); /* with its neighbours */
	assert_true(may_move(set));
	assert_int_equal(set->users, 1 | 1u << OTHER);
	/* The vendor did not unmap it after all. */
	spill_chunked_delist(set);
	spill_chunk_set_unmapped(set, range, false);
	assert_true(may_move(set));
	assert_true(set->base.ptr == range && set->users == (1 | 1u << OTHER));
	unmap(set, range);
	assert_false(set->enlisted);
	end(set);
}

TEST(access_to_a_part_or_of_another_kind_pins_it)
{
	const struct {
		uint64_t from, bytes, users;
	} cases[] = {{0, BYTES - 1, 1}, {1, BYTES, 1}, {CHUNK, CHUNK, 1}, {0, BYTES, 0}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spill_chunked *set = make_set();
		assert_int_equal(map_set(set, range, BYTES), 0);
		access_by(set, range + cases[i].from, cases[i].bytes, cases[i].users);
		assert_true(set->pinned);
		access_by(set, range, BYTES, 1);
		assert_true(set->pinned && !set->enlisted);
		/* Nor when an unmapping fails. */
		spill_chunk_set_unmapped(set, range, false);
		assert_false(set->enlisted);
		unmap(set, range);
		end(set);
	}
}

/* The vendor exports one handle, of memory on the device that has always been there. */
TEST(what_can_be_exported_is_one_chunk)
{
	struct spill_chunked *set = make(&spill_place_movable_set, properties);
	assert_true(set->count == 1 && made_as_wanted == 1);
	assert_int_equal(spill_chunk_set_real(set), set->chunks[0].handle);
	spill_mover_lock();
	spill_chunked_moved(set, 0, set->chunks[0].handle);
	assert_int_equal(spill_chunk_set_real(set), 0);
	spill_chunked_moved(set, 0, set->chunks[0].handle);
	assert_int_equal(spill_chunk_set_real(set), 0);
	spill_mover_unlock();
	end(set);
	set = make_set();
	assert_int_equal(spill_chunk_set_real(set), 0);
	end(set);
	set = make(&spill_place_split_set, properties);
	assert_true(set->count == 1 && set->chunks[0].on_host && made_as_wanted == 1);
	assert_int_equal(spill_chunk_set_real(set), 0);
	end(set);
}
