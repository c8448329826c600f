/* What a trial of a driver does with memory: a piece of each kind, and copies over the link. Every call may fail. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_driver.h"
#include "fake_clock.h"

#define MIB ((uint64_t)1 << 20)
#define UNIT (2 * MIB)
#define ALL (SPILL_CAN_MOVE | SPILL_CAN_SPLIT | SPILL_CAN_MANAGED | SPILL_CAN_HOST)
enum { OUT_OF_MEMORY = 2, REFUSED = 800 };

/* -- a driver that tells its calls ----------------------------------------------------------------- */

static char calls[2048];
static unsigned call_count, failing; /* the number of the call that fails; 0: none */
static int failure;
static uint64_t free_bytes, copy_ns[64];
static unsigned copies;
static char *memory, before;

static int call(const char *format, ...)
{
	size_t length = strlen(calls);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(calls + length, sizeof(calls) - length, format, arguments);
	va_end(arguments);
	return ++call_count == failing ? failure : 0;
}

static const char *name_error(int error)
{
	return error == OUT_OF_MEMORY ? "FULL" : "NO";
}

static int enter(int device, void **to)
{
	*to = &before;
	return call("enter %d, ", device);
}

static void leave(void *to)
{
	assert_ptr_equal(to, &before);
	call("leave");
}

static int tell_memory(int device, uint64_t *free, uint64_t *total)
{
	*free = free_bytes;
	*total = UINT64_MAX;
	return 0;
}

static int granularity(int device, bool on_host, uint64_t *bytes)
{
	*bytes = UNIT;
	return call("%s unit, ", on_host ? "host" : "device");
}

static int reserve(uint64_t bytes, uint64_t alignment, uint64_t *va)
{
	assert_int_equal(bytes, UNIT);
	assert_int_equal(alignment, UNIT);
	*va = 0x1000;
	return call("reserve, ");
}

static int unreserve(uint64_t va, uint64_t bytes)
{
	assert_int_equal(va, 0x1000);
	assert_int_equal(bytes, UNIT);
	return call("unreserve, ");
}

static int create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	assert_int_equal(bytes, UNIT);
	*handle = on_host ? 8 : 7;
	return call("create %d, ", device);
}

static int release(uint64_t handle)
{
	return call("release %d, ", (int)handle);
}

static int map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	assert_int_equal(va, 0x1000);
	assert_int_equal(bytes, UNIT);
	return call("map %d, ", (int)handle);
}

static int unmap(uint64_t va, uint64_t bytes)
{
	assert_int_equal(va, 0x1000);
	assert_int_equal(bytes, UNIT);
	return call("unmap, ");
}

static int allow(uint64_t va, uint64_t bytes, int device)
{
	assert_int_equal(va, 0x1000);
	assert_int_equal(bytes, UNIT);
	return call("allow %d, ", device);
}

static int device_alloc(uint64_t bytes, uint64_t *ptr)
{
	*ptr = 0x2000;
	return call("device %d MiB, ", (int)(bytes / MIB));
}

static int device_free(uint64_t ptr)
{
	assert_int_equal(ptr, 0x2000);
	return call("device free, ");
}

static void free_memory(void)
{
	free(memory);
	memory = NULL;
}

static int host_alloc(uint64_t bytes, uint64_t *ptr, void **host)
{
	*ptr = 0x3000;
	*host = memory = calloc(1, bytes);
	return call("host %d KiB, ", (int)(bytes / 1024));
}

static int host_free(void *host)
{
	assert_ptr_equal(host, memory);
	assert_int_equal(memory[0], 1);
	assert_int_equal(memory[4095], 1);
	free_memory();
	return call("host free, ");
}

static int managed_alloc(uint64_t bytes, uint64_t *ptr)
{
	memory = calloc(1, bytes);
	*ptr = (uint64_t)(uintptr_t)memory;
	return call("managed %d, ", (int)bytes);
}

