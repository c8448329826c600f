/* Itanium C++ ABI, "External Names (a.k.a. Mangling)". The symbol is not trusted. */
#include "plain_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Nested types within the arguments of a template */
#define DEEPEST 32

/* "::" before a part, and "…" behind the last one with a NUL */
#define ROOM_OF_MARKS 8

struct mangled {
	const char *at;      /* what is left */
	char name[1024];     /* so far, with "::" */
	size_t length, last; /* `last`: where its last part begins */
	unsigned depth;
};

static bool take(struct mangled *mangled, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(mangled->at, word, length) != 0)
		return false;
	mangled->at += length;
	return true;
}

/* One of these characters. */
static bool take_any(struct mangled *mangled, const char *characters)
{
	if (!*mangled->at || !strchr(characters, *mangled->at))
		return false;
	mangled->at++;
	return true;
}

static bool add_part(struct mangled *mangled, const char *part, size_t length)
{
	const char *between = mangled->length ? "::" : "";

	if (length + ROOM_OF_MARKS > sizeof(mangled->name) - mangled->length)
		return false;
	strcpy(mangled->name + mangled->length, between);
	mangled->last = mangled->length + strlen(between);
	memcpy(mangled->name + mangled->last, part, length);
	mangled->length = mangled->last + length;
	mangled->name[mangled->length] = '\0';
	return true;
}

/* "3foo". Sets *part to its place in the symbol. */
static bool take_identifier(struct mangled *mangled, const char **part, size_t *length)
{
	size_t count = 0;

	if (!isdigit((unsigned char)*mangled->at))
		return false;
	while (isdigit((unsigned char)*mangled->at) && count < sizeof(mangled->name))
		count = count * 10 + (size_t)(*mangled->at++ - '0');
	if (!count || count > strlen(mangled->at))
		return false;
	*part = mangled->at;
	*length = count;
	mangled->at += count;
	return true;
}

/* "S_", "S1_", "St", "Sa": a name that came before, or one of the standard library. */
static bool skip_substitution(struct mangled *mangled)
{
	if (!take(mangled, "S"))
		return false;
	if (take_any(mangled, "tabsiod"))
		return true;
	while (isdigit((unsigned char)*mangled->at) || isupper((unsigned char)*mangled->at))
		mangled->at++;
	return take(mangled, "_");
}

static bool skip_arguments(struct mangled *mangled);

/* The parts of "N…E" within an argument. */
static bool skip_nested(struct mangled *mangled)
{
	const char *part;
	size_t length;

	while (*mangled->at && !take(mangled, "E")) {
		if (*mangled->at == 'I' ? !skip_arguments(mangled)
		                        : !take_any(mangled, "rVKROL") && !skip_substitution(mangled) &&
		                              !take_identifier(mangled, &part, &length))
			return false;
	}
	return true;
}

/* "T_", "T0_": a parameter of a template. */
static bool skip_parameter(struct mangled *mangled)
{
	if (!take(mangled, "T"))
		return false;
	while (isdigit((unsigned char)*mangled->at))
		mangled->at++;
	return take(mangled, "_");
}

static bool skip_type(struct mangled *mangled)
{
	const char *part;
	size_t length;

	while (take_any(mangled, "rVKPROCG") || take(mangled, "Dp"))
		;
	if (take(mangled, "N"))
		return skip_nested(mangled);
	if (skip_parameter(mangled) || take_identifier(mangled, &part, &length))
		return *mangled->at != 'I' || skip_arguments(mangled);
	if (take(mangled, "St"))
		return take_identifier(mangled, &part, &length) &&
		       (*mangled->at != 'I' || skip_arguments(mangled));
	if (skip_substitution(mangled))
		return *mangled->at != 'I' || skip_arguments(mangled);
	if (take(mangled, "D"))
		return take_any(mangled, "acdefhinsu");
	return take_any(mangled, "vwbcahstijlmxynofdegz");
}

/* "Lb1E": a value. */
static bool skip_value(struct mangled *mangled)
{
	if (!skip_type(mangled))
		return false;
	while (take_any(mangled, "n0123456789abcdef"))
		;
	return take(mangled, "E");
}

