/*
 * program: what a file on disk says of a program, for `spill run` and `spill doctor`. Which file
 * the shell would find, what keeps a preload out of it, and what the loader would read of it
 * (elf_file.h).
 *
 * Files are read, and nothing is run: asking the loader itself (ldd) may execute the program. No
 * file is trusted.
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
	PROGRAM_FREE,       /* LD_PRELOAD works */
	PROGRAM_STATIC,     /* no loader */
	PROGRAM_MUSL,       /* another libc's */
	PROGRAM_NO_LOADER,  /* the one it names is not here */
	PROGRAM_PRIVILEGED, /* the loader ignores what we set */
};

/* As execvp looks: the first of PATH that may be executed, else the first that is there. False if there is none. */
bool program_find(const char *name, char path[PATH_MAX]);

/*
 * The interpreter of a first line "#!PATH [ARGUMENT]"; of "#!/usr/bin/env NAME" NAME, behind options and assignments. False if
 * the file is no script.
 */
bool program_interpreter(int fd, char name[PATH_MAX]);

/* Each says of a file that is open at `fd` whether that bar is there, and what it is, for people. */
enum program_bar program_privilege(const char *path, int fd, const struct stat *status,
                                   char what[PROGRAM_TEXT]);
enum program_bar program_loader(const char *path, const struct elf_file *file, char what[PROGRAM_TEXT]);

#define PROGRAM_SCRIPTS 4 /* as the kernel: a script's interpreter may be a script */

/*
 * Both, of a program by its name; of a script its interpreter's. PROGRAM_FREE also where there is nothing to look at, or the loader
 * itself speaks up: of a program for another architecture.
 */
enum program_bar program_bars(const char *name, char what[PROGRAM_TEXT]);

#endif
