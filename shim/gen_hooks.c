/*
 * Build-time tool: prints what is generated from the table but is no C. `gen_hooks map`: the version script. It is
 * anonymous, because a named node does not interpose versioned references (pitfall 3a). `gen_hooks docs`: docs/hooks.md.
 */
#include <stdio.h>
#include <string.h>

#include "request.h"

static void print_map(void)
{
	puts("{\n\tglobal:");
#define HOOK(domain, ret, symbol, ...) puts("\t\t" #symbol ";");
#include "hooks.def"
#define EXPORT(symbol) puts("\t\t" #symbol ";");
#include "exports.def"
	puts("\tlocal: *;\n};");
}

static void print_docs(void)
{
	puts("# Hooks\n\nGenerated from shim/hooks.def by `gen_hooks docs`; a test fails when this file is "
	     "stale.\n");
	puts("| library | symbol | base | since | variant | operation |\n|---|---|---|---|---|---|");
#define HOOK(domain, ret, symbol, base, since, variant, op, ...) \
	puts("| " #domain " | `" #symbol "` | `" #base "` | " #since " | " #variant " | " #op " |");
#include "hooks.def"
	puts("\nOperations:\n");
#define X(name, text) puts("- " #name ": " text);
	SPILL_OPS(X)
#undef X
	puts("\nExported beside them:\n");
#define EXPORT(symbol) puts("- `" #symbol "`");
#include "exports.def"
}

int main(int count, char **arguments)
{
	if (count == 2 && strcmp(arguments[1], "map") == 0)
		print_map();
	else if (count == 2 && strcmp(arguments[1], "docs") == 0)
		print_docs();
	else
		return 2;
	return 0;
}
