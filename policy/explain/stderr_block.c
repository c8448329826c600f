#include "stderr_block.h"

#include <string.h>

#define PATH 1024 /* the most of a path that is shown */

void spill_stderr_block_begin(struct spill_stderr_block *block, const char *indent)
{
	block->line = block->text.length;
	spill_text_add(&block->text, "spill: ");
	spill_text_add(&block->text, indent);
}

void spill_stderr_block_end(struct spill_stderr_block *block)
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

static bool continues(char byte)
{
	return ((unsigned char)byte & 0xC0) == 0x80; /* of a character of UTF-8 */
}

void spill_stderr_block_name(struct spill_stderr_block *block, const char *name, size_t most)
{
	size_t length = name ? strlen(name) : 0;

	if (!length) {
		spill_text_add(&block->text, "?");
		return;
	}
	if (length > most) {
		name += length - most;
		while (continues(*name))
			name++;
		spill_text_add(&block->text, "…");
	}
	spill_text_plain(&block->text, name);
}

void spill_stderr_block_put(struct spill_stderr_block *block, const char *text)
{
	spill_text_add(&block->text, text);
}

void spill_stderr_block_number(struct spill_stderr_block *block, uint64_t number)
{
	spill_text_number(&block->text, number);
}

void spill_stderr_block_size(struct spill_stderr_block *block, uint64_t bytes)
{
	spill_text_size(&block->text, bytes);
}

void spill_stderr_block_parts(struct spill_stderr_block *block, const struct spill_stderr_block_part parts[3])
{
	const char *comma = "";

	for (unsigned i = 0; i < 3; i++) {
		if (!parts[i].bytes)
			continue;
		spill_stderr_block_put(block, comma);
		spill_stderr_block_put(block, parts[i].before);
		spill_stderr_block_size(block, parts[i].bytes);
		spill_stderr_block_put(block, parts[i].behind);
		comma = ", ";
	}
	if (!*comma)
		spill_stderr_block_put(block, "nothing");
}

void spill_stderr_block_sums(struct spill_stderr_block *block, const struct spill_bytes *sums)
{
	spill_stderr_block_parts(block,
	                         (const struct spill_stderr_block_part[]){{"", sums->device, " device"},
	                                                                  {"", sums->host, " host"},
	                                                                  {"", sums->managed, " managed"}});
}

void spill_stderr_block_spills(struct spill_stderr_block *block, const struct spill_totals *totals)
{
	spill_stderr_block_number(block, totals->spills);
	spill_stderr_block_put(block, " of ");
	spill_stderr_block_number(block, totals->allocs);
	spill_stderr_block_put(block, " allocations");
}

void spill_stderr_block_log(struct spill_stderr_block *block, const struct spill_report_process *mortem)
{
	spill_stderr_block_begin(block, "  ");
	if (mortem->log[0]) {
		spill_stderr_block_put(block, "log ");
		spill_stderr_block_name(block, mortem->log, PATH);
	} else {
		spill_stderr_block_put(block, "no log is written (log.path, log.level)");
	}
	spill_stderr_block_end(block);
}
