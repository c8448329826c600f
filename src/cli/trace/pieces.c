
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "cli.h"

struct piece {
	char *path, *stem; /* stem: the path up to .jsonl */
	char time[32];     /* of the first start line; "" */
	uint64_t continues;
	size_t shared; /* length of the stem that it shares with others; 0: none */
};

/* Up to ".jsonl", if nothing but a rotation's number or date is behind it; else 0. */
static size_t stem_of(const char *name)
{
	const char *end = strstr(name, ".jsonl");
	const char *rest = end ? end + strlen(".jsonl") : "";

	if (!end || (*rest && (!strchr(".-_", *rest) || !rest[1])))
		return 0;
	while (isdigit((unsigned char)*rest) || (*rest && strchr(".-_", *rest)))
		rest++;
	return *rest ? 0 : (size_t)(end - name);
}

static int is_log(const struct dirent *entry)
{
	return stem_of(entry->d_name) > 0;
}

static int by_name(const void *a, const void *b)
{
	const struct piece *one = a, *other = b;
	int order = strverscmp(one->stem, other->stem);

	return order ? order : strverscmp(one->path, other->path);
}

static int by_start(const void *a, const void *b)
{
	const struct piece *one = a, *other = b;
	int order = strcmp(one->time, other->time);

	if (order || one->continues == other->continues)
		return order ? order : by_name(a, b);
	return one->continues < other->continues ? -1 : 1;
}

/* What its first line says, if it is a start line. */
static void look(struct piece *piece)
{
	struct spill_record record;
	struct cli_lines lines;

	if (cli_lines_open(&lines, piece->path, CLI_REGULAR) &&
	    cli_lines_next(&lines, &record) == CLI_LINE_RECORD && record.kind == SPILL_KIND_START) {
		snprintf(piece->time, sizeof(piece->time), "%s", record.start.time ? record.start.time : "");
		piece->continues = record.start.continues;
	}
	cli_lines_close(&lines);
}

static int by_stem(const void *a, const void *b)
{
	const struct piece *one = a, *other = b;

	return strverscmp(one->stem, other->stem);
}

/* The length of NAME in a stem NAME-2 where there is NAME, too; else 0. pre: all are sorted by name */
static size_t shared(const char *stem, const struct piece *all, size_t count)
{
	size_t length = strlen(stem);
	struct piece base;
	bool there;

	while (length && isdigit((unsigned char)stem[length - 1]))
		length--;
	if (length < 2 || !stem[length] || stem[length - 1] != '-')
		return 0;
	base.stem = cli_strdup(stem);
	base.stem[length - 1] = '\0';
	there = bsearch(&base, all, count, sizeof(all[0]), by_stem);
	free(base.stem);
	return there ? length - 1 : 0;
}

/* Processes that had one name at once (log_file.h) are together: one of them may have gone on beside another. */
static void share_stems(struct piece *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		all[i].shared = shared(all[i].stem, all, count);
	for (size_t i = 0; i < count; i++)
		if (all[i].shared)
			all[i].stem[all[i].shared] = '\0';
}

/* Most names are of one file, which need not be looked into. */
static void sort(struct piece *all, size_t count)
{
	qsort(all, count, sizeof(all[0]), by_name);
	share_stems(all, count);
	qsort(all, count, sizeof(all[0]), by_name);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && !strcmp(all[from].stem, all[to].stem); to++)
			;
		for (size_t i = from; to - from > 1 && i < to; i++)
			look(&all[i]);
		qsort(all + from, to - from, sizeof(all[0]), by_start);
	}
}

struct cli_pieces cli_pieces_find(const char *folder)
{
	struct cli_pieces pieces = {0};
	struct dirent **entries;
	struct piece *all;
	int count = scandir(folder, &entries, is_log, NULL);

	if (count <= 0) {
		pieces.error = count < 0 ? errno : 0;
		if (count == 0)
			free(entries);
		return pieces;
	}
	pieces.count = (size_t)count;
	pieces.paths = cli_realloc(NULL, pieces.count, sizeof(pieces.paths[0]));
	all = cli_realloc(NULL, pieces.count, sizeof(all[0]));
	for (size_t i = 0; i < pieces.count; i++) {
		size_t length = strlen(folder) + 1;

		all[i] = (struct piece){.path = cli_realloc(NULL, length + strlen(entries[i]->d_name) + 1, 1)};
		sprintf(all[i].path, "%s/%s", folder, entries[i]->d_name);
		all[i].stem = cli_strdup(all[i].path);
		all[i].stem[length + stem_of(entries[i]->d_name)] = '\0';
		free(entries[i]);
	}
	free(entries);
	sort(all, pieces.count);
	for (size_t i = 0; i < pieces.count; i++) {
		pieces.paths[i] = all[i].path;
		free(all[i].stem);
	}
	free(all);
	return pieces;
}

void cli_pieces_free(struct cli_pieces *pieces)
{
	for (size_t i = 0; i < pieces->count; i++)
		free(pieces->paths[i]);
	free(pieces->paths);
	*pieces = (struct cli_pieces){0};
}
