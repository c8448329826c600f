#include "log_max.h"

#include <string.h>

#include "log.h"
#include "text.h"

void spill_log_max_begin(struct spill_logmax *max, uint64_t bytes)
{
	*max = (struct spill_logmax){.max = bytes, .room = bytes};
}

void spill_log_max_spend(struct spill_logmax *max, size_t length)
{
	max->room -= length < max->room ? length : max->room;
}

bool spill_log_max_fill(struct spill_logmax *max)
{
	bool first = !max->full;

	max->full = true;
	max->room = 0;
	return first;
}

size_t spill_log_max_note(const struct spill_logmax *max, char *text, size_t text_size, char *line,
                          size_t size)
{
	struct spill_text words = spill_text_begin(text, text_size);

	spill_text_add(&words, "the log has reached log.max (");
	spill_text_size(&words, max->max);
	spill_text_add(&words,
	               "): from here on allocations, frees and moves are not written, only their sums are");
	return spill_record_note(spill_log_now_us(), spill_log_tid(), "log-max", text, line, size);
}

static void raise(uint64_t *most, uint64_t value)
{
	if (value > *most)
		*most = value;
}

void spill_log_max_count(struct spill_logmax *max, enum spill_drop kind, const struct spill_bytes *bytes,
                         const struct spill_bytes *peak)
{
	struct spill_record_drop *dropped = &max->dropped;

	max->pending = true;
	dropped->sums[kind].count++;
	spill_bytes_add(&dropped->sums[kind].bytes, bytes);
	/* Threads that count need not come in the order in which they looked. */
	raise(&dropped->peak.device, peak->device);
	raise(&dropped->peak.host, peak->host);
	raise(&dropped->peak.managed, peak->managed);
}

size_t spill_log_max_line(struct spill_logmax *max, char *line, size_t size)
{
	max->dropped.time_us = spill_log_now_us();
	return spill_record_drop(&max->dropped, line, size);
}

void spill_log_max_told(struct spill_logmax *max)
{
	max->pending = false;
	memset(max->dropped.sums, 0, sizeof(max->dropped.sums)); /* the peak is of all the run */
}
