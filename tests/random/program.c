/* Programs: read from a file, or drawn from a seed and printed. */
#include "random.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct operation operations[] = {
#define OPERATION(name, weight, arguments, alone, captured, beside) \
	{#name, weight, arguments, alone, captured, beside, run_##name},
#include "operations.def"
#undef OPERATION
    {0},
};

static void stop(const char *what, const char *detail)
{
	fprintf(stderr, "%s: %s\n", what, detail);
	exit(64);
}

static const struct operation *operation_named(const char *name)
{
	for (const struct operation *operation = operations; operation->name; operation++)
		if (!strcmp(operation->name, name))
			return operation;
	stop("no operation is named so", name);
	return NULL;
}

/* Arguments that are missing are 0. */
static struct line line_of(const char *text)
{
	char thread[16], name[32];
	int at = 0;
	struct line line = {0};

	if (sscanf(text, "%15s %31s%n", thread, name, &at) != 2)
		stop("not THREAD OPERATION", text);
	line.operation = operation_named(name);
	line.thread = thread[0] == '*' ? -1 : (int)strtol(thread, NULL, 10);
	if (line.thread >= THREADS || (line.thread < 0) != line.operation->alone)
		stop("not a thread of this operation", text);
	for (unsigned i = 0; i < strlen(line.operation->arguments); i++) {
		int more = 0;

		if (sscanf(text + at, "%lu%n", &line.arguments[i], &more) != 1)
			break;
		at += more;
	}
	return line;
}

struct program program_read(const char *path)
{
	struct program program = {.threads = 1};
	FILE *file = fopen(path, "r");
	char text[256];
	size_t room = 0;

	if (!file)
		stop("cannot open", path);
	while (fgets(text, sizeof(text), file)) {
		if (text[0] == '#' || text[0] == '\n')
			continue;
		if (program.count == room) {
			room = room ? 2 * room : 1024;
			program.lines = realloc(program.lines, room * sizeof(*program.lines));
		}
		struct line line = line_of(text);
		if (line.thread >= (int)program.threads)
			program.threads = (unsigned)line.thread + 1;
		program.lines[program.count++] = line;
	}
	fclose(file);
	return program;
}

/* pre: below > 0 */
static uint64_t random_below(uint64_t *state, uint64_t below)
{
	assert(below > 0);
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return (x ^ (x >> 31)) % below;
}

/* Half of the blocks are small. The others are about as large as a granule, which is what can move. */
static uint64_t draw_bytes(uint64_t *state)
{
	static const uint64_t usual[] = {8,       4096,    65536,   262144,
	                                 1048576, GRANULE, GRANULE, GRANULE + GRANULE / 2};
	uint64_t bytes = usual[random_below(state, sizeof(usual) / sizeof(usual[0]))];

	return random_below(state, 2) ? bytes : 1 + random_below(state, bytes);
}

static uint64_t draw_argument(uint64_t *state, char letter)
{
	switch (letter) {
	case 's':
		return random_below(state, SLOTS);
	case 'z':
		return draw_bytes(state);
	case 'o': /* often all of the block */
		return random_below(state, 2) ? 0 : random_below(state, 1000);
	case 'l':
		return random_below(state, 2) ? 999 : random_below(state, 1000);
	case 'v':
		return 1 + random_below(state, 255);
	case 't':
		return random_below(state, STREAMS);
	case 'g':
		return random_below(state, GRAPHS);
	case 'd':
		return random_below(state, DEVICES);
	default:
		return random_below(state, 16);
	}
}

static const struct operation *draw_operation(uint64_t *state)
{
	const struct operation *operation;
	uint64_t all = 0;

	for (operation = operations; operation->name; operation++)
		all += operation->weight;
	uint64_t at = random_below(state, all);
	for (operation = operations; at >= operation->weight; operation++)
		at -= operation->weight;
	return operation;
}

/* Lines while threads capture in the global mode, when most operations are left out. */
#define GLOBAL_LINES 60

void program_draw(uint64_t seed, size_t count, unsigned threads)
{
	uint64_t state = seed * 0x2545f4914f6cdd1dull;
	size_t global_end = SIZE_MAX;

	for (size_t i = 0; i < count; i++) {
		const struct operation *operation = draw_operation(&state);

		if (operation->run == run_global)
			global_end = i + GLOBAL_LINES;
		if (i == global_end)
			operation = operation_named("together");
		uint64_t thread = random_below(&state, threads);

		if (operation->alone)
			printf("* %s", operation->name);
		else
			printf("%lu %s", thread, operation->name);
		for (const char *letter = operation->arguments; *letter; letter++)
			printf(" %lu", draw_argument(&state, *letter));
		printf("\n");
	}
}
