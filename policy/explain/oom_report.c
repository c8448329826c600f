#include "oom_report.h"

#include "oom_report.h"
#include "stderr_block.h"
#include "minmax.h"

#define ADVICE 640

/*
 * "llama-server: out of memory: 2.04 GiB of device 0 asked by libggml-cuda.so+0x1a2b (cudaMalloc)"
 */
static void put_what_line(struct spill_block *block, const struct spill_report_process *process,
                          const struct spill_record_oom *oom)
{
	spill_block_begin(block, "");
	spill_block_name(block, process->program, SPILL_BLOCK_NAME);
	spill_block_put(block, ": out of memory: ");
	spill_block_size(block, oom->bytes);
	if (oom->device >= 0) {
		spill_block_put(block, " of device ");
		spill_block_number(block, (uint64_t)oom->device);
	}
	spill_block_put(block, " asked by ");
	spill_block_name(block, oom->caller, SPILL_BLOCK_NAME);
	spill_block_put(block, " (");
	spill_block_name(block, oom->api, SPILL_BLOCK_NAME);
	spill_block_put(block, ")");
	spill_block_end(block);
}

/*
 * "spilled before: 2.04 GiB host in 3 of 12 allocations; moved to the host to make room: 1.00 GiB"
 */
static void put_spilled_line(struct spill_block *block, const struct spill_totals *totals)
{
	spill_block_begin(block, "  spilled before: ");
	if (totals->spills) {
		spill_block_sums(block, &totals->spilled);
		spill_block_put(block, ", in ");
		spill_block_spills(block, totals);
	} else {
		spill_block_put(block, totals->demotions ? "" : "nothing");
	}
	if (totals->demotions) {
		spill_block_put(block, totals->spills ? "; " : "");
		spill_block_size(block, totals->demoted);
		spill_block_put(block, " moved to the host to make room");
	}
	spill_block_end(block);
}

/* "this process holds 7.00 GiB device (1.00 GiB on other devices); by place: split 5.04 GiB in 2" */
static void put_held_line(struct spill_block *block, const struct spill_record_oom *oom)
{
	uint64_t elsewhere = spill_oom_elsewhere(oom);

	spill_block_begin(block, "  this process holds ");
	spill_block_sums(block, &oom->live);
	if (elsewhere) {
		spill_block_put(block, " (");
		spill_block_size(block, elsewhere);
		spill_block_put(block, " on other devices)");
	}
	for (unsigned i = 0; i < oom->places; i++) {
		const struct spill_group *place = &oom->by_place[i];

		spill_block_put(block, i ? ", " : "; by place: ");
		spill_block_name(block, place->name, SPILL_BLOCK_NAME);
		spill_block_put(block, " ");
		spill_block_size(block, spill_bytes_all(&place->held));
		spill_block_put(block, " in ");
		spill_block_number(block, place->count);
	}
	if (oom->callers)
		spill_block_put(block, "; by caller:");
	spill_block_end(block);
}

static void put_caller_line(struct spill_block *block, const struct spill_group *caller)
{
	spill_block_begin(block, "    ");
	spill_block_size(block, spill_bytes_all(&caller->held));
	spill_block_put(block, "  ");
	spill_block_name(block, caller->name, SPILL_BLOCK_NAME);
	spill_block_put(block, "  in ");
	spill_block_number(block, caller->count);
	spill_block_put(block, caller->count == 1 ? " allocation: " : " allocations: ");
	spill_block_sums(block, &caller->held);
	spill_block_end(block);
}

/* The bytes of all callers that have no line of their own. */
static void put_others_line(struct spill_block *block, const struct spill_record_oom *oom, unsigned told)
{
	uint64_t rest = spill_minus(spill_bytes_all(&oom->live), spill_oom_elsewhere(oom));

	for (unsigned i = 0; i < told; i++)
		rest = spill_minus(rest, spill_bytes_all(&oom->by_caller[i].held));
	if (!rest || !oom->callers)
		return;
	spill_block_begin(block, "    ");
	spill_block_size(block, rest);
	spill_block_put(block, "  others");
	spill_block_end(block);
}

/*
 * "device 0: 1.00 GiB free of 8.00 GiB; 5.00 GiB held by this process, 2.00 GiB by others, contexts
 * and code"
 */
