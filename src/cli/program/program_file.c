#include "program_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "glob.h"
#include "cli.h"

bool program_find(const char *name, char path[PATH_MAX])
{
	const char *list = getenv("PATH");
	char first[PATH_MAX] = "";

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return access(path, F_OK) == 0;
	}
	for (const char *at = list ? list : "/bin:/usr/bin", *next; at; at = next) {
		int length = (int)strcspn(at, ":");
		struct stat status;

		next = at[length] ? at + length + 1 : NULL;
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

bool program_interpreter(int fd, char name[PATH_MAX])
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

/* The set-user-id bit counts only if the file system allows it and it changes the user. */
enum program_bar program_privilege(const char *path, int fd, const struct stat *status,
                                   char reason[PROGRAM_TEXT])
{
	struct statvfs system;
	bool counts = fstatvfs(fd, &system) != 0 || !(system.f_flag & ST_NOSUID);

	if (counts && (status->st_mode & S_ISUID) && status->st_uid != getuid())
		snprintf(reason, PROGRAM_TEXT, "%s is set-user-id: it runs as user %u", path,
		         (unsigned)status->st_uid);
	else if (counts && (status->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	         status->st_gid != getgid())
		snprintf(reason, PROGRAM_TEXT, "%s is set-group-id: it runs as group %u", path,
		         (unsigned)status->st_gid);
	else if (counts && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		snprintf(reason, PROGRAM_TEXT, "%s has file capabilities", path);
	else
		return PROGRAM_FREE;
	return PROGRAM_PRIVILEGED;
}

enum program_bar program_loader(const char *path, const struct elf_file *file, char reason[PROGRAM_TEXT])
{
	if (!file->interpreted) {
		snprintf(reason, PROGRAM_TEXT, "%s is statically linked", path);
		return PROGRAM_STATIC;
	}
	if (!strncmp(spill_file_name(file->interpreter), "ld-musl", 7)) {
		snprintf(reason, PROGRAM_TEXT, "%s is for musl (%s)", path, file->interpreter);
		return PROGRAM_MUSL;
	}
	if (access(file->interpreter, X_OK)) {
		snprintf(reason, PROGRAM_TEXT, "%s names a loader that is not here: %s", path,
		         file->interpreter);
		return PROGRAM_NO_LOADER;
	}
	return PROGRAM_FREE;
}

/* Checks one file. For a script, writes its interpreter into `next`. */
static enum program_bar bar_of_file(const char *path, char next[PATH_MAX], char reason[PROGRAM_TEXT])
{
	enum program_bar bar = PROGRAM_FREE;
	int error, fd = cli_open(path, CLI_REGULAR, &error);
	struct elf_file file;
	struct stat status;

	next[0] = '\0';
	if (fd < 0)
		return bar;
	if (!fstat(fd, &status) && !program_interpreter(fd, next)) {
		elf_read(&file, fd);
		bar = program_privilege(path, fd, &status, reason);
		if (bar == PROGRAM_FREE && file.kind == ELF_OURS)
			bar = program_loader(path, &file, reason);
	}
	close(fd);
	return bar;
}

enum program_bar program_bars(const char *name, char reason[PROGRAM_TEXT])
{
	char path[PATH_MAX], next[PATH_MAX];

	for (unsigned scripts = 0; scripts <= PROGRAM_SCRIPTS && program_find(name, path); scripts++) {
		enum program_bar bar = bar_of_file(path, next, reason);

		if (bar != PROGRAM_FREE || !next[0])
			return bar;
		name = next;
	}
	return PROGRAM_FREE;
}
