/*
 * The sample user program, one source for every way into a GPU. prog.c has its actions. A file
 * way_*.c calls the vendor. It knows nothing of libspill. Builds for the simulator and a real GPU.
 */
#ifndef PROG_H
#define PROG_H

#include <stddef.h>
#include <stdint.h>

/* The vendor's answers about an address. */
struct about {
	int type;        /* the vendor's memory type */
	uint64_t offset; /* from the start of its allocation */
	uint64_t size;   /* of its allocation; 0 where this way in cannot tell */
};

/* One way in. Every call returns the vendor's error code, 0 for success. Addresses are device addresses. */
struct way {
	const char *name;
	int (*start)(void);
	int (*load)(const char *path); /* the module with the kernels */
	int (*kernel)(const char *name, void **kernel);
	int (*launch)(void *kernel, void **parameters); /* on the default stream */
	int (*synchronize)(void);
	int (*alloc)(uint64_t *address, size_t bytes);
	int (*release)(uint64_t address);
	int (*alloc_host)(void **pointer, size_t bytes); /* pinned, at the same address on the device */
	int (*release_host)(void *pointer);
	int (*info)(size_t *free, size_t *total);
	int (*about)(uint64_t address, struct about *about);
	int (*copy_out)(void *to, uint64_t from, size_t bytes);
	int (*last_error)(void); /* without clearing it; NULL: there is none */
	const char *(*error_name)(int error);
};

extern const struct way way;

/* A launch that keeps any GPU busy and suits every kernel of tests/sim/test/kernels.c. */
#define BLOCKS 512u
#define THREADS 256u

#endif
