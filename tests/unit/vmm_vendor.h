/*
 * A vendor of physical memory and its mappings, and a program's calls to it through the engine: as
 * the stubs make them. Any call can be told to fail. Counts the memory that it really holds, to be
 * compared with the accounts.
 */
#ifndef SPILL_TEST_VMM_VENDOR_H
#define SPILL_TEST_VMM_VENDOR_H

#include "backend.h"

#define MIB (1ull << 20)
#define OUT_OF_MEMORY 2
#define FAILED 7

/* The properties of this vendor; the program's are the same bytes. */
struct properties {
	int where; /* enum spill_location */
	int device;
	bool device_only;
	unsigned char pad[SPILL_PROPERTIES_BYTES - 12];
};

struct vendor {
	uint64_t device_free;
	uint64_t device, host; /* bytes of physical memory that it holds */
	unsigned calls, fail_at;
	uint64_t next_handle;    /* not 0: the value of the next handle */
	unsigned wild;           /* releases of what is no handle: a real vendor's end */
	void (*meanwhile)(void); /* another thread's doing, once, while a mapping is being made */
};

extern struct vendor vendor;
extern const struct spill_backend vendor_backend;

void vendor_reset(uint64_t device_free);

/* The program's calls. */
int program_create(uint64_t *handle, uint64_t bytes, const struct properties *properties);
int program_release(uint64_t handle);
int program_retain(uint64_t *handle, uint64_t va);
int program_map(uint64_t va, uint64_t bytes, uint64_t handle);
int program_unmap(uint64_t va, uint64_t bytes);
int program_properties(struct properties *properties, uint64_t handle);

#endif
