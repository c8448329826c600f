/* script.c has the words, script_work.c their work. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"

/* The allocations of one letter, all of one size. */
struct group {
	CUdeviceptr *address;
	uint64_t bytes, count, seed;
	CUcontext context;
};

extern const char *script_kernels; /* path of the module */
extern bool script_wrong;          /* data was */
extern bool script_async;          /* frees are in the order of the default stream */

/* Each does one word and returns the driver's first error. */
CUresult script_alloc(struct group *group, uint64_t bytes, uint64_t count);
CUresult script_fill(struct group *group);
CUresult script_verify(struct group *group);
CUresult script_free(struct group *group);
CUresult script_free_in_thread(struct group *group);
CUresult script_free_held(struct group *group);

/* Gives back the words' own memory. */
void script_end(void);

/* The context has ended, and with it the code that was loaded into it. */
void script_unload(CUcontext gone);

#endif
