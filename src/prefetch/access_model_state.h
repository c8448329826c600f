/*
 * What the model of accesses knows (access_model.h). For the two files that know it alone: access_model.c learns it, and
 * access_choice.c chooses by it what moves.
 */
#ifndef SPILL_ACCESS_MODEL_STATE_H
#define SPILL_ACCESS_MODEL_STATE_H

#include "access_history.h"
#include "chunk_stay.h"
#include "exchange_lead.h"
#include "exchange_pause.h"
#include "idle_window.h"
#include "in_place_cost.h"
#include "migration_benefit.h"
#include "process.h"
#include "swap_window.h"

struct spill_access_model {
	struct spill_access_history history;
	struct spill_migration_benefit benefit;
	struct spill_chunk_stays stays;
	uint64_t chunk_accesses;         /* of all launches so far */
	bool moves[SPILL_BENEFIT_SITES]; /* a site's chunks were promoted the last time */
	/*
	 * Estimate of the device's remaining work, from measured times. busy_until_ns: with the
	 * work that was submitted until read_ns. since_ns: the work since then.
	 */
	uint64_t busy_until_ns, read_ns, since_ns;
	bool since_unknown; /* of some of it nobody knows how long it takes */
	uint64_t work_ns;   /* of all launches so far, estimated */
	/* the last measured work was seen unfinished this long after its submission */
	uint64_t behind_ns;
	struct spill_swap_window swaps;
	struct spill_idle_window idle;
	struct spill_exchange_pause pause;
	struct spill_exchange_lead lead; /* of the last exchange */
	uint64_t probed_ns;              /* when an access was last timed only for that */
	struct spill_in_place_cost in_place;
	uint64_t in_place_since_ns; /* time of the first access in place; 0: none */
	uint64_t tell_ns;           /* when its sums are told next */
	uint64_t lost_ns;           /* by accesses in place; a copy's cost where theirs is unknown */
	bool disturbed;             /* spill_access_model_activity */
};

/* Takes the model's lock. NULL: no access was learned so far. */
struct spill_access_model *spill_access_model_lock(void);
void spill_access_model_unlock(void);

/* All that is known of what the last exchange cost becomes a part of its price. pre: locked */
void spill_access_model_end_lead(struct spill_access_model *model);

/* Where the program is. pre: locked */
static inline struct spill_idle_point spill_access_model_point(const struct spill_access_model *model)
{
	return (struct spill_idle_point){model->history.count, model->chunk_accesses, model->in_place.ns};
}

/* The same for windows of time. pre: locked */
static inline struct spill_access_point spill_access_model_now(const struct spill_access_model *model,
                                                               uint64_t now_ns)
{
	return (struct spill_access_point){&model->history, now_ns, model->in_place.ns};
}

/* With `on` everything comes, and with `overlap` what is away costs nothing in place. */
static inline bool spill_access_model_is_auto(void)
{
	return spill_process_policy()->movable_follow == SPILL_FOLLOW_AUTO;
}

#endif
