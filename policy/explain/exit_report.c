#include "oom_report.h"

#include <inttypes.h>

#include "stderr_block.h"
#include "minmax.h"

/* "llama-server: ended (exit); 2.04 GiB spilled in 3 of 12 allocations, 1 out of memory" */
static void put_end_line(struct spill_block *block, const struct spill_report_process *process,
                         const char *how)
{
	const struct spill_totals *totals = process->totals;

	spill_block_begin(block);
	spill_block_put(block, "%s: ended (%s); ", spill_block_name(process->program).text,
	                spill_block_name(how).text);
	if (totals->spills)
		spill_block_put(block, "%s spilled in %" PRIu64 " of %" PRIu64 " allocations",
		                spill_size(spill_bytes_all(&totals->spilled)).text, totals->spills,
		                totals->allocs);
	else
		spill_block_put(block, totals->demotions ? "no allocation spilled, but some were moved"
		                                         : "nothing spilled");
	spill_block_put(block, ", %" PRIu64 " out of memory", totals->ooms);
	spill_block_end(block);
}

static void put_moves(struct spill_block *block, const char *what, uint64_t bytes, uint64_t count)
{
	if (count)
		spill_block_put(block, "%s %s in %" PRIu64 " move%s", what, spill_size(bytes).text, count,
		                count == 1 ? "" : "s");
}

static void put_where_line(struct spill_block *block, const struct spill_totals *totals)
{
	spill_block_begin(block);
	spill_block_put(block, "  where: %s", spill_sums(&totals->spilled).text);
	put_moves(block, "; moved to the host", totals->demoted, totals->demotions);
	put_moves(block, ", moved back", totals->promoted, totals->promotions);
	spill_block_end(block);
}

static void put_why_line(struct spill_block *block, const struct spill_bytes_by_reason *why)
{
	const struct {
		const char *reason;
		uint64_t bytes;
	} parts[] = {{"the device was full", why->oom}, {"a limit", why->limit}, {"a rule", why->rule}};
	const char *before = "  why: ";

	if (!(why->oom | why->limit | why->rule))
		return;
	spill_block_begin(block);
	for (unsigned i = 0; i < 3; i++) {
		if (!parts[i].bytes)
			continue;
		spill_block_put(block, "%s%s %s", before, parts[i].reason, spill_size(parts[i].bytes).text);
		before = ", ";
	}
	spill_block_end(block);
}

/*
 * Bytes off the device at one time: at most all that ever left it, and at most the peak of host and
 * managed memory.
 */
static void put_avoided_line(struct spill_block *block, const struct spill_totals *totals)
{
	uint64_t left = spill_bytes_all(&totals->spilled) + totals->demoted;
	uint64_t elsewhere = totals->peak.host + totals->peak.managed;

	spill_block_line(block,
	                 "  avoided by: at most %s less in use at once (a smaller context, batch or -ngl); "
	                 "spill report has it by device, caller and rule",
	                 spill_size(spill_min(left, elsewhere)).text);
}

static void put_bytes_line(struct spill_block *block, const char *what, const struct spill_bytes *bytes)
{
	spill_block_line(block, "  %s bytes: device %" PRIu64 ", host %" PRIu64 ", managed %" PRIu64, what,
	                 bytes->device, bytes->host, bytes->managed);
}

static void put_totals_line(struct spill_block *block, const struct spill_totals *totals)
{
	spill_block_line(block,
	                 "  allocs %" PRIu64 ", frees %" PRIu64 ", spills %" PRIu64 ", ooms %" PRIu64
	                 ", demotions %" PRIu64 ", promotions %" PRIu64 ", demoted_bytes %" PRIu64
	                 ", promoted_bytes %" PRIu64,
	                 totals->allocs, totals->frees, totals->spills, totals->ooms, totals->demotions,
	                 totals->promotions, totals->demoted, totals->promoted);
	put_bytes_line(block, "live", &totals->live);
	put_bytes_line(block, "peak", &totals->peak);
	put_bytes_line(block, "spilled", &totals->spilled);
}

size_t spill_exit_report(const struct spill_report_process *process, const char *how,
                         const struct spill_bytes_by_reason *why, char *buffer, size_t size)
{
	struct spill_block block = {.text = spill_text_begin(buffer, size)};
	const struct spill_totals *totals = process->totals;

	put_end_line(&block, process, how);
	if (totals->spills || totals->demotions) {
		put_where_line(&block, totals);
		put_why_line(&block, why);
		put_avoided_line(&block, totals);
	}
	put_totals_line(&block, totals);
	spill_block_log(&block, process);
	return block.text.length;
}
