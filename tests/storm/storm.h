/*
 * The storm: a seeded random program on the CUDA driver API. Every worker thread makes calls of all
 * rows of the table, with kernels in flight. It prints the results, except addresses and
 * free-memory figures. So two runs that should be equal are equal line by line. Whatever it writes
 * it verifies before it lets go.
 */
#ifndef STORM_H
#define STORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cuda_api.h"

enum storm_kind {
	STORM_EMPTY,
	STORM_PLAIN,
	STORM_MANAGED,
	STORM_ASYNC,
	STORM_HOST,
	STORM_REGISTERED,
	STORM_ARRAY,
	STORM_MIPMAP,
	STORM_MAPPED
};

struct storm_slot {
	enum storm_kind kind;
	CUdeviceptr address; /* for kernels; of an array: its handle */
	uint64_t bytes;      /* usable by kernels, 0 for arrays */
	uint64_t handle;     /* MAPPED: not released yet, or 0 */
	uint64_t seed;       /* of the data in it, 0 before it is filled */
	void *host;          /* HOST, REGISTERED */
};

#define STORM_SLOTS 24

struct storm_worker {
	int index;
	uint64_t random, calls, failures;
	uint64_t digest; /* of all answers */
	CUcontext context;
	CUfunction fill, verify;
	CUstream stream;
	CUmemoryPool pool;
	uint64_t *mismatches; /* pinned; the kernels count there */
	bool busy;            /* something may be in flight on the stream */
	struct storm_slot slots[STORM_SLOTS];
	FILE *trace; /* every line, or NULL */
};

extern bool storm_managed;     /* managed memory may be asked for */
extern uint64_t storm_largest; /* bytes of the largest request */

uint64_t storm_random(struct storm_worker *worker, uint64_t below);
/* Tells a call's result and one more figure; both must be the same in every run. Counts the call. */
void storm_say(struct storm_worker *worker, const char *what, CUresult result, uint64_t figure);

/* Makes one to three random calls. */
void storm_step(struct storm_worker *worker);
/* Verifies what is left and gives it back. */
void storm_end(struct storm_worker *worker);
/* Waits for the worker's stream; false, said on stderr, if a kernel found a wrong word. */
bool storm_check(struct storm_worker *worker);

/* storm_memory.c: makes memory in an empty slot, gives a slot's memory back. */
void storm_make(struct storm_worker *worker, struct storm_slot *slot);
void storm_give(struct storm_worker *worker, struct storm_slot *slot);
void storm_fill(struct storm_worker *worker, struct storm_slot *slot);
void storm_verify(struct storm_worker *worker, struct storm_slot *slot);

/* storm_other.c: questions, nonsense, exports, captures, graphs, contexts. */
void storm_ask(struct storm_worker *worker, struct storm_slot *slot);
void storm_nonsense(struct storm_worker *worker);
void storm_export(struct storm_worker *worker, struct storm_slot *slot);
void storm_capture(struct storm_worker *worker);
void storm_graph(struct storm_worker *worker);
void storm_context(struct storm_worker *worker);
void storm_pool(struct storm_worker *worker);

#endif
