/* spill doctor: the policy that the program would have, as libspill finds it, and where its log would go. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "config.h"
#include "doctor.h"
#include "glob.h"
#include "log_path.h"
#include "options.h"

static struct spill_config with, without; /* too large for the stack */

/* The executable's name; what an interpreter would run is not known here. */
static const char *program_name(const struct doctor_patient *patient)
{
	return patient->program ? spill_file_name(patient->program) : "";
}

static void judge_lines(enum doctor_finding finding, char *lines)
{
	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"))
		doctor_find(finding, "%s", line);
}

static void judge_files(void)
{
	char list[SPILL_CONFIG_FILES * SPILL_PATH_MAX] = "";
	size_t used = 0;

	for (unsigned i = 0; i < with.file_count; i++) {
		if (with.files[i].state == SPILL_CONFIG_READ)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
			                         with.files[i].path);
	}
	doctor_find(DOCTOR_policy, "the policy is of %s; mode %s", used ? list : "no file",
	            with.policy.mode == SPILL_MODE_OFF       ? "off"
	            : with.policy.mode == SPILL_MODE_OBSERVE ? "observe"
	                                                     : "spill");
	if (with.policy.mode == SPILL_MODE_OFF || spill_config_disabled())
		doctor_find(DOCTOR_off, "libspill is off: %s",
		            spill_config_disabled() ? "SPILL in the environment" : "spill.mode = off");
}

/* Is there a step but to give back what nobody uses? */
static bool goes_elsewhere(const struct spill_fallback_chain *chain)
{
	for (unsigned i = 0; i < chain->count; i++) {
		if (chain->step[i] != SPILL_STEP_TRIM)
			return true;
	}
	return chain->by_capability;
}

static void judge_choice(void)
{
	if (with.policy.mode == SPILL_MODE_OBSERVE && !with.problem[0])
		doctor_find(DOCTOR_nothing_spills, "libspill only observes: spill.mode = observe");
	else if (with.policy.mode == SPILL_MODE_SPILL && !goes_elsewhere(&with.policy.chain))
		doctor_find(DOCTOR_nothing_spills, "oom.chain names no place but the device");
}

/* Removes the options' variables: with the others the same files are found. */
static void forget_variables(void)
{
	char name[64];

	unsetenv("SPILL_LOG");
	for (unsigned slot = 0; slot < SPILL_OPTION_SLOTS; slot++) {
		spill_option_variable(slot, name, sizeof(name));
		unsetenv(name);
	}
}

/* What a file would have said, had no variable been there. */
static void judge_variables(const char *program)
{
	char value[SPILL_PATH_MAX];

	forget_variables();
	spill_config_load(&without, program);
	for (unsigned i = 0, slot = 0; slot < SPILL_OPTION_SLOTS; slot++) {
		const struct spill_log_option *option;

		if (!spill_option_present(&with.policy, slot))
			continue;
		option = &with.options[i++];
		for (unsigned j = 0; j < without.option_count; j++) {
			if (strcmp(without.options[j].name, option->name) != 0 ||
			    strcmp(option->source, "environment") != 0 ||
			    !strcmp(without.options[j].source, "default"))
				continue;
			spill_option_format(&with.policy, slot, value, sizeof(value));
			doctor_find(DOCTOR_variable_wins, "%s = %s from the environment wins over %s from %s",
			            option->name, value, without.options[j].value, without.options[j].source);
		}
	}
}

/* The folder, or the one above it that is there and that it would be made in. */
static void judge_log(const char *program)
{
	static struct spill_log_path found;
	char folder[sizeof(found.path)], *slash;
	struct statvfs system;
	struct stat status;

	spill_log_path_find(&found, with.policy.log_path, program);
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
		if (!slash) /* the current folder has no name any more */
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
	            doctor_size(system.f_bavail * system.f_frsize));
}

const struct spill_policy *doctor_look_at_policy(const struct doctor_patient *patient)
{
	const char *program = program_name(patient);

	spill_config_load(&with, program);
	if (with.problem[0])
		doctor_find(DOCTOR_policy_problem, "%s", with.problem);
	judge_lines(DOCTOR_policy_unknown, with.warning);
	judge_lines(DOCTOR_policy_hidden, with.hidden);
	judge_files();
	judge_choice();
	judge_log(program);
	if (!with.problem[0])
		judge_variables(program);
	return &with.policy;
}
