/*
 * Any bytes as /proc/self/mountinfo: the mount of a control group that is found. It is found again here in another way, with the
 * whole text at once; the product reads it in pieces, and each input is read with other bytes before it, so that other lines are cut.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "fuzz.h"
#include "fuzz_tree.h"

#define MOUNTINFO "/proc/self/mountinfo"
/* The product's buffer: a line without a newline in so many bytes is skipped. */
#define PIECE 8064

/* The groups that there are, whatever the input says. */
static const char *const files[] = {MOUNTINFO,
                                    "/proc/self/cgroup",
                                    "/cg/cgroup.procs",
                                    "/cg/a/cgroup.procs",
                                    "/cg/a/b/cgroup.procs",
                                    "/memory/cgroup.procs",
                                    "/memory/a/cgroup.procs",
                                    "/odd name/a/b/cgroup.procs",
                                    "/back\\slash/cgroup.procs"};
#define FILES (sizeof(files) / sizeof(files[0]))

static const char group[] = "/a/b";

struct found {
	char folder[SPILL_CGROUP_PATH];
	size_t top, hidden;
};

/* "\040" is a blank. */
static void unescape(char *text)
{
	for (char *digits; (text = strchr(text, '\\')); text++) {
		digits = text + 1;
		if (strspn(digits, "01234567") < 3 || digits[0] > '3')
			continue;
		text[0] = (char)((digits[0] & 7) << 6 | (digits[1] & 7) << 3 | (digits[2] & 7));
		memmove(digits, digits + 3, strlen(digits + 3) + 1);
	}
}

/* The fields of a line; NULL: it has fewer. */
static char **split(char *line, size_t *count)
{
	static char *fields[PIECE + 1];

	*count = 0;
	do {
		fields[(*count)++] = line;
		line = strchr(line, ' ');
		if (line)
			*line++ = '\0';
	} while (line);
	return fields;
}

static bool is_group(const char *folder)
{
	char path[6000];

	snprintf(path, sizeof(path), "%s%s/cgroup.procs", fuzz_tree_root(), folder);
	return strlen(folder) < SPILL_CGROUP_PATH && !access(path, F_OK);
}

static void consider(struct found *found, const char *root, const char *point)
{
	char folder[2 * PIECE];
	size_t length = strcmp(root, "/") ? strlen(root) : 0, hidden = strlen(root);

	folder[0] = '\0';
	if (!strncmp(group, root, length) && (group[length] == '/' || !group[length]))
		snprintf(folder, sizeof(folder), "%s%s", point, group + length);
	if (!folder[0] || !is_group(folder)) {
		hidden = SIZE_MAX - 1; /* only its top is seen */
		snprintf(folder, sizeof(folder), "%s", point);
	}
	if (hidden > found->hidden || !is_group(folder))
		return;
	*found = (struct found){.top = strlen(point), .hidden = hidden};
	snprintf(found->folder, sizeof(found->folder), "%.*s", (int)sizeof(found->folder) - 1, folder);
}

static bool has_memory(const char *options)
{
	static const char word[] = "memory";

	for (const char *at = options; (at = strstr(at, word)); at++) {
		char after = at[strlen(word)];

		if ((at == options || at[-1] == ',') && (!after || after == ','))
			return true;
	}
	return false;
}

/* 36 35 98:0 ROOT POINT OPTIONS [TAGS…] - TYPE SOURCE OPTIONS */
static void consider_line(struct found found[2], char *line)
{
	size_t count, dash = 6;
	char **field = split(line, &count);

	while (dash < count && strcmp(field[dash], "-") != 0)
		dash++;
	if (dash + 3 >= count)
		return;
	unescape(field[3]);
	unescape(field[4]);
	if (!strcmp(field[dash + 1], "cgroup2"))
		consider(&found[1], field[3], field[4]);
	else if (!strcmp(field[dash + 1], "cgroup") && has_memory(field[dash + 3]))
		consider(&found[0], field[3], field[4]);
}

/* Of version 1, then of version 2. */
static void find(struct found found[2])
{
	size_t length;
	const char *text = fuzz_tree_content(MOUNTINFO, &length), *end = text + length, *newline;

	found[0] = found[1] = (struct found){.hidden = SIZE_MAX};
	for (; (newline = memchr(text, '\n', (size_t)(end - text))); text = newline + 1) {
		char line[PIECE];

		if (newline - text >= PIECE)
			continue;
		memcpy(line, text, (size_t)(newline - text));
		line[newline - text] = '\0';
		consider_line(found, line);
	}
}

/* With a line of so many bytes before it, of a mount that is none of a group. */
static void put_text(const uint8_t *data, size_t size, size_t before)
{
	static const char begin[] = "1 1 0:1 / / rw - tmpfs tmpfs rw,";
	char *text = malloc(before + size + 1);

	fuzz_require(text != NULL && (!before || before > sizeof(begin)), "no memory");
	memset(text, 'x', before);
	if (before) {
		memcpy(text, begin, strlen(begin));
		text[before - 1] = '\n';
	}
	if (size)
		memcpy(text + before, data, size);
	fuzz_tree_put(MOUNTINFO, text, before + size);
	free(text);
}

static void check(const struct found found[2])
{
	static struct spill_cgroup_homes homes;
	const struct spill_cgroup_home *told[] = {&homes.v1, &homes.v2};

	memset(&homes, 0, sizeof(homes));
	spill_cgroup_find(fuzz_tree_root(), &homes);
	for (unsigned i = 0; i < 2; i++) {
		fuzz_require(!strcmp(told[i]->folder, found[i].folder), "the mount that shows most");
		fuzz_require(!found[i].folder[0] || told[i]->top == found[i].top, "the group's top");
	}
}

static void begin(void)
{
	fuzz_tree_begin(files, FILES);
	for (size_t i = 2; i < FILES; i++)
		fuzz_tree_put(files[i], "", 0);
	fuzz_tree_put("/proc/self/cgroup", "4:memory:/a/b\n0::/a/b\n", 22);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;
	static struct found found[2];
	uint32_t sum = 1;

	if (!begun)
		begin();
	begun = true;
	put_text(data, size, 0);
	find(found);
	check(found);
	/* The first piece ends somewhere in the input. Then an input in the second piece. */
	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + data[i];
	put_text(data, size, size < PIECE - 64 ? PIECE - sum % (size + 1) : PIECE - 1);
	check(found);
	put_text(data, size, 2 * PIECE - sum % 97);
	check(found);
	return 0;
}
