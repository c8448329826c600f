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

static void print_type(const struct member *member)
{
	switch (member->type) {
	case SPILL_MEMBER_KNOWN:
		return;
	case SPILL_MEMBER_U64:
	case SPILL_MEMBER_BYTES:
		fputs("\"type\":\"integer\",\"minimum\":0,\"maximum\":18446744073709551615", stdout);
		return;
	case SPILL_MEMBER_INT:
		fputs("\"type\":\"integer\"", stdout);
		return;
	case SPILL_MEMBER_DEVICE:
	case SPILL_MEMBER_COUNT:
		fputs("\"type\":\"integer\",\"minimum\":0", stdout);
		return;
	case SPILL_MEMBER_SECONDS:
		fputs("\"type\":\"number\",\"minimum\":0", stdout);
		return;
	case SPILL_MEMBER_TRUTH:
		fputs("\"const\":true", stdout);
		return;
	case SPILL_MEMBER_TEXT:
		fputs("\"type\":\"string\"", stdout);
		if (*member->words)
			print_words(member->words);
		return;
	case SPILL_MEMBER_ADDRESS:
		fputs("\"type\":\"string\",\"pattern\":\"^0x[0-9a-f]+$\"", stdout);
		return;
	case SPILL_MEMBER_PLACE:
		fputs("\"type\":\"string\",\"enum\":[", stdout);
		for (enum spill_place place = 0; place < SPILL_PLACES; place++)
			printf("%s\"%s\"", place ? "," : "", spill_place_name(place));
		putchar(']');
		return;
	case SPILL_MEMBER_OBJECT:
	case SPILL_MEMBER_FIGURES:
		printf("\"$ref\":\"#/$defs/%s\"", member->of->name);
		return;
	case SPILL_MEMBER_ARRAY:
	case SPILL_MEMBER_LIST:
		fputs("\"type\":\"array\",\"items\":", stdout);
		if (member->of)
			printf("{\"$ref\":\"#/$defs/%s\"}", member->of->name);
		else
			fputs("{\"type\":\"string\"}", stdout);
	}
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
