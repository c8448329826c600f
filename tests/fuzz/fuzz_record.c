/* Any bytes as lines of a log: what is taken can be written, and means the same when it is read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "record_again.h"

/* Of an address or a time the writer's form may be longer than what was read; of a control character six times as long. */
#define ROOM(length) (8 * (length) + 2048)

static char *buffer(size_t size)
{
	char *bytes = malloc(size ? size : 1);

	fuzz_require(bytes != NULL, "no memory");
	return bytes;
}

/* Reads from a copy of exactly this size, into scratch of exactly the size that is enough. */
static const char *read_line(const char *line, size_t length, struct spill_record *record, char **scratch)
{
	size_t at = length + 1;
	char *copy = buffer(length);

	memcpy(copy, line, length);
	*scratch = buffer(SPILL_RECORD_SCRATCH(length));
	const char *reason =
	    spill_record_read(copy, length, *scratch, SPILL_RECORD_SCRATCH(length), record, &at);
	free(copy);
	if (reason) {
		fuzz_require(at <= length, "refused at a byte that is not there");
		fuzz_require(strcmp(reason, "too little scratch for it") != 0,
		             "enough scratch was not enough");
	}
	return reason;
}

static void take(const char *line, size_t length)
{
	struct spill_record record, again;
	char *scratch, *scratch_again;

	if (!read_line(line, length, &record, &scratch) && record.kind != SPILL_KINDS_COUNT) {
		char *first = buffer(ROOM(length)), *second = buffer(ROOM(length));
		size_t wrote = write_again(&record, first, ROOM(length));

		fuzz_require(wrote != 0, "what was read cannot be written");
		fuzz_require(!read_line(first, wrote, &again, &scratch_again), "what was written is refused");
		fuzz_require(again.kind == record.kind &&
		                 write_again(&again, second, ROOM(length)) == wrote &&
		                 !memcmp(first, second, wrote),
		             "what was written means something else");
		free(scratch_again);
		free(second);
		free(first);
	}
	free(scratch);
}

/* Line by line, as logs are read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *line = (const char *)data, *end = line + size;

	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *next = newline ? newline + 1 : end;

		take(line, (size_t)(next - line));
		line = next;
	}
	return 0;
}