static int managed_free(uint64_t ptr)
{
	assert_int_equal(ptr, (uint64_t)(uintptr_t)memory);
	assert_int_equal(memory[0], 1);
	assert_int_equal(memory[4095], 1);
	free_memory();
	return call("managed free, ");
}

enum spill_probe spill_probe(const struct spill_backend *backend, int device)
{
	call("probe %d, ", device);
	return SPILL_PROBE_LATER;
}

/* A copy lasts as long as the next time says, the last one for all others. */
static int copy(uint64_t to, uint64_t from, uint64_t bytes)
{
	bool is_there = to == 0x2000;

	assert_int_equal(is_there ? from : to, (uint64_t)(uintptr_t)memory);
	assert_int_equal(is_there ? to : from, 0x2000);
	assert_int_equal(bytes, 4 * MIB);
	assert_int_equal(memory[bytes - 1], 1);
	fake_clock.ns += copy_ns[copies++];
	return call(is_there ? ">" : "<");
}

static const struct spill_vendor_devices devices = {.enter = enter, .leave = leave, .memory = tell_memory};
static const struct spill_vendor_memory memories = {.device_alloc = device_alloc,
                                                    .device_free = device_free,
                                                    .host_alloc = host_alloc,
                                                    .host_free = host_free,
                                                    .managed_alloc = managed_alloc,
                                                    .managed_free = managed_free};
static const struct spill_vendor_physical physical = {
    .granularity = granularity, .create = create, .release = release};
static const struct spill_vendor_vmm vmm = {
    .reserve = reserve, .unreserve = unreserve, .map = map, .unmap = unmap, .allow = allow};
static const struct spill_backend backend = {.out_of_memory = OUT_OF_MEMORY,
                                             .error_name = name_error,
                                             .devices = &devices,
                                             .memory = &memories,
                                             .physical = &physical,
                                             .vmm = &vmm};
static const struct driver_vendor vendor = {.backend = &backend, .copy = copy};

static void begin(unsigned fails, int error)
{
	calls[0] = '\0';
	call_count = copies = 0;
	failing = fails;
	failure = error;
	fake_clock_use(1);
	memory = NULL;
}

/* -- a piece of each kind -------------------------------------------------------------------------- */

static struct driver_device touched(unsigned capabilities, unsigned fails, int error)
{
	struct driver_device device = {.capabilities = capabilities};

	begin(fails, error);
	free_bytes = 77;
	driver_touch(&backend, 3, &device);
	assert_true(device.touch[TOUCH_CONTEXT].tried);
	return device;
}

#define CHUNK(kind, handle) \
	kind " unit, reserve, create 3, map " handle ", allow 3, unmap, release " handle ", unreserve, "

TEST(all_kinds)
{
	struct driver_device device = touched(ALL, 0, 0);

	assert_string_equal(calls, "enter 3, " CHUNK("device", "7")
	                               CHUNK("host", "8") "managed 4096, managed free, "
	                                                  "host 4 KiB, host free, probe 3, leave");
	assert_int_equal(device.free, 77);
	assert_true(device.probed);
	assert_int_equal(device.move, SPILL_PROBE_LATER);
	for (unsigned i = 0; i < TOUCHES; i++) {
		assert_true(device.touch[i].tried);
		assert_int_equal(device.touch[i].error, 0);
	}
}

/* Only what the device offers. */
TEST(some_kinds)
{
	static const unsigned offers[] = {SPILL_CAN_MOVE, SPILL_CAN_SPLIT, SPILL_CAN_MANAGED, SPILL_CAN_HOST};
	static const char *const called[] = {
	    "enter 3, probe 3, leave", "enter 3, " CHUNK("device", "7") CHUNK("host", "8") "leave",
	    "enter 3, managed 4096, managed free, leave", "enter 3, host 4 KiB, host free, leave"};

	for (unsigned i = 0; i < 4; i++) {
		struct driver_device device = touched(offers[i], 0, 0);

		assert_string_equal(calls, called[i]);
		assert_int_equal(device.probed, i == 0);
		assert_int_equal(device.touch[TOUCH_DEVICE_CHUNK].tried, i == 1);
		assert_int_equal(device.touch[TOUCH_HOST_CHUNK].tried, i == 1);
		assert_int_equal(device.touch[TOUCH_MANAGED].tried, i == 2);
		assert_int_equal(device.touch[TOUCH_HOST].tried, i == 3);
	}
}

