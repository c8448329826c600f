/*
 * Any bytes as an old log in the default folder, where log.keep removes finished ones. %h and %b in the input are this machine's name
 * and boot. What is removed must be finished, by a reader that goes from front to back.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fuzz.h"
#include "fuzz_tree.h"
#include "log_file.h"
#include "record_read.h"

#define MOST 16384 /* so much of a log's end is read */

static struct utsname machine;
static char boot[64], own[512], old[512];

/* -- the input -------------------------------------------------------------------------------- */

static void begin(void)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	fuzz_tree_begin(NULL, 0);
	uname(&machine);
	if (!file || fscanf(file, "%63s", boot) != 1)
		boot[0] = '\0';
	if (file)
		fclose(file);
	snprintf(own, sizeof(own), "%s/own-1.jsonl", fuzz_tree_root());
	snprintf(old, sizeof(old), "%s/old-2.jsonl", fuzz_tree_root());
}

/* Returns the length of the text with its words in place. */
static size_t put_words(char text[MOST], const uint8_t *data, size_t size)
{
	size_t length = 0;

	for (size_t i = 0; i < size; i++) {
		const char *word = data[i] != '%' || i + 1 == size ? NULL
		                   : data[i + 1] == 'h'            ? machine.nodename
		                   : data[i + 1] == 'b'            ? boot
		                                                   : NULL;
		size_t room = MOST - length, count = word ? strlen(word) : 1;

		if (count > room)
			break;
		memcpy(text + length, word ? word : (const char *)&data[i], count);
		length += count;
		i += word != NULL;
	}
	return length;
}

static void put_log(const char *text, size_t length)
{
	int fd = open(old, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	fuzz_require(fd >= 0 && write(fd, text, length) == (ssize_t)length, "a log to read");
	close(fd);
}

/* -- is it finished? -------------------------------------------------------------------------- */

struct seen {
	bool started; /* the first line is a start line */
	bool gone;    /* its process is no more */
	enum spill_kind last;
};

static bool is_gone(const struct spill_record_start *start)
{
	if (!start->host || strcmp(start->host, machine.nodename) != 0)
		return false;
	if (start->boot && boot[0] && strcmp(start->boot, boot) != 0)
		return true;
	return start->pid > 0 && kill(start->pid, 0) && errno == ESRCH;
}

/* Of each line that has its newline. */
static struct seen read_log(const char *text, size_t length)
{
	static char scratch[SPILL_RECORD_SCRATCH(MOST)];
	const char *line = text, *end = text + length, *newline;
	struct seen seen = {.last = SPILL_KINDS_COUNT};
	struct spill_record record;
	size_t wrong;

	for (; (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1) {
		if (spill_record_read(line, (size_t)(newline - line), scratch, sizeof(scratch), &record,
		                      &wrong))
			continue;
		if (record.kind == SPILL_KIND_START || record.kind == SPILL_KIND_EXIT)
			seen.last = record.kind;
		if (line == text && record.kind == SPILL_KIND_START)
			seen = (struct seen){true, is_gone(&record.start), SPILL_KIND_START};
	}
	return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;
	static char text[MOST];
	struct spill_log_file file;
	struct seen seen;
	size_t length;

	if (!begun)
		begin();
	begun = true;
	length = put_words(text, data, size);
	put_log(text, length);
	seen = read_log(text, length);
	fuzz_require(!spill_log_file_open(&file, own), "a log of our own");
	spill_log_keep(own, &file, 0);
	spill_log_file_close(&file);
	fuzz_require((access(old, F_OK) != 0) ==
	                 (seen.started && (seen.gone || seen.last == SPILL_KIND_EXIT)),
	             "finished logs are removed, and no others");
	fuzz_require(!access(own, F_OK), "our own stays");
	return 0;
}
