/*
 * movable.c has the list of words; movable_memory.c and movable_ask.c carry some of them out.
 * movable_work.c has the words about work in flight, and movable_room.c those about calls that need
 * room. movable_kinds.c has the words about memory of every kind.
 */
#ifndef MOVABLE_H
#define MOVABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_api.h"
#include "pattern.h"

/* One block of device memory, a letter. */
struct block {
	CUdeviceptr address;
	uint64_t bytes, seed;
};

/* Pinned words that kernels and the program share. */
struct shared {
	_Atomic uint64_t go;
	uint64_t mismatches, sum;
	_Atomic uint32_t value;
};

extern const char *movable_kernels;
extern CUcontext movable_context; /* of device 0 */
extern struct block movable_blocks[26];
extern struct shared *movable_shared;
extern CUstream movable_stream; /* one of its own, that does not wait for the default one */
extern CUfunction movable_hold_fill, movable_verify, movable_fill;
extern bool movable_wrong;

/* Runs a kernel on a stream. */
CUresult movable_launch(CUfunction function, CUstream stream, void **parameters);
/* A seed that no block has had. */
uint64_t movable_seed(void);

/* movable_memory.c. The two allocations are two call sites, so that one's requests do not look like the growth of the other's. */
CUresult movable_alloc(struct block *block, uint64_t bytes);
CUresult movable_alloc_early(struct block *block, uint64_t bytes);
CUresult movable_grow(struct block *block, uint64_t bytes, uint64_t count);
CUresult movable_give(struct block *block);
CUresult movable_brim(struct block *block); /* all that is free, in whole granules */
/* Physical memory of its own, mapped; the end of that. */
CUresult movable_create(int device, uint64_t bytes, CUdeviceptr *address);
CUresult movable_uncreate(CUdeviceptr address, uint64_t bytes);

/* movable_ask.c */
#define MOVABLE_GRANULE ((uint64_t)2 << 20)
char movable_side(CUdeviceptr address); /* d: on the device, h, or ? */
void movable_where(const char *letter, const struct block *block);
CUresult movable_ask(const struct block *block);
/* word: export, ipc, memops, wrong or retain */
CUresult movable_export(const char *word, const struct block *block);

/* Each does a word of its file and stores its result; false: not one of its. */
bool movable_work_word(const char *word, const char *first, const char *second, CUresult *result);
bool movable_room_word(const char *word, const char *first, CUresult *result);
bool movable_kinds_word(const char *word, const char *first, uint64_t second, uint64_t third,
                        CUresult *result);

#endif
