/* spill doctor: judges variables and other preloads. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hazards.h"
#include "doctor.h"
#include "elf_file.h"
#include "glob.h"
#include "small_file.h"
#include "text.h"

/* ggml-cuda.cu tests getenv(…) != nullptr, so any value counts. */
static void judge_ggml(void)
{
	const char *value = getenv("GGML_CUDA_ENABLE_UNIFIED_MEMORY");

	if (value)
		doctor_find(DOCTOR_ggml_unified, "GGML_CUDA_ENABLE_UNIFIED_MEMORY=%s", value);
}

/* CUDA hides devices after an invalid index too (Programming Guide, "Environment Variables"). */
static void judge_visible(void)
{
	static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
	                                    "ROCR_VISIBLE_DEVICES"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (!value)
			continue;
		if (!value[strspn(value, " ")] || strstr(value, "-1") == value || strstr(value, ",-1"))
			doctor_find(DOCTOR_devices_hidden, "%s=%s hides devices", names[i], value);
		else
			doctor_find(DOCTOR_devices_chosen, "%s=%s", names[i], value);
	}
}

/* Parts of a GPU have names MIG-UUID and MIG-GPU-UUID/N/N (NVIDIA, MIG User Guide). */
static void judge_mig(void)
{
	static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && strstr(value, "MIG-"))
			doctor_find(DOCTOR_mig, "a part of a GPU (MIG) is chosen: %s=%s", names[i], value);
	}
}

static void judge_exported(void)
{
	for (char **entry = environ; entry && *entry; entry++) {
		const char *what = spill_hazard_exported(*entry);

		if (what)
			doctor_find(DOCTOR_exported, "%s: %s", *entry, what);
	}
}

/* The folder of the daemon's control pipe (NVIDIA, "Multi-Process Service"). */
static void judge_mps(const struct doctor_patient *patient)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char pipe[PATH_MAX];

	snprintf(pipe, sizeof(pipe), "%s/control", folder && *folder ? folder : "/tmp/nvidia-mps");
	if (!doctor_is_there(patient, pipe))
		return; /* without a daemon the variables do nothing */
	doctor_find(DOCTOR_mps, "an MPS daemon's pipe is there: %s", pipe);
	for (char **entry = environ; entry && *entry; entry++) {
		if (!strncmp(*entry, "CUDA_MPS_", 9) && strncmp(*entry, "CUDA_MPS_PIPE", 13) != 0)
			doctor_find(DOCTOR_mps, "%s", *entry);
	}
}

static bool is_ours(const char *path)
{
	return !strcmp(spill_file_name(path), "libspill.so");
}

/* Functions whose definition in a preload means that it hooks GPU memory. */
static const char *const hooked[] = {
    "cudaMalloc",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
#define FUNCTION(needed, ret, symbol, params) #symbol,
#include "backend_cuda.def"
#define FUNCTION(needed, ret, symbol, params) #symbol,
#include "backend_hip.def"
};

/* Names the first few functions that the preload defines. */
static void judge_hooks(const char *where, const char *path, const struct elf_file *file)
{
	char names[256];
	struct spill_text text = spill_text_begin(names, sizeof(names));
	unsigned count = 0;

	for (size_t i = 0; i < sizeof(hooked) / sizeof(hooked[0]); i++) {
		if (elf_defines(file, hooked[i]) && count++ < 3)
			spill_text_format(&text, "%s%s", count > 1 ? ", " : "", hooked[i]);
	}
	if (count > 3)
		spill_text_format(&text, " and %u more", count - 3);
	if (count)
		doctor_find(DOCTOR_preload_hooks, "%s has %s, which defines %s", where, path, names);
}

/* `first`: before ours. Then a dlsym of its own may find functions that bypass us. */
static void judge_other(const struct doctor_patient *patient, const char *where, const char *item, bool first)
{
	char path[PATH_MAX];
	struct elf_file file;

	if (!doctor_open_library(patient, item, path, &file))
		return;
	judge_hooks(where, path, &file);
	if (first && elf_defines(&file, "dlsym"))
		doctor_find(DOCTOR_preload_dlsym,
		            "%s has %s before libspill.so, and it has a dlsym of its own", where, path);
	close(file.fd);
}

/* Judges LD_PRELOAD, split at blanks and colons. True if it has libspill.so. */
static bool judge_preload(const struct doctor_patient *patient)
{
	const char *list = getenv("LD_PRELOAD");
	bool ours = false;

	for (const char *at = list; at && *at; at += strspn(at, " :")) {
		char item[PATH_MAX];
		size_t length = strcspn(at, " :");

		snprintf(item, sizeof(item), "%.*s", (int)length, at);
		at += length;
		if (strchr(item, '/') && !strchr(item, '$') && access(item, R_OK))
			doctor_find(DOCTOR_preload_missing,
			            "LD_PRELOAD names %s, which is not there or cannot be read", item);
		else if (length && !is_ours(item))
			doctor_find(DOCTOR_preload, "LD_PRELOAD has %s", item);
		ours = ours || is_ours(item);
		if (length && !is_ours(item))
			judge_other(patient, "LD_PRELOAD", item, !ours);
	}
	return ours;
}

/* These load after LD_PRELOAD. One precedes libspill.so only if the file names both. */
static void judge_preload_file(const struct doctor_patient *patient, bool ours_before)
{
	char text[PATH_MAX], *rest = text;

	if (!spill_small_file_read_in(patient->root, "/etc", "ld.so.preload", text, sizeof(text)))
		return;
	while (rest) {
		const char *item = strsep(&rest, " \t\n:");

		if (!*item)
			continue;
		doctor_find(is_ours(item) ? DOCTOR_preload_everywhere : DOCTOR_preload,
		            "/etc/ld.so.preload has %s", item);
		if (!is_ours(item))
			judge_other(patient, "/etc/ld.so.preload", item,
			            !ours_before && rest && strstr(rest, "libspill.so"));
	}
}

void doctor_look_at_environment(const struct doctor_patient *patient)
{
	judge_ggml();
	judge_visible();
	judge_mig();
	judge_exported();
	judge_mps(patient);
	judge_preload_file(patient, judge_preload(patient));
}
