#include "oom_report.h"

#include <string.h>

#include "oom_report.h"
#include "stderr_block.h"
#include "minmax.h"

#define ADVICE 640

/* "llama-server: out of memory: 2.04 GiB of device 0 asked by libggml-cuda.so+0x1a2b (cudaMalloc)" */
static void tell_what(struct spill_stderr_block *block, const struct spill_report_process *mortem,
                      const struct spill_record_oom *oom)
{
	spill_stderr_block_begin(block, "");
	spill_stderr_block_name(block, mortem->program, SPILL_STDERR_BLOCK_NAME);
	spill_stderr_block_put(block, ": out of memory: ");
	spill_stderr_block_size(block, oom->bytes);
	if (oom->device >= 0) {
		spill_stderr_block_put(block, " of device ");
		spill_stderr_block_number(block, (uint64_t)oom->device);
	}
	spill_stderr_block_put(block, " asked by ");
	spill_stderr_block_name(block, oom->caller, SPILL_STDERR_BLOCK_NAME);
	spill_stderr_block_put(block, " (");
	spill_stderr_block_name(block, oom->api, SPILL_STDERR_BLOCK_NAME);
	spill_stderr_block_put(block, ")");
	spill_stderr_block_end(block);
}

/* "spilled before: 2.04 GiB host in 3 of 12 allocations; moved to the host to make room: 1.00 GiB" */
static void tell_spilled(struct spill_stderr_block *block, const struct spill_totals *totals)
{
	spill_stderr_block_begin(block, "  spilled before: ");
	if (totals->spills) {
		spill_stderr_block_sums(block, &totals->spilled);
		spill_stderr_block_put(block, ", in ");
		spill_stderr_block_spills(block, totals);
	} else {
		spill_stderr_block_put(block, totals->demotions ? "" : "nothing");
	}
	if (totals->demotions) {
		spill_stderr_block_put(block, totals->spills ? "; " : "");
		spill_stderr_block_size(block, totals->demoted);
		spill_stderr_block_put(block, " moved to the host to make room");
	}
	spill_stderr_block_end(block);
}

/* "this process holds 7.00 GiB device, 2.04 GiB host (1.00 GiB on other devices); by place: split 5.04 GiB in 2, device 4.00 GiB in 12; by caller:" */
static void tell_held(struct spill_stderr_block *block, const struct spill_record_oom *oom)
{
	uint64_t elsewhere = spill_oom_elsewhere(oom);

	spill_stderr_block_begin(block, "  this process holds ");
	spill_stderr_block_sums(block, &oom->live);
	if (elsewhere) {
		spill_stderr_block_put(block, " (");
		spill_stderr_block_size(block, elsewhere);
		spill_stderr_block_put(block, " on other devices)");
	}
	for (unsigned i = 0; i < oom->places; i++) {
		const struct spill_group *place = &oom->by_place[i];

		spill_stderr_block_put(block, i ? ", " : "; by place: ");
		spill_stderr_block_name(block, place->name, SPILL_STDERR_BLOCK_NAME);
		spill_stderr_block_put(block, " ");
		spill_stderr_block_size(block, spill_bytes_all(&place->held));
		spill_stderr_block_put(block, " in ");
		spill_stderr_block_number(block, place->count);
	}
	if (oom->callers)
		spill_stderr_block_put(block, "; by caller:");
	spill_stderr_block_end(block);
}

static void tell_caller(struct spill_stderr_block *block, const struct spill_group *caller)
{
	spill_stderr_block_begin(block, "    ");
	spill_stderr_block_size(block, spill_bytes_all(&caller->held));
	spill_stderr_block_put(block, "  ");
	spill_stderr_block_name(block, caller->name, SPILL_STDERR_BLOCK_NAME);
	spill_stderr_block_put(block, "  in ");
	spill_stderr_block_number(block, caller->count);
	spill_stderr_block_put(block, caller->count == 1 ? " allocation: " : " allocations: ");
	spill_stderr_block_sums(block, &caller->held);
	spill_stderr_block_end(block);
}

/* What is held by those that are not named, either because there are more or because there was no room. */
static void tell_others(struct spill_stderr_block *block, const struct spill_record_oom *oom, unsigned told)
{
	uint64_t rest = spill_minus(spill_bytes_all(&oom->live), spill_oom_elsewhere(oom));

	for (unsigned i = 0; i < told; i++)
		rest = spill_minus(rest, spill_bytes_all(&oom->by_caller[i].held));
	if (!rest || !oom->callers)
		return;
	spill_stderr_block_begin(block, "    ");
	spill_stderr_block_size(block, rest);
	spill_stderr_block_put(block, "  others");
	spill_stderr_block_end(block);
}

