/*
 * What PyTorch reports of its blocks, on its way: each report is passed on to PyTorch's own function, and those of device memory
 * are noted first. All that is called is replaced, and tells its name.
 */
#define SETUP setup
#include "unit.h"

#include <errno.h>

#include "blocks.h"
#include "loaded_objects.h"
#include "process.h"
#include "said.h"
#include "unpark.h"

struct device {
	int8_t type, index;
};

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *ptr, int64_t bytes, size_t allocated,
                                                           size_t reserved, struct device device);

static bool any, found;

static void real(void *ptr, int64_t bytes, size_t allocated, size_t reserved, struct device device)
{
	assert_int_equal(errno, 5);
	assert_true(ptr == (void *)0x1000 && allocated == 2 && reserved == 3 && device.index == 4);
	say("real", (uint64_t)bytes);
}

void *spill_loaded_objects_function(const char *name, const void *own)
{
	assert_string_equal(name, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
	assert_ptr_equal(own, _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE);
	say("look", 0);
	return found ? (void *)real : NULL;
}

bool spill_blocks_any(void)
{
	return any;
}

void spill_blocks_taken(uint64_t ptr, uint64_t bytes, spill_blocks_part_fn *each)
{
	assert_int_equal(ptr, 0x1000);
	assert_int_equal(spill_thread.depth, 1);
	errno = 77;
	say("taken", bytes);
	each(NULL, ptr, bytes - 1);
}

void spill_blocks_given(uint64_t ptr, uint64_t bytes)
{
	assert_int_equal(ptr, 0x1000);
	say("given", bytes);
}

bool spill_unpark(struct spill_chunked *chunked, uint64_t ptr, uint64_t bytes)
{
	assert_null(chunked);
	assert_int_equal(ptr, 0x1000);
	say("unpark", bytes);
	return true;
}

static const char *report(int64_t bytes, int8_t type)
{
	errno = 5;
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)0x1000, bytes, 2, 3,
	                                                      (struct device){type, 4});
	assert_int_equal(errno, 5);
	assert_int_equal(spill_thread.depth, 0);
	return what_was_said();
}

static int setup(void **state)
{
	any = true;
	return 0;
}

/* It is looked for until it is found: the first test of this file. */
TEST(without_pytorch_nothing_is_called)
{
	assert_string_equal(report(512, 0), "look:0");
	found = true;
	assert_string_equal(report(512, 0), "look:0 real:512");
	assert_string_equal(report(512, 0), "real:512");
}

TEST(blocks_of_a_device_are_noted)
{
	found = true;
	report(512, 0);
	assert_string_equal(report(512, 1), "taken:512 unpark:511 real:512");
	assert_string_equal(report(-512, 1), "given:512 real:-512");
	assert_string_equal(report(0, 1), "real:0");
}

TEST(nothing_is_noted_of_other_memory)
{
	found = true;
	report(512, 0);
	any = false;
	assert_string_equal(report(512, 1), "real:512");
	any = true;
	assert_string_equal(report(512, 2), "real:512");
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
