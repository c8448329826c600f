/* The program's name: of the executable, or of what an interpreter runs. */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "glob.h"
#include "small_file.h"
#include "text.h"

/* Options of an interpreter, by their letters: what follows them is not the script. */
struct interpreter {
	const char *name;        /* the executable's, a version may follow */
	const char *inline_code; /* with one of these there is no script */
	const char *argument;    /* takes the rest of the word, or the next word */
	char module;             /* the module to run takes the rest or the next; 0: none */
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

/* The words of a command line, each with its NUL. */
struct words {
	const char *at, *end;
};

static const char *next_word(struct words *words)
{
	const char *word = words->at;

	if (word >= words->end)
		return NULL;
	words->at += strlen(word) + 1;
	return word;
}

/*
 * Looks at one word of options ("-um"). True if the search is over, with the name in *found, or NULL if
 * there is no script.
 */
static bool look_at_options(const struct interpreter *interpreter, const char *word, struct words *words,
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
		if (word[1] != '-' && look_at_options(interpreter, word, &words, &found))
			return found;
	}
	return NULL;
}

static __attribute__((noinline)) void find_name(char *name, size_t size)
{
	static const char deleted[] = " (deleted)";
	char bytes[4096];
	ssize_t length = readlink("/proc/self/exe", bytes, sizeof(bytes) - 1);
	struct spill_text text = spill_text_begin(name, size);
	const struct interpreter *interpreter;

	bytes[length < 0 ? 0 : length] = '\0';
	if ((size_t)length >= sizeof(deleted) && length > 0 &&
	    !strcmp(bytes + length - (sizeof(deleted) - 1), deleted))
		bytes[(size_t)length - (sizeof(deleted) - 1)] = '\0';
	spill_text_add(&text, spill_file_name(bytes));
	interpreter = find_interpreter(name);
	if (interpreter) {
		size_t read = spill_small_file_bytes("/proc/self/cmdline", bytes, sizeof(bytes) - 1);

		bytes[read] = '\0';

		const char *script = find_script(interpreter, (struct words){bytes, bytes + read});

		if (script && *spill_file_name(script)) {
			text = spill_text_begin(name, size);
			spill_text_add(&text, spill_file_name(script));
		}
	}
}

/*
 * Found once: it is asked for on small stacks, a signal handler's too, that have no room for a path, which is why what finds it
 * is not inlined. Nobody waits for another thread: until it is known, each finds it for itself.
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
	find_name(found, sizeof(found));
	spill_text_add(&text, found);
	if (atomic_compare_exchange_strong(&state, &unknown, FOUND)) {
		memcpy(known, found, sizeof(known));
		atomic_store_explicit(&state, KNOWN, memory_order_release);
	}
}
