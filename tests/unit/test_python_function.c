/*
 * Functions of Python by the offsets of each version. This program is the interpreter: it has the
 * symbols that are looked for, and makes objects as python_versions.def describes them. What real
 * versions have there, tests/preload/test_requester.py and scripts/check pythons tell.
 */
#include "unit.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "childtest.h"
#include "python_function.h"

#define NONE (-1)
#define EXPORTED __attribute__((visibility("default")))

/* What libspill finds by name. */
EXPORTED extern unsigned long Py_Version;
EXPORTED extern char PyCode_Type, PyUnicode_Type;
EXPORTED void *PyGILState_GetThisThreadState(void);
unsigned long Py_Version = 0x030b07f0;
char PyCode_Type, PyUnicode_Type;
static void *this_thread;

void *PyGILState_GetThisThreadState(void)
{
	return this_thread;
}

struct version {
	int minor, thread, cframe, code, previous, text;
};

static const struct version versions[] = {
#define PYTHON(minor, thread, cframe, code, previous, text) {minor, thread, cframe, code, previous, text},
#include "python_versions.def"
};
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))

static const struct version *version = &versions[0];

/* Objects lie on pages of their own, with nothing behind them. */
static char *object(size_t size)
{
	size_t whole = (size + 7) & ~(size_t)7;
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0);
	return pages + 4096 - whole;
}

static void set(char *at, int offset, const void *value)
{
	memcpy(at + offset, &value, sizeof(value));
}

static char *string_of(const char *text, const void *type, unsigned state)
{
	size_t length = strlen(text);
	char *string = object((size_t)version->text + length);
	set(string, 8, type);
	memcpy(string + 16, &length, sizeof(length));
	memcpy(string + 32, &state, sizeof(state));
	memcpy(string + version->text, text, length);
	return string;
}

#define PLAIN 0x64 /* compact, ASCII, one byte a character. */

static char *string(const char *text)
{
	return string_of(text, &PyUnicode_Type, PLAIN);
}

static char *code_of(const void *type, char *file, char *function)
{
	char *code = object(136);
	set(code, 8, type);
	set(code, 112, file);
	set(code, 128, function);
	return code;
}

static char *code(const char *file, const char *function)
{
	return code_of(&PyCode_Type, string(file), string(function));
}

static char *frame(char *code, char *previous)
{
	char *frame = object(64);
	/* From 3.14 on the low bits are a tag. */
	set(frame, version->code, code && version->minor >= 14 ? code + 1 : code);
	set(frame, version->previous, previous);
	return frame;
}

static void run(char *innermost)
{
	char *thread = object((size_t)version->thread + 8), *at = thread, *cframe = NULL;
	int offset = version->thread;
	if (version->cframe != NONE) {
		cframe = object((size_t)version->cframe + 8);
		set(thread, version->thread, cframe);
		at = cframe;
		offset = version->cframe;
	}
	set(at, offset, innermost);
	this_thread = thread;
}

static void expect(const char *function)
{
	char text[160];
	CHECK(spill_python_function(text, sizeof(text)));
	CHECK(strcmp(text, function) == 0);
}

static void expect_none(void)
{
	char text[160];
	CHECK(!spill_python_function(text, sizeof(text)));
}

static void a_function(void)
{
	run(frame(code("/home/me/model.py", "Model.forward"), NULL));
	expect("model.py:Model.forward");
	run(frame(code("model.py", "main"), NULL));
	expect("model.py:main");
	this_thread = NULL;
	expect_none();
	run(NULL);
	expect_none();
}

TEST(each_version)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		version = &versions[i];
		Py_Version = 0x030000f0ul | (unsigned long)version->minor << 16;
		in_child(a_function);
	}
	version = &versions[0];
}

static void nothing_is_known(void)
{
	run(frame(code("/home/me/model.py", "f"), NULL));
	expect_none();
}

