/*
 * spill top: the part of each device that is not libspill's: other programs, contexts, code. NVIDIA's
 * management library tells how much is free and who uses the card, AMD's driver in /sys how much is
 * used. Neither makes a context. Without them the part is not known.
 */
#include <stdio.h>
#include <string.h>

#include "card_use.h"
#include "minmax.h"
#include "small_file.h"
#include "top.h"

/* Bytes in use on the device by anyone. UINT64_MAX: not known. NVML's total counts more than CUDA's. */
static uint64_t used_of_nvidia(const struct spill_live_page_device *about)
{
	uint64_t free_bytes = cli_card_free(about->uuid);

	return free_bytes == UINT64_MAX ? free_bytes : spill_minus(about->bytes, free_bytes);
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

static bool is_ours(const struct cli_top_look *look, unsigned pid)
{
	for (size_t i = 0; i < look->count; i++) {
		if ((unsigned)look->processes[i].pid == pid)
			return true;
	}
	return false;
}

static void name_others(const struct cli_top_look *look, struct cli_top_card *card)
{
	struct cli_card_user users[CLI_CARD_USERS];
	unsigned count = cli_card_users(card->device->about.uuid, users, CLI_CARD_USERS);

	card->named = 0;
	for (unsigned i = 0; i < count && card->named < CLI_TOP_NAMED; i++) {
		if (!is_ours(look, users[i].pid))
			card->other[card->named++] = users[i];
	}
}

void cli_top_ask_others(struct cli_top_view *view, const struct cli_top_look *look, const char *sys)
{
	for (size_t i = 0; i < view->card_count; i++) {
		struct cli_top_card *card = &view->cards[i];
		const struct spill_live_page_device *about = &card->device->about;
		uint64_t used = about->bytes ? used_of_nvidia(about) : UINT64_MAX;

		if (used == UINT64_MAX && about->bytes)
			used = used_of_amd(about, sys);
		card->others = used == UINT64_MAX ? used : spill_minus(used, card->held);
		name_others(look, card);
	}
}
