/*
 * The sum of host memory that all processes of one user hold in one job, so that host.limit holds
 * for the sum. The processes of a job have a control group with a limit in common; those outside of
 * any such group count together, too. They share the sum by locks on an empty file in shared memory
 * (fcntl_locking(2), open file description locks). The number of offsets that a process has locked
 * is the memory that it holds. Nothing is mapped or written. The kernel drops the locks when the
 * process ends in any way. If the file cannot be used, each process counts for itself, and one note
 * says so.
 */
#ifndef SPILL_HOST_SHARE_H
#define SPILL_HOST_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "lock.h"

/* Limit of processes that take part. */
#define SPILL_HOST_SLOTS 511

/* What other processes hold (account.h). */
struct spill_host_others {
	uint64_t held;
	uint64_t physical; /* the part of it that no control group counts */
};

/*
 * Makes this process take part, by the file `path`; NULL is the file of the user. Only processes of
 * the same `job` count together: the number of its control group, or 0 (spill_host_job). The first
 * spill to the host creates the file. `path` must stay valid.
 */
void spill_host_share_use(const char *path, uint64_t job);

/* What the others held when this process began: not in the memory available then. */
struct spill_host_others spill_host_share_at_start(void);

/*
 * Returns what the others hold; 0 if this process takes no part. Until the end, no other
 * process charges more. The end shows the others what this process charged meanwhile by
 * spill_account_host_charge. Account's add and return are shown at once. Each begin needs its end,
 * in the same thread. Begin waits some milliseconds at most, so that a process that was stopped
 * before its end does not stop all others.
 */
struct spill_host_others spill_host_share_begin(void);
void spill_host_share_end(void);

extern const struct spill_fork_lock spill_host_share_fork_lock;

#endif
