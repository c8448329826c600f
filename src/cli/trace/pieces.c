
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "cli.h"
#include "put.h"

struct piece {
	char *path, *stem; /* stem: the path before .jsonl */
	char time[32];     /* time of the first start line; "" if none */
	uint64_t continues;
	size_t shared_stem_length; /* length of a stem shared with other files; 0: none */
};

/* The length before ".jsonl", if only a rotation's number or date follows; else 0. */
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

/* A log that logrotate or somebody else has compressed: x.jsonl.gz, x.jsonl.2.zst. */
static bool is_compressed(const char *name)
{
	static const char *const suffixes[] = {".gz", ".xz", ".zst", ".bz2", ".lz4"};
	char plain[NAME_MAX + 1];
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t suffix = strlen(suffixes[i]);

		if (length <= suffix || length > NAME_MAX || strcmp(name + length - suffix, suffixes[i]))
			continue;
		memcpy(plain, name, length - suffix);
		plain[length - suffix] = '\0';
		return stem_of(plain) > 0;
	}
	return false;
}

static int is_log(const struct dirent *entry)
{
	return stem_of(entry->d_name) > 0 || is_compressed(entry->d_name);
}

static int compare_names(const void *a, const void *b)
{
	const struct piece *a_piece = a, *b_piece = b;
	int order = strverscmp(a_piece->stem, b_piece->stem);

	return order ? order : strverscmp(a_piece->path, b_piece->path);
}

static int compare_starts(const void *a, const void *b)
{
	const struct piece *a_piece = a, *b_piece = b;
	int order = strcmp(a_piece->time, b_piece->time);

	if (order || a_piece->continues == b_piece->continues)
		return order ? order : compare_names(a, b);
	return a_piece->continues < b_piece->continues ? -1 : 1;
}

static void read_start_line(struct piece *piece)
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

static int compare_stems(const void *a, const void *b)
{
	const struct piece *a_piece = a, *b_piece = b;

	return strverscmp(a_piece->stem, b_piece->stem);
}

/* The length of NAME for a stem NAME-2, if NAME exists; else 0. pre: `all` is sorted by name */
static size_t shared_stem_length(const char *stem, const struct piece *all, size_t count)
{
	size_t length = strlen(stem);
	struct piece base;
	bool found;

	while (length && isdigit((unsigned char)stem[length - 1]))
		length--;
	if (length < 2 || !stem[length] || stem[length - 1] != '-')
		return 0;
	base.stem = cli_strdup(stem);
	base.stem[length - 1] = '\0';
	found = bsearch(&base, all, count, sizeof(all[0]), compare_stems);
	free(base.stem);
	return found ? length - 1 : 0;
}

/* Groups processes that had one name at once (log_file.h): one may continue beside another. */
static void shorten_shared_stems(struct piece *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		all[i].shared_stem_length = shared_stem_length(all[i].stem, all, count);
	for (size_t i = 0; i < count; i++)
		if (all[i].shared_stem_length)
			all[i].stem[all[i].shared_stem_length] = '\0';
}

/* Most names have a single file, which needs no reading. */
static void sort_pieces(struct piece *all, size_t count)
{
	qsort(all, count, sizeof(all[0]), compare_names);
	shorten_shared_stems(all, count);
	qsort(all, count, sizeof(all[0]), compare_names);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && !strcmp(all[from].stem, all[to].stem); to++)
			;
		for (size_t i = from; to - from > 1 && i < to; i++)
			read_start_line(&all[i]);
		qsort(all + from, to - from, sizeof(all[0]), compare_starts);
	}
}

/* Takes compressed logs out of the list. Returns the number of the others. */
static size_t leave_out_compressed(struct cli_pieces *pieces, struct dirent **entries, int count)
{
	size_t kept = 0;

	for (int i = 0; i < count; i++) {
		if (!is_compressed(entries[i]->d_name)) {
			entries[kept++] = entries[i];
			continue;
		}
		if (!pieces->compressed++)
			pieces->one_of_them = cli_strdup(entries[i]->d_name);
		free(entries[i]);
	}
	return kept;
}

static struct piece piece_of(const char *folder, const char *name)
{
	size_t length = strlen(folder) + 1;
	struct piece piece = {.path = cli_realloc(NULL, length + strlen(name) + 1, 1)};

	sprintf(piece.path, "%s/%s", folder, name);
	piece.stem = cli_strdup(piece.path);
	piece.stem[length + stem_of(name)] = '\0';
	return piece;
}

struct cli_pieces cli_pieces_find(const char *folder)
{
	struct cli_pieces pieces = {0};
	struct dirent **entries = NULL;
	struct piece *all;
	int count = scandir(folder, &entries, is_log, versionsort);

	pieces.error = count < 0 ? errno : 0;
	pieces.count = leave_out_compressed(&pieces, entries, count);
	pieces.paths = cli_realloc(NULL, pieces.count + 1, sizeof(pieces.paths[0]));
	all = cli_realloc(NULL, pieces.count + 1, sizeof(all[0]));
	for (size_t i = 0; i < pieces.count; i++) {
		all[i] = piece_of(folder, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	sort_pieces(all, pieces.count);
	for (size_t i = 0; i < pieces.count; i++) {
		pieces.paths[i] = all[i].path;
		free(all[i].stem);
	}
	free(all);
	return pieces;
}

const char *cli_pieces_problem(const struct cli_pieces *pieces)
{
	if (pieces->count)
		return NULL;
	return pieces->error ? strerror(pieces->error) : "no *.jsonl in it";
}

void cli_pieces_complain(const char *command, const char *folder, const struct cli_pieces *pieces)
{
	if (!pieces->compressed)
		return;
	cli_fprintf(stderr,
	            "spill %s: %s: %zu compressed log%s not read, such as %s: decompress it, or use "
	            "`zcat FILE | spill %s /dev/stdin`\n",
	            command, folder, pieces->compressed, pieces->compressed == 1 ? " was" : "s were",
	            pieces->one_of_them, command);
}

void cli_pieces_free(struct cli_pieces *pieces)
{
	for (size_t i = 0; i < pieces->count; i++)
		free(pieces->paths[i]);
	free(pieces->paths);
	free(pieces->one_of_them);
	*pieces = (struct cli_pieces){0};
}
