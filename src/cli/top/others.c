/*
 * spill top: the part of each device that is not libspill's: other programs, contexts, code. NVIDIA's
 * management library tells how much is free, AMD's driver in /sys how much is used. Neither makes a
 * context. Without them the part is not known.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "abi/nvml.h"
#include "minmax.h"
#include "small_file.h"
#include "top.h"

static struct {
	bool asked, works;
	nvmlReturn_t (*find)(const char *uuid, nvmlDevice_t *device);
	nvmlReturn_t (*memory)(nvmlDevice_t device, nvmlMemory_t *memory);
} nvml;

/* Once, and for good: the library stays loaded. */
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
	nvml.works = start && nvml.find && nvml.memory && start() == NVML_SUCCESS;
	return nvml.works;
}

/* Bytes in use on the device by anyone. UINT64_MAX: not known. NVML's total counts more than CUDA's. */
static uint64_t used_of_nvidia(const struct spill_live_page_device *about)
{
	nvmlMemory_t memory;
	nvmlDevice_t device;

	if (strncmp(about->uuid, "GPU-", 4) != 0 || !start_nvml() ||
	    nvml.find(about->uuid, &device) != NVML_SUCCESS || nvml.memory(device, &memory) != NVML_SUCCESS)
		return UINT64_MAX;
	return spill_minus(about->bytes, memory.free);
}

static uint64_t used_of_amd(const struct spill_live_page_device *about, const char *sys)
{
	char folder[128], text[4096];

	if (!about->pci[0] || strchr(about->pci, '/'))
		return UINT64_MAX;
	snprintf(folder, sizeof(folder), "/bus/pci/devices/%s", about->pci);
	if (!spill_small_file_read_in(sys, folder, "mem_info_vram_used", text, sizeof(text)))
		return UINT64_MAX;
	return spill_small_file_number(text);
}

void cli_top_ask_others(struct cli_top_view *view, const char *sys)
{
	for (size_t i = 0; i < view->card_count; i++) {
		struct cli_top_card *card = &view->cards[i];
		const struct spill_live_page_device *about = &card->device->about;
		uint64_t used = about->bytes ? used_of_nvidia(about) : UINT64_MAX;

		if (used == UINT64_MAX && about->bytes)
			used = used_of_amd(about, sys);
		card->others = used == UINT64_MAX ? used : spill_minus(used, card->held);
	}
}
