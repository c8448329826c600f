/*
 * The engine's operations and what they share. An operation is stepped by spill_request_next: it returns true to have the
 * real function called, and is called again with the result in request->result.
 */
#ifndef SPILL_ENGINE_H
#define SPILL_ENGINE_H

#include "ledger.h"
#include "process.h"
#include "registry.h"
#include "request.h"

bool spill_engine_pass(struct spill_request *request);        /* engine.c */
bool spill_engine_frame(struct spill_request *request);       /* engine.c */
bool spill_engine_alloc(struct spill_request *request);       /* engine_alloc.c */
bool spill_engine_alloc_async(struct spill_request *request); /* engine_async.c */
bool spill_engine_pool(struct spill_request *request);        /* engine_async.c */
bool spill_engine_account(struct spill_request *request);     /* engine_account.c */
bool spill_engine_array(struct spill_request *request);       /* engine_alloc.c */
bool spill_engine_graph(struct spill_request *request);       /* engine_async.c */
bool spill_engine_export(struct spill_request *request);      /* engine_export.c */
bool spill_engine_capture(struct spill_request *request);     /* engine_capture.c */
bool spill_engine_peer(struct spill_request *request);        /* engine_peer.c */
bool spill_engine_free(struct spill_request *request);        /* engine_free.c */
bool spill_engine_context(struct spill_request *request);     /* engine_free.c */
bool spill_engine_attributes(struct spill_request *request);  /* engine_query.c */
bool spill_engine_pointer(struct spill_request *request);     /* engine_query.c */
bool spill_engine_range(struct spill_request *request);       /* engine_query.c */
bool spill_engine_info(struct spill_request *request);        /* engine_info.c */
bool spill_engine_create(struct spill_request *request);      /* engine_vmm.c */
bool spill_engine_map(struct spill_request *request);         /* engine_vmm.c */
bool spill_engine_properties(struct spill_request *request);  /* engine_vmm.c */
bool spill_engine_room(struct spill_request *request);        /* engine_room.c */
bool spill_engine_release(struct spill_request *request);     /* engine_vmm.c */
bool spill_engine_retain(struct spill_request *request);      /* engine_vmm.c */
bool spill_engine_unmap(struct spill_request *request);       /* engine_vmm.c */

/* Before each request for memory. The runtime hands in what the first of them opens: the log, with its start line. */
void spill_engine_memory_call(const struct spill_backend *backend);
void spill_engine_on_memory_call(void (*open)(const struct spill_backend *backend));

/* The request is part of a capture, or what we would do for it would break one (spill_capture_forbids). */
bool spill_engine_in_capture(const struct spill_request *request);

/* The stream of a request by one name: 0 and the calling thread's own are told apart. */
const void *spill_engine_stream(const struct spill_request *request);

/* The outermost call on the way here, as the log names it. */
const char *spill_engine_api(const struct spill_request *request);
const char *spill_engine_caller(const struct spill_request *request);
const void *spill_engine_site(const struct spill_request *request); /* the outermost call's return address */

/* Log lines about decisions (report.c). */
void spill_report_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                        const char *reason);
void spill_report_free(const struct spill_request *request, const struct spill_allocation *allocation,
                       const char *reason);
void spill_report_oom(const struct spill_request *request, const struct spill_backend *backend, uint64_t free,
                      uint64_t total);

#endif
