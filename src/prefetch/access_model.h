/*
 * The model of accesses to movable memory: their order (policy/predict/access_history.h) and their
 * cost (policy/predict/migration_benefit.h). Its memory, about 2 MiB, is mapped at the first
 * access. Any thread may call it.
 */
#ifndef SPILL_ACCESS_MODEL_H
#define SPILL_ACCESS_MODEL_H

#include "launch_access.h"
#include "exchange_pause.h"
#include "in_place_cost.h"
#include "learning_rest.h"

/* The advice for one access. */
struct spill_access_advice {
	bool learned; /* the model was not busy: the rest of the advice holds */
	bool bring;   /* needs memory on the host, and a promotion may pay. */
	bool looks;   /* .bring is only for a swap: the access counts as in place. */
	bool timed;   /* measure it, unless chunks move for it. */
	bool tells;   /* the sums of accesses in place are due (in_place.h) */
	/* What a trial of exchanges or of a pause has shown (exchange_pause.h), and its two times; 0: no trial, the program has changed */
	enum spill_pause_change pause_change;
	uint64_t pause_was_ns, pause_is_ns;
	uint16_t site;
	uint64_t excess_ns;                  /* if bring: what a MiB of it costs on the host */
	struct spill_benefit_waiting waited; /* for the stopwatch (in_place_cost.h) */
	uint64_t busy_ns;                    /* estimated time until the device is idle. */
	uint64_t copy_ns;                    /* with memory on the host: what an exchange of a MiB costs. */
	uint64_t work_ns;                    /* estimated work of all launches so far, for the stopwatch. */
};

/* Learns an access that is about to happen. Dropped if the lock is contended. */
struct spill_access_advice spill_access_model_learn(const struct spill_launch_access *access);

/*
 * Learns the finished measurements. Returns the number of measurements so far. pre: as
 * spill_stopwatch_collect
 */
uint64_t spill_access_model_hear(void);

/* The device is idle. */
void spill_access_model_idle(void);

/*
 * An access with .bring, not only for a swap, used so many bytes on the host, because they did not come.
 * Of the others the model has counted them.
 */
void spill_access_model_left_in_place(const struct spill_access_advice *advice, uint64_t host_bytes);

/*
 * The sums of accesses in place (in_place_cost.h). False: there was no access, or the lock is contended.
 * The next accesses do not tell them for a while (advice.tells).
 */
bool spill_access_model_in_place(struct spill_in_place_sums *sums, bool all);

/*
 * What was learned so far. `disturbed`: since the last call memory has moved by use, a graph was launched, or exchanges pause for a
 * trial.
 */
struct spill_access_activity {
	struct spill_learning_sums sums;
	struct spill_in_place_cost in_place;
	bool disturbed;
};

/* False: there was no access, or the lock is contended. */
bool spill_access_model_activity(struct spill_access_activity *activity);

/*
 * For `rested_ns` no access was learned. They count like those in `watched_ns` before that, not 0, since `*activity` was read.
 * Reads it anew. pre: it was read before
 */
void spill_access_model_rested(struct spill_access_activity *activity, uint64_t watched_ns,
                               uint64_t rested_ns);

/*
 * A graph is launched node by node. Whether that is faster is measured for each graph (graph_modes.h), so exchanges
 * do not pause.
 */
void spill_access_model_by_nodes(void);

void spill_access_model_reset(void); /* in a forked child */

#endif
