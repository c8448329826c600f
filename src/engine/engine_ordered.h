/*
 * Segments: where requests in stream order are served from memory that can move (ordered_pool.h).
 * They are used for the same requests as movable chunks of plain memory (movable.h), for pools whose
 * memory no other device or process uses.
 */
#ifndef SPILL_ENGINE_ORDERED_H
#define SPILL_ENGINE_ORDERED_H

#include "admit.h"

/* True: the request gets a range of a segment. Sets admission.ordered. pre: prepared */
bool spill_ordered_wanted(struct spill_request *request, const struct spill_backend *backend);

/* A kind's `substitute`: a free range, or one of a new segment. pre: admission.ordered is set */
enum spill_substitute spill_ordered_serve(struct spill_request *request, const struct spill_backend *backend,
                                          const char **error);

/* The pool beside the one of the request. NULL: there is none. */
struct spill_ordered_pool *spill_ordered_beside(const struct spill_request *request,
                                                const struct spill_backend *backend);

/* Serves the request from a free range that is on the host. False: there is none. */
bool spill_ordered_serve_on_host(struct spill_request *request, const struct spill_backend *backend);

/* Ends unused segments until `bytes` are given back. Returns the device bytes that came back. */
uint64_t spill_ordered_trim(const struct spill_backend *backend, int device, uint64_t bytes);
/* Ends unused segments of one pool, until it has at most `keep` bytes. */
void spill_ordered_trim_pool(const struct spill_backend *backend, struct spill_ordered_pool *pool,
                             uint64_t keep);
/* Ends what each pool need not keep, after the program has waited for work. */
void spill_ordered_give_back(const struct spill_backend *backend);
/* The same for unused segments on the host, all of them. */
void spill_ordered_trim_host(const struct spill_backend *backend, int device);

#endif
