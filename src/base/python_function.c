#include "python_function.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "glob.h"
#include "loaded_objects.h"
#include "publish_once.h"
#include "symbol_table.h"
#include "text.h"

#define NONE (-1)

struct layout {
	int minor, thread, cframe, code, previous, text;
};

static const struct layout layouts[] = {
#define PYTHON(minor, thread, cframe, code, previous, text) {minor, thread, cframe, code, previous, text},
#include "python_versions.def"
};

/* In an object of each version. */
#define TYPE 8
#define CODE_FILE 112
#define CODE_FUNCTION 128
#define STRING_LENGTH 16
#define STRING_STATE 32
#define STRING_PLAIN (1u << 5 | 1u << 6) /* compact, ASCII. */

/* What is needed of the interpreter in this process. layout == NULL: there is none that we know. */
struct interpreter {
	const struct layout *layout;
	void *(*this_thread)(void);          /* PyGILState_GetThisThreadState: needs no GIL. */
	const void *code_type, *string_type; /* PyCode_Type, PyUnicode_Type. */
};

static struct interpreter interpreter;
static _Atomic int published;

/* -- the interpreter ----------------------------------------------------------------------------- */

static const struct layout *layout_of(unsigned long version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (version >> 16 == (0x300ul | (unsigned)layouts[i].minor))
			return &layouts[i];
	return NULL;
}

static bool read_interpreter(const struct spill_symbol_table *table, struct interpreter *found)
{
	const unsigned long *version = spill_symbol_table_find(table, "Py_Version", STT_OBJECT);
	if (!version)
		return false;
	struct interpreter is = {
	    .layout = layout_of(*version),
	    .code_type = spill_symbol_table_find(table, "PyCode_Type", STT_OBJECT),
	    .string_type = spill_symbol_table_find(table, "PyUnicode_Type", STT_OBJECT),
	};
	*(void **)&is.this_thread = spill_symbol_table_find(table, "PyGILState_GetThisThreadState", STT_FUNC);
	if (!is.code_type || !is.string_type || !is.this_thread)
		return false;
	*found = is;
	return true;
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *found)
{
	struct spill_symbol_table table;
	return spill_symbol_table_of(info, &table) && read_interpreter(&table, found);
}

/*
 * Looks once. An interpreter that was loaded later does not count: it can be unloaded again, while we
 * call it. False: there is none.
 */
static bool has_interpreter(void)
{
	if (!spill_is_published(&published)) {
		struct interpreter found = {.layout = NULL};
		spill_loaded_objects_visit(look_at_object, &found);
		if (found.layout && !spill_loaded_object_interposes(*(void **)&found.this_thread))
			found.layout = NULL;
		spill_publish(&published, &interpreter, &found, sizeof(found));
	}
	return interpreter.layout != NULL;
}

/* -- memory -------------------------------------------------------------------------------------- */

#define PAGE ((uintptr_t)4096) /* or a part of one */
#define WORD ((uintptr_t)sizeof(uint64_t))
#define PAGES 32

/* Pages that one call of ours has found readable. Frames and code objects lie close together. */
struct pages {
	uintptr_t page[PAGES];
	unsigned count;
};

/*
 * The kernel reads a word of the page first, and then refuses the first argument: EFAULT or EINVAL.
 * It changes nothing, and filters of system calls let it pass.
 */
static bool is_readable(struct pages *pages, uintptr_t page)
{
	for (unsigned i = 0; i < pages->count; i++)
		if (pages->page[i] == page)
			return true;
	if (syscall(SYS_rt_sigprocmask, -1, page, NULL, sizeof(uint64_t)) != -1 || errno != EINVAL)
		return false;
	if (pages->count < PAGES)
		pages->page[pages->count++] = page;
	return true;
}

/* True if an object of this size can be at the address. */
static bool is_object(struct pages *pages, uintptr_t address, size_t size)
{
	uintptr_t last = address + size - 1;
	if (address % WORD || last < address)
		return false;
	for (uintptr_t page = address & ~(PAGE - 1); page <= last; page += PAGE)
		if (!page || !is_readable(pages, page))
			return false;
	return true;
}

static uintptr_t word_at(uintptr_t address)
{
	return *(const volatile uintptr_t *)address;
}

static bool read_pointer(struct pages *pages, uintptr_t address, uintptr_t *pointer)
{
	if (!is_object(pages, address, sizeof(*pointer)))
		return false;
	*pointer = word_at(address);
	return true;
}

/* -- strings ------------------------------------------------------------------------------------- */

struct name {
	const char *text; /* not terminated */
	size_t length;
};

#define LONGEST 512

