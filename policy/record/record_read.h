/*
 * Reads a line of the log, for `spill report`, `spill replay` and the like. One pass, safe with any
 * bytes: a line may be torn, of another version, or an attack.
 *
 * As docs/log-format.md requires, unknown kinds and members are skipped, and members may come in
 * any order.
 */
#ifndef SPILL_RECORD_READ_H
#define SPILL_RECORD_READ_H

#include <stdbool.h>
#include <string.h>

#include "ranks.h"
#include "record.h"

struct spill_record_device {
	int device;
	const char *name, *uuid, *pci, *memory; /* all but the name may be NULL: unknown */
	uint64_t bytes;
};

struct spill_record_option {
	const char *name, *value, *source;
};

/* The name of the rule, or NULL for an option. pre: it has a name, as any that was read */
static inline const char *spill_record_rule(const struct spill_record_option *option)
{
	const size_t length = sizeof(SPILL_RECORD_RULE) - 1;

	return strncmp(option->name, SPILL_RECORD_RULE, length) ? NULL : option->name + length;
}

/* Texts that are unknown are NULL. */
struct spill_record_start {
	uint64_t time_us; /* 0 */
	const char *time, *boot, *host, *program, *exe, *version, *backend;
	struct spill_record_ranks ranks;
	int pid, ppid, driver;
	unsigned device_count, option_count, arg_count;
	const struct spill_record_device *devices;
	const struct spill_record_option *policy;
	const char *const *args;
	bool cut;           /* some arguments are missing */
	uint64_t continues; /* lines of this run in earlier files; 0 in the first */
};

struct spill_record_note {
	uint64_t time_us;
	int tid;
	const char *code, *text;
};

struct spill_record_exit {
	uint64_t time_us;
	const char *how;
	struct spill_totals totals;
	unsigned hit_count;
	const struct spill_hits *hits;
};

struct spill_record {
	enum spill_kind
	    kind; /* SPILL_KINDS_COUNT: unknown, or of a later version; then only time_us is set */
	uint64_t version;
	union {
		uint64_t time_us; /* of every kind the first member */
		struct spill_record_start start;
		struct spill_record_alloc alloc;
		struct spill_record_free free;
		struct spill_record_move move;
		struct spill_record_sum sum;
		struct spill_record_oom oom;
		struct spill_record_file file;
		struct spill_record_note note;
		struct spill_record_drop drop;
		struct spill_record_use use;
		struct spill_record_exit exit;
	};
};

/* Room that is enough for any line of `length` bytes. */
#define SPILL_RECORD_SCRATCH(length) (3 * (length) + 32)

/*
 * Reads one line, with or without its newline. Returns NULL, or the reason why it is wrong (static
 * text). *at is then the offset of the wrong byte, and `record` is undefined.
 *
 * Texts and lists are copied to scratch[size], decoded and terminated. A missing text is NULL, a
 * missing device -1, a missing number 0. The members of a line of a later version are skipped,
 * because they may have another meaning. An unknown place is SPILL_PLACES. If there are more
 * attempts or holders than the record has room for, it has the first ones.
 */
const char *spill_record_read(const char *line, size_t length, char *scratch, size_t size,
                              struct spill_record *record, size_t *at);

#endif
