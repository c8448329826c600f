/*
 * Words that the policy file, the log and the program's decisions share: places, steps of
 * oom.chain, kinds of memory, moves, reasons, and the options and conditions that refuse a request.
 *
 * Each word is an enumerator with its text in one table. Code compares enumerators. A text that was
 * read from a log becomes an enumerator first.
 */
#ifndef SPILL_WORDS_H
#define SPILL_WORDS_H

/* Where the bytes of an allocation are. */
enum spill_place {
	SPILL_PLACE_DEVICE,
	SPILL_PLACE_SPLIT,   /* one virtual range: what fits on the device, the rest on the host. */
	SPILL_PLACE_MANAGED, /* unified memory, with advice. */
	SPILL_PLACE_HOST,    /* pinned host memory, read in place. */
	SPILL_PLACE_MOVABLE, /* chunks on the device that can be demoted and promoted later */
	SPILL_PLACES
};

/* Steps of oom.chain, tried in order when the device is full. */
enum spill_step {
	SPILL_STEP_TRIM,   /* release unused memory, then ask the driver again */
	SPILL_STEP_DEMOTE, /* move cold chunks of movable allocations to host, then ask the driver again */
	SPILL_STEP_SPLIT,
	SPILL_STEP_MANAGED,
	SPILL_STEP_HOST,
	SPILL_STEPS
};

/* How the memory of a device and the memory of the host belong together. */
enum spill_memory {
	SPILL_MEMORY_AUTO,       /* as the device reports; never the answer for one device. */
	SPILL_MEMORY_DISCRETE,   /* the device has chips of its own; the host's are behind a bus. */
	SPILL_MEMORY_INTEGRATED, /* device and host use the same chips: an integrated GPU, an APU. */
	SPILL_MEMORY_COHERENT,   /* chips of its own, and a coherent link to each host page: Grace Hopper */
};

/* Each option or condition of ours that refuses a request, with its word in the log. */
#define SPILL_REFUSALS(X) \
	X(DEVICE_LIMIT, "device.limit") \
	X(DEVICE_RESERVE, "device.reserve") \
	X(HOST_LIMIT, "host.limit") \
	X(HOST_RESERVE, "host.reserve") \
	X(HOST_PRESSURE, "host.pressure") \
	X(RULE_PLACE, "rule.place") \
	X(RULE_OVER, "rule.over") \
	X(RULE_CAP, "rule.cap") \
	X(CAPTURE, "stream capture") \
	X(HONEST_FIRST, "oom.honest_first") \
	X(KIND, "this kind of memory cannot be elsewhere")

enum spill_refused_by {
	SPILL_REFUSED_BY_NONE,
#define X(id, word) SPILL_REFUSED_BY_##id,
	// clang-format off
	SPILL_REFUSALS(X)
#undef X
	SPILL_REFUSED_BY_OTHER /* the driver, by its error name */
	// clang-format on
};

/* Directions of a move: to the host, and back to the device. */
#define SPILL_MOVES(X) \
	X(DEMOTE, "demote") \
	X(PROMOTE, "promote")

enum spill_move_kind {
#define X(id, word) SPILL_MOVE_##id,
	// clang-format off
	SPILL_MOVES(X)
#undef X
	SPILL_MOVES_COUNT
	// clang-format on
};

/*
 * THE list of reasons of alloc, free and move lines, with the words of reports. `free` is a
 * promotion's there. docs/log-format.md explains each of them.
 */
#define SPILL_REASONS(X) \
	X(FITS, "fits", "because it fitted") \
	X(OOM, "oom", "because the card was full") \
	X(LIMIT, "limit", "because of device.limit or a rule's cap") \
	X(RULE, "rule", "because of a rule's place") \
	X(ASKED, "asked", "because the program asked for it") \
	X(FREE, "free", "because there was room again") \
	X(CONTEXT, "context", "because its context ended") \
	X(RESET, "reset", "because its device was reset") \
	X(ROOM, "room", "for a call that needs room") \
	X(RESERVE, "reserve", "to keep device.reserve free") \
	X(EXCHANGE, "exchange", "for newer memory") \
	X(USE, "use", "for memory that was used next")

enum spill_reason {
#define X(id, word, people) SPILL_REASON_##id,
	// clang-format off
	SPILL_REASONS(X)
#undef X
	SPILL_REASONS_COUNT
	// clang-format on
};

/* "device", "split", "managed", "host", "movable"; "unknown" for SPILL_PLACES. */
const char *spill_place_name(enum spill_place place);

/* "trim", "demote", "split", "managed", "host". */
const char *spill_step_name(enum spill_step step);

/* "auto", "discrete", "integrated", "coherent". */
const char *spill_memory_name(enum spill_memory memory);

const char *spill_move_name(enum spill_move_kind move);
const char *spill_reason_name(enum spill_reason reason);

/* "because the card was full". Of a log's word; a word that is not in the list is returned. */
const char *spill_reason_words(const char *word);

/* pre: not OTHER, which has many words. NONE has no word: NULL. */
const char *spill_refused_by_name(enum spill_refused_by by);

/* The inverse functions for texts of a log. `word` may be NULL; no match: SPILL_STEPS, OTHER. */
enum spill_step spill_step_of(const char *word);
enum spill_refused_by spill_refused_by_of(const char *word);

/* Where the step puts an allocation. TRIM and DEMOTE: on the device. */
enum spill_place spill_step_place(enum spill_step step);

/* The step that puts an allocation there. pre: SPLIT, MANAGED or HOST */
enum spill_step spill_step_to(enum spill_place place);

#endif
