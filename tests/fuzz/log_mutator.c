/*
 * Changes of a log that leave its lines lines: a number, a word or a line takes the place of another. Without it most changes only
 * damage a line, and little is tried of what lines mean together.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* Bytes of the input that change together. */
struct part {
	size_t at, length;
};

struct input {
	uint8_t *data;
	size_t size, most;
};

typedef bool find_fn(const struct input *input, size_t from, struct part *part);

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool find_number(const struct input *input, size_t from, struct part *part)
{
	for (size_t at = from; at < input->size; at++) {
		if (!is_digit(input->data[at]) || (at && is_digit(input->data[at - 1])))
			continue;
		*part = (struct part){at, 1};
		while (at + part->length < input->size && is_digit(input->data[at + part->length]))
			part->length++;
		return true;
	}
	return false;
}

/* Between two quotes, a member's name as well. */
static bool find_word(const struct input *input, size_t from, struct part *part)
{
	const uint8_t *open = memchr(input->data + from, '"', input->size - from), *close;

	if (!open)
		return false;
	part->at = (size_t)(open + 1 - input->data);
	close = memchr(open + 1, '"', input->size - part->at);
	part->length = close ? (size_t)(close - open - 1) : 0;
	return close;
}

/* With its newline. */
static bool find_line(const struct input *input, size_t from, struct part *part)
{
	const uint8_t *newline = memchr(input->data + from, '\n', input->size - from), *end;

	if (!newline)
		return false;
	part->at = (size_t)(newline + 1 - input->data);
	end = memchr(newline + 1, '\n', input->size - part->at);
	part->length = end ? (size_t)(end + 1 - newline - 1) : input->size - part->at;
	return part->length;
}

static bool choose(const struct input *input, find_fn *find, struct part *part)
{
	size_t from = input->size ? (size_t)rand() % input->size : 0;

	return find(input, from, part) || find(input, 0, part);
}

static bool put(struct input *input, struct part part, const void *bytes, size_t length)
{
	size_t behind = part.at + part.length;

	if (input->size - part.length + length > input->most)
		return false;
	memmove(input->data + part.at + length, input->data + behind, input->size - behind);
	memcpy(input->data + part.at, bytes, length);
	input->size += length - part.length;
	return true;
}

/* Another one of the input takes its place. `insert`: it comes before it. */
static bool copy_other(struct input *input, find_fn *find, bool insert)
{
	static uint8_t copy[1 << 16];
	struct part to, from;

	if (!choose(input, find, &to) || !choose(input, find, &from) || from.length > sizeof(copy))
		return false;
	memcpy(copy, input->data + from.at, from.length);
	to.length = insert ? 0 : to.length;
	return put(input, to, copy, from.length);
}

/* Ends of types and sizes of chunks, blocks and granules. */
static bool put_number(struct input *input)
{
	static const char *const numbers[] = {"0",
	                                      "1",
	                                      "2",
	                                      "63",
	                                      "64",
	                                      "255",
	                                      "2097151",
	                                      "2097152",
	                                      "2097153",
	                                      "67108864",
	                                      "1073741824",
	                                      "4294967295",
	                                      "4294967296",
	                                      "1099511627776",
	                                      "140737488355328",
	                                      "9223372036854775807",
	                                      "9223372036854775808",
	                                      "18446744073709551615"};
	const char *number = numbers[(size_t)rand() % (sizeof(numbers) / sizeof(numbers[0]))];
	struct part part;

	return choose(input, find_number, &part) && put(input, part, number, strlen(number));
}

static bool remove_line(struct input *input)
{
	struct part part;

	return choose(input, find_line, &part) && put(input, part, "", 0);
}

static bool change_once(struct input *input)
{
	switch (rand() % 6) {
	case 0:
		return put_number(input);
	case 1:
		return copy_other(input, find_number, false);
	case 2:
		return copy_other(input, find_word, false);
	case 3:
		return copy_other(input, find_line, true);
	case 4:
		return copy_other(input, find_line, false);
	default:
		return remove_line(input);
	}
}

#ifdef SPILL_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
#endif

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
	struct input input = {data, size, most};

	srand(seed);
#ifdef SPILL_LIBFUZZER
	if (rand() % 3 == 0)
		return LLVMFuzzerMutate(data, size, most);
#endif
	for (int changes = 1 + rand() % 3; changes > 0; changes--)
		change_once(&input);
	return input.size;
}
