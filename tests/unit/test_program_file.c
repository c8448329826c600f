/* What a script's first line says, where a program is found, which name it will have, and what keeps LD_PRELOAD away. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "process.h"
#include "program_file.h"

static char folder[64];

static int setup(void **state)
{
	strcpy(folder, "/tmp/spill-program-XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "/bin/rm -rf %s", folder);
	return chdir("/") || system(command);
}

static void make(const char *name, const char *text, size_t length, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, length), (ssize_t)length);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* The interpreter of a file with this text; "": it is no script. */
static const char *interpreter_of(const char *text, size_t length)
{
	static char name[PATH_MAX];
	make("script", text, length, 0700);
	int fd = open("script", O_RDONLY);
	strcpy(name, "untouched");
	bool script = program_interpreter(fd, name);
	close(fd);
	return script ? name : "";
}

#define INTERPRETER(text) interpreter_of(text, sizeof(text) - 1)

TEST(first_lines)
{
	assert_string_equal(INTERPRETER("#!/bin/sh\n"), "/bin/sh");
	assert_string_equal(INTERPRETER("#! \t/bin/sh -e x\nrest"), "/bin/sh");
	assert_string_equal(INTERPRETER("#!/bin/sh"), "/bin/sh");
	assert_string_equal(INTERPRETER("#!a"), "a");
	assert_string_equal(INTERPRETER("#!/usr/bin/env python3 -u\n"), "python3");
	assert_string_equal(INTERPRETER("#!/usr/bin/env -S A=1 python3 -u\n"), "python3");
	assert_string_equal(INTERPRETER("#!/usr/bin/env\npython3"), "/usr/bin/env");
	assert_string_equal(INTERPRETER("#!/env python3"), "python3");
	assert_string_equal(INTERPRETER("#!env x\n"), "env"); /* which is not found by a path */
	assert_string_equal(INTERPRETER("#!/usr/bin/myenv x\n"), "/usr/bin/myenv");
	assert_string_equal(INTERPRETER("#!"), "");
	assert_string_equal(INTERPRETER("#!\n/bin/sh"), "");
	assert_string_equal(INTERPRETER("#!  \n"), "");
	assert_string_equal(INTERPRETER("# /bin/sh\n"), "");
	assert_string_equal(INTERPRETER("!!/bin/sh\n"), "");
	assert_string_equal(INTERPRETER("#/!bin/sh\n"), "");
	assert_string_equal(INTERPRETER(""), "");
}

/* The kernel reads 255 bytes of it, and so do we. */
TEST(a_first_line_without_end)
{
	char text[400];
	memset(text, 'a', sizeof(text));
	memcpy(text, "#!", 2);
	assert_int_equal(strlen(interpreter_of(text, sizeof(text))), 255 - 2);
}

static const char *found(const char *name)
{
	static char path[PATH_MAX];
	strcpy(path, "untouched");
	return program_find(name, path) ? path : "";
}

TEST(programs_are_found_as_the_shell_would)
{
	char *before = strdup(getenv("PATH"));
	assert_int_equal(mkdir("one", 0700) || mkdir("two", 0700) || mkdir("one/folder", 0700), 0);
	make("one/plain", "", 0, 0600);
	make("two/plain", "", 0, 0700);
	make("two/folder", "", 0, 0700);
	make("two/only", "", 0, 0600);
	make("one/alone", "", 0, 0600);
	make("here", "", 0, 0700);
	setenv("PATH", "one:two", 1);
	assert_string_equal(found("plain"), "two/plain");
	assert_string_equal(found("alone"), "one/alone");
	assert_string_equal(found("folder"), "two/folder");
	assert_string_equal(found("only"), "two/only"); /* the first file, if none can be executed */
	assert_string_equal(found("here"), "");
	assert_string_equal(found("./here"), "./here");
	assert_string_equal(found("./gone"), "");
	setenv("PATH", "one::two", 1);
	assert_string_equal(found("here"), "./here");
	setenv("PATH", before, 1);
	free(before);
}

static const char *name_of(const char *program)
{
	static char name[64];
	char *const words[] = {(char *)program, "-u", "work.py", NULL};
	program_name(words, name, sizeof(name));
	return name;
}

