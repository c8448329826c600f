#include "oom_report.h"

#include "stderr_block.h"
#include "minmax.h"

/* "llama-server: ended (exit); 2.04 GiB spilled in 3 of 12 allocations, 1 out of memory" */
static void put_end_line(struct spill_block *block, const struct spill_report_process *process,
                         const char *how)
{
	const struct spill_totals *totals = process->totals;

	spill_block_begin(block, "");
	spill_block_name(block, process->program, SPILL_BLOCK_NAME);
	spill_block_put(block, ": ended (");
	spill_block_name(block, how, SPILL_BLOCK_NAME);
	spill_block_put(block, "); ");
	if (totals->spills) {
		spill_block_size(block, spill_bytes_all(&totals->spilled));
		spill_block_put(block, " spilled in ");
		spill_block_spills(block, totals);
	} else {
		spill_block_put(block, totals->demotions ? "no allocation spilled, but some were moved"
		                                         : "nothing spilled");
	}
	spill_block_put(block, ", ");
	spill_block_number(block, totals->ooms);
	spill_block_put(block, " out of memory");
	spill_block_end(block);
}

static void put_moves(struct spill_block *block, const char *what, uint64_t bytes, uint64_t count)
{
	if (!count)
		return;
	spill_block_put(block, what);
	spill_block_size(block, bytes);
	spill_block_put(block, " in ");
	spill_block_number(block, count);
	spill_block_put(block, count == 1 ? " move" : " moves");
}

static void put_where_line(struct spill_block *block, const struct spill_totals *totals)
{
	spill_block_begin(block, "  where: ");
	spill_block_sums(block, &totals->spilled);
	put_moves(block, "; moved to the host ", totals->demoted, totals->demotions);
	put_moves(block, ", moved back ", totals->promoted, totals->promotions);
	spill_block_end(block);
}

static void put_why_line(struct spill_block *block, const struct spill_bytes_by_reason *why)
{
	if (!(why->oom | why->limit | why->rule))
		return;
	spill_block_begin(block, "  why: ");
	spill_block_parts(block, (const struct spill_block_part[]){{"the device was full ", why->oom, ""},
	                                                           {"a limit ", why->limit, ""},
	                                                           {"a rule ", why->rule, ""}});
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

	spill_block_begin(block, "  avoided by: at most ");
	spill_block_size(block, spill_min(left, elsewhere));
	spill_block_put(
	    block,
	    " less in use at once (a smaller context, batch or -ngl); spill report has it by device, caller "
	    "and rule");
	spill_block_end(block);
}

static void put_bytes_line(struct spill_block *block, const char *what, const struct spill_bytes *bytes)
{
	spill_block_begin(block, what);
	spill_block_put(block, " device ");
	spill_block_number(block, bytes->device);
	spill_block_put(block, ", host ");
	spill_block_number(block, bytes->host);
	spill_block_put(block, ", managed ");
	spill_block_number(block, bytes->managed);
	spill_block_end(block);
}

static void put_totals_line(struct spill_block *block, const struct spill_totals *totals)
{
	const struct {
		const char *name;
		uint64_t count;
	} counts[] = {{"allocs ", totals->allocs},           {", frees ", totals->frees},
	              {", spills ", totals->spills},         {", ooms ", totals->ooms},
	              {", demotions ", totals->demotions},   {", promotions ", totals->promotions},
	              {", demoted_bytes ", totals->demoted}, {", promoted_bytes ", totals->promoted}};

	spill_block_begin(block, "  ");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		spill_block_put(block, counts[i].name);
		spill_block_number(block, counts[i].count);
	}
	spill_block_end(block);
	put_bytes_line(block, "  live bytes:", &totals->live);
	put_bytes_line(block, "  peak bytes:", &totals->peak);
	put_bytes_line(block, "  spilled bytes:", &totals->spilled);
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