/* What was made before is given back. The next kinds are tried all the same. */
TEST(a_call_that_fails)
{
	static const struct {
		unsigned call;
		enum driver_kind kind;
		const char *name, *called;
	} cases[] = {
	    {1, TOUCH_CONTEXT, "make a context", "enter 3, "},
	    {2, TOUCH_DEVICE_CHUNK, "granularity", "enter 3, device unit, " CHUNK("host", "8") "leave"},
	    {3, TOUCH_DEVICE_CHUNK, "reserve", "enter 3, device unit, reserve, " CHUNK("host", "8") "leave"},
	    {4, TOUCH_DEVICE_CHUNK, "create",
	     "enter 3, device unit, reserve, create 3, unreserve, " CHUNK("host", "8") "leave"},
	    {5, TOUCH_DEVICE_CHUNK, "map",
	     "enter 3, device unit, reserve, create 3, map 7, release 7, unreserve, " CHUNK("host",
	                                                                                    "8") "leave"},
	    {6, TOUCH_DEVICE_CHUNK, "set access",
	     "enter 3, " CHUNK("device", "7") CHUNK("host", "8") "leave"},
	    {14, TOUCH_HOST_CHUNK, "set access",
	     "enter 3, " CHUNK("device", "7") CHUNK("host", "8") "leave"}};

	for (unsigned i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		int error = i % 2 ? OUT_OF_MEMORY : REFUSED;
		struct driver_device device = touched(SPILL_CAN_SPLIT, cases[i / 2].call, error);

		assert_string_equal(calls, cases[i / 2].called);
		for (unsigned kind = 0; kind < TOUCHES; kind++) {
			const struct driver_touch *touch = &device.touch[kind];
			bool is_it = kind == cases[i / 2].kind;

			assert_int_equal(touch->error, is_it ? error : 0);
			assert_int_equal(touch->full, is_it && error == OUT_OF_MEMORY);
			assert_string_equal(touch->call, is_it ? cases[i / 2].name : "");
			assert_string_equal(touch->name, is_it ? name_error(error) : "");
		}
	}
	for (unsigned number = 2; number <= 3; number++) {
		struct driver_device device = touched(SPILL_CAN_MANAGED, number, REFUSED);

		assert_string_equal(device.touch[TOUCH_MANAGED].call, number == 2 ? "allocate" : "free");
		assert_string_equal(calls, number == 2 ? "enter 3, managed 4096, leave"
		                                       : "enter 3, managed 4096, managed free, leave");
		free_memory();
		device = touched(SPILL_CAN_HOST, number, REFUSED);
		assert_string_equal(device.touch[TOUCH_HOST].call, number == 2 ? "allocate" : "free");
		assert_string_equal(calls, number == 2 ? "enter 3, host 4 KiB, leave"
		                                       : "enter 3, host 4 KiB, host free, leave");
		free_memory();
	}
}

/* -- copies over the link -------------------------------------------------------------------------- */

static struct driver_link linked(const char *name, unsigned capabilities, unsigned fails)
{
	struct driver_device device = {.capabilities = capabilities};

	strcpy(device.identity.name, name);
	begin(fails, REFUSED);
	driver_link(&vendor, 5, &device);
	free_memory();
	return device.link;
}

#define MS 1000000u

