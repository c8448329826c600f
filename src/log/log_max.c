#include "log_max.h"

#include <string.h>

#include "log.h"
#include "text.h"

void spill_log_max_begin(struct spill_log_max *max, uint64_t bytes)
{
	*max = (struct spill_log_max){.max = bytes, .room = bytes};
}

void spill_log_max_spend(struct spill_log_max *max, size_t length)
{
	max->room -= length < max->room ? length : max->room;
}

bool spill_log_max_fill(struct spill_log_max *max)
{
	bool first = !max->full;

	max->full = true;
	max->room = 0;
	return first;
}

size_t spill_log_max_note(const struct spill_log_max *max, char *text, size_t text_size, char *line,
                          size_t size)
{
	struct spill_text words = spill_text_begin(text, text_size);

	spill_text_add(&words, "the log has reached log.max (");
	spill_text_size(&words, max->max);
	spill_text_add(&words, "): from now on the log has only the sums of allocations, frees and moves");
	return spill_record_note(spill_log_now_us(), spill_log_tid(), "log-max", text, line, size);
}

static void raise_peak(uint64_t *most, uint64_t value)
{
	if (value > *most)
		*most = value;
}

void spill_log_max_count(struct spill_log_max *max, enum spill_drop kind, const struct spill_sum *sum,
                         const struct spill_totals *totals)
{
	struct spill_record_drop *dropped = &max->dropped;

	max->pending = true;
	dropped->sums[kind].count += sum->count;
	spill_bytes_add(&dropped->sums[kind].bytes, &sum->bytes);
	/* Threads may arrive in another order than they read the totals. */
	raise_peak(&dropped->peak.device, totals->peak.device);
	raise_peak(&dropped->peak.host, totals->peak.host);
	raise_peak(&dropped->peak.managed, totals->peak.managed);
	raise_peak(&dropped->away.peak, totals->away.peak);
	raise_peak(&dropped->away.wanted, totals->away.wanted);
	raise_peak(&dropped->away.moves_us, totals->away.moves_us);
	raise_peak(&dropped->away.in_place.followed, totals->away.in_place.followed);
	raise_peak(&dropped->away.in_place.bytes, totals->away.in_place.bytes);
	raise_peak(&dropped->away.in_place.us, totals->away.in_place.us);
	raise_peak(&dropped->away.in_place.most_us, totals->away.in_place.most_us);
}

size_t spill_log_max_line(struct spill_log_max *max, char *line, size_t size)
{
	max->dropped.time_us = spill_log_now_us();
	return spill_record_drop(&max->dropped, line, size);
}

void spill_log_max_told(struct spill_log_max *max)
{
	max->pending = false;
	memset(max->dropped.sums, 0,
	       sizeof(max->dropped.sums)); /* the peaks are of the whole run, so they stay */
}
