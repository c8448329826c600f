/*
 * Build-time tool: prints files from the table that the preprocessor cannot make.
 *
 * - `gen_hooks map`: the version script. It is anonymous, because a named node does not interpose
 *   versioned references (pitfall 3a).
 * - `gen_hooks index`: the rows sorted by symbol and by base, so that a look-up is a binary search.
 * - `gen_hooks docs`: docs/hooks.md.
 * - `gen_hooks requests`: the functions that a rule can match, for `spill check`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"

struct row {
	const char *domain, *symbol, *base, *since, *variant, *op;
	bool proven;
};

static const struct row rows[] = {
#define ROW(domain, symbol, base, since, variant, op, proven) \
	{#domain, #symbol, #base, #since, #variant, #op, proven},
#define HOOK(domain, ret, symbol, base, since, variant, op, ...) \
	ROW(domain, symbol, base, since, variant, op, true)
#define UNPROVEN(domain, ret, symbol, base, since, variant, op, ...) \
	ROW(domain, symbol, base, since, variant, op, false)
#include "hooks.def"
};

#define COUNT (sizeof(rows) / sizeof(rows[0]))

static void print_map(void)
{
	puts("{\n\tglobal:");
	for (size_t i = 0; i < COUNT; i++)
		printf("\t\t%s;\n", rows[i].symbol);
#define EXPORT(symbol) puts("\t\t" #symbol ";");
#include "exports.def"
	puts("\tlocal: *;\n};");
}

static int by_symbol(const void *a, const void *b)
{
	return strcmp(rows[*(const size_t *)a].symbol, rows[*(const size_t *)b].symbol);
}

/* Rows of one base keep the table's order. */
static int by_base(const void *a, const void *b)
{
	size_t left = *(const size_t *)a, right = *(const size_t *)b;
	int order = strcmp(rows[left].base, rows[right].base);
	return order ? order : left < right ? -1 : 1;
}

static void print_order(const char *name, int (*compare)(const void *, const void *))
{
	size_t order[COUNT];
	for (size_t i = 0; i < COUNT; i++)
		order[i] = i;
	qsort(order, COUNT, sizeof(order[0]), compare);
	printf("static const unsigned short %s[] = {\n", name);
	for (size_t i = 0; i < COUNT; i++)
		printf("\t%zu, /* %s */\n", order[i], rows[order[i]].symbol);
	puts("};");
}

static void print_rows(bool proven)
{
	puts("| library | symbol | base | since | variant | operation |\n|---|---|---|---|---|---|");
	for (size_t i = 0; i < COUNT; i++)
		if (rows[i].proven == proven)
			printf("| %s | `%s` | `%s` | %s | %s | %s |\n", rows[i].domain, rows[i].symbol,
			       rows[i].base, rows[i].since, rows[i].variant, rows[i].op);
}

static void print_docs(void)
{
	puts("# Hooks\n\nThis page lists every vendor function that libspill hooks. `gen_hooks docs` "
	     "generates it from "
	     "shim/hooks.def. A test fails while it is stale.\n");
	puts("- `base`: the name that cuGetProcAddress is asked for.\n"
	     "- `since`: the first driver version that answers with this ABI. 0: the vendor has no "
	     "such number.\n"
	     "- `variant`: LEGACY, or PTDS and PTSZ for the per-thread default stream.\n"
	     "- `operation`: explained [below](#operations).\n");
	puts(
	    "## Proven rows\n\nThe vendors' own headers declare these prototypes (CUDA 13, ROCm 5.2; NVML if "
	    "its header is installed).\n");
	print_rows(true);
	puts("\n## Unproven rows\n\nNo header here declares these prototypes. They follow the vendor's "
	     "documentation.\n");
	print_rows(false);
	puts("\n## Operations\n");
#define X(name, function, text) puts("- " #name ": " text ".");
	SPILL_OPS(X)
#undef X
	puts("\n## Other exported functions\n");
#define EXPORT(symbol) puts("- `" #symbol "`");
#include "exports.def"
}

/* Operations of spill_admit (admit.h), which looks for a rule. */
static bool is_admitted(const char *op)
{
	static const char *const ops[] = {"ALLOC", "ALLOC_ASYNC", "ARRAY", "CREATE"};
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(op, ops[i]) == 0)
			return true;
	return false;
}

/*
 * The operation behind a row. A row of the CUDA runtime does not tell, because the driver's row below
 * it decides. HIP has no driver below it, so its function of the same name tells.
 */
static const char *find_op(const struct row *row)
{
	if (strcmp(row->domain, "CUDA_RUNTIME"))
		return row->op;
	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(rows[i].domain, "HIP") == 0 && strcmp(rows[i].base + 3, row->base + 4) == 0)
			return rows[i].op;
	return row->op;
}

static void print_requests(void)
{
	puts("#include <stddef.h>\n\n#include \"request_names.h\"\n\nconst char *const cli_request_names[] = "
	     "{");
	for (size_t i = 0; i < COUNT; i++)
		if (is_admitted(find_op(&rows[i])))
			printf("\t\"%s\",\n", rows[i].symbol);
	puts("\t\"spill_malloc\",\n\tNULL,\n};");
}

int main(int count, char **arguments)
{
	const char *what = count == 2 ? arguments[1] : "";
	if (strcmp(what, "map") == 0) {
		print_map();
	} else if (strcmp(what, "index") == 0) {
		print_order("rows_by_symbol", by_symbol);
		print_order("rows_by_base", by_base);
	} else if (strcmp(what, "docs") == 0) {
		print_docs();
	} else if (strcmp(what, "requests") == 0) {
		print_requests();
	} else {
		return 2;
	}
	return 0;
}
