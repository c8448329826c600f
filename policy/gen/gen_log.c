/*
 * Build-time tool that reads record.def, the table of the log's members.
 *	gen_log schema             prints docs/log.schema.json
 *	gen_log tables FILE.md     prints the document with tables behind <!-- members of KIND -->
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen_log.h"

/* A table follows it. */
#define MARK "<!-- members of "
#define COMMON "every line"

// clang-format off
#define OBJECT(id) static const struct member id##_rows[] = {
#define HEAD(key, how, text) {key, "", text, SPILL_MEMBER_##how, true, NULL},
#define NEEDED(key, how, field, words, text) {key, words, text, SPILL_MEMBER_##how, true, NULL},
#define OPTIONAL(key, how, field, words, text) {key, words, text, SPILL_MEMBER_##how, false, NULL},
#define INNER(key, must, field, inner, text) {key, "", text, SPILL_MEMBER_OBJECT, must, inner},
#define FIGURES(key, field, number, inner, text) INNER(key, false, field, inner, text)
#define SEVERAL(key, how, field, counted, room, inner, text) {key, "", text, SPILL_MEMBER_##how, false, inner},
#define END(id) \
	}; \
	static const struct object id = {#id, id##_rows, sizeof(id##_rows) / sizeof(id##_rows[0])};
#define KINDS_BEGIN const struct object *const gen_log_kinds[SPILL_KINDS_COUNT] = {
#define KIND(kind, id) [SPILL_KIND_##kind] = &(id),
#define KINDS_END };
#include "record.def"
// clang-format on

static const char *type_name(const struct member *member)
{
	switch (member->type) {
	case SPILL_MEMBER_TRUTH:
		return "true";
	case SPILL_MEMBER_TEXT:
	case SPILL_MEMBER_ADDRESS:
	case SPILL_MEMBER_PLACE:
		return "string";
	case SPILL_MEMBER_OBJECT:
		return "object";
	case SPILL_MEMBER_ARRAY:
	case SPILL_MEMBER_LIST:
		return "array";
	default:
		return "number";
	}
}

static bool same(const struct member *a, const struct member *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->text, b->text);
}

static bool has(const struct object *object, const struct member *member)
{
	for (unsigned i = 0; i < object->count; i++)
		if (same(&object->members[i], member))
			return true;
	return false;
}

/* Do several kinds have the member with the same text? */
static bool is_common(const struct member *member)
{
	unsigned count = 0;

	for (unsigned kind = 0; kind < SPILL_KINDS_COUNT; kind++)
		count += has(gen_log_kinds[kind], member);
	return count > 1;
}

/* The words of the member, unless its text begins with them. */
static void print_words(const struct member *member)
{
	const char *before = ": ";

	if (strstr(member->text, "`") &&
	    strncmp(member->words, strchr(member->text, '`') + 1, strcspn(member->words, ",")) == 0)
		return;
	for (const char *word = member->words; *word; word += strspn(word, ", ")) {
		size_t length = strcspn(word, ",");

		printf("%s`%.*s`", before, (int)length, word);
		before = ", ";
		word += length;
	}
}

/*
 * Prints one row for a member and the members behind it with the same text; returns their number.
 * inside: prefix of the names, for the members of an object.
 */
static unsigned print_row(const struct object *object, unsigned at, const char *inside)
{
	const struct member *members = object->members;
	unsigned to = at;

	fputs("| ", stdout);
	for (; to < object->count && !strcmp(members[to].text, members[at].text); to++)
		printf("%s`%s%s`", to > at ? ", " : "", inside, members[to].name);
	printf(" | %s | %s", type_name(&members[at]), members[at].text);
	print_words(&members[at]);
	puts(" |");
	return to - at;
}

/* The members of an object, once: with the first member that has it. */
static void print_inner(const struct member *member)
{
	static const struct object *told[16];
	static unsigned count;
	char inside[64];

	for (unsigned i = 0; i < count; i++)
		if (told[i] == member->of)
			return;
	told[count++] = member->of;
	snprintf(inside, sizeof(inside), "%s%s.", member->name,
	         member->type == SPILL_MEMBER_OBJECT ? "" : "[]");
	for (unsigned i = 0; i < member->of->count;)
		i += print_row(member->of, i, inside);
}

/* The rows of the common members, or of the others. */
static void print_rows(const struct object *object, bool common)
{
	for (unsigned i = 0; i < object->count;) {
		const struct member *member = &object->members[i];

		if (is_common(member) != common) {
			i++;
			continue;
		}
		i += print_row(object, i, "");
		if (member->of)
			print_inner(member);
	}
}

/* The common members, each once. */
static void print_common(void)
{
	static struct member members[64];
	struct object all = {"common", members, 0};

	for (unsigned kind = 0; kind < SPILL_KINDS_COUNT; kind++)
		for (unsigned i = 0; i < gen_log_kinds[kind]->count; i++)
			if (is_common(&gen_log_kinds[kind]->members[i]) &&
			    !has(&all, &gen_log_kinds[kind]->members[i]))
				members[all.count++] = gen_log_kinds[kind]->members[i];
	print_rows(&all, true);
}

/* False if there is no such kind. */
static bool print_table(const char *name, size_t length)
{
	puts("| member | type | meaning |\n|---|---|---|");
	if (length == strlen(COMMON) && !strncmp(name, COMMON, length)) {
		print_common();
		return true;
	}
	for (unsigned kind = 0; kind < SPILL_KINDS_COUNT; kind++) {
		if (strlen(spill_kind_name(kind)) != length || strncmp(spill_kind_name(kind), name, length))
			continue;
		print_rows(gen_log_kinds[kind], false);
		return true;
	}
	fprintf(stderr, "gen_log: no kind %.*s\n", (int)length, name);
	return false;
}

static bool print_document(void)
{
	bool good = true, in_old = false;
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		in_old = in_old && *line == '|';
		if (in_old)
			continue;
		fputs(line, stdout);
		if (strncmp(line, MARK, strlen(MARK)) != 0)
			continue;
		good =
		    print_table(line + strlen(MARK), strcspn(line + strlen(MARK), "\n") - strlen(" -->")) &&
		    good;
		in_old = true;
	}
	free(line);
	return good;
}

int main(int argc, char **argv)
{
	bool good = true;

	if (argc == 2 && !strcmp(argv[1], "schema"))
		gen_log_schema();
	else if (argc == 3 && !strcmp(argv[1], "tables") && freopen(argv[2], "r", stdin))
		good = print_document();
	else
		good = false;
	if (!good)
		fputs("usage: gen_log schema | tables FILE.md\n", stderr);
	return !good || ferror(stdin) || ferror(stdout) || fflush(stdout) ? 1 : 0;
}
