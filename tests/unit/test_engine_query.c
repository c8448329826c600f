/*
 * Questions about a pointer: memory that libspill placed, or has opened for the program, looks like one plain allocation of the
 * device. All that these operations call is replaced.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "abi/cuda.h"
#include "engine.h"
#include "ipc.h"
#include "said.h"
#include "vmm.h"

enum { PTR = 4096, BYTES = 1000, DEVICE = 2, AT = PTR + 8, INVALID = 22, TYPE = 77 };

static int context, pool;
static bool is_placed, is_opened, is_spilled, can_be_opened;
static struct spill_allocation placed;

static int device_memory_type(void)
{
	return TYPE;
}

static void describe(void *structure, uint64_t ptr, int device)
{
	say("described", ptr);
	*(int *)structure = device;
}

static const struct spill_vendor_contexts contexts;
static struct spill_backend backend;

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	assert_int_equal(domain, SPILL_HIP);
	return &backend;
}

bool spill_engine_gated(struct spill_request *request)
{
	return request->step++ == 0;
}

bool spill_ledger_placed(uint64_t ptr, struct spill_allocation *copy)
{
	assert_int_equal(ptr, AT);
	if (is_placed)
		*copy = placed;
	return is_placed;
}

bool spill_ipc_at(uint64_t ptr, struct spill_ipc_range *range)
{
	assert_int_equal(ptr, AT);
	*range = (struct spill_ipc_range){&backend, PTR, BYTES, 5, DEVICE, &context};
	return is_opened;
}

bool spill_ipc_serves(const struct spill_allocation *allocation)
{
	return can_be_opened;
}

bool spill_vmm_spilled_at(uint64_t va, struct spill_vmm_range *range)
{
	assert_int_equal(va, AT);
	*range = (struct spill_vmm_range){PTR + 1, BYTES + 1, DEVICE + 1};
	return is_spilled;
}

static int setup(void **state)
{
	backend = (struct spill_backend){.invalid_value = INVALID,
	                                 .range_size_width = 8,
	                                 .device_memory_type = device_memory_type,
	                                 .describe_plain = describe,
	                                 .contexts = &contexts};
	placed = (struct spill_allocation){
	    .backend = &backend, .ptr = PTR, .bytes = BYTES, .device = DEVICE, .context = &context, .seq = 9};
	is_placed = true;
	is_opened = is_spilled = can_be_opened = false;
	what_was_said();
	return 0;
}

/* -- attributes --------------------------------------------------------------------------------------------------- */

/* What the vendor writes, which stays where libspill answers nothing else. */
#define VENDORS 0x1111111111111111ull

static int last_result;

static uint64_t asked(CUpointer_attribute attribute, bool single)
{
	uint64_t answer = VENDORS;
	void *value = &answer;
	struct spill_request request = {
	    .domain = SPILL_HIP, .ptr = AT, .attributes = {&attribute, &value, 1, single}};
	assert_true(spill_engine_attributes(&request)); /* the vendor is asked first */
	assert_int_equal(answer, VENDORS);
	assert_false(spill_engine_attributes(&request));
	last_result = request.result;
	return answer;
}

/* The low bytes of an answer, and that no more were written. */
static uint64_t narrow(CUpointer_attribute attribute, unsigned width)
{
	uint64_t answer = asked(attribute, true), mask = (1ull << 8 * width) - 1;
	assert_int_equal(last_result, 0);
	assert_int_equal(answer & ~mask, VENDORS & ~mask);
	return answer & mask;
}

TEST(a_plain_allocation_of_the_device)
{
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_CONTEXT, true), (uintptr_t)&context);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, true), AT);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, true), 0);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_BUFFER_ID, true), 1ull << 63 | 9);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, true), 1ull << 63 | 9);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, true), PTR);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, true), PTR);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_RANGE_SIZE, true), BYTES);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, true), BYTES);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, true), 0);
	assert_int_equal(narrow(CU_POINTER_ATTRIBUTE_IS_MANAGED, 1), false);
	assert_int_equal(narrow(CU_POINTER_ATTRIBUTE_MAPPED, 1), true);
	assert_int_equal(narrow(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4), TYPE);
	assert_int_equal(narrow(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4), DEVICE);
	placed.pool = &pool;
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, true), (uintptr_t)&pool);
	backend.range_size_width = 4;
	assert_int_equal(narrow(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 4), BYTES);
	backend.contexts = NULL;
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_CONTEXT, true), VENDORS);
	assert_int_equal(last_result, 0);
}

TEST(answers_of_the_vendor)
{
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, true), VENDORS);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, true), VENDORS);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, true), VENDORS);
	can_be_opened = true;
	assert_int_equal(narrow(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 4), 1);
}

TEST(memory_in_stream_order)
{
	placed.ordered = true;
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_CONTEXT, true), 0);
	assert_int_equal(narrow(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 1), false);
}

