/*
 * The layouts of kernel parameters (layouts.h): what the driver is asked for, and how long its answers are kept. Each case
 * runs in a child of its own.
 */
#include "parameter_driver.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "fake_libc.h"
#include "said.h"

/* The parameters that can hold a pointer, INDEX:WORDS; NULL: nobody knows them. */
static const char *layout_of(uintptr_t function)
{
	char index[16];
	errno = ERANGE;
	const struct spill_layout *layout = spill_layout_of((void *)function);
	CHECK(errno == ERANGE && spill_thread.depth == 0);
	if (!layout)
		return NULL;
	CHECK(layout->function == (void *)function);
	for (uint32_t i = 0; i < layout->count; i++) {
		snprintf(index, sizeof(index), "%u", layout->parts[i].index);
		say(index, layout->parts[i].words);
	}
	return what_was_said();
}

static bool is_layout(uintptr_t function, const char *expected)
{
	const char *layout = layout_of(function);
	if (!layout || strcmp(layout, expected) != 0)
		fprintf(stderr, "the layout: %s\n", layout ? layout : "none");
	return layout && !strcmp(layout, expected);
}

/* Whether a layout is kept: the driver is asked once. */
static bool is_kept(uintptr_t function)
{
	const struct spill_layout *layout = spill_layout_of((void *)function);
	asked = 0;
	return layout && spill_layout_of((void *)function) == layout && !asked;
}

/* Another layout than before, each time. */
static void change_layout(unsigned function)
{
	sizes[function][0] = sizes[function][0] == 8 ? 16 : 8;
	spill_layouts_forget();
}

/* -- what is asked ---------------------------------------------------------------------------------------- */

/* The even ones are kernels, the others functions. */
CHILD_TEST(parameters_that_can_hold_a_pointer)
{
	for (unsigned function = 2; function <= 3; function++) {
		memcpy(sizes[function], (size_t[]){8, 4, 7, 20, 1}, 5 * sizeof(size_t));
		CHECK(is_layout(function, "0:1 3:2"));
	}
	sizes[4][0] = 4;
	CHECK(is_layout(4, "") && is_layout(6, ""));
	CHECK(is_kept(2) && is_kept(3) && is_kept(4) && is_kept(6));
}

CHILD_TEST(a_driver_that_cannot_tell)
{
	sizes[2][0] = sizes[3][0] = 8;
	lacks_kernels = true;
	CHECK(!layout_of(2) && is_layout(3, "0:1"));
	asked = 0;
	always = CUDA_ERROR_OUT_OF_MEMORY; /* not for good */
	CHECK(!layout_of(5) && asked == 1);
	always = 0;
	sizes[5][0] = 8;
	CHECK(is_layout(5, "0:1"));
}

CHILD_TEST(a_driver_without_a_call_for_functions)
{
	sizes[2][0] = sizes[3][0] = 8;
	lacks_functions = true;
	CHECK(is_layout(2, "0:1") && !layout_of(3));
}

/* Only a handle of the other kind is asked about again. */
CHILD_TEST(an_error_is_no_other_kind)
{
	always = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK(!layout_of(2) && asked == 1);
	always = CUDA_ERROR_INVALID_HANDLE;
	CHECK(!layout_of(2) && asked == 3);
}

/* One more is asked for, which says that there are no others. */
CHILD_TEST(the_most_parameters)
{
	for (unsigned i = 0; i < 513; i++)
		sizes[3][i] = sizes[5][i] = 8;
	sizes[3][511] = sizes[3][512] = 0;
	const struct spill_layout *layout = spill_layout_of((void *)3);
	CHECK(layout && layout->count == 511);
	for (unsigned i = 0; i < 511; i++)
		CHECK(layout->parts[i].index == i && layout->parts[i].words == 1);
	asked = 0;
	CHECK(!layout_of(5) && asked == 513); /* of the kernels' call the first alone */
}

/* A parameter of 32,764 bytes is the longest that a driver has. */
CHILD_TEST(the_longest_parameter)
{
	sizes[3][0] = 32764;
	CHECK(is_layout(3, "0:4095"));
	sizes[5][0] = 32768;
	CHECK(!layout_of(5));
}

/* -- what is kept ----------------------------------------------------------------------------------------- */

CHILD_TEST(what_was_unloaded_is_asked_again)
{
	sizes[2][0] = 8;
	CHECK(is_layout(2, "0:1") && asked == 2 && is_layout(2, "0:1") && asked == 2);
	const struct spill_layout *before = spill_layout_of((void *)2);
	spill_layouts_forget();
	CHECK(is_layout(2, "0:1") && asked == 4); /* the same again: what is kept does not grow */
	CHECK(spill_layout_of((void *)2) == before && asked == 4);
	memcpy(sizes[2], (size_t[]){4, 4, 8}, 3 * sizeof(size_t));
	spill_layouts_forget();
	CHECK(is_layout(2, "2:1")); /* as many parts as before, and others */
	memcpy(sizes[2], (size_t[]){4, 8, 8}, 3 * sizeof(size_t));
	spill_layouts_forget();
	CHECK(is_layout(2, "1:1 2:1"));
	memcpy(sizes[2], (size_t[]){8, 0}, 2 * sizeof(size_t));
	spill_layouts_forget();
	CHECK(is_layout(2, "0:1") && is_kept(2));
	/* The parts of one that another thread reads stay as they were. */
	CHECK(before->count == 1 && before->parts[0].index == 0 && before->parts[0].words == 1);
}

