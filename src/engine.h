/*
 * The engine's operations and what they share. An operation is stepped by spill_request_next: it returns true to have the
 * real function called, and is called again with the result in request->result.
 */
#ifndef SPILL_ENGINE_H
#define SPILL_ENGINE_H

#include "ledger.h"
#include "request.h"
#include "runtime.h"

bool spill_engine_pass(struct spill_request *request);       /* engine.c */
bool spill_engine_frame(struct spill_request *request);      /* engine.c */
bool spill_engine_alloc(struct spill_request *request);      /* engine_alloc.c */
bool spill_engine_account(struct spill_request *request);    /* engine_alloc.c */
bool spill_engine_free(struct spill_request *request);       /* engine_free.c */
bool spill_engine_context(struct spill_request *request);    /* engine_free.c */
bool spill_engine_attributes(struct spill_request *request); /* engine_query.c */
bool spill_engine_range(struct spill_request *request);      /* engine_query.c */

/* The outermost call on the way here, as the log names it. */
const char *spill_engine_api(const struct spill_request *request);
const char *spill_engine_caller(const struct spill_request *request);

/* Log lines about decisions (report.c). `end_us` times are of spill_log_now_us. */
void spill_report_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                        const char *reason);
void spill_report_free(const struct spill_request *request, const struct spill_allocation *allocation,
                       const char *reason);
void spill_report_oom(const struct spill_request *request, const struct spill_backend *backend, uint64_t free,
                      uint64_t total);

#endif
