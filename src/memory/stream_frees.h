/*
 * Stream frees: the free ranges of an ordered pool, by the stream that freed them, until it is known
 * that no work uses them. Then they are settled, and serve every stream.
 *
 * Settled by a mark: an event behind all work of the context, made when some other stream lacks
 * memory. So a free itself costs no call of the vendor. Or by a call of the program that has waited
 * for the work.
 *
 * The pool's lock guards it.
 */
#ifndef SPILL_STREAM_FREES_H
#define SPILL_STREAM_FREES_H

#include <pthread.h>

#include "backend.h"
#include "context_end.h"
#include "free_ranges.h"
#include "placement.h"

/*
 * Small requests have segments of their own, so that a small one that lives long does not keep a
 * large segment.
 */
enum spill_range_kind { SPILL_SMALL_RANGES, SPILL_LARGE_RANGES, SPILL_RANGE_KINDS };

/* A mark behind all work of a context. All frees up to `number` were before it. No event: none. */
struct spill_free_mark {
	void *event, *context;
	int device;
	uint64_t birth, number;
	uint64_t generation; /* of the event (context_end.h) */
};

/* All zero: no ranges. */
struct spill_stream_frees {
	struct spill_free_ranges settled[SPILL_RANGE_KINDS];
	struct spill_stream_free_list *lists;
	struct spill_free_mark mark;
	bool marking;   /* a thread calls the vendor about the mark */
	uint64_t turns; /* marks that were tried */
};

/* The ranges that were freed in that order. NULL: none. pre: locked */
struct spill_free_ranges *spill_stream_frees_of(const struct spill_stream_frees *frees,
                                                const struct spill_stream_order *order,
                                                enum spill_range_kind kind);

/* The same for a free: made if there is none. `device`: of the order's context. NULL: no memory. */
struct spill_free_ranges *spill_stream_frees_make(struct spill_stream_frees *frees,
                                                  const struct spill_stream_order *order, int device,
                                                  enum spill_range_kind kind);

/* The number of the next free, and of the last one, in all pools. */
uint64_t spill_stream_frees_count(void);
uint64_t spill_stream_frees_number(void);

/*
 * Settles the frees up to that number of a stream; of a context (order->stream NULL); or of all
 * (order->context NULL, too). pre: locked
 */
void spill_stream_frees_done(struct spill_stream_frees *frees, const struct spill_stream_order *order,
                             uint64_t number);

/* The work of the context has ended with it. Frees in a later context of that handle stay. pre: locked */
void spill_stream_frees_context_ended(struct spill_stream_frees *frees, const struct spill_context_end *end);

/* A later stream may have the handle, and no order with these frees. pre: locked */
void spill_stream_frees_stream_ended(struct spill_stream_frees *frees, const void *stream);

/*
 * Looks at the mark, or places one if there is none. True: frees were settled. pre: not locked; no
 * lock of ours but the mover is held
 */
bool spill_stream_frees_look(struct spill_stream_frees *frees, const struct spill_backend *backend,
                             pthread_mutex_t *lock);

#endif
