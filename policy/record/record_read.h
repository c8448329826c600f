/*
 * A line of the log, read: the inverse of record.c and of the start line, for whoever looks at a log (report, replay).
 * Pure, in one pass, and safe with any bytes: a line may be torn, of another version, or made to do harm.
 *
 * What docs/log-format.md asks of readers is done here: kinds and members that are not known are skipped, the order of
 * members does not matter.
 */
#ifndef SPILL_RECORD_READ_H
#define SPILL_RECORD_READ_H

#include <stdbool.h>
#include <string.h>

#include "record.h"

struct spill_record_device {
	int device;
	const char *name, *uuid, *pci, *memory; /* all but the name: NULL if unknown */
	uint64_t bytes;
};

/* Variables that say which part of a job a process is; the first ones, up to SLURM_PROCID, which of all its processes. */
#define SPILL_RANKS(X) \
	X(RANK, "RANK", "torchrun and others: rank in the whole job") \
	X(OMPI_COMM_WORLD_RANK, "OMPI_COMM_WORLD_RANK", "the same for Open MPI") \
	X(PMIX_RANK, "PMIX_RANK", "the same for PMIx") \
	X(PMI_RANK, "PMI_RANK", "the same for MPICH and Intel MPI") \
	X(SLURM_PROCID, "SLURM_PROCID", "the same for Slurm") \
	X(LOCAL_RANK, "LOCAL_RANK", "torchrun and others: rank on this machine") \
	X(OMPI_COMM_WORLD_LOCAL_RANK, "OMPI_COMM_WORLD_LOCAL_RANK", "the same for Open MPI") \
	X(SLURM_LOCALID, "SLURM_LOCALID", "the same for Slurm") \
	X(WORLD_SIZE, "WORLD_SIZE", "torchrun and others: number of processes of the job") \
	X(SLURM_JOB_ID, "SLURM_JOB_ID", "job number of Slurm") \
	X(SLURM_STEP_ID, "SLURM_STEP_ID", "step number of Slurm")

enum spill_rank {
#define X(id, name, text) SPILL_RANK_##id,
	// clang-format off
	SPILL_RANKS(X)
#undef X
	SPILL_RANKS_COUNT
	// clang-format on
};

struct spill_record_ranks {
	const char *of[SPILL_RANKS_COUNT]; /* NULL: not set */
};

struct spill_record_option {
	const char *name, *value, *source;
};

/* The name of the rule that it is; NULL: it is an option. pre: it has a name, as each that was read */
static inline const char *spill_record_rule(const struct spill_record_option *option)
{
	const size_t length = sizeof(SPILL_RECORD_RULE) - 1;

	return strncmp(option->name, SPILL_RECORD_RULE, length) ? NULL : option->name + length;
}

/* Of the texts those that could not be found are NULL. */
struct spill_record_start {
	uint64_t time_us; /* 0 */
	const char *time, *boot, *host, *program, *exe, *version, *backend;
	struct spill_record_ranks ranks;
	int pid, ppid, driver;
	unsigned device_count, option_count, arg_count;
	const struct spill_record_device *devices;
	const struct spill_record_option *policy;
	const char *const *args;
	bool cut;           /* some of the arguments are not there */
	uint64_t continues; /* lines of this run in the files before this one; 0 in the first */
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
	    kind; /* SPILL_KINDS_COUNT: one that we do not know, or of a later version; only time_us is told */
	uint64_t version;
	union {
		uint64_t time_us; /* of every kind the first member */
		struct spill_record_start start;
		struct spill_record_alloc alloc;
		struct spill_record_free free;
		struct spill_record_move move;
		struct spill_record_oom oom;
		struct spill_record_note note;
		struct spill_record_drop drop;
		struct spill_record_exit exit;
	};
};

/* Room that is enough for what is told by any line of so many bytes. */
#define SPILL_RECORD_SCRATCH(length) (3 * (length) + 32)

/*
 * Reads one line, with or without its newline. NULL, or why not (static text): *at is then the offset of the byte that is
 * wrong, and what is in `record` means nothing.
 *
 * Texts and lists of the record lie in scratch[size] (the line may go away), escapes decoded, terminated. A text that is
 * not there is NULL, a device -1, a number 0. A line of a later version is not looked into: its members may mean something
 * else. A place that we do not know is SPILL_PLACES; of more attempts or holders than the record has room for the first
 * are kept.
 */
const char *spill_record_read(const char *line, size_t length, char *scratch, size_t size,
                              struct spill_record *record, size_t *at);

#endif
