/* The JSON schema of the log's lines (JSON Schema, draft 2020-12). */
#include <stdio.h>
#include <string.h>

#include "gen_log.h"

static const char *const kind_texts[] = {
#define X(id, name, text) text,
    SPILL_KINDS(X)
#undef X
};

static void print_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

/* "a, b" as ["a","b"]. */
static void print_words(const char *words)
{
	fputs(",\"enum\":[\"", stdout);
	for (; *words; words++) {
		if (*words == ',')
			fputs("\",\"", stdout);
		else if (*words != ' ')
			putchar(*words);
	}
	fputs("\"]", stdout);
}

/* Types of the members that have no parts; KNOWN is printed by name. */
static const char *const types[] = {
    [SPILL_MEMBER_KNOWN] = "",
    [SPILL_MEMBER_U64] = "\"type\":\"integer\",\"minimum\":0,\"maximum\":18446744073709551615",
    [SPILL_MEMBER_BYTES] = "\"type\":\"integer\",\"minimum\":0,\"maximum\":18446744073709551615",
    [SPILL_MEMBER_INT] = "\"type\":\"integer\"",
    [SPILL_MEMBER_DEVICE] = "\"type\":\"integer\",\"minimum\":0",
    [SPILL_MEMBER_COUNT] = "\"type\":\"integer\",\"minimum\":0",
    [SPILL_MEMBER_SECONDS] = "\"type\":\"number\",\"minimum\":0",
    [SPILL_MEMBER_TRUTH] = "\"const\":true",
    [SPILL_MEMBER_TEXT] = "\"type\":\"string\"",
    [SPILL_MEMBER_ADDRESS] = "\"type\":\"string\",\"pattern\":\"^0x[0-9a-f]+$\"",
    [SPILL_MEMBER_PLACE] = "\"type\":\"string\",\"enum\":[",
    [SPILL_MEMBER_ARRAY] = "\"type\":\"array\",\"items\":",
    [SPILL_MEMBER_LIST] = "\"type\":\"array\",\"items\":",
};

static void print_reference(const struct object *object)
{
	printf("\"$ref\":\"#/$defs/%s\"", object->name);
}

static void print_type(const struct member *member)
{
	if (member->type == SPILL_MEMBER_OBJECT || member->type == SPILL_MEMBER_FIGURES) {
		print_reference(member->of);
		return;
	}
	fputs(types[member->type], stdout);
	if (member->type == SPILL_MEMBER_TEXT && *member->words)
		print_words(member->words);
	if (member->type == SPILL_MEMBER_PLACE) {
		for (enum spill_place place = 0; place < SPILL_PLACES; place++)
			printf("%s\"%s\"", place ? "," : "", spill_place_name(place));
		putchar(']');
	}
	if (member->type != SPILL_MEMBER_ARRAY && member->type != SPILL_MEMBER_LIST)
		return;
	putchar('{');
	if (member->of)
		print_reference(member->of);
	else
		fputs(types[SPILL_MEMBER_TEXT], stdout);
	putchar('}');
}

/* Prints a member a line. For a kind of line: `text` describes it, and `kind` is its word. */
static void print_object(const struct object *object, const char *text, const char *kind)
{
	const char *comma = "";

	if (text)
		printf("{\"description\":\"%s\",", text);
	printf("%s\"type\":\"object\",\"properties\":{\n", text ? "" : "{");
	for (unsigned i = 0; i < object->count; i++) {
		const struct member *member = &object->members[i];

		printf("\t\t\t\"%s\":{", member->name);
		if (kind && !strcmp(member->name, "kind"))
			printf("\"const\":\"%s\"", kind);
		else if (kind && !strcmp(member->name, "v"))
			printf("\"const\":%d", SPILL_RECORD_VERSION);
		else
			print_type(member);
		fputs(",\"description\":", stdout);
		print_string(member->text);
		puts(i + 1 < object->count ? "}," : "}");
	}
	fputs("\t\t},\"required\":[", stdout);
	for (unsigned i = 0; i < object->count; i++) {
		if (!object->members[i].needed)
			continue;
		printf("%s\"%s\"", comma, object->members[i].name);
		comma = ",";
	}
	fputs("]}", stdout);
}

static void print_definition(const struct object *object)
{
	static const struct object *told[32];
	static unsigned count;

	for (unsigned i = 0; i < count; i++)
		if (told[i] == object)
			return;
	told[count++] = object;
	printf(",\n\t\t\"%s\":", object->name);
	print_object(object, NULL, NULL);
}

/*
 * Unknown kinds, versions and members are valid: they belong to a later libspill, and readers skip
 * them.
 */
void gen_log_schema(void)
{
	puts("{\n\t\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\n"
	     "\t\"title\":\"A line of libspill's log\",\n"
	     "\t\"description\":\"Generated from policy/record/record.def; see log-format.md. Kinds, "
	     "versions and "
	     "members that are not "
	     "here are of a later libspill: readers skip them. Words of an enum may become more.\",\n"
	     "\t\"type\":\"object\",\"required\":[\"v\",\"kind\"],\n"
	     "\t\"properties\":{\"v\":{\"type\":\"integer\",\"minimum\":1},\"kind\":{\"type\":\"string\"}},\n"
	     "\t\"allOf\":[");
	for (enum spill_kind kind = 0; kind < SPILL_KINDS_COUNT; kind++)
		printf("\t\t{\"if\":{\"properties\":{\"v\":{\"const\":%d},\"kind\":{\"const\":\"%s\"}}},"
		       "\"then\":{\"$ref\":\"#/$defs/kind_%s\"}}%s\n",
		       SPILL_RECORD_VERSION, spill_kind_name(kind), spill_kind_name(kind),
		       kind + 1 < SPILL_KINDS_COUNT ? "," : "");
	fputs("\t],\n\t\"$defs\":{", stdout);
	for (enum spill_kind kind = 0; kind < SPILL_KINDS_COUNT; kind++) {
		printf("%s\n\t\t\"kind_%s\":", kind ? "," : "", spill_kind_name(kind));
		print_object(gen_log_kinds[kind], kind_texts[kind], spill_kind_name(kind));
	}
	for (enum spill_kind kind = 0; kind < SPILL_KINDS_COUNT; kind++)
		for (unsigned i = 0; i < gen_log_kinds[kind]->count; i++)
			if (gen_log_kinds[kind]->members[i].of)
				print_definition(gen_log_kinds[kind]->members[i].of);
	puts("\n\t}\n}");
}
