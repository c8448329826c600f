#include "process.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "glob.h"
#include "small_file.h"
#include "text.h"

__thread struct spill_thread spill_thread __attribute__((tls_model("initial-exec")));

static const struct spill_policy empty_policy;
const struct spill_policy *_Atomic spill_policy_in_force = &empty_policy;

void spill_process_use_policy(const struct spill_policy *policy)
{
	atomic_store_explicit(&spill_policy_in_force, policy, memory_order_release);
}

/* An interpreter and the letters of its options. */
struct interpreter {
	const char *name;        /* of the executable, without a version such as 3.11. */
	const char *inline_code; /* options that take code, so that there is no script. */
	const char *argument;    /* options that take the rest of the word or the next word. */
	char module;             /* option that names the module to run; 0: none. */
};

static const struct interpreter interpreters[] = {
    {"python", "c", "WXQ", 'm'},  {"pypy", "c", "WX", 'm'}, {"perl", "eE", "I", 0}, {"ruby", "e", "rICE", 0},
    {"node", "ep", "rC", 0},      {"bash", "c", "oO", 0},   {"dash", "c", "o", 0},  {"zsh", "c", "o", 0},
    {"ksh", "c", "o", 0},         {"sh", "c", "o", 0},      {"lua", "e", "l", 0},   {"Rscript", "e", "", 0},
    {"julia", "eE", "JHLptC", 0},
};

static const struct interpreter *find_interpreter(const char *program)
{
	for (unsigned i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
		size_t length = strlen(interpreters[i].name);

		if (!strncmp(program, interpreters[i].name, length) &&
		    !program[length + strspn(program + length, "0123456789.")])
			return &interpreters[i];
	}
	return NULL;
}

/* The words of a command line that are left, each with its NUL. */
struct words {
	const char *next, *end;
};

static const char *next_word(struct words *words)
{
	const char *word = words->next;

	if (word >= words->end)
		return NULL;
	words->next += strlen(word) + 1;
	return word;
}

/* Reads a word of options ("-um"). True at the end of the search: *found is the name or NULL. */
static bool read_options(const struct interpreter *interpreter, const char *word, struct words *words,
                         const char **found)
{
	for (const char *letter = word + 1; *letter; letter++) {
		const char *rest = letter[1] ? letter + 1 : NULL;

		if (strchr(interpreter->inline_code, *letter))
			return *found = NULL, true;
		if (*letter == interpreter->module)
			return *found = rest ? rest : next_word(words), true;
		if (strchr(interpreter->argument, *letter)) {
			if (!rest)
				next_word(words);
			return false;
		}
	}
	return false;
}

static const char *find_script(const struct interpreter *interpreter, struct words words)
{
	const char *word, *found;

	next_word(&words); /* the interpreter itself */
	while ((word = next_word(&words))) {
		if (!strcmp(word, "--"))
			return next_word(&words);
		if (!strcmp(word, "-"))
			return NULL; /* the script comes from standard input */
		if (word[0] != '-' && word[0] != '+')
			return word;
		if (word[1] != '-' && read_options(interpreter, word, &words, &found))
			return found;
	}
	return NULL;
}

void spill_program_script(char *name, size_t size, const char *words, size_t length)
{
	const struct interpreter *interpreter = find_interpreter(name);
	const char *script =
	    interpreter ? find_script(interpreter, (struct words){words, words + length}) : NULL;

	if (script && *spill_file_name(script)) {
		struct spill_text text = spill_text_begin(name, size);

		spill_text_add(&text, spill_file_name(script));
	}
}

/* Without /proc the kernel's auxiliary vector still has the path that was given to execve(2). */
void spill_program_path(char *path, size_t size)
{
	int error = errno;
	ssize_t length = readlink("/proc/self/exe", path, size - 1);
	const char *given = length < 0 ? (const char *)getauxval(AT_EXECFN) : NULL;
	struct spill_text text;

	path[length < 0 ? 0 : length] = '\0';
	if (given) {
		text = spill_text_begin(path, size);
		spill_text_add(&text, given);
	}
	errno = error;
}

/* The executable's file name, or an interpreter's script or module. */
static __attribute__((noinline)) void find_program_name(char *name, size_t size)
{
	static const char deleted[] = " (deleted)";
	char bytes[SPILL_PROGRAM_WORDS];
	struct spill_text text = spill_text_begin(name, size);

	spill_program_path(bytes, sizeof(bytes));
	size_t length = strlen(bytes);
	if (length >= sizeof(deleted) && !strcmp(bytes + length - (sizeof(deleted) - 1), deleted))
		bytes[length - (sizeof(deleted) - 1)] = '\0';
	spill_text_add(&text, spill_file_name(bytes));
	if (find_interpreter(name)) {
		size_t read = spill_small_file_bytes("/proc/self/cmdline", bytes, sizeof(bytes) - 1);

		bytes[read] = '\0';
		spill_program_script(name, size, bytes, read);
	}
}

/*
 * Keeps the name after the first call, because callers may be on small stacks, even a signal
 * handler's. Finding the name takes a path on the stack, so that function is not inlined. No thread
 * waits for another one: until the name is known, each thread finds it again.
 */
void spill_program_name(char *name, size_t size)
{
	enum { UNKNOWN, FOUND, KNOWN };
	static char known[256];
	static _Atomic int state;
	struct spill_text text = spill_text_begin(name, size);
	char found[sizeof(known)];
	int unknown = UNKNOWN;

	if (atomic_load_explicit(&state, memory_order_acquire) == KNOWN) {
		spill_text_add(&text, known);
		return;
	}
	find_program_name(found, sizeof(found));
	spill_text_add(&text, found);
	if (atomic_compare_exchange_strong(&state, &unknown, FOUND)) {
		memcpy(known, found, sizeof(known));
		atomic_store_explicit(&state, KNOWN, memory_order_release);
	}
}