/* False if the object is no string, or not ASCII. */
static bool read_string(struct pages *pages, uintptr_t object, struct name *name)
{
	size_t header = (size_t)interpreter.layout->text;
	if (!is_object(pages, object, header) ||
	    word_at(object + TYPE) != (uintptr_t)interpreter.string_type ||
	    (word_at(object + STRING_STATE) & STRING_PLAIN) != STRING_PLAIN)
		return false;
	name->text = (const char *)object + header;
	name->length = word_at(object + STRING_LENGTH);
	return name->length && name->length <= LONGEST && is_object(pages, object, header + name->length);
}

static struct name base_name(struct name path)
{
	const char *slash = memrchr(path.text, '/', path.length);
	size_t skipped = slash ? (size_t)(slash + 1 - path.text) : 0;
	return (struct name){path.text + skipped, path.length - skipped};
}

/* -- functions ----------------------------------------------------------------------------------- */

/* How much a function says about the program. */
enum rank { RANK_NONE, RANK_FRAMEWORK, RANK_PACKAGE, RANK_PROGRAM };

/* Packages whose functions do little else than allocate, and generated code ("<string>"). */
static const char *const frameworks[] = {"*-packages/torch/*",
                                         "*-packages/cupy*",
                                         "*-packages/jax*",
                                         "*-packages/rmm/*",
                                         "*-packages/numba*",
                                         "*-packages/triton/*",
                                         "<*"};
/* Installed packages, and Python's own modules. */
static const char *const packages[] = {"*/site-packages/*", "*/dist-packages/*", "*/lib/python3.*"};

static bool is_one_of(const char *path, const char *const *patterns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (spill_glob(patterns[i], path))
			return true;
	return false;
}

static enum rank rank_of(struct name file)
{
	char path[LONGEST + 1];
	memcpy(path, file.text, file.length);
	path[file.length] = '\0';
	if (is_one_of(path, frameworks, sizeof(frameworks) / sizeof(frameworks[0])))
		return RANK_FRAMEWORK;
	if (is_one_of(path, packages, sizeof(packages) / sizeof(packages[0])))
		return RANK_PACKAGE;
	return RANK_PROGRAM;
}

struct frame {
	uintptr_t code, previous;
};

/* code == 0: it is a frame of the interpreter itself. False: there is no frame. */
static bool read_frame(struct pages *pages, uintptr_t address, struct frame *frame)
{
	const struct layout *layout = interpreter.layout;
	if (!read_pointer(pages, address + (uintptr_t)layout->code, &frame->code) ||
	    !read_pointer(pages, address + (uintptr_t)layout->previous, &frame->previous))
		return false;
	frame->code &= ~(WORD - 1);
	if (!is_object(pages, frame->code, CODE_FUNCTION + WORD) ||
	    word_at(frame->code + TYPE) != (uintptr_t)interpreter.code_type)
		frame->code = 0;
	return true;
}

/* The innermost frame of the thread; 0: it runs no function. */
static uintptr_t innermost_frame(struct pages *pages)
{
	const struct layout *layout = interpreter.layout;
	uintptr_t frame, thread = (uintptr_t)interpreter.this_thread();
	if (!thread || !read_pointer(pages, thread + (uintptr_t)layout->thread, &frame))
		return 0;
	if (layout->cframe != NONE && !read_pointer(pages, frame + (uintptr_t)layout->cframe, &frame))
		return 0;
	return frame;
}

struct function {
	struct name file, name;
	enum rank rank;
};

/* Keeps the function of the code if it says more. */
static void look_at_code(struct pages *pages, uintptr_t code, struct function *best)
{
	struct function is;
	if (!read_string(pages, word_at(code + CODE_FILE), &is.file))
		return;
	is.rank = rank_of(is.file);
	if (is.rank > best->rank && read_string(pages, word_at(code + CODE_FUNCTION), &is.name))
		*best = is;
}

#define FRAMES 64 /* that are looked at. */

static bool find_function(struct function *best)
{
	struct pages pages = {.count = 0};
	struct frame frame;
	uintptr_t address = innermost_frame(&pages), file = 0;
	for (unsigned i = 0; address && best->rank < RANK_PROGRAM && i < FRAMES; i++) {
		if (!read_frame(&pages, address, &frame))
			break;
		/* Frames of one file often follow each other. */
		if (frame.code && word_at(frame.code + CODE_FILE) != file) {
			file = word_at(frame.code + CODE_FILE);
			look_at_code(&pages, frame.code, best);
		}
		address = frame.previous;
	}
	return best->rank != RANK_NONE;
}

bool spill_python_function(char *text, size_t size)
{
	struct function best = {.rank = RANK_NONE};
	if (!has_interpreter() || !find_function(&best))
		return false;
	struct spill_text line = spill_text_begin(text, size);
	struct name file = base_name(best.file);
	spill_text_bytes(&line, file.text, file.length);
	spill_text_add(&line, ":");
	spill_text_bytes(&line, best.name.text, best.name.length);
	return true;
}
