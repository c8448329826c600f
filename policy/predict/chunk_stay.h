/*
 * What the accesses of a chunk on the host cost in place, from one sweep of the program to the next.
 * A program accesses a chunk several times in a row (the tensors of a layer), then not for long. The
 * cost of such a row tells at its first access whether it is worth to consider an exchange. That is
 * a cheap look before the exact choice (exchange_choice.h), which walks over all chunks and a whole
 * period of the history.
 *
 * All memory is in the struct. Zeroed, it is empty. Times are ns, costs ns for a MiB.
 */
#ifndef SPILL_CHUNK_STAY_H
#define SPILL_CHUNK_STAY_H

#include <stdbool.h>
#include <stdint.h>

/* Chunks that are kept. A chunk replaces another one at its place. */
#define SPILL_CHUNK_STAY_BITS 12
#define SPILL_CHUNK_STAYS (1u << SPILL_CHUNK_STAY_BITS)

struct spill_chunk_stay {
	uint32_t key;         /* of the chunk; 0: free */
	uint64_t last_use;    /* number of its last access, of all accesses of chunks */
	uint64_t cost_ns;     /* of the row of accesses that goes on, as far as it is in place */
	uint64_t last_ns;     /* the part of it that is the last access */
	uint64_t whole_ns;    /* of a whole row, as the ones before tell; 0: not known */
	bool whole_known;     /* whole_ns is of the row that goes on (spill_chunk_stay_whole) */
	uint64_t next_try_ns; /* no exchange is considered for it until then */
	uint64_t pause_ns;    /* length of the pause before; doubles */
	uint64_t next_swap_ns, swap_pause_ns; /* the same for swaps (placement_swap.h) */
	uint64_t pays_at, came_ns; /* it came by one, and pays if it is used up to that access; 0: no */
};

struct spill_chunk_stays {
	struct spill_chunk_stay stays[SPILL_CHUNK_STAYS];
};

/* Accesses since the last one in place of the chunk; UINT64_MAX: none is known. */
uint64_t spill_chunk_stay_gap(const struct spill_chunk_stays *stays, uint32_t key, uint64_t use);

/*
 * Adds an access in place that costs `cost_ns`. `use`: its number, of all accesses of chunks; `gap`: a row ends
 * if the chunk was not accessed for so many accesses. Returns what the row costs: what it cost so far,
 * or what a whole row costs, if that is more.
 */
uint64_t spill_chunk_stay_add(struct spill_chunk_stays *stays, uint32_t key, uint64_t use, uint64_t gap,
                              uint64_t cost_ns);

/*
 * The coming accesses of the chunk cost `rest_ns` in place, as long as they are predicted. `use`: the number of the access
 * that is the first of them, if it was added. Without this, only the part of a row before the chunk comes would count for
 * the next row, and each row would stay in place until it has cost as much as an exchange (docs/adr/0021-stop-exchange-go.md).
 */
void spill_chunk_stay_whole(struct spill_chunk_stays *stays, uint32_t key, uint64_t use, uint64_t rest_ns);

/* May an exchange be considered for the chunk? */
bool spill_chunk_stay_may_try(const struct spill_chunk_stays *stays, uint32_t key, uint64_t now_ns);

/* The verdict for an exchange that brings the chunk. If it does not pay, the chunk pauses. */
void spill_chunk_stay_verdict(struct spill_chunk_stays *stays, uint32_t key, bool pays, uint64_t now_ns);

/*
 * The chunk has swapped. Where costs are measured badly, chunks would go to and fro. So it may not swap again for a second,
 * and then for twice as long each time, up to ten minutes.
 */
void spill_chunk_stay_swapped(struct spill_chunk_stays *stays, uint32_t key, uint64_t now_ns);
bool spill_chunk_stay_may_swap(const struct spill_chunk_stays *stays, uint32_t key, uint64_t now_ns);

/*
 * The chunk has come in place of an idle one (idle_window.h), and saves what that costs if the program goes on like this up to
 * that access of the history.
 */
void spill_chunk_stay_came(struct spill_chunk_stays *stays, uint32_t key, uint64_t pays_at, uint64_t now_ns);

/*
 * It leaves, because it was not used since that access. Returns for how long it was there in vain; 0: it has paid, or did not come
 * so. *paid: it has.
 */
uint64_t spill_chunk_stay_left(struct spill_chunk_stays *stays, uint32_t key, uint64_t since, uint64_t now_ns,
                               bool *paid);

#endif
