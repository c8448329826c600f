#include "stderr_block.h"

#include <string.h>

#define PATH 1024 /* bytes of a path that are shown */

void spill_block_begin(struct spill_block *block, const char *indent)
{
	block->line = block->text.length;
	spill_text_add(&block->text, "spill: ");
	spill_text_add(&block->text, indent);
}

void spill_block_end(struct spill_block *block)
{
	struct spill_text *text = &block->text;

	if (text->length < text->size - 1) {
		spill_text_add(text, "\n");
		return;
	}
	text->length = block->line;
	text->buffer[text->length] = '\0';
	block->cut = true;
}

/* Is the byte inside a character of UTF-8? */
static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xC0) == 0x80;
}

void spill_block_name(struct spill_block *block, const char *name, size_t most)
{
	size_t length = name ? strlen(name) : 0;

	if (!length) {
		spill_text_add(&block->text, "?");
		return;
	}
	if (length > most) {
		name += length - most;
		while (is_continuation(*name))
			name++;
		spill_text_add(&block->text, "…");
	}
	spill_text_plain(&block->text, name);
}

void spill_block_put(struct spill_block *block, const char *text)
{
	spill_text_add(&block->text, text);
}

void spill_block_number(struct spill_block *block, uint64_t number)
{
	spill_text_number(&block->text, number);
}

void spill_block_size(struct spill_block *block, uint64_t bytes)
{
	spill_text_size(&block->text, bytes);
}

void spill_block_parts(struct spill_block *block, const struct spill_block_part parts[3])
{
	const char *comma = "";

	for (unsigned i = 0; i < 3; i++) {
		if (!parts[i].bytes)
			continue;
		spill_block_put(block, comma);
		spill_block_put(block, parts[i].before);
		spill_block_size(block, parts[i].bytes);
		spill_block_put(block, parts[i].behind);
		comma = ", ";
	}
	if (!*comma)
		spill_block_put(block, "nothing");
}

void spill_block_sums(struct spill_block *block, const struct spill_bytes *sums)
{
	spill_block_parts(block, (const struct spill_block_part[]){{"", sums->device, " device"},
	                                                           {"", sums->host, " host"},
	                                                           {"", sums->managed, " managed"}});
}

void spill_block_spills(struct spill_block *block, const struct spill_totals *totals)
{
	spill_block_number(block, totals->spills);
	spill_block_put(block, " of ");
	spill_block_number(block, totals->allocs);
	spill_block_put(block, " allocations");
}

void spill_block_log(struct spill_block *block, const struct spill_report_process *process)
{
	spill_block_begin(block, "  ");
	if (process->log[0]) {
		spill_block_put(block, "log ");
		spill_block_name(block, process->log, PATH);
	} else {
		spill_block_put(block, "no log is written (log.path, log.level)");
	}
	spill_block_end(block);
}
