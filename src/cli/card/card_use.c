#include "card_use.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/nvml.h"
#include "minmax.h"
#include "small_file.h"
#include "text.h"

static struct {
	bool asked, works;
	nvmlReturn_t (*find)(const char *uuid, nvmlDevice_t *device);
	nvmlReturn_t (*memory)(nvmlDevice_t device, nvmlMemory_t *memory);
	/* For computing and for graphics. NULL: the library is older. */
	nvmlReturn_t (*users[2])(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes);
} nvml;

static bool start_nvml(void)
{
	nvmlReturn_t (*start)(void);

	if (nvml.asked)
		return nvml.works;
	nvml.asked = true;
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
	*(void **)&start = dlsym(library, "nvmlInit_v2");
	*(void **)&nvml.find = dlsym(library, "nvmlDeviceGetHandleByUUID");
	*(void **)&nvml.memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
	*(void **)&nvml.users[0] = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	*(void **)&nvml.users[1] = dlsym(library, "nvmlDeviceGetGraphicsRunningProcesses_v3");
	nvml.works = start && nvml.find && nvml.memory && start() == NVML_SUCCESS;
	return nvml.works;
}

static bool find_card(const char *uuid, nvmlDevice_t *card)
{
	return strncmp(uuid, "GPU-", 4) == 0 && start_nvml() && nvml.find(uuid, card) == NVML_SUCCESS;
}

uint64_t cli_card_free(const char *uuid)
{
	nvmlMemory_t memory;
	nvmlDevice_t card;

	if (!find_card(uuid, &card) || nvml.memory(card, &memory) != NVML_SUCCESS)
		return UINT64_MAX;
	return memory.free;
}

/*
 * NVML tells numbers of the machine's own PID namespace, so a container's /proc would name another
 * process. That namespace's inode is fixed (include/linux/proc_ns.h, PROC_PID_INIT_INO).
 */
static bool sees_the_machines_processes(void)
{
	char own[32] = "";

	return readlink("/proc/self/ns/pid", own, sizeof(own) - 1) > 0 && !strcmp(own, "pid:[4026531836]");
}

static void read_name(struct cli_card_user *user)
{
	char folder[32];

	snprintf(folder, sizeof(folder), "/proc/%u", user->pid);
	if (!spill_small_file_read_in("", folder, "comm", user->name, sizeof(user->name)))
		user->name[0] = '\0';
	user->name[strcspn(user->name, "\n")] = '\0';
}

static int more_first(const void *left, const void *right)
{
	const struct cli_card_user *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes == UINT64_MAX || (b->bytes != UINT64_MAX && a->bytes < b->bytes) ? 1 : -1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* A process may compute and draw: NVML then names it in both lists, with the same bytes. */
static bool is_new(const struct cli_card_user *users, unsigned count, unsigned pid)
{
	for (unsigned i = 0; i < count; i++) {
		if (users[i].pid == pid)
			return false;
	}
	return true;
}

unsigned cli_card_users(const char *uuid, struct cli_card_user *users, unsigned room)
{
	struct cli_card_user found[2 * CLI_CARD_USERS];
	unsigned count = 0;
	nvmlDevice_t card;

	if (!find_card(uuid, &card))
		return 0;
	for (unsigned kind = 0; kind < 2; kind++) {
		nvmlProcessInfo_t processes[CLI_CARD_USERS];
		unsigned listed = CLI_CARD_USERS;
		if (!nvml.users[kind] || nvml.users[kind](card, &listed, processes) != NVML_SUCCESS)
			continue;
		for (unsigned i = 0; i < spill_min(listed, CLI_CARD_USERS); i++) {
			if (is_new(found, count, processes[i].pid))
				found[count++] =
				    (struct cli_card_user){processes[i].pid, processes[i].usedGpuMemory, ""};
		}
	}
	qsort(found, count, sizeof(found[0]), more_first);
	count = (unsigned)spill_min(count, room);
	bool named = sees_the_machines_processes();
	for (unsigned i = 0; named && i < count; i++)
		read_name(&found[i]);
	memcpy(users, found, count * sizeof(found[0]));
	return count;
}

const char *cli_card_user_text(const struct cli_card_user *user, char text[CLI_CARD_USER_TEXT])
{
	struct spill_text to = spill_text_begin(text, CLI_CARD_USER_TEXT);

	spill_text_format(&to, user->name[0] ? "%s (pid %u)" : "%spid %u", user->name, user->pid);
	if (user->bytes != UINT64_MAX)
		spill_text_format(&to, " %s", spill_size(user->bytes).text);
	return text;
}
