/* The table of the program's physical memory alone: which memory ends with a call, and what it finds afterwards. */
#include "unit.h"

#include <stdlib.h>

#include "vmm.h"

static const uint64_t at = 1ull << 40;

static struct spill_vmm_memory *add(uint64_t handle)
{
	struct spill_vmm_memory *ended = NULL;
	struct spill_vmm_memory *added =
	    spill_vmm_add(&(struct spill_vmm_memory){.handle = handle, .spilled = true}, &ended);
	assert_non_null(added);
	assert_null(ended);
	return added;
}

static void release(struct spill_vmm_memory *memory, uint64_t handle)
{
	assert_ptr_equal(spill_vmm_releasing(handle), memory);
	assert_null(spill_vmm_released(memory, true));
}

/* Another thread releases the last handle while the vendor maps it, or refuses to. */
TEST(a_refused_map_ends_what_was_released_meanwhile)
{
	bool recorded = false;
	struct spill_vmm_memory *memory = add(7);
	assert_ptr_equal(spill_vmm_mapping(7), memory);
	release(memory, 7);
	assert_ptr_equal(spill_vmm_mapped(memory, at, 0, &recorded), memory);
	assert_true(recorded);
	free(memory);
}

/* The same where a mapping could not be recorded, and was undone or stays. */
TEST(a_map_that_is_not_recorded)
{
	struct spill_vmm_memory *memory = add(7);
	assert_ptr_equal(spill_vmm_mapping(7), memory);
	release(memory, 7);
	assert_ptr_equal(spill_vmm_unrecorded(memory, true), memory);
	free(memory);
	memory = add(7);
	assert_ptr_equal(spill_vmm_mapping(7), memory);
	assert_null(spill_vmm_unrecorded(memory, false));
	assert_ptr_equal(spill_vmm_releasing(7), memory);
	assert_null(spill_vmm_released(memory, true)); /* it is mapped for ever */
	free(memory);
}

/* A mapping that ended unseen is replaced by that which is there now, and counts no more. */
TEST(a_mapping_over_another_one)
{
	bool recorded;
	struct spill_vmm_range range;
	struct spill_vmm_memory *first = add(7), *second = add(8);
	spill_vmm_mapping(7);
	assert_null(spill_vmm_mapped(first, at, 10, &recorded));
	release(first, 7);
	spill_vmm_mapping(8);
	assert_ptr_equal(spill_vmm_mapped(second, at + 5, 10, &recorded), first);
	free(first);
	assert_true(recorded && spill_vmm_any_spilled());
	assert_false(spill_vmm_spilled_at(at + 4, &range));
	assert_true(spill_vmm_spilled_at(at + 5, &range));
	assert_int_equal(range.va, at + 5);
	release(second, 8);
	assert_ptr_equal(spill_vmm_unmapped(spill_vmm_unmapping(at + 5, 10), true), second);
	assert_false(spill_vmm_any_spilled());
	free(second);
}

/* A set keeps its name while it is mapped. Behind its end the value means nothing. */
TEST(the_name_of_a_set_ends_with_it)
{
	bool recorded;
	static struct spill_placement placement;
	struct spill_vmm_memory *ended = NULL;
	struct spill_vmm_memory *set = spill_vmm_add(
	    &(struct spill_vmm_memory){.handle = 7, .set = &placement, .spilled = true}, &ended);
	spill_vmm_mapping(7);
	assert_null(spill_vmm_mapped(set, at, 10, &recorded));
	release(set, 7);
	assert_true(spill_vmm_spilled(7, NULL));
	assert_null(spill_vmm_releasing(7));
	assert_ptr_equal(spill_vmm_unmapped(spill_vmm_unmapping(at, 10), true), set);
	assert_false(spill_vmm_spilled(7, NULL));
	assert_null(spill_vmm_mapping(7));
	free(set);
}
