/* Reads strings (four bytes of length, low first, then the bytes) and writes each as one JSON line: for check_json.py. */
#include <stdio.h>
#include <stdlib.h>

#include "json.h"

int main(void)
{
	unsigned char head[4];

	while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
		size_t length = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16;
		size_t size = 6 * length + 3; /* the contract of what a string can become */
		char *text = malloc(length + 1), *line = malloc(size);
		struct spill_json json;

		if (!text || !line || fread(text, 1, length, stdin) != length)
			return 1;
		spill_json_begin(&json, line, size);
		spill_json_string_length(&json, text, length);
		size_t written = spill_json_end_line(&json);
		if (written == 0 || fwrite(line, 1, written, stdout) != written)
			return 1;
		free(text);
		free(line);
	}
	return 0;
}
