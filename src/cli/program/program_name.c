/* The name of a program that is not started yet, as spill_program_name will find it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "glob.h"
#include "process.h"
#include "program_file.h"
#include "text.h"

/* A command line as in /proc/PID/cmdline, cut as the library cuts it. */
struct line {
	char bytes[SPILL_PROGRAM_WORDS];
	size_t length;
};

static void add_word(struct line *line, const char *word)
{
	struct spill_text text =
	    spill_text_begin(line->bytes + line->length, sizeof(line->bytes) - line->length);

	spill_text_add(&text, word);
	line->length += text.length + 1;
	if (line->length > sizeof(line->bytes) - 1)
		line->length = sizeof(line->bytes) - 1;
}

/* Finds the file that the kernel runs for the file at `path`. False: that file itself. */
static bool find_interpreter_of(const char *path, char found[PATH_MAX])
{
	char name[PATH_MAX];
	int error, fd = cli_open(path, CLI_REGULAR, &error);
	bool script = fd >= 0 && program_interpreter(fd, name);

	if (fd >= 0)
		close(fd);
	return script && program_find(name, found);
}

/*
 * `name` is that of a wrapper if it still is an interpreter's, such as pyenv's script python3. The
 * wrapper executes the interpreter with its own arguments.
 */
void program_name(char *const *words, char *name, size_t size)
{
	static char files[PROGRAM_SCRIPTS + 1][PATH_MAX]; /* the program, its interpreter, that one's … */
	struct spill_text text = spill_text_begin(name, size);
	struct line line = {.length = 0};
	unsigned last = 0;
	char *whole;

	if (!program_find(words[0], files[0])) {
		spill_text_add(&text, spill_file_name(words[0]));
		return;
	}
	while (last < PROGRAM_SCRIPTS && find_interpreter_of(files[last], files[last + 1]))
		last++;
	if (last)
		add_word(&line, files[last]);
	size_t handed_on = line.length; /* where the words of a wrapper begin */
	for (unsigned i = last; i > 1; i--)
		add_word(&line, files[i - 1]);
	add_word(&line, last ? files[0] : words[0]);
	for (words++; *words; words++)
		add_word(&line, *words);
	whole = realpath(files[last], NULL);
	spill_text_add(&text, spill_file_name(whole ? whole : files[last]));
	free(whole);
	spill_program_script(name, size, line.bytes, line.length);
	spill_program_script(name, size, line.bytes + handed_on, line.length - handed_on);
}