/* "I…E". False for expressions, closures and types of functions, which are rare there. */
static bool skip_arguments(struct mangled *mangled)
{
	bool good = mangled->depth++ < DEEPEST && take_any(mangled, "IJ");

	while (good && !take(mangled, "E")) {
		if (*mangled->at == 'J')
			good = skip_arguments(mangled);
		else if (take(mangled, "L"))
			good = skip_value(mangled);
		else
			good = skip_type(mangled);
	}
	mangled->depth--;
	return good;
}

/* A constructor or destructor has the name of its class. */
static bool take_constructor(struct mangled *mangled)
{
	char part[sizeof(mangled->name)];
	bool destructor = mangled->at[0] == 'D';

	if (!mangled->length || !strchr("CD", mangled->at[0]) || !mangled->at[0] ||
	    !isdigit((unsigned char)mangled->at[1]))
		return false;
	mangled->at += 2;
	snprintf(part, sizeof(part), "%s%s", destructor ? "~" : "", mangled->name + mangled->last);
	return add_part(mangled, part, strlen(part));
}

/* The hash at the end of a name of Rust: "17h0123456789abcdefE". */
static bool is_rust_hash(const struct mangled *mangled, const char *part, size_t length)
{
	return length == 17 && part[0] == 'h' && strspn(part + 1, "0123456789abcdef") >= 16 &&
	       *mangled->at == 'E';
}

static bool take_named(struct mangled *mangled)
{
	const char *part;
	size_t length;

	take(mangled, "L"); /* static */
	if (!take_identifier(mangled, &part, &length))
		return false;
	if (length >= 10 && !strncmp(part, "_GLOBAL__N", 10))
		return add_part(mangled, "(anonymous)", strlen("(anonymous)"));
	return (mangled->length && is_rust_hash(mangled, part, length)) || add_part(mangled, part, length);
}

static bool take_part(struct mangled *mangled)
{
	const char *tag;
	size_t length;

	if (take(mangled, "St"))
		return add_part(mangled, "std", 3);
	if (*mangled->at == 'I')
		return skip_arguments(mangled);
	if (take_constructor(mangled) || take_named(mangled))
		return !take(mangled, "B") || take_identifier(mangled, &tag, &length);
	if (mangled->length && islower((unsigned char)mangled->at[0]) &&
	    islower((unsigned char)mangled->at[1])) {
		mangled->at += 2;
		return add_part(mangled, "operator", strlen("operator"));
	}
	return false;
}

/*
 * The qualified name. A function within another one (a lambda) is called like that one. False: a part
 * is not understood; the name ends before it.
 */
static bool take_name(struct mangled *mangled)
{
	bool nested;

	while (take(mangled, "Z"))
		;
	nested = take(mangled, "N");
	if (!nested)
		return (take(mangled, "St") ? add_part(mangled, "std", 3) : true) && take_part(mangled);
	while (take_any(mangled, "rVKRO"))
		;
	while (*mangled->at && !take(mangled, "E")) {
		if (!take_part(mangled))
			return false;
	}
	return mangled->length != 0;
}

/* Copies a name, or its last parts that fit. */
static void put_end(char to[PLAIN_NAME], const char *name)
{
	static const char mark[] = "…::";
	const char *end = name;

	if (strlen(name) < PLAIN_NAME) {
		strcpy(to, name);
		return;
	}
	while (end && strlen(end) >= PLAIN_NAME - sizeof(mark)) {
		end = strstr(end, "::");
		end = end ? end + 2 : NULL;
	}
	if (end)
		snprintf(to, PLAIN_NAME, "%s%s", mark, end);
	else
		snprintf(to, PLAIN_NAME, "%.*s…", PLAIN_NAME - 4, name);
}

void plain_name(const char *symbol, char name[PLAIN_NAME])
{
	struct mangled mangled = {.at = symbol};

	if (take(&mangled, "_Z")) {
		if (!take_name(&mangled) && mangled.length)
			strcpy(mangled.name + mangled.length, "…");
		if (mangled.length) {
			put_end(name, mangled.name);
			return;
		}
	}
	/* A compiler's copy of a function: "foo.part.0", "foo.cold"; a version: "foo@@V1". */
	size_t length = 1 + strcspn(symbol + (*symbol != '\0'), ".@");
	snprintf(mangled.name, sizeof(mangled.name), "%.*s", (int)length, symbol);
	put_end(name, mangled.name);
}
