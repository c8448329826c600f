/*
 * All movable chunks of a device, with those that a launch needs. pre, of all functions: the mover is
 * held, so no chunk moves or goes.
 */
#ifndef SPILL_CHUNK_LIST_H
#define SPILL_CHUNK_LIST_H

#include "chunked.h"
#include "exchange.h"
#include "exchange_choice.h"
#include "launch_access.h"
#include "promote.h"

struct spill_chunk_list {
	struct spill_exchange_chunk *chunks; /* oldest allocation first; .data: the struct spill_chunked */
	struct spill_chunk_index index;      /* of all of them */
	unsigned *ranks;                     /* room for as many numbers */
	unsigned count;
	uint64_t on_host, resident; /* bytes */
};

/* False: no memory. Free the list in either case. */
bool spill_chunk_list_make(struct spill_chunk_list *list, int device,
                           const struct spill_launch_access *access);
void spill_chunk_list_free(struct spill_chunk_list *list);

/* Asks for a choice among them. The caller says how much may come, and why. */
static inline struct spill_exchange_choice spill_chunk_list_choice(const struct spill_chunk_list *list,
                                                                   const struct spill_backend *backend,
                                                                   int device)
{
	return (struct spill_exchange_choice){
	    .chunks = list->chunks,
	    .count = list->count,
	    .index = list->index,
	    .ranks = list->ranks,
	    .room = spill_promote_room(backend, device) + spill_exchange_kept(),
	    .horizon = list->resident / 2,
	};
}

/*
 * Adds the chosen chunks to an exchange. A chunk without host memory does not leave, so fewer come. False: none was
 * added.
 */
bool spill_chunk_list_add_chosen(const struct spill_exchange_choice *choice, struct spill_exchange *exchange);

/*
 * The chosen chunks swapped. Where those that moved are now is their home, also at the end of a phase (exchange.h). The
 * others have no verdict any more.
 */
void spill_chunk_list_swapped(struct spill_exchange_choice *choice);

/* The allocation that the launch names first. NULL: it is gone. */
struct spill_chunked *spill_chunk_list_allocation(const struct spill_launch_access *access);

#endif