/* It is right for this launch alone, whether the function was known before or not. */
CHILD_TEST(what_is_unloaded_while_it_is_asked)
{
	sizes[2][0] = sizes[4][0] = 8;
	CHECK(is_layout(2, "0:1"));
	spill_layouts_forget();
	for (unsigned function = 2; function <= 4; function += 2) {
		in_ask = spill_layouts_forget;
		CHECK(is_layout(function, "0:1"));
		asked = 0;
		CHECK(is_layout(function, "0:1") && asked == 2);
	}
}

/* The memory that a layout asks for. It has any content at first. */
static size_t bytes_of_layout;

static bool give_used_memory(long arguments[6], long *result)
{
	bytes_of_layout = (size_t)arguments[0];
	*result = (long)memset(calloc(1, bytes_of_layout), 0x5a, bytes_of_layout);
	return true;
}

CHILD_TEST(a_layout_has_room_for_its_parts)
{
	memcpy(sizes[2], (size_t[]){8, 16, 24}, 3 * sizeof(size_t));
	fake_libc[FAKE_malloc].hook = give_used_memory;
	CHECK(is_kept(2) && is_layout(2, "0:1 1:2 2:3"));
	CHECK(bytes_of_layout == sizeof(struct spill_layout) + 3 * sizeof(struct spill_layout_part));
	fake_libc_reset();
}

CHILD_TEST(without_memory_nothing_is_known)
{
	sizes[2][0] = 8;
	fake_libc_fail(FAKE_malloc, 1, 1, ENOMEM);
	CHECK(!layout_of(2));
	CHECK(is_layout(2, "0:1") && is_kept(2));
	fake_libc_reset();
}

enum { MOST_KEPT = 65536 };

CHILD_TEST(as_many_layouts_as_there_may_be)
{
	for (unsigned i = 0; i < MOST_KEPT; i++) {
		change_layout(2);
		CHECK(is_kept(2));
	}
	size_t memory = mallinfo2().uordblks;
	for (unsigned i = 0; i < 1000; i++) {
		change_layout(2);
		CHECK(is_kept(2) == i % 2); /* half of them are the one that was kept last */
	}
	CHECK(mallinfo2().uordblks < memory + 1000);
}

/* A function whose slots are all taken has no layout, and costs none of those that there may be. */
CHILD_TEST(functions_without_a_slot)
{
	uintptr_t without = 0;
	sizes[2][0] = 8;
	for (uintptr_t i = 0; i < 9000; i++) {
		uintptr_t function = 2 + KINDS * i * i; /* irregular, so that some slots stay free */
		if (!is_kept(function)) {
			CHECK(!spill_layout_of((void *)function));
			without = function;
		}
	}
	CHECK(without);
	size_t memory = mallinfo2().uordblks;
	for (unsigned i = 0; i < MOST_KEPT; i++)
		CHECK(!spill_layout_of((void *)without));
	CHECK(mallinfo2().uordblks < memory + MOST_KEPT);
	change_layout(2);
	CHECK(is_kept(without));
}

/* Each stays where it is found, whichever others came between. */
CHILD_TEST(functions_do_not_push_each_other_out)
{
	enum { FUNCTIONS = 2000 };
	static const struct spill_layout *first[FUNCTIONS];
	sizes[2][0] = 8;
	for (unsigned round = 0; round < 2; round++) {
		for (uintptr_t i = 0; i < FUNCTIONS; i++)
			CHECK((first[i] = spill_layout_of((void *)(2 + KINDS * i * i))) != NULL);
		asked = 0;
		for (uintptr_t i = 0; i < FUNCTIONS; i++)
			CHECK(spill_layout_of((void *)(2 + KINDS * i * i)) == first[i]);
		CHECK(asked == 0);
		change_layout(2);
	}
}

CHILD_TEST(rows_that_end_functions)
{
	CHECK(spill_layouts_end_with(SPILL_OP_UNLOAD) && spill_layouts_end_with(SPILL_OP_CONTEXT_DESTROY));
	CHECK(spill_layouts_end_with(SPILL_OP_PRIMARY_RESET) &&
	      spill_layouts_end_with(SPILL_OP_DEVICE_RESET));
	CHECK(spill_layouts_end_with(SPILL_OP_PRIMARY_RELEASE) && !spill_layouts_end_with(SPILL_OP_ROOM));
}

/* Many functions by many threads: a slot may be lost, never mixed up. */
static void *asks(void *argument)
{
	for (uintptr_t i = 0; i < 20000; i++) {
		uintptr_t function = 2 + (i * 7 + (uintptr_t)argument) % 30;
		const struct spill_layout *layout = spill_layout_of((void *)function);
		if (i % 1000 == 0)
			spill_layouts_forget();
		CHECK(layout && layout->function == (void *)function);
		CHECK(layout->count == 1 && layout->parts[0].words == function);
	}
	return NULL;
}

CHILD_TEST(threads_ask)
{
	pthread_t threads[3];
	for (unsigned i = 2; i < 32; i++)
		sizes[i][0] = i * 8;
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, asks, (void *)i) == 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* In a child that is forked there, this thread is in no call of ours (runtime.c). */
static void end_our_calls(void)
{
	spill_thread.depth = 0;
}

CHILD_TEST(a_question_in_which_the_process_forks)
{
	sizes[3][0] = 8;
	in_ask = end_our_calls;
	lacks_kernels = true;
	always = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK(!layout_of(3) && spill_thread.depth == 0);
}