/* The call for one attribute fails; the one for several says so by NULL. */
TEST(an_attribute_that_it_does_not_have)
{
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_HOST_POINTER, true), VENDORS);
	assert_int_equal(last_result, INVALID);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_HOST_POINTER, false), 0);
	assert_int_equal(last_result, 0);
}

TEST(several_attributes)
{
	const CUpointer_attribute wanted[] = {
	    CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
	    CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
	uint64_t answers[4] = {VENDORS, VENDORS, VENDORS, VENDORS};
	void *values[4] = {&answers[0], NULL, &answers[2], &answers[3]};
	struct spill_request request = {.step = 1, .ptr = AT, .attributes = {wanted, values, 3, false}};
	assert_false(spill_engine_attributes(&request));
	assert_int_equal(request.result, 0);
	assert_true(answers[0] == 0 && answers[2] == AT && answers[3] == VENDORS);
}

TEST(memory_of_another_process)
{
	is_placed = false;
	is_opened = true;
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_BUFFER_ID, true), 3ull << 62 | 5);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, true), PTR);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_RANGE_SIZE, true), BYTES);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_CONTEXT, true), (uintptr_t)&context);
	assert_int_equal(narrow(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4), DEVICE);
}

/* Of memory that the program mapped itself, only the place differs. */
TEST(mapped_memory_that_spilled)
{
	is_placed = false;
	is_spilled = true;
	assert_int_equal(narrow(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4), TYPE);
	assert_int_equal(narrow(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4), DEVICE + 1);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_RANGE_SIZE, true), VENDORS);
	asked(CU_POINTER_ATTRIBUTE_HOST_POINTER, true);
	assert_int_equal(last_result, INVALID);
}

TEST(memory_of_others_and_calls_that_failed)
{
	is_placed = false;
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, true), VENDORS);
	assert_int_equal(asked(CU_POINTER_ATTRIBUTE_HOST_POINTER, true), VENDORS);
	assert_int_equal(last_result, 0);
	is_placed = true;
	const CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_RANGE_SIZE;
	uint64_t answer = VENDORS;
	void *value = &answer;
	struct spill_request failed = {
	    .step = 1, .result = 3, .ptr = AT, .attributes = {&wanted, &value, 1, true}};
	assert_false(spill_engine_attributes(&failed));
	assert_true(failed.result == 3 && answer == VENDORS);
	struct spill_request no_list = {.step = 1, .ptr = AT, .attributes = {NULL, &value, 1, true}},
	                     no_values = {.step = 1, .ptr = AT, .attributes = {&wanted, NULL, 1, true}};
	assert_false(spill_engine_attributes(&no_list));
	assert_false(spill_engine_attributes(&no_values));
	assert_int_equal(answer, VENDORS);
}

/* -- all in one structure ------------------------------------------------------------------------------------------ */

TEST(a_structure_of_all_attributes)
{
	int out = 0;
	struct spill_request first = {.ptr = AT, .out = &out}, request = {.step = 1, .ptr = AT, .out = &out};
	assert_true(spill_engine_pointer(&first));
	assert_string_equal(what_was_said(), "");
	assert_false(spill_engine_pointer(&request));
	assert_int_equal(out, DEVICE);
	assert_string_equal(what_was_said(), "described:4104");
	struct spill_request failed = {.step = 1, .ptr = AT, .out = &out, .result = 3},
	                     no_out = {.step = 1, .ptr = AT}, other = {.step = 1, .ptr = AT, .out = &out},
	                     unknown = other;
	assert_false(spill_engine_pointer(&failed));
	assert_false(spill_engine_pointer(&no_out));
	is_placed = false;
	assert_false(spill_engine_pointer(&other));
	is_placed = true;
	backend.describe_plain = NULL;
	assert_false(spill_engine_pointer(&unknown));
	assert_string_equal(what_was_said(), "");
}

/* -- base and size ------------------------------------------------------------------------------------------------- */

static CUdeviceptr base;
static size_t bytes;

static void ask_range(int result)
{
	struct spill_request request = {.ptr = AT, .out = &base, .out_bytes = &bytes};
	base = bytes = 7;
	assert_true(spill_engine_range(&request));
	request.result = result;
	assert_false(spill_engine_range(&request));
	assert_int_equal(request.result, result);
}

TEST(base_and_size)
{
	ask_range(0);
	assert_true(base == PTR && bytes == BYTES);
	ask_range(3);
	assert_true(base == 7 && bytes == 7);
	is_placed = false;
	ask_range(0);
	assert_true(base == 7 && bytes == 7);
	is_spilled = true;
	ask_range(0);
	assert_true(base == PTR + 1 && bytes == BYTES + 1);
	is_opened = true;
	ask_range(0);
	assert_true(base == PTR && bytes == BYTES);
	base = bytes = 7;
	assert_false(spill_engine_range(&(struct spill_request){.step = 1, .ptr = AT, .out = &base}));
	assert_true(base == PTR && bytes == 7);
	assert_false(spill_engine_range(&(struct spill_request){.step = 1, .ptr = AT, .out_bytes = &bytes}));
	assert_int_equal(bytes, BYTES);
}
