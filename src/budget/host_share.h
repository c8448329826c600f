/*
 * What the processes of one user hold on the host together, so that host.limit can be of their sum. They tell each other by locks of an
 * empty file in shared memory (fcntl_locking(2), open file description locks): how many of its offsets a process has locked is what it
 * holds. Nothing is mapped or written, and the kernel drops all with the process, however that ends. Where that does not work, each
 * process counts for itself, and one note says so.
 */
#ifndef SPILL_HOST_SHARE_H
#define SPILL_HOST_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* So many processes can take part. */
#define SPILL_HOST_SLOTS 511

/*
 * From now on this process takes part: by the file `path`, NULL for the user's own. The file is made by the first spill to the host, not
 * by this. `path` stays the caller's and must last.
 */
void spill_host_share_use(const char *path);

/* What the others held when this process began to take part: it is missing in what was available then. */
uint64_t spill_host_share_at_start(void);

/*
 * Returns what the others hold; 0 if this process takes no part. Until the end nobody else adds to it who asks first; what this
 * process is charged with meanwhile (spill_account_host_charge: nothing else, as add and return tell by themselves) is seen by the next.
 * Each begin needs its end, in the same thread. Waits some milliseconds at most: a process that was stopped in between must not stop all
 * others.
 */
uint64_t spill_host_share_begin(void);
void spill_host_share_end(void);

void spill_host_share_fork_prepare(void);
/* The child takes part as a process of its own, from its first spill on. */
void spill_host_share_fork_done(bool child);

#endif
