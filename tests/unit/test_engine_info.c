/*
 * Questions about free and total memory: which answers are changed, by what figures, and what the thread notices of that.
 * The figures themselves are in test_meminfo.c.
 */
#define SETUP setup
#include "unit.h"

#include <pthread.h>

#include "abi/nvml.h"
#include "account.h"
#include "capture.h"
#include "engine.h"
#include "memory_limit.h"
#include "process.h"
#include "registry.h"
#include "said.h"
#include "vendor_pool.h"

enum { CURRENT = 3, DEVICE = 1 };

static struct spill_policy policy;
static uint64_t limit;
static unsigned devices_seen, can;
static int last_error, nvml_device;
static bool has_current, captures, found, in_use;

static unsigned count(void)
{
	return devices_seen;
}

static unsigned capabilities(int device)
{
	return can;
}

static bool current(int *device, void **context)
{
	*device = CURRENT;
	return has_current;
}

static int peek(void)
{
	return last_error;
}

static void forget(void)
{
	say("forget", 0);
}

static const struct spill_vendor_devices devices = {
    .count = count, .capabilities = capabilities, .current = current};
static const struct spill_vendor_last_error errors = {.peek = peek, .forget = forget};
static struct spill_backend backend;

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	assert_int_equal(domain, SPILL_CUDA_DRIVER);
	return found ? &backend : NULL;
}

const struct spill_backend *spill_backend_in_use(enum spill_domain domain)
{
	assert_int_equal(domain, SPILL_CUDA_DRIVER);
	return in_use ? &backend : NULL;
}

int spill_nvml_device(const struct spill_backend *vendor, const void *real, uint64_t handle)
{
	assert_int_equal(handle, 99);
	return nvml_device;
}

bool spill_capture_any(void)
{
	return captures;
}

void spill_vendor_pool_settle_graphs(const struct spill_backend *vendor, int device)
{
	say("graphs", (uint64_t)device);
}

bool spill_vendor_pool_settle_device(const struct spill_backend *vendor, int device)
{
	say("pools", (uint64_t)device);
	return false;
}

uint64_t spill_account_device_held(int device)
{
	return 20;
}

uint64_t spill_device_limit(const struct spill_backend *vendor, int device)
{
	return limit;
}

static int cancel_state(void)
{
	int state, unused;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_setcancelstate(state, &unused);
	return state;
}

uint64_t spill_host_room(const struct spill_policy *given, uint64_t *most)
{
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE); /* it reads files */
	*most = 60;
	return 40;
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.meminfo_report = SPILL_MEMINFO_LIMIT;
	spill_process_use_policy(&policy);
	backend = (struct spill_backend){.devices = &devices};
	limit = 50;
	devices_seen = 2;
	can = 1u << SPILL_PLACE_HOST;
	last_error = nvml_device = 0;
	has_current = found = in_use = true;
	captures = false;
	what_was_said();
	return 0;
}

static size_t free_bytes, total_bytes;

/* The driver's answer is 100 of 200 bytes. What is asked for. */
enum { FREE = 1, TOTAL = 2, BOTH = FREE | TOTAL };

static void ask(unsigned what, int device, int result)
{
	struct spill_request request = {.device = device};
	request.info.out_free = what & FREE ? &free_bytes : NULL;
	request.info.out_total = what & TOTAL ? &total_bytes : NULL;
	free_bytes = 100;
	total_bytes = 200;
	assert_true(spill_engine_info(&request));
	assert_int_equal(free_bytes, 100);
	request.result = result;
	assert_false(spill_engine_info(&request));
	assert_int_equal(request.result, result);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
}

#define TOLD(free, total, calls) \
	do { \
		assert_int_equal(free_bytes, free); \
		assert_int_equal(total_bytes, total); \
		assert_string_equal(what_was_said(), calls); \
	} while (0)

TEST(what_the_limit_leaves)
{
	ask(BOTH, DEVICE, 0);
	TOLD(30, 50, "graphs:1 pools:1");
	ask(FREE, SPILL_CURRENT_DEVICE, 0);
	TOLD(30, 200, "graphs:3 pools:3");
	captures = true; /* pools are not asked in one */
	ask(BOTH, DEVICE, 0);
	TOLD(30, 50, "graphs:1");
	limit = SPILL_UNLIMITED;
	ask(BOTH, DEVICE, 0);
	TOLD(100, 200, "");
}

