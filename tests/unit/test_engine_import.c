/* Legacy handles of other processes: which of them libspill opens, and when it unmaps what nobody uses any more. */
#define SETUP setup
#include "unit.h"

#include "abi/cuda.h"
#include "capture.h"
#include "deferred.h"
#include "engine.h"
#include "ipc.h"
#include "process.h"
#include "registry.h"
#include "said.h"

enum { DEVICE = 2 };

static struct spill_ipc_handle handle;
static int context, open_result;
static unsigned unused; /* imports that nobody uses */
static bool has_current, captures, own, knows;

static bool current(int *device, void **its_context)
{
	*device = DEVICE;
	*its_context = &context;
	return has_current;
}

static const struct spill_vendor_devices devices = {.current = current};
static const struct spill_backend backend = {.devices = &devices};
static const struct spill_backend *found;

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	return found;
}

bool spill_capture_any(void)
{
	return captures;
}

bool spill_ipc_is_own(const void *given)
{
	assert_ptr_equal(given, &handle);
	return own;
}

int spill_ipc_open(const struct spill_backend *vendor, int device, void *its_context, const void *given,
                   uint64_t *ptr)
{
	assert_ptr_equal(given, &handle);
	assert_ptr_equal(its_context, &context);
	assert_int_equal(spill_thread.depth, 1);
	say("open", (uint64_t)device);
	*ptr = 123;
	return open_result;
}

bool spill_ipc_close(uint64_t ptr)
{
	say("close", ptr);
	return knows;
}

struct spill_ipc_import *spill_ipc_take_unused(struct spill_ipc_range *range)
{
	if (!unused)
		return NULL;
	*range = (struct spill_ipc_range){.device = (int)unused, .context = &context};
	return (struct spill_ipc_import *)(uintptr_t)unused--;
}

int spill_deferred_wait(const struct spill_backend *vendor, int device, void *its_context)
{
	assert_ptr_equal(its_context, &context);
	assert_int_equal(spill_thread.depth, 1);
	say("wait", (uint64_t)device);
	return 0;
}

void spill_ipc_unmap(struct spill_ipc_import *import)
{
	say("unmap", (uintptr_t)import);
}

static int setup(void **state)
{
	handle = (struct spill_ipc_handle){.magic = SPILL_IPC_MAGIC};
	found = &backend;
	open_result = 0;
	unused = 0;
	captures = own = false;
	has_current = knows = true;
	what_was_said();
	return 0;
}

#define PASSED_ON (-1)

/* The result, or PASSED_ON. */
static int call(bool (*function)(struct spill_request *request), struct spill_request request)
{
	request.result = 77;
	bool calls_vendor = function(&request);
	if (calls_vendor)
		assert_false(function(&request)); /* and that is all */
	assert_int_equal(request.result == 77, calls_vendor);
	assert_int_equal(spill_thread.depth, 0);
	return calls_vendor ? PASSED_ON : request.result;
}

static CUdeviceptr opened;

static int open_with(unsigned flags, CUdeviceptr *out)
{
	opened = 0;
	return call(spill_engine_import,
	            (struct spill_request){.properties = &handle, .mode = flags, .out = out});
}

TEST(a_handle_of_ours_is_opened)
{
	unused = 2;
	assert_int_equal(open_with(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, &opened), 0);
	assert_int_equal(opened, 123);
	assert_string_equal(what_was_said(), "wait:2 unmap:2 wait:1 unmap:1 open:2");
	open_result = 5;
	assert_int_equal(open_with(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, &opened), 5);
	assert_int_equal(opened, 0);
	what_was_said();
	own = true; /* no process opens its own */
	assert_int_equal(open_with(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, &opened), CUDA_ERROR_INVALID_CONTEXT);
	assert_string_equal(what_was_said(), "");
}

TEST(other_handles_and_calls_are_the_vendors)
{
	const unsigned good = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
	assert_int_equal(open_with(0, &opened), PASSED_ON);
	assert_int_equal(open_with(good, NULL), PASSED_ON);
	has_current = false;
	assert_int_equal(open_with(good, &opened), PASSED_ON);
	has_current = true;
	found = NULL;
	assert_int_equal(open_with(good, &opened), PASSED_ON);
	found = &backend;
	handle.magic++;
	assert_int_equal(open_with(good, &opened), PASSED_ON);
	assert_string_equal(what_was_said(), "");
}

TEST(what_nobody_uses_is_unmapped_behind_its_work)
{
	unused = 1;
	assert_int_equal(call(spill_engine_import_end, (struct spill_request){.ptr = 9}), 0);
	assert_string_equal(what_was_said(), "close:9 wait:1 unmap:1");
	unused = 1;
	captures = true; /* it forbids to wait */
	assert_int_equal(call(spill_engine_import_end, (struct spill_request){.ptr = 9}), 0);
	assert_string_equal(what_was_said(), "close:9");
	captures = false;
	knows = false;
	assert_int_equal(call(spill_engine_import_end, (struct spill_request){.ptr = 9}), PASSED_ON);
	assert_string_equal(what_was_said(), "close:9");
}
