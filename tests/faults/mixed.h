/*
 * Memory of every kind on two devices, more than they have. mixed.c says what is done with it, and
 * mixed_cuda.c and mixed_hip.c know the vendors.
 */
#ifndef MIXED_H
#define MIXED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICES 2

struct block {
	const struct kind *kind;
	unsigned long long address;
	uint64_t handle;
	size_t bytes;
	uint64_t seed; /* of its content; 0: there is no block */
	bool filled;   /* with that content */
};

/* Each function returns the vendor's error. */
struct kind {
	const char *name;
	size_t bytes;
	unsigned count;
	int (*take)(struct block *block, int device);
	int (*give)(struct block *block, int device);
};

struct vendor {
	const struct kind *kinds; /* the last has no name */
	int (*open)(int device, const char *kernels);
	int (*peers)(void);
	int (*use)(int device);
	int (*fill)(int device, const struct block *block);
	int (*verify)(int device, const struct block *block,
	              uint64_t *wrong);                     /* adds the words that a kernel finds */
	int (*read)(const struct block *block, void *copy); /* its bytes, with the device in use */
	int (*info)(void);                                  /* asks for free memory */
	int (*graph)(int device);                           /* NULL: there are none */
	/* NULL, or what of the thread's state has changed behind a call. `failed`: the call did. */
	const char *(*changed)(int device, bool failed);
	int (*close)(int device); /* gives back all that the device has */
	const char *(*error_name)(int error);
};

extern const struct vendor vendor;

#endif
