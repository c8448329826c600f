/*
 * explain: why memory ran out, and what would help, in words for people.
 *
 * Two texts: a block of lines for stderr, when an out of memory surfaces and when the process ends;
 * and one sentence of advice, for stderr and for `spill report`. A block has lines about the
 * request, earlier spills, the largest callers, the device, the refusal, the tried steps, advice
 * and the log. This room never writes: the texts go into the caller's buffer. Begin reading at
 * spill_oom_report.
 */
#ifndef SPILL_OOM_REPORT_H
#define SPILL_OOM_REPORT_H

#include "record.h"
#include "text.h"

/* A block is one write that a pipe takes whole: PIPE_BUF of Linux, pipe(7). */
#define SPILL_STDERR_BLOCK 4096

/* The process that the report is about. */
struct spill_report_process {
	const char *program;
	const char *log; /* its path; "": there is none */
	const struct spill_totals *totals;
	uint64_t run_us;     /* since the first GPU memory call */
	const char *problem; /* the refused policy's: "FILE:LINE:COL: …"; NULL: none is refused */
	bool follow_off;     /* movable.follow is off */
};

/* Follows the problem of a refused policy, in its note and on stderr. */
#define SPILL_PROBLEM_EFFECT "; nothing is spilled, libspill only observes"

/*
 * Writes whole lines, each "spill: …" with its newline, and returns their length. Texts from
 * outside are cut, and their control characters replaced. SPILL_STDERR_BLOCK bytes hold all lines
 * except, at worst, some of the callers.
 */
size_t spill_oom_report(const struct spill_report_process *process, const struct spill_record_oom *oom,
                        char *buffer, size_t size);

/* Spilled bytes by the reason of their alloc line. */
struct spill_bytes_by_reason {
	uint64_t oom, limit, rule;
};

/* The same at the end of the process. `how` is the exit line's. Totals are exact, in bytes. */
size_t spill_exit_report(const struct spill_report_process *process, const char *how,
                         const struct spill_bytes_by_reason *why, char *buffer, size_t size);

/*
 * One line at the end of a process that had memory off the device: the story of the run
 * (run_story.h), and its log. 0 for others.
 */
size_t spill_end_line(const struct spill_report_process *process, char *buffer, size_t size);

/* "5.00 GiB device, 2.04 GiB host". Leaves out zeros; "nothing" if all are. */
struct spill_word spill_sums(const struct spill_bytes *sums);

/*
 * The end of a sentence: "host.limit = 12GiB at least (…); or 1.04 GiB less in use …" (advice.c).
 * `program` may be NULL; `problem`: as in struct spill_report_process.
 */
void spill_advice_oom(struct spill_text *text, const struct spill_record_oom *oom, const char *program,
                      const char *problem);

/* "a smaller batch or model, or a shorter context length". `program` may be NULL. */
void spill_advice_smaller(struct spill_text *text, const char *program);

/*
 * "134.42 GiB " SPILL_HELD_BY_OTHERS: all of the device that is neither free nor the program's own
 * allocations. The driver does not tell these parts apart.
 */
#define SPILL_HELD_BY_OTHERS \
	"held by other programs and by contexts and code, this program's too (nvidia-smi or rocm-smi " \
	"shows whose)"

/*
 * What refused: "host.limit (rule default): 8.00 GiB allowed, 6.00 GiB in use, 3.00 GiB more asked"
 * or "host.reserve (rule default): 2.00 GiB to stay free of 2.50 GiB, 1.00 GiB asked".
 */
void spill_oom_refused(struct spill_text *text, const struct spill_record_oom *oom);

/*
 * Bytes of `live` on other devices than the full one; `places`, `callers` and `holders` lack them.
 */
uint64_t spill_oom_elsewhere(const struct spill_record_oom *oom);

/*
 * Do other programs hold so much more than `missing` that they can give it back? `others`: with contexts
 * and code, this program's too, which take up to a GiB.
 */
bool spill_oom_others_have(uint64_t others, uint64_t missing);

/* False for oom.honest_first: it surfaces on purpose, and the program asks again. May be NULL. */
bool spill_oom_is_final(const char *refused_by);

/*
 * Is the request more than SPILL_BEYOND times the whole device? No option helps then. Programs ask
 * so to find out how much there is, or with a size that overflowed. pre: total != 0
 */
#define SPILL_BEYOND 16
bool spill_oom_is_beyond(uint64_t bytes, uint64_t total);

#endif
