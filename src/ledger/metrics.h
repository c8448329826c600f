/*
 * log.metrics: a Prometheus text file with this process's figures. It is written beside its path and
 * renamed, so a reader never sees half of it. It changes at most once a second, and once more when
 * the process ends.
 *
 * A short-lived thread writes it: no call of the program waits for the file, and the figures of a
 * program that is idle now are right. The thread starts at a change, and ends after a second without
 * one. If the process gets no thread, the program's own GPU memory calls write the file.
 */
#ifndef SPILL_METRICS_H
#define SPILL_METRICS_H

#include <stdatomic.h>

#include "lock.h"
#include "log.h"
#include "policy.h"

#define SPILL_METRICS_PERIOD_NS 1000000000ull

enum spill_metrics_state {
	SPILL_METRICS_OFF,
	SPILL_METRICS_WRITTEN, /* the file has the present figures, or they are being written */
	SPILL_METRICS_CHANGED,
};

extern _Atomic int spill_metrics_state;

/*
 * Begins the file, at the first GPU memory call. If it cannot be written, one line on stderr and a
 * note say so. Does nothing without log.metrics or in a privileged program.
 */
void spill_metrics_open(const struct spill_policy *policy, const struct spill_log_start *start);

/* A figure has changed. A load without log.metrics. Safe with any lock held. */
static inline void spill_metrics_changed(void)
{
	int state = SPILL_METRICS_WRITTEN;
	/* Exchanged: at the end of the process another thread may turn it off at this moment. */
	if (atomic_load_explicit(&spill_metrics_state, memory_order_relaxed) == state)
		atomic_compare_exchange_strong(&spill_metrics_state, &state, SPILL_METRICS_CHANGED);
}

void spill_metrics_start(void);

/* Sees to it that changes are written soon. A load if there are none. pre: no lock but the mover's */
static inline void spill_metrics_look(void)
{
	if (atomic_load_explicit(&spill_metrics_state, memory_order_acquire) == SPILL_METRICS_CHANGED)
		spill_metrics_start();
}

/* Writes the last file, when the process ends. Waits a limited time. Keeps errno. */
void spill_metrics_end(void);

extern const struct spill_fork_lock spill_metrics_fork_lock;

#endif
