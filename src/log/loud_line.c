#include "loud_line.h"

#include <stdatomic.h>

#include "log.h"
#include "process.h"
#include "program.h"

bool spill_loud_line_begin(struct spill_text *text, char *line, size_t size, uint64_t part, uint64_t whole)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	enum spill_log_stderr how = spill_process_policy()->log_stderr;
	if (how == SPILL_STDERR_OFF || (atomic_flag_test_and_set(&said) && how == SPILL_STDERR_FIRST))
		return false;
	char program[256];
	spill_program_name(program, sizeof(program));
	*text = spill_text_begin(line, size);
	spill_text_add(text, program);
	spill_text_add(text, ": ");
	spill_text_size(text, part);
	spill_text_add(text, " of ");
	spill_text_size(text, whole);
	return true;
}

void spill_loud_line_device(struct spill_text *text, int device, bool at_limit)
{
	spill_text_add(text, " (device ");
	spill_text_number(text, (uint64_t)device);
	spill_text_add(text, at_limit ? " at its limit" : " full");
}

void spill_loud_line_end(struct spill_text *text, const char *line)
{
	spill_text_add(text, "); expect lower speed");
	if (spill_log_path()[0]) {
		spill_text_add(text, "; log ");
		spill_text_add(text, spill_log_path());
	}
	spill_stderr_line(line);
}
