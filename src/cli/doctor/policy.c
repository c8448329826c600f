/* spill doctor: judges the program's policy and the place of its log. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "config.h"
#include "doctor.h"
#include "log_path.h"
#include "options.h"
#include "program_file.h"
#include "put.h"

static struct spill_config effective, from_files; /* too large for the stack */

static void judge_lines(enum doctor_finding finding, char *lines)
{
	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"))
		doctor_find(finding, "%s", line);
}

static void judge_files(void)
{
	char list[SPILL_CONFIG_FILES * SPILL_PATH_MAX];
	struct spill_text text = spill_text_begin(list, sizeof(list));

	for (unsigned i = 0; i < effective.file_count; i++) {
		if (effective.files[i].state == SPILL_CONFIG_READ)
			spill_text_format(&text, "%s%s", text.length ? ", " : "", effective.files[i].path);
	}
	doctor_find(DOCTOR_policy, "the policy is of %s; mode %s", text.length ? list : "no file",
	            effective.policy.mode == SPILL_MODE_OFF       ? "off"
	            : effective.policy.mode == SPILL_MODE_OBSERVE ? "observe"
	                                                          : "spill");
	if (effective.policy.mode == SPILL_MODE_OFF || spill_config_disabled())
		doctor_find(DOCTOR_off, "libspill is off: %s",
		            spill_config_disabled() ? "SPILL in the environment" : "spill.mode = off");
}

/* True if the chain has a step other than trim. */
static bool has_step_off_device(const struct spill_fallback_chain *chain)
{
	for (unsigned i = 0; i < chain->count; i++) {
		if (chain->step[i] != SPILL_STEP_TRIM)
			return true;
	}
	return chain->by_capability;
}

static void judge_choice(void)
{
	if (effective.policy.mode == SPILL_MODE_OBSERVE && !effective.problem[0])
		doctor_find(DOCTOR_nothing_spills, "libspill only observes: spill.mode = observe");
	else if (effective.policy.mode == SPILL_MODE_SPILL && !has_step_off_device(&effective.policy.chain))
		doctor_find(DOCTOR_nothing_spills, "oom.chain names no place but the device");
}

/* Removes the options' variables. The remaining ones lead to the same files. */
static void forget_variables(void)
{
	char name[64];

	unsetenv("SPILL_LOG");
	for (unsigned slot = 0; slot < SPILL_OPTION_SLOTS; slot++) {
		spill_option_variable(slot, name, sizeof(name));
		unsetenv(name);
	}
}

/* Reports variables that replace a value from a file. */
static void judge_variables(const char *program)
{
	char value[SPILL_PATH_MAX];

	forget_variables();
	spill_config_load(&from_files, program);
	for (unsigned i = 0, slot = 0; slot < SPILL_OPTION_SLOTS; slot++) {
		const struct spill_log_option *option;

		if (!spill_option_present(&effective.policy, slot))
			continue;
		option = &effective.options[i++];
		for (unsigned j = 0; j < from_files.option_count; j++) {
			if (strcmp(from_files.options[j].name, option->name) != 0 ||
			    strcmp(option->source, "environment") != 0 ||
			    !strcmp(from_files.options[j].source, "default"))
				continue;
			spill_option_format(&effective.policy, slot, value, sizeof(value));
			doctor_find(DOCTOR_variable_wins, "%s = %s from the environment wins over %s from %s",
			            option->name, value, from_files.options[j].value,
			            from_files.options[j].source);
		}
	}
}

/* libspill makes no folder for the file of log.metrics. */
static void judge_metrics(const char *program)
{
	static struct spill_log_path found;
	const char *pattern = effective.policy.log_metrics;
	char folder[sizeof(found.path)], *slash;

	if (!pattern[0])
		return;
	spill_log_path_find(&found, pattern, program, SPILL_METRICS_SUFFIX);
	strcpy(folder, found.path);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	if (found.problem || (slash && access(folder, W_OK | X_OK)))
		doctor_find(DOCTOR_metrics_closed, "log.metrics = %s: %s", pattern,
		            found.problem ? found.problem : strerror(errno));
}

/* Judges the log's folder, or its first parent that exists. */
static void judge_log(const char *program)
{
	static struct spill_log_path found;
	char folder[sizeof(found.path)], *slash;
	struct statvfs system;
	struct stat status;

	spill_log_path_find(&found, effective.policy.log_path, program, SPILL_LOG_SUFFIX);
	if (found.problem) {
		doctor_find(DOCTOR_log_closed, "there will be no log: %s", found.problem);
		return;
	}
	if (!found.path[0]) {
		doctor_find(DOCTOR_log_off, "no log is written (log.path = off)");
		return;
	}
	strcpy(folder, found.path);
	do {
		slash = strrchr(folder, '/');
		if (!slash) /* the current folder was removed */
			return;
		*(slash == folder ? slash + 1 : slash) = '\0';
	} while (access(folder, F_OK) && slash != folder);
	if (stat(folder, &status) || !S_ISDIR(status.st_mode) || access(folder, W_OK | X_OK)) {
		doctor_find(DOCTOR_log_closed, "the log would be a file like %s, and %s cannot be written",
		            found.path, folder);
		return;
	}
	if (statvfs(folder, &system)) {
		doctor_find(DOCTOR_log, "the log will be a file like %s", found.path);
		return;
	}
	doctor_find(system.f_bavail * system.f_frsize < ((uint64_t)64 << 20) ? DOCTOR_log_full : DOCTOR_log,
	            "the log will be a file like %s; %s are free there", found.path,
	            spill_size(system.f_bavail * system.f_frsize).text);
}

const struct spill_policy *doctor_look_at_policy(const struct doctor_patient *patient)
{
	char program[256] = "";

	if (patient->program)
		program_name(patient->words, program, sizeof(program));
	spill_config_load(&effective, program);
	if (effective.problem[0])
		doctor_find(DOCTOR_policy_problem, "%s", effective.problem);
	judge_lines(DOCTOR_policy_unknown, effective.warning);
	judge_lines(DOCTOR_policy_hidden, effective.hidden);
	judge_files();
	judge_choice();
	judge_log(program);
	judge_metrics(program);
	if (!effective.problem[0])
		judge_variables(program);
	return &effective.policy;
}
