/*
 * The engine's operations and what they share. spill_request_next steps an operation: it returns
 * true to have the real function called, and is called again with the result in request->result.
 */
#ifndef SPILL_ENGINE_H
#define SPILL_ENGINE_H

#include "ledger.h"
#include "process.h"
#include "registry.h"
#include "request.h"

/* engine.c */
bool spill_engine_pass(struct spill_request *request);
bool spill_engine_gated(struct spill_request *request); /* inside the gate (gate.h) */
bool spill_engine_frame(struct spill_request *request);
/* admit_record.c */
bool spill_engine_account(struct spill_request *request);
/* engine_alloc.c */
bool spill_engine_alloc(struct spill_request *request);
bool spill_engine_array(struct spill_request *request);
/* engine_async.c */
bool spill_engine_alloc_async(struct spill_request *request);
bool spill_engine_graph(struct spill_request *request);
/* engine_pool.c */
bool spill_engine_pool(struct spill_request *request);
bool spill_engine_synchronize(struct spill_request *request);
/* engine_vmm.c */
bool spill_engine_create(struct spill_request *request);
/* engine_handle.c */
bool spill_engine_map(struct spill_request *request);
bool spill_engine_unmap(struct spill_request *request);
bool spill_engine_retain(struct spill_request *request);
bool spill_engine_release(struct spill_request *request);
bool spill_engine_properties(struct spill_request *request);
bool spill_engine_access(struct spill_request *request);
struct spill_vmm_memory;
/* Closes the accounts of memory that has been given back (vmm.h), and frees the list. */
void spill_engine_finish_ended(struct spill_request *request, struct spill_vmm_memory *ended);
/*
 * For an export of a chunk set: pins it, and puts the vendor's handle in the place of ours. False:
 * there is none, and the request is refused.
 */
bool spill_engine_use_real_handle(struct spill_request *request);
/* engine_free.c */
bool spill_engine_free(struct spill_request *request);
/* Ends an entry that was taken out of the ledger, and its placement, which no work uses. */
void spill_engine_end(struct spill_request *request, struct spill_allocation *allocation,
                      enum spill_reason reason);
bool spill_engine_context(struct spill_request *request);
/* engine_import.c */
bool spill_engine_import(struct spill_request *request);
bool spill_engine_import_end(struct spill_request *request);
/* engine_export.c, engine_peer.c, engine_room.c, engine_stream.c, engine_info.c */
bool spill_engine_export(struct spill_request *request);
bool spill_engine_peer(struct spill_request *request);
bool spill_engine_room(struct spill_request *request);
bool spill_engine_capture(struct spill_request *request);
bool spill_engine_info(struct spill_request *request);
/* engine_query.c */
bool spill_engine_attributes(struct spill_request *request);
bool spill_engine_pointer(struct spill_request *request);
bool spill_engine_range(struct spill_request *request);

/*
 * Called before each request for memory. The runtime sets the function that the first one calls: it
 * opens the log.
 */
void spill_engine_memory_call(const struct spill_backend *backend);
void spill_engine_on_memory_call(void (*open)(const struct spill_backend *backend));

/*
 * Periodic work, while something is movable. There is no thread for it: threads that submit work
 * call it, at most once a millisecond (gate.h). errno may change. pre: this thread is not inside
 * the gate, and holds no lock of ours
 */
void spill_engine_maintain(void);

/*
 * Is the request part of a capture, or would our own calls for it break one
 * (spill_capture_forbids)?
 */
bool spill_engine_in_capture(const struct spill_request *request);

/* The program's variable for the pointer or handle. */
static inline uint64_t *spill_engine_out(const struct spill_request *request)
{
	return request->out;
}

/* The green context that is current in this thread, or NULL. */
static inline const void *spill_engine_green(const struct spill_backend *backend)
{
	return backend->streams->green ? backend->streams->green() : NULL;
}

/* One name for each stream: stream 0 and the calling thread's own stream have different names. */
const void *spill_engine_stream(const struct spill_request *request);

/*
 * A device got access to a pool of another device. It gets access to that device's spilled memory,
 * which can be the pool's. False: there are too many pairs of devices.
 */
bool spill_engine_pool_shared(const struct spill_backend *backend, int owner, int user);

/* The outermost call above this request, as the log names it; its return address. */
const char *spill_engine_api(const struct spill_request *request);
const char *spill_engine_caller(const struct spill_request *request);
const void *spill_engine_site(const struct spill_request *request);
/* Who asked that caller (requester.h); NULL without a log. */
const char *spill_engine_requester(const struct spill_request *request);

/*
 * Log lines about decisions (request_log.c). `choose_line` is called before the allocation enters
 * the ledger: it asks the ledger to sum its events if they need no lines of their own.
 */
void spill_request_choose_line(const struct spill_request *request, struct spill_allocation *allocation,
                               enum spill_reason reason);
void spill_request_log_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                             enum spill_reason reason);
void spill_request_log_free(const struct spill_request *request, const struct spill_allocation *allocation,
                            enum spill_reason reason);
void spill_request_log_oom(const struct spill_request *request, const struct spill_backend *backend,
                           uint64_t free, uint64_t total);

#endif
