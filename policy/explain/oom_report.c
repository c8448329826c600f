#include "oom_report.h"

#include <inttypes.h>

#include "stderr_block.h"
#include "minmax.h"

#define ADVICE 896

/*
 * "llama-server: out of memory: 2.04 GiB of device 0 asked by libggml-cuda.so+0x1a2b (cudaMalloc)"
 */
static void put_what_line(struct spill_block *block, const struct spill_report_process *process,
                          const struct spill_record_oom *oom)
{
	spill_block_begin(block);
	spill_block_put(block, "%s: out of memory: %s", spill_block_name(process->program).text,
	                spill_size(oom->bytes).text);
	if (oom->device >= 0)
		spill_block_put(block, " of device %u", (unsigned)oom->device);
	spill_block_put(block, " asked by %s (%s)",
	                spill_block_name(spill_who_asked(oom->caller, oom->requester)).text,
	                spill_block_name(oom->api).text);
	spill_block_end(block);
}

/*
 * "spilled before: up to 2.04 GiB was in host memory (…); moves held the program up for 0.30 s, …"
 * "  2.04 GiB host, in 3 of 12 allocations; 1.00 GiB moved to the host to make room"
 */
static void put_spilled_lines(struct spill_block *block, const struct spill_report_process *process)
{
	const struct spill_totals *totals = process->totals;

	if (!totals->away.peak) {
		spill_block_line(block, "  spilled before: nothing");
		return;
	}
	spill_block_begin(block);
	spill_block_put(block, "  spilled before: ");
	spill_block_story(block, process);
	spill_block_end(block);
	spill_block_begin(block);
	spill_block_put(block, "    ");
	if (totals->spills)
		spill_block_put(block, "%s, in %" PRIu64 " of %" PRIu64 " allocations",
		                spill_sums(&totals->spilled).text, totals->spills, totals->allocs);
	if (totals->demotions)
		spill_block_put(block, "%s%s moved to the host to make room", totals->spills ? "; " : "",
		                spill_size(totals->demoted).text);
	spill_block_end(block);
}

/* "this process holds 7.00 GiB device (1.00 GiB on other devices); by place: split 5.04 GiB in 2" */
static void put_held_line(struct spill_block *block, const struct spill_record_oom *oom)
{
	uint64_t elsewhere = spill_oom_elsewhere(oom);

	spill_block_begin(block);
	spill_block_put(block, "  this process holds %s", spill_sums(&oom->live).text);
	if (elsewhere)
		spill_block_put(block, " (%s on other devices)", spill_size(elsewhere).text);
	for (unsigned i = 0; i < oom->places; i++) {
		const struct spill_group *place = &oom->by_place[i];

		spill_block_put(block, "%s%s %s in %" PRIu64,
		                i ? ", " : "; by place: ", spill_block_name(place->name).text,
		                spill_size(spill_bytes_all(&place->held)).text, place->count);
	}
	if (oom->callers)
		spill_block_put(block, "; by caller:");
	spill_block_end(block);
}

static void put_caller_line(struct spill_block *block, const struct spill_group *caller)
{
	spill_block_line(block, "    %s  %s  in %" PRIu64 " allocation%s: %s",
	                 spill_size(spill_bytes_all(&caller->held)).text,
	                 spill_block_name(spill_who_asked(caller->name, caller->requester)).text,
	                 caller->count, caller->count == 1 ? "" : "s", spill_sums(&caller->held).text);
}

/* The bytes of all callers that have no line of their own. */
static void put_others_line(struct spill_block *block, const struct spill_record_oom *oom, unsigned told)
{
	uint64_t rest = spill_minus(spill_bytes_all(&oom->live), spill_oom_elsewhere(oom));

	for (unsigned i = 0; i < told; i++)
		rest = spill_minus(rest, spill_bytes_all(&oom->by_caller[i].held));
	if (rest && oom->callers)
		spill_block_line(block, "    %s  others", spill_size(rest).text);
}

static void put_device_line(struct spill_block *block, const struct spill_record_oom *oom)
{
	uint64_t used = spill_minus(oom->total, oom->free);

	if (oom->total)
		spill_block_line(block,
		                 "  device %u: %s free of %s; %s held by this process; "
		                 "%s " SPILL_HELD_BY_OTHERS,
		                 oom->device >= 0 ? (unsigned)oom->device : 0, spill_size(oom->free).text,
		                 spill_size(oom->total).text, spill_size(oom->ours).text,
		                 spill_size(spill_minus(used, oom->ours)).text);
}

void spill_oom_refused(struct spill_text *text, const struct spill_record_oom *oom)
{
	const struct spill_refusal *refusal = &oom->refusal;
	enum spill_refused_by by = spill_refused_by_of(oom->refused_by);
	bool reserve = by == SPILL_REFUSED_BY_HOST_RESERVE || by == SPILL_REFUSED_BY_DEVICE_RESERVE;

	spill_text_format(text, "%s (rule %s)", spill_block_name(oom->refused_by).text,
	                  spill_block_name(oom->rule).text);
	if (refusal->asked)
		spill_text_format(text,
		                  reserve ? ": %s to stay free of %s, %s asked"
		                          : ": %s allowed, %s in use, %s more asked",
		                  spill_size(refusal->limit).text, spill_size(refusal->held).text,
		                  spill_size(refusal->asked).text);
}

static void put_refused_line(struct spill_block *block, const struct spill_record_oom *oom)
{
	spill_block_begin(block);
	spill_block_put(block, "  refused by ");
	spill_oom_refused(&block->text, oom);
	spill_block_end(block);
}

static void put_tried_line(struct spill_block *block, const struct spill_record_oom *oom)
{
	if (!oom->attempts)
		return;
	spill_block_begin(block);
	for (unsigned i = 0; i < oom->attempts; i++)
		spill_block_put(block, "%s%s: %s", i ? ", " : "  tried ",
		                spill_block_name(oom->tried[i].place).text,
		                spill_block_name(oom->tried[i].error).text);
	spill_block_end(block);
}

static void put_help_line(struct spill_block *block, const struct spill_report_process *process,
                          const struct spill_record_oom *oom)
{
	char advice[ADVICE];
	struct spill_text text = spill_text_begin(advice, sizeof(advice));

	spill_advice_oom(&text, oom, process->program, process->problem);
	spill_block_begin(block);
	spill_block_put(block, "  what would have helped: ");
	spill_text_plain(&block->text, advice);
	spill_block_end(block);
}

/* `callers`: how many callers get a line. */
static void write_report(struct spill_block *block, const struct spill_report_process *process,
                         const struct spill_record_oom *oom, unsigned callers)
{
	put_what_line(block, process, oom);
	put_spilled_lines(block, process);
	put_held_line(block, oom);
	for (unsigned i = 0; i < callers; i++)
		put_caller_line(block, &oom->by_caller[i]);
	put_others_line(block, oom, callers);
	put_device_line(block, oom);
	put_refused_line(block, oom);
	put_tried_line(block, oom);
	put_help_line(block, process, oom);
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
