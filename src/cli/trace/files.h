/*
 * The files of a run's callers, and the function that a caller is in: of "libggml-cuda.so+0x1a2b"
 * it is "ggml_cuda_pool_vmm::alloc". It is read from the file's symbols when a report is made.
 *
 * A file may have changed since the run, and a wrong name is worse than none. With a build id in the
 * log, the file must have the same one. Without, the run must have been on this machine since its
 * last boot, because names of machines repeat, and the file must not have changed since the run
 * began. Neither logs nor files are trusted.
 */
#ifndef SPILL_CLI_FILES_H
#define SPILL_CLI_FILES_H

#include <stdbool.h>

#include "plain_name.h"
#include "record_read.h"

/* Most files of a run. Callers in further ones have no function. */
#define CLI_RUN_FILES 256

struct cli_run_file {
	char *name, *path;
	char *build_id;  /* NULL: the log has none */
	bool from_start; /* of the start line, which has no build ids */
	bool several;    /* several files have the name */
};

/* {0} is none. */
struct cli_run_files {
	struct cli_run_file *list;
	size_t count, size;
	char *time;
	bool here; /* the run was on this machine, since its last boot */
};

/* By the machine's name, which others may have, too. */
bool cli_is_this_machine(const struct spill_record_start *start);

/* True if it was recorded since the last boot of the machine that this one has the kernel of. */
bool cli_is_this_boot(const struct spill_record_start *start);

/* Begins with the program's own file: logs of older versions have no other. */
void cli_run_files_begin(struct cli_run_files *files, const struct spill_record_start *start);

void cli_run_files_add(struct cli_run_files *files, const struct spill_record_file *file);

/* The length of "libfoo.so" in "libfoo.so+0x1a2b"; of a caller without an offset the whole length. */
size_t cli_caller_object(const char *caller);

/* The function that the caller is in. "" if it is not known, or `files` is NULL. */
void cli_run_files_function(const struct cli_run_files *files, const char *caller, char name[PLAIN_NAME]);

/*
 * The name of a caller or requester for people: "libfoo.so+0x1a2b (foo::bar)", or without the function
 * if that is not known. "not known" for NULL.
 */
struct cli_caller_text {
	char text[1024 + PLAIN_NAME + 4];
};
struct cli_caller_text cli_caller_text(const struct cli_run_files *files, const char *caller);

void cli_run_files_free(struct cli_run_files *files);

#endif