/* The total alone wakes no device: the limit is the policy's, of that total. */
TEST(the_total_alone)
{
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_PERCENT, 30000};
	ask(TOTAL, DEVICE, 0);
	TOLD(100, 60, "");
}

TEST(with_what_the_host_has)
{
	policy.meminfo_report = SPILL_MEMINFO_SPILL;
	ask(BOTH, DEVICE, 0); /* the host is shared by two devices */
	TOLD(50, 80, "graphs:1 pools:1");
	devices_seen = 0;
	ask(BOTH, DEVICE, 0);
	TOLD(70, 110, "graphs:1 pools:1");
	can = 0;
	ask(BOTH, DEVICE, 0);
	TOLD(30, 50, "graphs:1 pools:1");
	can = 1u << SPILL_PLACE_HOST;
	policy.meminfo_report = SPILL_MEMINFO_LIMIT;
	ask(BOTH, DEVICE, 0);
	TOLD(30, 50, "graphs:1 pools:1");
}

TEST(answers_that_stay)
{
	ask(BOTH, DEVICE, 1);
	TOLD(100, 200, "");
	ask(0, DEVICE, 0);
	TOLD(100, 200, "");
	has_current = false;
	ask(BOTH, SPILL_CURRENT_DEVICE, 0);
	TOLD(100, 200, "");
	policy.mode = SPILL_MODE_OBSERVE;
	ask(BOTH, DEVICE, 0);
	TOLD(100, 200, "");
	policy.mode = SPILL_MODE_SPILL;
	policy.meminfo_report = SPILL_MEMINFO_HONEST;
	ask(BOTH, DEVICE, 0);
	TOLD(100, 200, "");
	policy.meminfo_report = SPILL_MEMINFO_LIMIT;
	found = false;
	ask(BOTH, DEVICE, 0);
	TOLD(100, 200, "");
}

/* Where the vendor keeps a last error, that of our calls goes, and the program's stays. */
TEST(the_last_error)
{
	backend.last_error = &errors;
	ask(BOTH, DEVICE, 0);
	TOLD(30, 50, "graphs:1 pools:1 forget:0");
	last_error = 7;
	ask(BOTH, DEVICE, 0);
	TOLD(30, 50, "graphs:1 pools:1");
}

static void ask_nvml(void *structure, unsigned form)
{
	struct spill_request request = {.domain = SPILL_NVML, .handle = 99, .out = structure};
	request.info.nvml_form = form;
	assert_true(spill_engine_info(&request));
	assert_false(spill_engine_info(&request));
}

static const nvmlMemory_t first = {.total = 200, .free = 100, .used = 90};
static const nvmlMemory_v2_t second = {
    .version = nvmlMemory_v2, .total = 200, .reserved = 15, .free = 100, .used = 90};

TEST(answers_of_nvml)
{
	nvmlMemory_t one = first;
	nvmlMemory_v2_t two = second;
	ask_nvml(&one, 1);
	assert_true(one.total == 50 && one.free == 30 && one.used == 10);
	ask_nvml(&two, 2);
	assert_true(two.total == 50 && two.free == 30 && two.used == 10 && two.reserved == 15);
	assert_int_equal(two.version, nvmlMemory_v2);
	assert_string_equal(what_was_said(), "graphs:0 pools:0 graphs:0 pools:0");
}

TEST(answers_of_nvml_that_stay)
{
	for (unsigned i = 0; i < 3; i++) {
		nvmlMemory_t one = first;
		nvmlMemory_v2_t two = second;
		two.version += i == 0;
		nvml_device = i == 1 ? -1 : 0;
		in_use = i != 2;
		const nvmlMemory_v2_t before = two;
		ask_nvml(&two, 2);
		assert_memory_equal(&two, &before, sizeof(two));
		if (i == 0)
			continue;
		ask_nvml(&one, 1);
		assert_memory_equal(&one, &first, sizeof(one));
	}
	assert_string_equal(what_was_said(), "");
}