/* A link wakes for 100 ms before it is measured. The median of seven copies counts. */
TEST(the_median_of_copies)
{
	static const uint64_t measured[] = {9 * MS, 1 * MS, 8 * MS, 2 * MS, 7 * MS, 3 * MS, 4 * MS};
	struct driver_link link;

	free_bytes = 16 * MIB;
	for (unsigned i = 0; i < sizeof(copy_ns) / sizeof(copy_ns[0]); i++)
		copy_ns[i] = 20 * MS;
	for (unsigned i = 0; i < 7; i++) {
		copy_ns[5 + i] = measured[i];
		copy_ns[12 + 5 + i] = 2 * measured[i];
	}
	link = linked("Card", ALL, 0);
	assert_string_equal(calls, "enter 5, device 4 MiB, host 4096 KiB, >>>>>>>>>>>><<<<<<<<<<<<host free, "
	                           "device free, leave");
	assert_false(link.simulated);
	assert_string_equal(link.problem, "");
	assert_int_equal(link.bytes, 4 * MIB);
	assert_float_equal(link.to_device, 4 * (double)MIB / (4 * MS), 1e-9);
	assert_float_equal(link.from_device, 4 * (double)MIB / (8 * MS), 1e-9);
	/* The simulator's is measured without. */
	for (unsigned i = 0; i < 7; i++)
		copy_ns[1 + i] = measured[i];
	link = linked("Simulated GPU 3", ALL, 0);
	assert_string_equal(
	    calls, "enter 5, device 4 MiB, host 4096 KiB, >>>>>>>><<<<<<<<host free, device free, leave");
	assert_true(link.simulated);
	assert_float_equal(link.to_device, 4 * (double)MIB / (4 * MS), 1e-9);
	memset(copy_ns, 0, sizeof(copy_ns)); /* a clock too coarse */
	link = linked("Simulated GPU", ALL, 0);
	assert_float_equal(link.to_device, 0, 0);
	assert_string_equal(link.problem, "");
}

/* A quarter of what is free, from 4 to 64 MiB. */
TEST(the_size_of_copies)
{
	static const struct {
		uint64_t free;
		const char *calls;
		unsigned mib;
	} sizes[] = {{UINT64_MAX, "enter 5, device 64 MiB, leave", 64},
	             {256 * MIB, "enter 5, device 64 MiB, leave", 64},
	             {256 * MIB - 1, "enter 5, device 32 MiB, leave", 32},
	             {16 * MIB, "enter 5, device 4 MiB, leave", 4},
	             {16 * MIB - 1, "enter 5, leave", 2},
	             {0, "enter 5, leave", 0}};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct driver_link link;

		free_bytes = sizes[i].free;
		link = linked("Card", ALL, 2); /* the device's memory */
		assert_string_equal(calls, sizes[i].calls);
		assert_int_equal(link.bytes / MIB, sizes[i].mib);
		assert_string_equal(link.problem,
		                    sizes[i].mib < 4 ? "the device is full" : "device memory: NO");
	}
}

TEST(a_link_that_cannot_be_measured)
{
	struct driver_link link;

	free_bytes = 16 * MIB;
	link = linked("Card", ALL | SPILL_IS_INTEGRATED, 0);
	assert_string_equal(link.problem, "its memory is the host's, there is no link");
	assert_string_equal(calls, "");
	link = linked("Card", ALL, 1);
	assert_string_equal(link.problem, "context: NO");
	assert_string_equal(calls, "enter 5, ");
	link = linked("Card", ALL, 3);
	assert_string_equal(link.problem, "pinned host memory: NO");
	assert_string_equal(calls, "enter 5, device 4 MiB, host 4096 KiB, device free, leave");
	/* The first copy, one that is measured, and one back. */
	for (unsigned i = 0; i < sizeof(copy_ns) / sizeof(copy_ns[0]); i++)
		copy_ns[i] = MS;
	for (unsigned fails = 4; fails <= 12; fails += 4) {
		link = linked("Simulated GPU", ALL, fails);
		assert_string_equal(link.problem, "copy: NO");
		assert_int_equal(link.to_device > 0, fails == 12);
		assert_int_equal(link.from_device > 0, fails < 12);
	}
}