/* A script has the name of the file that its interpreter runs. That file is closed, also if its descriptor is 0. */
TEST(names_of_scripts)
{
	make("binary", "\177ELF", 4, 0700);
	make("tool", "#!./binary\n", 11, 0700);
	make("chain", "#!./tool\n", 9, 0700);
	make("lost", "#!./gone\n", 9, 0700);
	int input = fcntl(0, F_DUPFD, 20);
	for (unsigned zero = 0; zero < 2; zero++) {
		if (zero)
			close(0);
		char names[5][64];
		const char *const of[] = {"./binary", "./tool", "./chain", "./lost", "./nothing"};
		for (unsigned i = 0; i < 5; i++)
			strcpy(names[i], name_of(of[i]));
		bool is_closed = fcntl(0, F_GETFD) == -1;
		dup2(input, 0);
		assert_int_equal(is_closed, zero);
		assert_string_equal(names[0], "binary");
		assert_string_equal(names[1], "binary");
		assert_string_equal(names[2], "binary");
		assert_string_equal(names[3], "lost");
		assert_string_equal(names[4], "nothing");
	}
	close(input);
}

/* A script of an interpreter, by whichever of them names it. */
TEST(names_of_what_interpreters_run)
{
	make("python3", "\177ELF", 4, 0700);
	make("run", "#!./python3\n", 12, 0700);
	assert_string_equal(name_of("./python3"), "work.py");
	assert_string_equal(name_of("./run"), "run");
	/* pyenv's wrapper: a shell's script with the interpreter's name hands its arguments on. */
	make("bash", "\177ELF", 4, 0700);
	make("python3", "#!./bash\n", 9, 0700);
	assert_string_equal(name_of("./python3"), "work.py");
	assert_string_equal(name_of("./run"), "run");
}

/* An interpreter that is itself a script runs as the one of its own interpreter. */
TEST(the_name_is_that_of_the_script_that_runs)
{
	make("bash", "\177ELF", 4, 0700);
	make("tool", "#!./bash\n", 9, 0700);
	make("chain", "#!./tool\n", 9, 0700);
	assert_string_equal(name_of("./tool"), "tool");
	assert_string_equal(name_of("./chain"), "tool");
}

/* The kernel follows no more scripts than that. */
TEST(a_long_chain_of_scripts)
{
	for (unsigned i = 0; i < 7; i++) {
		char name[8], text[16];
		snprintf(name, sizeof(name), "s%u", i);
		int length = snprintf(text, sizeof(text), "#!./s%u\n", i + 1);
		make(name, text, (size_t)length, 0700);
	}
	assert_string_equal(name_of("./s0"), "s4");
}

/* The library reads so many bytes of a command line. What is behind them has no part in the name. */
TEST(a_very_long_command_line)
{
	static char option[2 * SPILL_PROGRAM_WORDS];
	char name[64];
	memset(option, 'x', sizeof(option) - 1);
	option[0] = '-';
	make("python3", "\177ELF", 4, 0700);
	char *const words[] = {"./python3", option, "work.py", NULL};
	program_name(words, name, sizeof(name));
	assert_string_equal(name, "python3");
	option[SPILL_PROGRAM_WORDS - 40] = '\0';
	program_name(words, name, sizeof(name));
	assert_string_equal(name, "work.py");
}

/* -- what keeps LD_PRELOAD away ------------------------------------------------------------------ */

static const char *loader(const char *interpreter, enum program_bar expected)
{
	static char reason[PROGRAM_TEXT];
	static struct elf_file file;

	file.interpreted = interpreter;
	snprintf(file.interpreter, sizeof(file.interpreter), "%s", interpreter ? interpreter : "");
	reason[0] = '\0';
	assert_int_equal(program_loader("p", &file, reason), expected);
	return reason;
}

TEST(loaders)
{
	assert_string_equal(loader(NULL, PROGRAM_STATIC), "p is statically linked");
	assert_string_equal(loader("/lib/ld-musl-x.so.1", PROGRAM_MUSL),
	                    "p is for musl (/lib/ld-musl-x.so.1)");
	assert_string_equal(loader("/lib/ld-mus", PROGRAM_NO_LOADER),
	                    "p names a loader that is not here: /lib/ld-mus");
	assert_string_equal(loader("/ld-musl/ld.so", PROGRAM_NO_LOADER),
	                    "p names a loader that is not here: /ld-musl/ld.so");
	make("data", "", 0, 0600);
	make("ld.so", "", 0, 0700);
	assert_string_equal(loader("./ld.so", PROGRAM_FREE), "");
	if (getuid())
		loader("./data", PROGRAM_NO_LOADER);
}

