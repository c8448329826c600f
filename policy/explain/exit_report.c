#include "oom_report.h"

#include "stderr_block.h"
#include "minmax.h"

/* "llama-server: ended (exit); 2.04 GiB spilled in 3 of 12 allocations, 1 out of memory" */
static void tell_end(struct spill_stderr_block *block, const struct spill_report_process *mortem,
                     const char *how)
{
	const struct spill_totals *totals = mortem->totals;

	spill_stderr_block_begin(block, "");
	spill_stderr_block_name(block, mortem->program, SPILL_STDERR_BLOCK_NAME);
	spill_stderr_block_put(block, ": ended (");
	spill_stderr_block_name(block, how, SPILL_STDERR_BLOCK_NAME);
	spill_stderr_block_put(block, "); ");
	if (totals->spills) {
		spill_stderr_block_size(block, spill_bytes_all(&totals->spilled));
		spill_stderr_block_put(block, " spilled in ");
		spill_stderr_block_spills(block, totals);
	} else {
		spill_stderr_block_put(block, totals->demotions ? "no allocation spilled, but some were moved"
		                                                : "nothing spilled");
	}
	spill_stderr_block_put(block, ", ");
	spill_stderr_block_number(block, totals->ooms);
	spill_stderr_block_put(block, " out of memory");
	spill_stderr_block_end(block);
}

static void put_moves(struct spill_stderr_block *block, const char *what, uint64_t bytes, uint64_t count)
{
	if (!count)
		return;
	spill_stderr_block_put(block, what);
	spill_stderr_block_size(block, bytes);
	spill_stderr_block_put(block, " in ");
	spill_stderr_block_number(block, count);
	spill_stderr_block_put(block, count == 1 ? " move" : " moves");
}

static void tell_where(struct spill_stderr_block *block, const struct spill_totals *totals)
{
	spill_stderr_block_begin(block, "  where: ");
	spill_stderr_block_sums(block, &totals->spilled);
	put_moves(block, "; moved to the host ", totals->demoted, totals->demotions);
	put_moves(block, ", moved back ", totals->promoted, totals->promotions);
	spill_stderr_block_end(block);
}

static void tell_why(struct spill_stderr_block *block, const struct spill_bytes_by_reason *why)
{
	if (!(why->oom | why->limit | why->rule))
		return;
	spill_stderr_block_begin(block, "  why: ");
	spill_stderr_block_parts(
	    block, (const struct spill_stderr_block_part[]){{"the device was full ", why->oom, ""},
	                                                    {"a limit ", why->limit, ""},
	                                                    {"a rule ", why->rule, ""}});
	spill_stderr_block_end(block);
}

/* What was off the device at once is no more than all that ever left it, and no more than was ever elsewhere. */
static void tell_avoided(struct spill_stderr_block *block, const struct spill_totals *totals)
{
	uint64_t left = spill_bytes_all(&totals->spilled) + totals->demoted;
	uint64_t elsewhere = totals->peak.host + totals->peak.managed;

	spill_stderr_block_begin(block, "  avoided by: at most ");
	spill_stderr_block_size(block, spill_min(left, elsewhere));
	spill_stderr_block_put(
	    block,
	    " less in use at once (a smaller context, batch or -ngl); spill report says it by device, caller "
	    "and rule");
	spill_stderr_block_end(block);
}

static void tell_bytes(struct spill_stderr_block *block, const char *what, const struct spill_bytes *bytes)
{
	spill_stderr_block_begin(block, what);
	spill_stderr_block_put(block, " device ");
	spill_stderr_block_number(block, bytes->device);
	spill_stderr_block_put(block, ", host ");
	spill_stderr_block_number(block, bytes->host);
	spill_stderr_block_put(block, ", managed ");
	spill_stderr_block_number(block, bytes->managed);
	spill_stderr_block_end(block);
}

static void tell_totals(struct spill_stderr_block *block, const struct spill_totals *totals)
{
	const struct {
		const char *name;
		uint64_t count;
	} counts[] = {{"allocs ", totals->allocs},           {", frees ", totals->frees},
	              {", spills ", totals->spills},         {", ooms ", totals->ooms},
	              {", demotions ", totals->demotions},   {", promotions ", totals->promotions},
	              {", demoted_bytes ", totals->demoted}, {", promoted_bytes ", totals->promoted}};

	spill_stderr_block_begin(block, "  ");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		spill_stderr_block_put(block, counts[i].name);
		spill_stderr_block_number(block, counts[i].count);
	}
	spill_stderr_block_end(block);
	tell_bytes(block, "  live bytes:", &totals->live);
	tell_bytes(block, "  peak bytes:", &totals->peak);
	tell_bytes(block, "  spilled bytes:", &totals->spilled);
}

size_t spill_exit_report(const struct spill_report_process *mortem, const char *how,
                         const struct spill_bytes_by_reason *why, char *buffer, size_t size)
{
	struct spill_stderr_block block = {.text = spill_text_begin(buffer, size)};
	const struct spill_totals *totals = mortem->totals;

	tell_end(&block, mortem, how);
	if (totals->spills || totals->demotions) {
		tell_where(&block, totals);
		tell_why(&block, why);
		tell_avoided(&block, totals);
	}
	tell_totals(&block, totals);
	spill_stderr_block_log(&block, mortem);
	return block.text.length;
}
