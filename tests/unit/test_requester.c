/* Who asked an allocator: its Python function or the code behind it. Call stack, names and Python are replaced. */
#define SETUP setup
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "call_stack.h"
#include "caller.h"
#include "python_function.h"
#include "requester.h"

/* The stack: `allocators` frames of the library, then that of the program. A site is the number of its frame. */
static const char *library, *function;
static unsigned allocators, ends_at;
static bool no_memory;

static char sites[64];

const void *spill_call_stack_behind(const void *site, unsigned behind)
{
	assert_ptr_equal(site, sites);
	return ends_at && behind >= ends_at ? NULL : sites + behind;
}

const char *spill_caller_name(const void *address)
{
	static char name[300];
	unsigned frame = (unsigned)((const char *)address - sites);
	snprintf(name, sizeof(name), "%s+0x%x", frame < allocators ? library : "program", frame);
	return name;
}

bool spill_python_function(char *text, size_t size)
{
	assert_true(size >= 100);
	if (function)
		strcpy(text, function);
	return function;
}

const char *spill_caller_keep(const char *text)
{
	static char kept[300];
	return no_memory ? NULL : strcpy(kept, text);
}

static int setup(void **state)
{
	library = "libggml-cuda.so.1";
	function = NULL;
	allocators = 1;
	ends_at = 0;
	no_memory = false;
	return 0;
}

static void expect(const char *wanted)
{
	const char *found = spill_requester(sites);
	if (!wanted)
		assert_null(found);
	else
		assert_string_equal(found, wanted);
}

/* For libggml the code that called it counts, if there is some. */
TEST(the_code_behind_an_allocator)
{
	function = "a.py:f";
	expect("program+0x1");
	allocators = 5;
	expect("program+0x5");
	allocators = 24;
	expect("program+0x18");
	allocators = 25; /* so deep nobody looks */
	expect("a.py:f");
	allocators = ends_at = 3;
	expect("a.py:f");
	no_memory = true;
	expect(NULL);
	function = NULL;
	expect(NULL);
}

/* For PyTorch the Python function counts. A thread that runs none has code. */
TEST(the_function_behind_an_allocator)
{
	library = "libc10_cuda.so";
	allocators = 3;
	function = "a.py:f";
	expect("a.py:f");
	function = NULL;
	expect("program+0x3");
	no_memory = true;
	function = "a.py:f";
	expect("program+0x3");
}

/* Who is no allocator asks for itself, or for a Python function. */
TEST(the_function_behind_other_code)
{
	library = "libother.so";
	expect(NULL);
	function = "a.py:f";
	expect("a.py:f");
}

TEST(names_of_any_length)
{
	static char name[200];
	strcpy(name, "libggml-");
	memset(name + 8, 'x', 159 - 8 - 3);
	strcpy(name + 156, ".so"); /* 159 letters */
	library = name;
	expect("program+0x1");
	strcpy(name + 156, "y.so");
	expect(NULL);
}
