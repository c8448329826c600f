/*
 * Any bytes as a policy file. Built with -fsanitize=fuzzer and -DSPILL_LIBFUZZER it is a libFuzzer target;
 * otherwise a plain program: fuzz_ini COUNT FILE… tries the files and COUNT changes of each, the same ones at
 * every run.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ini_file.h"
#include "options.h"
#include "rule_option.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct spill_policy policy;
	unsigned last_line;
};

static void require(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_ini: %s\n", what);
	abort();
}

/* What was accepted can be printed, and means the same when it is read again. */
static void take(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
	struct seen *seen = user;
	struct spill_policy again = {0};
	struct spill_error error;
	char first[SPILL_PATH_MAX], second[SPILL_PATH_MAX];

	require(slot < SPILL_OPTION_SLOTS, "slot out of range");
	require(line > seen->last_line, "lines do not grow");
	seen->last_line = line;
	require(!app || (*app && !strpbrk(app, "/]")), "a section for no program");
	require(!spill_option_put(&seen->policy, slot, value, &error),
	        "the reader took what the option refuses");
	spill_option_format(&seen->policy, slot, first, sizeof(first));
	require(!spill_option_put(&again, slot, first, &error), "a printed value is refused");
	spill_option_format(&again, slot, second, sizeof(second));
	require(!strcmp(first, second), "a printed value means something else");
}

static void take_rule(void *user, const struct spill_rule *rule, unsigned line)
{
	struct seen *seen = user;
	struct spill_rule again = {.set = 0};
	struct spill_error error;
	char first[SPILL_RULE_TEXT], second[SPILL_RULE_TEXT];

	require(line > seen->last_line, "lines do not grow");
	seen->last_line = line;
	require(*rule->name && !strchr(rule->name, ']'), "a rule without a name");
	require(spill_rule_check(rule, &error), "a rule that does nothing");
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		if (!(rule->set & spill_rule_option_row(row)->bit))
			continue;
		spill_rule_option_format(rule, row, first, sizeof(first));
		require(!spill_rule_option_put(&again, row, first, &error), "a printed value is refused");
	}
	spill_rule_format(rule, first, sizeof(first));
	require(spill_rule_format(&again, second, sizeof(second)) < sizeof(second) - 1, "a rule is cut");
	require(!strcmp(first, second), "a printed rule means something else");
	require(rule->least == again.least && rule->most == again.most && rule->devices == again.devices &&
	            rule->cap == again.cap,
	        "a printed number of a rule is another");
}

/* FILE:LINE:COL: text, in one line, with positions that exist. */
static void check_error(const char *error, const char *data, size_t size)
{
	unsigned lines = 1;
	unsigned long line, column;
	char *end;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	require(!strncmp(error, "F:", 2), "the message does not name the file");
	line = strtoul(error + 2, &end, 10);
	require(line >= 1 && line <= lines && *end == ':', "the message's line does not exist");
	column = strtoul(end + 1, &end, 10);
	require(column >= 1 && column <= size + 1 && !strncmp(end, ": ", 2),
	        "the message's column does not exist");
	for (const char *c = error; *c; c++)
		require((unsigned char)*c >= 0x20, "a control character in the message");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen seen = {.last_line = 0};
	char error[512] = "";
	/* A copy of exactly this size, so that reading one byte too many is seen. */
	char *copy = malloc(size ? size : 1);

	require(copy != NULL, "no memory");
	if (size)
		memcpy(copy, data, size);
	spill_policy_default(&seen.policy);
	if (!spill_ini_read("F", copy, size, &(struct spill_ini_taker){take, take_rule, &seen}, error,
	                    sizeof(error))) {
		require(seen.last_line == 0, "options of a file that was refused");
		check_error(error, copy, size);
	}
	free(copy);
	return 0;
}

#ifndef SPILL_LIBFUZZER

#define INPUT_MAX 65536

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One change: a byte, a special byte, a range taken out or doubled. Returns the new size. */
static size_t change(uint8_t *data, size_t size, uint64_t *state)
{
	static const char special[] = "\n\r[]=:;# \t,%.\0\xff\xef"
	                              "0123456789";
	size_t at = size ? next_random(state) % size : 0, count = next_random(state) % 16;

	if (count > size - at)
		count = size - at;
	switch (next_random(state) % 4) {
	case 0:
		if (size)
			data[at] = (uint8_t)next_random(state);
		return size;
	case 1:
		if (size)
			data[at] = (uint8_t)special[next_random(state) % (sizeof(special) - 1)];
		return size;
	case 2:
		memmove(data + at, data + at + count, size - at - count);
		return size - count;
	default:
		if (size + count > INPUT_MAX)
			return size;
		memmove(data + at + count, data + at, size - at);
		return size + count;
	}
}

static void try_file(const char *path, unsigned long count)
{
	static uint8_t original[INPUT_MAX], data[INPUT_MAX];
	FILE *file = fopen(path, "rb");
	uint64_t state = 0x9e3779b97f4a7c15;
	size_t length;

	require(file != NULL, path);
	length = fread(original, 1, sizeof(original), file);
	fclose(file);
	LLVMFuzzerTestOneInput(original, length);
	for (unsigned long i = 0; i < count; i++) {
		size_t size = length;

		memcpy(data, original, length);
		for (uint64_t changes = 1 + next_random(&state) % 4; changes; changes--)
			size = change(data, size, &state);
		LLVMFuzzerTestOneInput(data, size);
	}
}

int main(int argc, char **argv)
{
	require(argc > 2, "usage: fuzz_ini COUNT FILE…");
	for (int i = 2; i < argc; i++)
		try_file(argv[i], strtoul(argv[1], NULL, 10));
	printf("%d files, %s changes of each\n", argc - 2, argv[1]);
	return 0;
}

#endif
