/* Frames behind a call, against the addresses that the compiler says. */
#include "unit.h"

#include <dlfcn.h>
#include <stdio.h>

#include "call_stack.h"
#include "loaded_objects.h"

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

static const void *sites[4];
static const void *found[4];

/* The stack below, as `site` and three frames behind it. */
static APART void innermost(void)
{
	for (unsigned behind = 0; behind < 4; behind++)
		found[behind] = spill_call_stack_behind(sites[0], behind);
	__asm__ volatile(""); /* no tail call */
}

static APART void first(void)
{
	sites[0] = __builtin_return_address(0);
	innermost();
	__asm__ volatile("");
}

/* Its frame has a size that the compiler does not know. */
static APART void second(size_t size)
{
	char room[size];
	sites[1] = __builtin_return_address(0);
	__asm__ volatile("" ::"r"(room) : "memory");
	first();
	__asm__ volatile("");
}

static APART void third(size_t size)
{
	sites[2] = __builtin_return_address(0);
	second(size);
	__asm__ volatile("");
}

static APART void outermost(size_t size)
{
	sites[3] = __builtin_return_address(0);
	third(size);
	__asm__ volatile("");
}

TEST(frames_behind_a_site)
{
	for (size_t size = 1; size < 100000; size = size * 3 + 5) {
		outermost(size);
		for (unsigned behind = 0; behind < 4; behind++)
			assert_ptr_equal(found[behind], sites[behind]);
	}
}

TEST(a_site_that_is_not_on_the_stack)
{
	assert_null(spill_call_stack_behind((const void *)&sites, 0));
	assert_null(spill_call_stack_behind((const void *)&sites, 1));
	assert_null(spill_call_stack_behind(NULL, 0));
}

TEST(the_end_of_the_stack)
{
	outermost(8);
	assert_null(spill_call_stack_behind(__builtin_return_address(0), 1000));
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
/* As glibc before 2.35 has it found: the same table as that of glibc's own function. */
TEST(tables_without_glibc)
{
	const void *addresses[] = {&printf, &spill_call_stack_behind, &_assert_int_equal,
	                           &cmocka_set_message_output};
	int (*real)(void *, struct dl_find_object *);
	*(void **)&real = spill_loaded_objects_function("_dl_find_object", NULL);
	assert_non_null(real);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct dl_find_object expected;
		struct spill_unwind_table found;
		assert_int_equal(real((void *)addresses[i], &expected), 0);
		assert_true(spill_loaded_object_unwind(addresses[i], &found));
		assert_ptr_equal(found.table, expected.dlfo_eh_frame);
		assert_true((const char *)found.begin <= (const char *)addresses[i]);
		assert_true((const char *)addresses[i] < (const char *)found.end);
	}
	struct spill_unwind_table none;
	assert_false(spill_loaded_object_unwind(&none, &none));
	assert_null(spill_loaded_objects_function("no_such_function_anywhere", NULL));
}
#endif

#ifdef DLFO_STRUCT_HAS_EH_DBASE
/* It takes no lock, unlike ours. */
TEST(glibc_answers_where_it_has_the_function)
{
	struct dl_find_object found = {0};
	bool is_there = dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "_dl_find_object");
	assert_int_equal(_dl_find_object((void *)outermost, &found), 0);
	assert_int_equal(found.dlfo_link_map != NULL, is_there);
}
#endif
