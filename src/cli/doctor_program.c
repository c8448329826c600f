/* spill doctor -- CMD: what the program's file says, without running it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "doctor.h"
#include "elf_file.h"

#define MOST_SCRIPTS 4 /* as the kernel: a script's interpreter may be a script */

/* A runtime's own text: the name of an error, the driver's file, and how it asks the driver for functions. */
static const char *const runtime_words[] = {"cudaErrorMemoryAllocation", "libcuda.so.1", "cuGetProcAddress"};
#define RUNTIME_WORDS (sizeof(runtime_words) / sizeof(runtime_words[0]))
#define MOST_TEXT ((uint64_t)1 << 30)

/* As execvp looks: the first of PATH that may be executed, else the first that is there. False if there is none. */
static bool find_on_path(const char *name, char path[PATH_MAX])
{
	const char *list = getenv("PATH");
	char first[PATH_MAX] = "";

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return access(path, F_OK) == 0;
	}
	for (const char *at = list ? list : "/bin:/usr/bin"; at; at = strchr(at, ':'), at += at != NULL) {
		int length = (int)strcspn(at, ":");
		struct stat status;

		if (snprintf(path, PATH_MAX, "%.*s%s%s", length, at, length ? "/" : "./", name) >= PATH_MAX ||
		    stat(path, &status) || S_ISDIR(status.st_mode))
			continue;
		if (access(path, X_OK) == 0)
			return true;
		if (!first[0])
			strcpy(first, path);
	}
	strcpy(path, first);
	return first[0];
}

/* Set-user-id counts only where the file system lets it, and if it changes anything for who we are. */
static void look_at_privilege(const char *path, int fd, const struct stat *status)
{
	struct statvfs system;
	bool counts = fstatvfs(fd, &system) != 0 || !(system.f_flag & ST_NOSUID);

	if (!counts)
		return;
	if ((status->st_mode & S_ISUID) && status->st_uid != getuid())
		doctor_find(DOCTOR_program_privileged, "%s is set-user-id: it runs as user %u", path,
		            (unsigned)status->st_uid);
	else if ((status->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status->st_gid != getgid())
		doctor_find(DOCTOR_program_privileged, "%s is set-group-id: it runs as group %u", path,
		            (unsigned)status->st_gid);
	else if (fgetxattr(fd, "security.capability", NULL, 0) > 0)
		doctor_find(DOCTOR_program_privileged, "%s has file capabilities", path);
}

static const char *machine_name(unsigned machine)
{
	static const struct {
		unsigned machine;
		const char *name;
	} names[] = {{3, "i386"},      {40, "ARM"},     {62, "x86-64"},
	             {183, "AArch64"}, {21, "PowerPC"}, {243, "RISC-V"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].machine == machine)
			return names[i].name;
	}
	return "another machine";
}

/* Whether a preload reaches it at all. */
static bool can_be_preloaded(const char *path, const struct elf_file *file)
{
	const char *loader = strrchr(file->interpreter, '/');

	loader = loader ? loader + 1 : file->interpreter;
	if (!file->interpreted)
		doctor_find(DOCTOR_program_static, "%s is statically linked", path);
	else if (!strncmp(loader, "ld-musl", 7))
		doctor_find(DOCTOR_program_musl, "%s is for musl (%s)", path, file->interpreter);
	else if (access(file->interpreter, X_OK))
		doctor_find(DOCTOR_program_loader, "%s names a loader that is not here: %s", path,
		            file->interpreter);
	else
		return true;
	return false;
}

static void look_at_elf(const struct doctor_patient *patient, const char *path, const struct elf_file *file)
{
	switch (file->kind) {
	case ELF_NONE:
		doctor_find(DOCTOR_program_unknown, "%s is neither an ELF file nor a script", path);
		return;
	case ELF_FOREIGN:
		doctor_find(DOCTOR_program_bits, "%s is a %u-bit program for %s", path, file->bits,
		            machine_name(file->machine));
		return;
	case ELF_DAMAGED:
		doctor_find(DOCTOR_program_damaged, "%s: %s", path, file->problem);
		return;
	case ELF_OURS:
		break;
	}
	if (elf_contains(file, runtime_words, RUNTIME_WORDS, MOST_TEXT))
		doctor_find(DOCTOR_static_runtime, "%s contains a CUDA runtime", path);
	if (!can_be_preloaded(path, file))
		return;
	doctor_find(DOCTOR_program_fine, "%s is a dynamically linked 64-bit program for glibc", path);
	doctor_look_at_libraries(patient, path, file);
}

/*
 * The interpreter of a first line "#!PATH [ARGUMENT]"; of "#!/usr/bin/env NAME" NAME, behind options and assignments. False if
 * the file is no script.
 */
static bool interpreter_of(int fd, char name[PATH_MAX])
{
	char line[256] = "", *word, *rest = line + 2;
	ssize_t got = pread(fd, line, sizeof(line) - 1, 0);

	if (got < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[strcspn(line, "\n")] = '\0';
	word = strtok_r(rest, " \t", &rest);
	if (!word)
		return false;
	snprintf(name, PATH_MAX, "%s", word);
	if (strlen(word) < 4 || strcmp(word + strlen(word) - 4, "/env") != 0)
		return true;
	while ((word = strtok_r(NULL, " \t", &rest))) {
		if (word[0] == '-' || strchr(word, '='))
			continue;
		snprintf(name, PATH_MAX, "%s", word);
		break;
	}
	return true;
}

/* The script's interpreter is written into `next`; false when there is no further file to look at. */
static bool look_at_file(const struct doctor_patient *patient, const char *name, char next[PATH_MAX])
{
	char path[PATH_MAX];
	struct elf_file file;
	struct stat status;
	bool script;
	int fd;

	if (!find_on_path(name, path)) {
		doctor_find(DOCTOR_program_missing,
		            strchr(name, '/') ? "%s is not there" : "%s is in no folder of PATH", name);
		return false;
	}
	/* Not blocking: it may be a FIFO. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) || access(path, X_OK)) {
		doctor_find(DOCTOR_program_closed, "%s: %s", path,
		            fd < 0                     ? strerror(errno)
		            : S_ISDIR(status.st_mode)  ? "it is a folder"
		            : !S_ISREG(status.st_mode) ? "it is no regular file"
		                                       : "it may not be executed");
		if (fd >= 0)
			close(fd);
		return false;
	}
	script = interpreter_of(fd, next);
	if (script) {
		doctor_find(DOCTOR_program_script, "%s is a script of %s", path, next);
	} else {
		look_at_privilege(path, fd, &status); /* of a script the kernel ignores it */
		elf_read(&file, fd);
		look_at_elf(patient, path, &file);
	}
	close(fd);
	return script;
}

void doctor_look_at_program(const struct doctor_patient *patient)
{
	char name[PATH_MAX], next[PATH_MAX];

	snprintf(name, sizeof(name), "%s", patient->program);
	for (unsigned scripts = 0; look_at_file(patient, name, next); scripts++) {
		if (scripts == MOST_SCRIPTS) {
			doctor_find(DOCTOR_program_unknown,
			            "%s: too many scripts, each with the next as its interpreter",
			            patient->program);
			return;
		}
		strcpy(name, next);
	}
}
