/*
 * program: examines a program's file for `spill run` and `spill doctor`. It finds the file as the
 * shell would, and tells what prevents a preload. elf_file.h reads what the loader would read.
 *
 * It reads files and runs nothing: the loader's own tool (ldd) may execute the program. No file is
 * trusted.
 *
 * Begin with program_bars.
 */
#ifndef SPILL_CLI_PROGRAM_FILE_H
#define SPILL_CLI_PROGRAM_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "elf_file.h"

#define PROGRAM_TEXT (PATH_MAX + ELF_NAME + 128)

enum program_bar {
	PROGRAM_FREE, /* LD_PRELOAD works */
	PROGRAM_STATIC,
	PROGRAM_MUSL,       /* for another libc */
	PROGRAM_NO_LOADER,  /* the named loader does not exist */
	PROGRAM_PRIVILEGED, /* the loader ignores our settings */
};

/* Searches as execvp does: the first executable file in PATH, else the first file. False: none. */
bool program_find(const char *name, char path[PATH_MAX]);

/* The interpreter in "#!PATH [ARGUMENT]"; NAME in "#!/usr/bin/env NAME". False: no script. */
bool program_interpreter(int fd, char name[PATH_MAX]);

/* Each checks one kind of obstacle in an open file, and describes it for people. */
enum program_bar program_privilege(const char *path, int fd, const struct stat *status,
                                   char what[PROGRAM_TEXT]);
enum program_bar program_loader(const char *path, const struct elf_file *file, char what[PROGRAM_TEXT]);

/* These files exist where a vendor's driver is loaded, and a container may use it. */
#define PROGRAM_NODE_NVIDIA "/dev/nvidiactl"
#define PROGRAM_NODE_AMD "/dev/kfd"

#define PROGRAM_SCRIPTS 4 /* the kernel's limit: a script's interpreter may be a script */

/*
 * Checks a program by its name with both. For a script it checks the interpreter. Also PROGRAM_FREE
 * if there is no file, or if the loader itself prints an error (another architecture).
 */
enum program_bar program_bars(const char *name, char what[PROGRAM_TEXT]);

/*
 * program_name.c: the name that the library will have for a program (spill_program_name). `words`
 * is its command line, as for execvp. Of a program that is not there it is the first word's.
 */
void program_name(char *const *words, char *name, size_t size);

#endif
