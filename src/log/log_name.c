#include "log_name.h"

#include <stdbool.h>
#include <string.h>

#include "text.h"

/* So many processes at once may share a pattern that gives them one name. */
#define NAMES 256

/* False: too long. */
static bool put_together(char path[SPILL_LOGNAME], const char *first, unsigned number)
{
	static const char suffix[] = ".jsonl";
	struct spill_text text = spill_text_begin(path, SPILL_LOGNAME);
	size_t length = strlen(first), end = sizeof(suffix) - 1;
	bool has_suffix = number > 1 && length > end && strcmp(first + length - end, suffix) == 0;

	spill_text_bytes(&text, first, length - (has_suffix ? end : 0));
	if (number > 1) {
		spill_text_add(&text, "-");
		spill_text_number(&text, number);
	}
	if (has_suffix)
		spill_text_add(&text, suffix);
	return text.length < text.size - 1;
}

/* A run does not go on in another's file, ended or not: readers would take what is behind that for its rest. */
static const char *open_at(const struct spill_logname *name, const struct spill_logfile *before,
                           const char *path, struct spill_logfile *file)
{
	const char *problem = spill_log_file_open(file, path);

	if (problem || !name->path || !file->end || (file->dev == before->dev && file->ino == before->ino))
		return problem;
	spill_log_file_close(file);
	return spill_log_file_taken;
}

const char *spill_log_name_open(struct spill_logname *name, struct spill_logfile *file)
{
	const struct spill_logfile before = *file;
	char *path = name->paths[name->path == name->paths[0]];
	const char *problem = name->path ? open_at(name, &before, name->path, file) : spill_log_file_taken;

	if (problem != spill_log_file_taken)
		return problem;
	for (unsigned number = 1; problem == spill_log_file_taken && number <= NAMES; number++) {
		if (!put_together(path, name->name, number))
			return problem;
		problem = open_at(name, &before, path, file);
	}
	if (!problem)
		name->path = path;
	return problem;
}
