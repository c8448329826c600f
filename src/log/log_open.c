#include "log_open.h"

#include <string.h>
#include <sys/auxv.h>

#include "program.h"
#include "log_keep.h"
#include "log_path.h"
#include "signal_guard.h"
#include "text.h"

void spill_log_open_complain(const char *path, const char *problem)
{
	char line[1024];
	struct spill_text text = spill_text_begin(line, sizeof(line));

	spill_text_add(&text, "no log: ");
	spill_text_add(&text, problem);
	if (path[0]) {
		spill_text_add(&text, ": ");
		spill_text_add(&text, path);
	}
	spill_stderr_line(line);
}

/* NULL, or what stands in the way. */
static const char *open_at(struct spill_logqueue *queue, struct spill_logpath *found)
{
	struct spill_signal_guard quiet;
	const char *problem = NULL;
	int error;

	spill_signal_guard_enter(&quiet);
	error = spill_log_path_make_folders(found);
	problem = error ? strerrordesc_np(error) : spill_log_name_open(&queue->name, &queue->file);
	spill_signal_guard_leave(&quiet);
	return problem;
}

bool spill_logopen(struct spill_logqueue *queue, const struct spill_policy *policy,
                   const struct spill_log_start *start)
{
	static struct spill_logpath found; /* too large for a stack that may be the program's smallest */
	struct spill_start_line line;
	const char *problem;
	char program[256];

	if (getauxval(AT_SECURE) || policy->log_level == SPILL_LOG_OFF)
		return false;
	spill_program_name(program, sizeof(program));
	spill_log_path_find(&found, policy->log_path, program);
	problem = found.problem;
	if (!problem && !found.path[0])
		return false;
	spill_start_release(&queue->start); /* of the process that we were forked from */
	memset(queue, 0, sizeof(*queue));
	memcpy(queue->name.name, found.path, sizeof(queue->name.name));
	if (!problem)
		problem = open_at(queue, &found);
	if (problem) {
		spill_log_open_complain(found.path, problem);
		return false;
	}
	spill_start_compose(&line, start, program);
	spill_log_queue_begin(queue, &line);
	spill_log_queue_drain(queue);
	if (found.in_default)
		spill_logkeep(queue->name.path, &queue->file, policy->log_keep);
	return true;
}
