#include "oom_report.h"

#include <inttypes.h>

#include "stderr_block.h"
#include "words.h"

/* "llama-server: ended (exit); up to 2.04 GiB was in host memory (…); 1 refused as …" */
static void put_end_line(struct spill_block *block, const struct spill_report_process *process,
                         const char *how)
{
	const struct spill_totals *totals = process->totals;

	spill_block_begin(block);
	spill_block_put(block, "%s: ended (%s); ", spill_block_name(process->program).text,
	                spill_block_name(how).text);
	spill_block_story(block, process);
	if (totals->ooms)
		spill_block_put(block,
		                "; %" PRIu64 " refused as out of memory, with those of oom.honest_first, "
		                "which are asked again",
		                totals->ooms);
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
	spill_block_put(block, "  placed off the card: %s in %" PRIu64 " of %" PRIu64 " allocations",
	                spill_sums(&totals->spilled).text, totals->spills, totals->allocs);
	put_moves(block, "; moved to the host", totals->demoted, totals->demotions);
	put_moves(block, ", moved back", totals->promoted, totals->promotions);
	spill_block_end(block);
}

static void put_why_line(struct spill_block *block, const struct spill_bytes_by_reason *why)
{
	const struct {
		enum spill_reason reason;
		uint64_t bytes;
	} parts[] = {
	    {SPILL_REASON_OOM, why->oom}, {SPILL_REASON_LIMIT, why->limit}, {SPILL_REASON_RULE, why->rule}};
	const char *before = "  why: ";

	if (!(why->oom | why->limit | why->rule))
		return;
	spill_block_begin(block);
	for (unsigned i = 0; i < 3; i++) {
		if (!parts[i].bytes)
			continue;
		spill_block_put(block, "%s%s %s", before, spill_size(parts[i].bytes).text,
		                spill_reason_words(spill_reason_name(parts[i].reason)));
		before = ", ";
	}
	spill_block_end(block);
}

static void put_fit_line(struct spill_block *block, const struct spill_report_process *process)
{
	spill_block_begin(block);
	spill_block_put(block, "  to fit: at most %s less in use at once (",
	                spill_size(process->totals->away.peak).text);
	spill_advice_smaller(&block->text, process->program);
	spill_block_put(block, "); spill report has it by device, caller and rule");
	spill_block_end(block);
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
	spill_block_line(block, "  away: peak_bytes %" PRIu64 ", wanted_bytes %" PRIu64 ", moves_us %" PRIu64,
	                 totals->away.peak, totals->away.wanted, totals->away.moves_us);
	if (totals->away.in_place.followed)
		spill_block_line(block,
		                 "  in place: followed_bytes %" PRIu64 ", in_place_bytes %" PRIu64
		                 ", in_place_us %" PRIu64 ", in_place_most_us %" PRIu64,
		                 totals->away.in_place.followed, totals->away.in_place.bytes,
		                 totals->away.in_place.us, totals->away.in_place.most_us);
}

size_t spill_end_line(const struct spill_report_process *process, char *buffer, size_t size)
{
	struct spill_block block = {.text = spill_text_begin(buffer, size)};

	if (!process->totals->away.peak)
		return 0;
	spill_block_begin(&block);
	spill_block_put(&block, "%s: ", spill_block_name(process->program).text);
	spill_block_story(&block, process);
	if (process->log[0]) {
		spill_block_put(&block, "; log ");
		spill_block_path(&block, process->log);
	}
	spill_block_end(&block);
	return block.text.length;
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
		put_fit_line(&block, process);
	}
	put_totals_line(&block, totals);
	spill_block_log(&block, process);
	return block.text.length;
}
