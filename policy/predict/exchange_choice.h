/*
 * predict: which memory the program will use next, and whether a migration pays.
 *
 * The room learns from accesses (access_history.h) and from measured times (migration_benefit.h,
 * site_chunk_cost.h). It recognises growing pools (growth.h), and estimates device usage between
 * queries of the driver (usage_estimate.h). It never moves memory and never reads a clock. All state
 * is the caller's, and zeroed state knows nothing. Begin reading here: this header uses the others.
 *
 * The choice of an exchange: some chunk on the host is needed now, so which chunks are promoted, and
 * which are demoted for them? Promoted: the needed chunks, then the next predicted ones, up to the
 * slice. Demoted: the chunks whose next use is furthest in the future (Belady). For a predicted chunk,
 * a victim's next use must be several times later (exchange_choice.c). Chunks without a predicted use
 * leave first, the least recently used one first.
 *
 * Sizes are bytes.
 */
#ifndef SPILL_EXCHANGE_CHOICE_H
#define SPILL_EXCHANGE_CHOICE_H

#include "access_history.h"
#include "migration_benefit.h"

enum spill_exchange_verdict { SPILL_EXCHANGE_STAYS, SPILL_EXCHANGE_COMES, SPILL_EXCHANGE_GOES };

struct spill_exchange_chunk {
	uint32_t key; /* as in the order; no two have the same */
	uint64_t bytes;
	bool on_host;
	bool fixed;     /* can neither come nor go (pinned) */
	bool needed;    /* by the use that is about to be made */
	bool maybe;     /* perhaps: it comes, too, up to four slices of it, but leaves for what is needed */
	void *data;     /* the caller's */
	unsigned index; /* the caller's */
	/* Out: */
	enum spill_exchange_verdict verdict;
	uint64_t next; /* steps until its next foreseen use; 0: needed; UINT64_MAX: none is foreseen */
	uint64_t
	    last; /* uses since its last one; UINT64_MAX: long ago. Only for those that may go and are not foreseen */
	uint64_t excess_ns; /* a MiB of it, in place, over the uses of its coming stay */
};

struct spill_exchange_choice {
	struct spill_exchange_chunk *chunks; /* sorted by key; afterwards still */
	unsigned count;
	unsigned *ranks; /* room for `count` of the caller's, for sorting in here */
	uint64_t room;   /* bytes that may be taken on the device without anything leaving */
	uint64_t
	    spare; /* of it that is to be there afterwards, too, as far as something leaves for it that is not needed soon */
	uint64_t slice; /* most bytes that come at once, unless what is needed is more */
	uint64_t
	    horizon; /* a stay ends when so many bytes of others have been used: half of what is resident, say */
	bool always; /* whatever it costs (movable.follow = on): what is needed comes */
	/* Out: */
	uint64_t comes, goes; /* bytes */
	bool pays;            /* false: nothing is to move */
	uint64_t
	    excess_ns; /* what a MiB of what is asked for and on the host costs in place: it was decided by that */
};

/* Orders by key, for qsort(3) by the caller. */
int spill_exchange_chunk_compare(const void *left, const void *right);

/*
 * Decides. pre: the order was told of the use that is about to be made. `reuse` may be NULL: everything pays.
 * `moved_so_far`: the site that needs it was served by moves before (hysteresis, spill_benefit_pays). True if something comes.
 * Time: the walk along one period, and count·log(count).
 */
bool spill_exchange_choose(struct spill_exchange_choice *window, const struct spill_access_history *order,
                           const struct spill_migration_benefit *reuse, uint16_t site, bool moved_so_far);

#endif