/* In place of the C library's: what a file system allows. */
static struct statvfs file_system;
static int no_answer;

int fstatvfs(int fd, struct statvfs *status)
{
	*status = file_system;
	return no_answer;
}

TEST(bits_that_give_another_user_or_group)
{
	static const struct {
		mode_t mode;
		const char *reason;
	} cases[] = {
	    {S_ISUID, "p is set-user-id: it runs as user 4000"},
	    {S_ISUID | S_ISGID, "p is set-user-id: it runs as user 4000"},
	    {S_ISGID | S_IXGRP, "p is set-group-id: it runs as group 4001"},
	    {S_ISGID, ""},
	    {S_IXGRP, ""},
	    {0, ""},
	};
	char reason[PROGRAM_TEXT];
	make("program", "", 0, 0700);
	int fd = open("program", O_RDONLY);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stat other = {.st_mode = cases[i].mode, .st_uid = 4000, .st_gid = 4001}, own = other;

		own.st_uid = getuid();
		own.st_gid = getgid();
		for (unsigned system = 0; system < 3; system++) {
			bool counts = system != 1 && *cases[i].reason;

			file_system.f_flag = system ? ST_NOSUID : ST_RDONLY;
			no_answer = system == 2 ? -1 : 0;
			reason[0] = '\0';
			assert_int_equal(program_privilege("p", fd, &other, reason),
			                 counts ? PROGRAM_PRIVILEGED : PROGRAM_FREE);
			assert_string_equal(reason, counts ? cases[i].reason : "");
			assert_int_equal(program_privilege("p", fd, &own, reason), PROGRAM_FREE);
		}
	}
	close(fd);
	no_answer = 0;
}

/* Of a script it is the interpreter, and of that one's script its own. */
TEST(the_file_that_runs_is_judged)
{
	Elf64_Ehdr top = {
	    .e_ident = ELFMAG, .e_type = ET_EXEC, .e_phnum = 1, .e_phentsize = sizeof(Elf64_Phdr)};
	char reason[PROGRAM_TEXT], itself[2 * sizeof(top)] = "";
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, itself, sizeof(top), 0), sizeof(top));
	close(fd);
	top.e_machine = ((Elf64_Ehdr *)itself)->e_machine;
	top.e_ident[EI_CLASS] = ELFCLASS64;
	top.e_ident[EI_DATA] = ELFDATA2LSB;
	top.e_phoff = sizeof(top); /* an empty header, so it has no loader */
	memset(itself, 0, sizeof(itself));
	memcpy(itself, &top, sizeof(top));
	make("static", itself, sizeof(top) + sizeof(Elf64_Phdr), 0700);
	make("script", "#!./static\n", 11, 0700);
	make("again", "#!./script\n", 11, 0700);
	make("text", "hello", 5, 0700);
	make("lost", "#!./gone\n", 9, 0700);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(program_bars(i == 0   ? "./static"
		                              : i == 1 ? "./script"
		                                       : "./again",
		                              reason),
		                 PROGRAM_STATIC);
		assert_string_equal(reason, "./static is statically linked");
	}
	assert_int_equal(program_bars("./text", reason), PROGRAM_FREE);
	assert_int_equal(program_bars("./lost", reason), PROGRAM_FREE);
	assert_int_equal(program_bars("./nothing", reason), PROGRAM_FREE);
	/* The kernel follows no more of them. */
	for (unsigned i = 0; i < 6; i++) {
		char name[8], text[16];
		snprintf(name, sizeof(name), "s%u", i);
		int length = snprintf(text, sizeof(text), i < 5 ? "#!./s%u\n" : "#!./static\n", i + 1);
		make(name, text, (size_t)length, 0700);
	}
	assert_int_equal(program_bars("./s2", reason), PROGRAM_STATIC);
	assert_int_equal(program_bars("./s1", reason), PROGRAM_FREE);
}
