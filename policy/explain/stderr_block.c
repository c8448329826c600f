#include "stderr_block.h"

#include <string.h>

#include "run_story.h"

/* Bytes that are shown of a path, and of another name. */
#define PATH 1024
#define NAME 72

void spill_block_begin(struct spill_block *block)
{
	block->line = block->text.length;
	spill_text_add(&block->text, "spill: ");
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

/* Adds the last `most` bytes of the name. */
static void add_end(struct spill_text *text, const char *name, size_t most)
{
	size_t length = name ? strlen(name) : 0;

	if (!length) {
		spill_text_add(text, "?");
		return;
	}
	if (length > most) {
		name += length - most;
		while (is_continuation(*name))
			name++;
		spill_text_add(text, "…");
	}
	spill_text_plain(text, name);
}

struct spill_word spill_block_name(const char *name)
{
	struct spill_word word;
	struct spill_text text = spill_text_begin(word.text, sizeof(word.text));

	add_end(&text, name, NAME);
	return word;
}

void spill_block_put(struct spill_block *block, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	spill_text_vformat(&block->text, format, arguments);
	va_end(arguments);
}

void spill_block_line(struct spill_block *block, const char *format, ...)
{
	va_list arguments;

	spill_block_begin(block);
	va_start(arguments, format);
	spill_text_vformat(&block->text, format, arguments);
	va_end(arguments);
	spill_block_end(block);
}

struct spill_word spill_sums(const struct spill_bytes *sums)
{
	const struct {
		uint64_t bytes;
		const char *place;
	} parts[] = {{sums->device, "device"}, {sums->host, "host"}, {sums->managed, "managed"}};
	struct spill_word word;
	struct spill_text text = spill_text_begin(word.text, sizeof(word.text));

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].bytes)
			spill_text_format(&text, "%s%s %s", text.length ? ", " : "",
			                  spill_size(parts[i].bytes).text, parts[i].place);
	}
	if (!text.length)
		spill_text_add(&text, "nothing");
	return word;
}

void spill_block_story(struct spill_block *block, const struct spill_report_process *process)
{
	struct spill_story story = spill_story_of(process->totals, process->run_us);

	story.follow_off = process->follow_off;
	spill_story_all(&block->text, &story);
}

void spill_block_path(struct spill_block *block, const char *path)
{
	add_end(&block->text, path, PATH);
}

void spill_block_log(struct spill_block *block, const struct spill_report_process *process)
{
	if (!process->log[0]) {
		spill_block_line(block, "  no log is written (log.path, log.level)");
		return;
	}
	spill_block_begin(block);
	spill_block_put(block, "  log ");
	spill_block_path(block, process->log);
	spill_block_end(block);
}
