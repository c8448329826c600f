#include "words.h"

#include <stddef.h>
#include <string.h>

static const char *const refusals[] = {
#define X(id, word) [SPILL_REFUSED_BY_##id] = (word),
    SPILL_REFUSALS(X)
#undef X
};

const char *spill_move_name(enum spill_move_kind move)
{
	static const char *const names[] = {
#define X(id, word) [SPILL_MOVE_##id] = (word),
	    SPILL_MOVES(X)
#undef X
	};

	return names[move];
}

const char *spill_reason_name(enum spill_reason reason)
{
	static const char *const names[] = {
#define X(id, word, people) [SPILL_REASON_##id] = (word),
	    SPILL_REASONS(X)
#undef X
	};

	return names[reason];
}

const char *spill_reason_words(const char *word)
{
	static const char *const words[] = {
#define X(id, word, people) [SPILL_REASON_##id] = (people),
	    SPILL_REASONS(X)
#undef X
	};

	for (unsigned i = 0; word && i < SPILL_REASONS_COUNT; i++) {
		if (!strcmp(word, spill_reason_name((enum spill_reason)i)))
			return words[i];
	}
	return word;
}

enum spill_place spill_step_place(enum spill_step step)
{
	static const enum spill_place places[SPILL_STEPS] = {
	    [SPILL_STEP_TRIM] = SPILL_PLACE_DEVICE, [SPILL_STEP_DEMOTE] = SPILL_PLACE_DEVICE,
	    [SPILL_STEP_SPLIT] = SPILL_PLACE_SPLIT, [SPILL_STEP_MANAGED] = SPILL_PLACE_MANAGED,
	    [SPILL_STEP_HOST] = SPILL_PLACE_HOST,
	};

	return places[step];
}

enum spill_step spill_step_to(enum spill_place place)
{
	enum spill_step step = SPILL_STEP_SPLIT;

	while (step < SPILL_STEP_HOST && spill_step_place(step) != place)
		step++;
	return step;
}

const char *spill_step_name(enum spill_step step)
{
	/* Both make room on the device, so the place does not tell them apart. */
	if (step == SPILL_STEP_TRIM)
		return "trim";
	return step == SPILL_STEP_DEMOTE ? "demote" : spill_place_name(spill_step_place(step));
}

const char *spill_memory_name(enum spill_memory memory)
{
	static const char *const names[] = {
	    [SPILL_MEMORY_AUTO] = "auto",
	    [SPILL_MEMORY_DISCRETE] = "discrete",
	    [SPILL_MEMORY_INTEGRATED] = "integrated",
	    [SPILL_MEMORY_COHERENT] = "coherent",
	};

	return names[memory];
}

const char *spill_place_name(enum spill_place place)
{
	static const char *const names[SPILL_PLACES] = {
	    [SPILL_PLACE_DEVICE] = "device",   [SPILL_PLACE_SPLIT] = "split",
	    [SPILL_PLACE_MANAGED] = "managed", [SPILL_PLACE_HOST] = "host",
	    [SPILL_PLACE_MOVABLE] = "movable",
	};

	return (unsigned)place < SPILL_PLACES ? names[place] : "unknown";
}

const char *spill_refused_by_name(enum spill_refused_by by)
{
	return refusals[by];
}

enum spill_step spill_step_of(const char *word)
{
	enum spill_step step = SPILL_STEP_TRIM;

	while (step < SPILL_STEPS && (!word || strcmp(word, spill_step_name(step)) != 0))
		step++;
	return step;
}

enum spill_refused_by spill_refused_by_of(const char *word)
{
	enum spill_refused_by by = SPILL_REFUSED_BY_DEVICE_LIMIT;

	while (by < SPILL_REFUSED_BY_OTHER && (!word || strcmp(word, refusals[by]) != 0))
		by++;
	return by;
}
