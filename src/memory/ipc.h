/*
 * Legacy handles (cuIpcGetMemHandle) of memory that is made of chunks. The driver refuses them, and
 * frameworks share tensors by them. So libspill answers with a handle of its own. A process that has
 * libspill, too, opens it: it gets the chunks' descriptors over a socket, and maps them side by side.
 *
 * The exporter runs a thread that serves them (ipc_export.c). The importer maps, counts and unmaps
 * (ipc_import.c). CUDA Driver API, "Memory Management" (cuIpc…) and "Virtual Memory Management".
 */
#ifndef SPILL_IPC_H
#define SPILL_IPC_H

#include "chunked.h"
#include "context_end.h"
#include "fd_pass.h"

#define SPILL_IPC_MAGIC 0x6370696c6c697073ull /* "spillipc" */

/* A handle of ours, at the begin of the vendor's 64 bytes. The others are 0. */
struct spill_ipc_handle {
	uint64_t magic;
	unsigned char name[SPILL_FD_PASS_NAME]; /* of the exporter's socket. */
	uint64_t number;                        /* of the allocation; never used twice. */
	uint64_t bytes;                         /* as the program asked for them. */
};
#define SPILL_IPC_HANDLE_BYTES 64

/* What an importer asks for, and the answer: the chunk's descriptor comes with it. */
struct spill_ipc_question {
	uint64_t number, index;
};
struct spill_ipc_answer {
	uint64_t count, bytes; /* of chunks; of this chunk. count is 0: there is no such memory. */
};

static inline bool spill_ipc_is(const void *handle)
{
	return ((const struct spill_ipc_handle *)handle)->magic == SPILL_IPC_MAGIC;
}

/* -- the exporter ------------------------------------------------------------------------------ */

/* Can other processes open memory of that place? */
struct spill_allocation;
bool spill_ipc_serves(const struct spill_allocation *allocation);

/*
 * Stores a handle of the placement, the same one each time. False: its memory cannot be handed on,
 * or there is no memory, socket or thread. pre: its chunks are pinned
 */
bool spill_ipc_export(struct spill_placement *placement, uint64_t bytes, void *handle);

/* Has this process made the handle? */
bool spill_ipc_is_own(const void *handle);

/* The placement is released: nobody can open it any more. Who has it open keeps the memory. */
void spill_ipc_exported_ends(struct spill_chunked *chunked);

extern const struct spill_fork_lock spill_ipc_export_fork_lock;

/* -- the importer ------------------------------------------------------------------------------ */

/* An opened mapping. */
struct spill_ipc_range {
	const struct spill_backend *backend;
	uint64_t ptr, bytes;
	uint64_t number; /* never used twice in this process. */
	int device;
	void *context;
};

/*
 * Maps the memory of a handle for a device, or counts one more use of that mapping. Returns the
 * vendor's error; `invalid value` if the exporter does not answer.
 */
int spill_ipc_open(const struct spill_backend *backend, int device, void *context, const void *handle,
                   uint64_t *ptr);

/* Ends a use of the mapping at `ptr`. False: no such mapping is open. */
bool spill_ipc_close(uint64_t ptr);

/*
 * Takes a mapping that nobody uses any more. The caller waits for the work of its device, and unmaps
 * it. NULL: there is none.
 */
struct spill_ipc_import;
struct spill_ipc_import *spill_ipc_take_unused(struct spill_ipc_range *range);
void spill_ipc_unmap(struct spill_ipc_import *import);

/* Unmaps what an ended context has opened, as the vendor does. */
void spill_ipc_context_ended(const struct spill_context_end *end);

/* The mapping that `ptr` is in. Costs one load if nothing is open. */
bool spill_ipc_at(uint64_t ptr, struct spill_ipc_range *range);

/* Calls `visit` with each opened mapping, and the bytes that are mapped. Nothing of ours may be called in it. */
void spill_ipc_each(void (*visit)(const struct spill_ipc_range *range, uint64_t mapped, void *data),
                    void *data);

extern const struct spill_fork_lock spill_ipc_import_fork_lock;

#endif