static void put_device_line(struct spill_block *block, const struct spill_record_oom *oom)
{
	uint64_t used = spill_minus(oom->total, oom->free);

	if (!oom->total)
		return;
	spill_block_begin(block, "  device ");
	spill_block_number(block, oom->device >= 0 ? (uint64_t)oom->device : 0);
	spill_block_put(block, ": ");
	spill_block_size(block, oom->free);
	spill_block_put(block, " free of ");
	spill_block_size(block, oom->total);
	spill_block_put(block, "; ");
	spill_block_size(block, oom->ours);
	spill_block_put(block, " held by this process, ");
	spill_block_size(block, spill_minus(used, oom->ours));
	spill_block_put(block, " by others, contexts and code");
	spill_block_end(block);
}

/*
 * "refused by host.limit (rule default): 8.00 GiB allowed, 6.00 GiB in use, 3.00 GiB more asked"
 * "refused by host.reserve (rule default): 2.00 GiB to stay free of 2.50 GiB, 1.00 GiB asked"
 */
static void put_refused_line(struct spill_block *block, const struct spill_record_oom *oom)
{
	const struct spill_refusal *refusal = &oom->refusal;

	spill_block_begin(block, "  refused by ");
	spill_block_name(block, oom->refused_by, SPILL_BLOCK_NAME);
	spill_block_put(block, " (rule ");
	spill_block_name(block, oom->rule, SPILL_BLOCK_NAME);
	spill_block_put(block, ")");
	if (refusal->asked) {
		enum spill_refused_by by = spill_refused_by_of(oom->refused_by);
		bool reserve = by == SPILL_REFUSED_BY_HOST_RESERVE || by == SPILL_REFUSED_BY_DEVICE_RESERVE;

		spill_block_put(block, ": ");
		spill_block_size(block, refusal->limit);
		spill_block_put(block, reserve ? " to stay free of " : " allowed, ");
		spill_block_size(block, refusal->held);
		spill_block_put(block, reserve ? ", " : " in use, ");
		spill_block_size(block, refusal->asked);
		spill_block_put(block, reserve ? " asked" : " more asked");
	}
	spill_block_end(block);
}

static void put_tried_line(struct spill_block *block, const struct spill_record_oom *oom)
{
	if (!oom->attempts)
		return;
	spill_block_begin(block, "  tried ");
	for (unsigned i = 0; i < oom->attempts; i++) {
		spill_block_put(block, i ? ", " : "");
		spill_block_name(block, oom->tried[i].place, SPILL_BLOCK_NAME);
		spill_block_put(block, ": ");
		spill_block_name(block, oom->tried[i].error, SPILL_BLOCK_NAME);
	}
	spill_block_end(block);
}

static void put_help_line(struct spill_block *block, const struct spill_record_oom *oom)
{
	char advice[ADVICE];
	struct spill_text text = spill_text_begin(advice, sizeof(advice));

	spill_advice_oom(&text, oom);
	spill_block_begin(block, "  what would have helped: ");
	spill_block_name(block, advice, sizeof(advice));
	spill_block_end(block);
}

/* `callers`: how many callers get a line. */
static void write_report(struct spill_block *block, const struct spill_report_process *process,
                         const struct spill_record_oom *oom, unsigned callers)
{
	put_what_line(block, process, oom);
	put_spilled_line(block, process->totals);
	put_held_line(block, oom);
	for (unsigned i = 0; i < callers; i++)
		put_caller_line(block, &oom->by_caller[i]);
	put_others_line(block, oom, callers);
	put_device_line(block, oom);
	put_refused_line(block, oom);
	put_tried_line(block, oom);
	put_help_line(block, oom);
	spill_block_log(block, process);
}

size_t spill_oom_report(const struct spill_report_process *process, const struct spill_record_oom *oom,
                        char *buffer, size_t size)
{
	unsigned callers = oom->callers < SPILL_CALLERS ? oom->callers : SPILL_CALLERS;

	for (;; callers--) {
		struct spill_block block = {.text = spill_text_begin(buffer, size)};

		write_report(&block, process, oom, callers);
		if (!block.cut || !callers)
			return block.text.length;
	}
}
