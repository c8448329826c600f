#include "recorded_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

/* Room for one more element of an array that doubles. */
static void *grow(void *array, unsigned count, size_t size)
{
	if (count & (count - 1))
		return array;
	void *larger = realloc(array, (count ? 2 * (size_t)count : 1) * size);
	assert_non_null(larger);
	return larger;
}

static uint64_t number_until(char **rest, const char *separator)
{
	char *end, *word = strsep(rest, separator);
	assert_non_null(word);
	uint64_t value = strtoull(word, &end, 10);
	assert_true(end != word && !*end);
	return value;
}

static uint64_t number(char **rest)
{
	return number_until(rest, " ");
}

static void read_chunks(struct recording *to, char *rest)
{
	for (bool begins = true; rest; begins = false) {
		char *end;
		uint64_t bytes = strtoull(strsep(&rest, " "), &end, 10) * MIB;
		bool on_host = *end == 'h';
		assert_true(bytes && !end[on_host]);
		to->chunks = grow(to->chunks, to->chunk_count, sizeof(*to->chunks));
		to->chunks[to->chunk_count++] = (struct recorded_chunk){bytes, on_host, begins};
		*(on_host ? &to->host_bytes : &to->device_bytes) += bytes;
	}
}

static void add_use(struct recording *to, struct recorded_launch *launch, uint64_t chunk, uint64_t ns)
{
	assert_true(chunk < to->chunk_count);
	to->uses = grow(to->uses, to->use_count, sizeof(*to->uses));
	to->uses[to->use_count++] = (struct recorded_use){.chunk = (unsigned)chunk, .in_place_ns = ns};
	launch->count++;
}

/* FIRST[-LAST][:NS]: each of these chunks adds so much; without NS nothing. */
static void read_uses(struct recording *to, struct recorded_launch *launch, char **rest)
{
	while (*rest && **rest != '|') {
		char *cost = strsep(rest, " "), *chunks = strsep(&cost, ":");
		uint64_t first = number_until(&chunks, "-"), last = chunks ? number(&chunks) : first;
		uint64_t ns = cost ? number(&cost) : 0;
		for (; first <= last; first++)
			add_use(to, launch, first, ns);
	}
}

/* | CHUNK+OFFSET:UNITS… */
static void read_ranges(struct recording *to, struct recorded_launch *launch, char *rest)
{
	strsep(&rest, " ");
	while (rest) {
		char *units = strsep(&rest, " "), *chunk = strsep(&units, ":");
		struct recorded_range range = {.chunk = (unsigned)number_until(&chunk, "+")};
		range.offset = (uint32_t)number(&chunk);
		range.units = (uint32_t)number(&units);
		assert_true(range.chunk < to->chunk_count && range.units);
		to->ranges = grow(to->ranges, to->range_count, sizeof(*to->ranges));
		to->ranges[to->range_count++] = range;
		launch->range_count++;
	}
}

/* kind: C a copy, G a graph, L a kernel. */
static void read_launch(struct recording *to, char kind, bool waits, char *rest)
{
	struct recorded_launch launch = {
	    .once = kind == 'C', .graph = kind == 'G', .waits = waits, .site = 1};
	if (!launch.once)
		launch.site = 2 + number(&rest); /* 1 is that of copies */
	launch.ns = number(&rest);
	launch.sure = launch.once ? 0 : (unsigned)number(&rest);
	read_uses(to, &launch, &rest);
	read_ranges(to, &launch, rest);
	launch.sure = launch.once ? launch.count : launch.sure;
	assert_true(launch.sure <= launch.count && to->phase_count);
	to->launches = grow(to->launches, to->launch_count, sizeof(*to->launches));
	to->launches[to->launch_count++] = launch;
	to->phases[to->phase_count - 1].count++;
}

static void begin_phase(struct recording *to, char *rest)
{
	assert_true(to->phase_count < sizeof(to->phases) / sizeof(to->phases[0]));
	to->phases[to->phase_count++] =
	    (struct recorded_phase){.first = to->launch_count, .repeats = (unsigned)number(&rest)};
}

/* Once the arrays do not move any more. */
static void find_uses(struct recording *in)
{
	const struct recorded_use *uses = in->uses;
	const struct recorded_range *ranges = in->ranges;
	for (unsigned i = 0; i < in->launch_count; i++) {
		in->launches[i].uses = uses;
		in->launches[i].ranges = ranges;
		uses += in->launches[i].count;
		ranges += in->launches[i].range_count;
	}
}

static void read_line(struct recording *to, char *rest, bool *waits)
{
	const char *word = strsep(&rest, " ");
	if (strcmp(word, "#") == 0) {
		return;
	} else if (strcmp(word, "program") == 0) {
		snprintf(to->program, sizeof(to->program), "%s", rest);
	} else if (strcmp(word, "chunks") == 0) {
		read_chunks(to, rest);
	} else if (strcmp(word, "host") == 0) {
		to->host_ns = number(&rest);
	} else if (strcmp(word, "period") == 0) {
		begin_phase(to, rest);
	} else if (strcmp(word, "W") == 0) {
		*waits = true;
	} else if (word[0] && strchr("CGL", word[0]) && !word[1]) {
		read_launch(to, word[0], *waits, rest);
		*waits = false;
	} else {
		fail_msg("no line of a recording: %s", word);
	}
}

struct recording recording_read(const char *path)
{
	struct recording recording = {.host_ns = RECORDED_HOST_NS};
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t size = 0;
	bool waits = false;
	assert_non_null(file);
	while (getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		read_line(&recording, line, &waits);
	}
	free(line);
	fclose(file);
	assert_true(recording.launch_count && recording.chunk_count);
	find_uses(&recording);
	return recording;
}

void recording_free(struct recording *recording)
{
	free(recording->chunks);
	free(recording->launches);
	free(recording->uses);
	free(recording->ranges);
}
