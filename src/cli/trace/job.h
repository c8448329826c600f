/*
 * The ranks of jobs together: their order, one clock for several hosts, and the ranks that stand
 * out.
 *
 * A log has the wall-clock time of its start. Logs of one host have one clock. The clocks of two
 * hosts usually differ by milliseconds, and then they are used as they are. A host's clock is taken
 * to be wrong only if all of this holds:
 *  - The ranks of the host and those of the job's first rank began more than a minute apart. A
 *    launcher starts all of them within that time.
 *  - They ended as far apart, by a minute. Ranks that only came later would end with the others.
 *  - Both are of one step of one job with a name, and no rank is there twice.
 * Then the difference of the begins is the estimate. It is as good as the launch was even: a
 * second or so.
 */
#ifndef SPILL_CLI_JOB_H
#define SPILL_CLI_JOB_H

#include "summary.h"

struct cli_host {
	const char *name; /* of the first of its runs */
	size_t runs;
	int64_t ahead_us; /* estimate, of the first of its runs whose clock is wrong; 0: the clock is used */
};

/* NULL: there is none. The runs are those of the summaries that were given. */
struct cli_job {
	bool ranks; /* there are several runs, and each has a rank. Else nothing else is set. */
	struct cli_host *hosts;
	size_t host_count, host_size;
	const struct cli_summary *fullest; /* wanted the largest share of a device at one time */
	const struct cli_device *full;     /* that device */
	const struct cli_summary *held_up; /* by moves, for the longest time */
	const struct cli_summary *longest; /* run */
	/* The first out of memory that surfaced, on the common clock. */
	const struct cli_summary *failed;
	uint64_t failed_us; /* since the first rank began */
};

/* Sorts the runs by job and rank if each has a rank, and sets clock_ahead_us and begin_us of each. */
struct cli_job cli_job_of(struct cli_summaries *summaries);

void cli_job_free(struct cli_job *job);

#endif