TEST(other_versions_are_unknown)
{
	static const unsigned long others[] = {0x030a00f0, 0x031000f0, 0x020b00f0, 0x040b00f0, 0};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		Py_Version = others[i];
		in_child(nothing_is_known);
	}
	Py_Version = 0x030b07f0;
}

CHILD_TEST(the_programs_own_function_counts_first)
{
	const char *torch = "/usr/lib/python3.11/site-packages/torch/nn/functional.py";
	const char *vllm = "/opt/venv/lib/python3.12/site-packages/vllm/worker.py";
	const char *own = "/usr/lib/python3.11/threading.py";
	char *program = frame(code("/home/me/train.py", "step"), NULL);
	run(frame(code(torch, "linear"), frame(code(vllm, "load"), program)));
	expect("train.py:step");
	run(frame(code(torch, "linear"), frame(code(vllm, "load"), frame(code(own, "run"), NULL))));
	expect("worker.py:load");
	run(frame(code(torch, "linear"), frame(code("<string>", "<module>"), NULL)));
	expect("functional.py:linear");
	/* Frames of the interpreter itself have no code. */
	run(frame(NULL, frame(code_of(&PyUnicode_Type, NULL, NULL), program)));
	expect("train.py:step");
}

CHILD_TEST(a_deep_stack_is_not_read_to_its_end)
{
	char *at = frame(code("/home/me/train.py", "step"), NULL);
	char *torch = code("/x-packages/torch/a.py", "deep");
	for (int i = 0; i < 64; i++)
		at = frame(torch, at);
	run(at);
	expect("a.py:deep");
	/* Nor for ever. */
	set(at, version->previous, at);
	expect("a.py:deep");
}

/* Another layout than the expected one: no address is read that is no memory. */
CHILD_TEST(what_is_not_as_expected_is_not_read)
{
	static char *const nowhere[] = {(char *)8,
	                                (char *)4096,
	                                (char *)0x7ffffffffff8,
	                                (char *)0xfffffffffffffff8,
	                                (char *)0x123456789abcdef0,
	                                (char *)3};
	char *good = code("/home/me/train.py", "step");
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		this_thread = nowhere[i];
		expect_none();
		run(nowhere[i]);
		expect_none();
		run(frame(nowhere[i], NULL));
		expect_none();
		run(frame(code_of(&PyCode_Type, nowhere[i], string("f")), NULL));
		expect_none();
		run(frame(code_of(&PyCode_Type, string("a.py"), nowhere[i]), NULL));
		expect_none();
		run(frame(good, nowhere[i]));
		expect("train.py:step");
	}
	run(frame(code_of(&PyUnicode_Type, string("a.py"), string("f")), NULL));
	expect_none();
	run(frame(code_of(&PyCode_Type, string_of("a.py", &PyCode_Type, PLAIN), string("f")), NULL));
	expect_none();
	run(frame(code_of(&PyCode_Type, string_of("a.py", &PyUnicode_Type, 0x24), string("f")), NULL));
	expect_none();
}

CHILD_TEST(lengths_are_bounded)
{
	char long_name[600], *name = string("f"), *file = string("a.py");
	size_t length = (size_t)-9;
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	run(frame(code("/home/me/a.py", long_name), NULL));
	expect_none();
	run(frame(code("", "f"), NULL));
	expect_none();
	memcpy(name + 16, &length, sizeof(length));
	run(frame(code_of(&PyCode_Type, file, name), NULL));
	expect_none();
	length = 400; /* its end is no memory */
	memcpy(name + 16, &length, sizeof(length));
	expect_none();
	/* A long one is cut. */
	long_name[400] = '\0';
	char text[160];
	run(frame(code("/home/me/a.py", long_name), NULL));
	CHECK(spill_python_function(text, sizeof(text)));
	CHECK(strlen(text) == sizeof(text) - 1 && !strncmp(text, "a.py:xxx", 8));
}