/* "device 0: 1.00 GiB free of 8.00 GiB; 5.00 GiB held by this process, 2.00 GiB by others, contexts and code" */
static void tell_device(struct spill_stderr_block *block, const struct spill_record_oom *oom)
{
	uint64_t used = spill_minus(oom->total, oom->free);

	if (!oom->total)
		return;
	spill_stderr_block_begin(block, "  device ");
	spill_stderr_block_number(block, oom->device >= 0 ? (uint64_t)oom->device : 0);
	spill_stderr_block_put(block, ": ");
	spill_stderr_block_size(block, oom->free);
	spill_stderr_block_put(block, " free of ");
	spill_stderr_block_size(block, oom->total);
	spill_stderr_block_put(block, "; ");
	spill_stderr_block_size(block, oom->ours);
	spill_stderr_block_put(block, " held by this process, ");
	spill_stderr_block_size(block, spill_minus(used, oom->ours));
	spill_stderr_block_put(block, " by others, contexts and code");
	spill_stderr_block_end(block);
}

/*
 * "refused by host.limit (rule default): 8.00 GiB allowed, 6.00 GiB in use, 3.00 GiB more asked"; "… host.reserve …: 2.00 GiB to
 * stay free of 2.50 GiB, 1.00 GiB asked"
 */
static void tell_refused(struct spill_stderr_block *block, const struct spill_record_oom *oom)
{
	const struct spill_refusal *refusal = &oom->refusal;

	spill_stderr_block_begin(block, "  refused by ");
	spill_stderr_block_name(block, oom->refused_by, SPILL_STDERR_BLOCK_NAME);
	spill_stderr_block_put(block, " (rule ");
	spill_stderr_block_name(block, oom->rule, SPILL_STDERR_BLOCK_NAME);
	spill_stderr_block_put(block, ")");
	if (refusal->asked) {
		const char *by = oom->refused_by ? oom->refused_by : "";
		bool reserve = strcmp(by, "host.reserve") == 0 || strcmp(by, "device.reserve") == 0;

		spill_stderr_block_put(block, ": ");
		spill_stderr_block_size(block, refusal->limit);
		spill_stderr_block_put(block, reserve ? " to stay free of " : " allowed, ");
		spill_stderr_block_size(block, refusal->held);
		spill_stderr_block_put(block, reserve ? ", " : " in use, ");
		spill_stderr_block_size(block, refusal->asked);
		spill_stderr_block_put(block, reserve ? " asked" : " more asked");
	}
	spill_stderr_block_end(block);
}

static void tell_tried(struct spill_stderr_block *block, const struct spill_record_oom *oom)
{
	if (!oom->attempts)
		return;
	spill_stderr_block_begin(block, "  tried ");
	for (unsigned i = 0; i < oom->attempts; i++) {
		spill_stderr_block_put(block, i ? ", " : "");
		spill_stderr_block_name(block, oom->tried[i].place, SPILL_STDERR_BLOCK_NAME);
		spill_stderr_block_put(block, ": ");
		spill_stderr_block_name(block, oom->tried[i].error, SPILL_STDERR_BLOCK_NAME);
	}
	spill_stderr_block_end(block);
}

static void tell_help(struct spill_stderr_block *block, const struct spill_record_oom *oom)
{
	char advice[ADVICE];
	struct spill_text text = spill_text_begin(advice, sizeof(advice));

	spill_advice_oom(&text, oom);
	spill_stderr_block_begin(block, "  what would have helped: ");
	spill_stderr_block_name(block, advice, sizeof(advice));
	spill_stderr_block_end(block);
}

/* With so many of the callers at most. */
static void compose(struct spill_stderr_block *block, const struct spill_report_process *mortem,
                    const struct spill_record_oom *oom, unsigned callers)
{
	tell_what(block, mortem, oom);
	tell_spilled(block, mortem->totals);
	tell_held(block, oom);
	for (unsigned i = 0; i < callers; i++)
		tell_caller(block, &oom->by_caller[i]);
	tell_others(block, oom, callers);
	tell_device(block, oom);
	tell_refused(block, oom);
	tell_tried(block, oom);
	tell_help(block, oom);
	spill_stderr_block_log(block, mortem);
}

size_t spill_oom_report(const struct spill_report_process *mortem, const struct spill_record_oom *oom,
                        char *buffer, size_t size)
{
	unsigned callers = oom->callers < SPILL_CALLERS ? oom->callers : SPILL_CALLERS;

	for (;; callers--) {
		struct spill_stderr_block block = {.text = spill_text_begin(buffer, size)};

		compose(&block, mortem, oom, callers);
		if (!block.cut || !callers)
			return block.text.length;
	}
}
