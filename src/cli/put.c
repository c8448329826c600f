#include "put.h"

#include "text.h"

void cli_put(FILE *out, const char *text)
{
	unsigned skipped;

	for (text = text ? text : "?"; *text; text += skipped ? skipped : 1) {
		skipped = spill_text_control(text);
		fputc(skipped ? '?' : *text, out);
	}
}

void cli_put_size(FILE *out, uint64_t bytes)
{
	char size[32];
	struct spill_text text = spill_text_begin(size, sizeof(size));

	spill_text_size(&text, bytes);
	fputs(size, out);
}

void cli_put_size_at(FILE *out, uint64_t bytes)
{
	char size[32];
	struct spill_text text = spill_text_begin(size, sizeof(size));

	spill_text_size(&text, bytes);
	fprintf(out, "%12s", bytes ? size : "-");
}

void cli_put_sums(FILE *out, const struct spill_bytes *sums)
{
	const struct {
		uint64_t bytes;
		const char *place;
	} parts[] = {{sums->device, "device"}, {sums->host, "host"}, {sums->managed, "managed"}};
	const char *comma = "";

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].bytes == 0)
			continue;
		fputs(comma, out);
		cli_put_size(out, parts[i].bytes);
		fprintf(out, " %s", parts[i].place);
		comma = ", ";
	}
	if (!*comma)
		fputs("nothing", out);
}

void cli_put_tried(FILE *out, const struct spill_attempt *tried, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		fputs(i ? ", " : "; tried ", out);
		cli_put(out, tried[i].place);
		fputs(": ", out);
		cli_put(out, tried[i].error);
	}
}
