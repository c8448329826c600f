/* spill doctor -- CMD: judges the program's file without running it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "cli.h"
#include "program_file.h"
#include "text.h"

/* Texts inside a CUDA runtime: an error's name, the driver's file, and the driver's resolver. */
static const char *const runtime_words[] = {"cudaErrorMemoryAllocation", "libcuda.so.1", "cuGetProcAddress"};
#define RUNTIME_WORDS (sizeof(runtime_words) / sizeof(runtime_words[0]))
#define MOST_TEXT ((uint64_t)1 << 30)

/* True if a preload works. */
static bool judge_bar(enum program_bar bar, const char *reason)
{
	static const enum doctor_finding findings[] = {[PROGRAM_STATIC] = DOCTOR_program_static,
	                                               [PROGRAM_MUSL] = DOCTOR_program_musl,
	                                               [PROGRAM_NO_LOADER] = DOCTOR_program_loader,
	                                               [PROGRAM_PRIVILEGED] = DOCTOR_program_privileged};

	if (bar != PROGRAM_FREE)
		doctor_find(findings[bar], "%s", reason);
	return bar == PROGRAM_FREE;
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

static void look_at_elf(const struct doctor_patient *patient, const char *path, const struct elf_file *file)
{
	char reason[PROGRAM_TEXT];

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
	if (elf_contains(file, runtime_words, RUNTIME_WORDS, MOST_TEXT)) {
		doctor_find(DOCTOR_static_runtime, "%s contains a CUDA runtime", path);
		struct spill_text need = spill_text_begin(doctor_needs.cuda, sizeof(doctor_needs.cuda));
		spill_text_format(&need, "%s contains a CUDA runtime", path);
	}
	if (!judge_bar(program_loader(path, file, reason), reason))
		return;
	doctor_find(DOCTOR_program_fine, "%s is a dynamically linked 64-bit program for glibc", path);
	doctor_look_at_libraries(patient, path, file);
}

/* Writes a script's interpreter into `next`. False: there is no further file. */
static bool look_at_file(const struct doctor_patient *patient, const char *name, char next[PATH_MAX])
{
	char path[PATH_MAX], reason[PROGRAM_TEXT];
	struct elf_file file;
	struct stat status;
	bool script;
	int fd, error;

	if (!program_find(name, path)) {
		doctor_find(DOCTOR_program_missing,
		            strchr(name, '/') ? "%s is not there" : "%s is in no folder of PATH", name);
		return false;
	}
	fd = cli_open(path, CLI_REGULAR, &error);
	if (fd < 0 || fstat(fd, &status) || access(path, X_OK)) {
		doctor_find(DOCTOR_program_closed, "%s: %s", path,
		            fd < 0 ? cli_open_text(error) : "it may not be executed");
		if (fd >= 0)
			close(fd);
		return false;
	}
	script = program_interpreter(fd, next);
	if (script) {
		doctor_find(DOCTOR_program_script, "%s is a script of %s", path, next);
	} else {
		/* The kernel ignores the bits of a script. */
		judge_bar(program_privilege(path, fd, &status, reason), reason);
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
		if (scripts == PROGRAM_SCRIPTS) {
			doctor_find(DOCTOR_program_unknown,
			            "%s: too many scripts, each with the next as its interpreter",
			            patient->program);
			return;
		}
		strcpy(name, next);
	}
}
