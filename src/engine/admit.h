/*
 * The life of a request for device memory, of every kind.
 *
 * The policy decides about the request, and its bytes are charged. Then the driver is asked, or the
 * memory is placed where a rule says. If the device is full, the steps of the fallback follow
 * (fallback_chain.h). The kinds of request differ in a struct of functions: engine_alloc.c,
 * engine_async.c and engine_vmm.c each have one.
 */
#ifndef SPILL_ADMIT_H
#define SPILL_ADMIT_H

#include "backend.h"
#include "engine.h"
#include "place.h"

/* The outcome of an allocation that replaces the driver's plain call. */
enum spill_substitute {
	SPILL_SUBSTITUTE_NONE,   /* not wanted, or not possible: the plain call */
	SPILL_SUBSTITUTE_SERVED, /* the program has its memory */
	SPILL_SUBSTITUTE_LIMIT,  /* *error: device.limit refused */
	SPILL_SUBSTITUTE_FULL,   /* *error: the driver has no room */
};

struct spill_alloc_kind_ops {
	/*
	 * Completes the request: bytes, device, context. False for a wrong argument, for a missing
	 * context, and for memory that is not on a device. The vendor's own answer is right then.
	 */
	bool (*prepare)(struct spill_request *request, const struct spill_backend *backend);
	/*
	 * Decides (admission.decision) and charges admission.charged in one step. True: ask the
	 * driver. `ask` lacks the weight. NULL: admission.weight bytes against device.limit.
	 */
	bool (*charge)(struct spill_request *request, struct spill_ask *ask,
	               const struct spill_backend *backend);
	/* Returns the charge after the driver refused. NULL: admission.charged. */
	void (*retract)(struct spill_request *request, const struct spill_backend *backend);
	/*
	 * Allocates in another way than the plain call, if that is wanted, enters the memory in the
	 * ledger and stores the program's result. The charge is returned or taken over. NULL:
	 * never.
	 */
	enum spill_substitute (*substitute)(struct spill_request *request,
	                                    const struct spill_backend *backend, const char **error);
	/* Bytes that the driver must take from the device now; asks it. NULL: the weight. */
	uint64_t (*growth)(struct spill_request *request, const struct spill_backend *backend);
	/*
	 * The driver served the request. False: it took so much more than expected that a limit or
	 * the reserve does not hold. The memory was given back, and the request counts as refused.
	 * NULL: the driver takes what is expected.
	 */
	bool (*accept)(struct spill_request *request, const struct spill_backend *backend);
	/* Enters the accepted memory in the ledger. */
	void (*served)(struct spill_request *request, const struct spill_backend *backend);
	/*
	 * Makes the memory by a step that places it off the device, enters it in the ledger and
	 * stores the program's result. False with *error, a static string. NULL: this kind of
	 * memory can only be on the device.
	 */
	bool (*place)(struct spill_request *request, enum spill_step step,
	              const struct spill_place_request *place_request, const char **error);
	/* Stores what the vendor stores after an out of memory, if the vendor was not asked. */
	void (*refused)(struct spill_request *request);
	/* The step `split` places all of it on the host. */
	bool whole;
};

/* Steps a request of that kind. Returns true to have the real function called (request.h). */
bool spill_admit(struct spill_request *request, const struct spill_alloc_kind_ops *kind);

/*
 * Asks the policy for a decision before the driver is asked, and again after room was made. True:
 * the driver is to be asked, and the bytes are charged.
 */
bool spill_admit_decide(struct spill_request *request);

/* The same for ask->weight bytes and a limit. Stores the device's charge in admission.charged. */
bool spill_admit_charge(struct spill_request *request, struct spill_ask *ask, uint64_t limit);

/* The request to a place; `device_room` as there. */
struct spill_place_request spill_admit_place_request(const struct spill_request *request,
                                                     const struct spill_backend *backend,
                                                     uint64_t device_room);

/*
 * A kind's `substitute` by the place of `ops`. `hand_out` enters the placement in the ledger and
 * gives it to the program; false with *error: it has released the placement.
 */
enum spill_substitute spill_admit_substitute(struct spill_request *request, const struct spill_place_ops *ops,
                                             const struct spill_place_request *wanted,
                                             bool (*hand_out)(struct spill_request *request,
                                                              struct spill_placement *placement,
                                                              enum spill_reason reason, const char **error),
                                             const char **error);

/* Adds a failed step to the request. Both are static strings. */
void spill_admit_tried(struct spill_request *request, const char *step, const char *error);

/* Stores the last refusal: a word of ours, or the text of any other error (static). */
void spill_admit_refused_by(struct spill_request *request, enum spill_refused_by refused_by);
void spill_admit_refused(struct spill_request *request, const char *error);

/*
 * An entry for the ledger with the members of the request. The caller adds place, held, charged and
 * placement.
 */
struct spill_allocation spill_admit_describe(const struct spill_request *request,
                                             const struct spill_backend *backend, uint64_t ptr);

/*
 * Enters the allocation in the ledger and the log. False without memory for the entry: the caller
 * undoes the allocation, or leaves it unaccounted.
 */
bool spill_admit_record(struct spill_request *request, struct spill_allocation *allocation,
                        enum spill_reason reason);

/*
 * For memory that the vendor makes on its own terms, and libspill only counts. The first passes a
 * call that is not valid, and returns true. The second enters the memory, which is not on the
 * device.
 */
bool spill_admit_count_begin(struct spill_request *request, const struct spill_backend *backend,
                             bool is_valid);
void spill_admit_count(struct spill_request *request, struct spill_allocation *allocation,
                       enum spill_place place);

/* The reason of an allocation that the driver served. */
static inline enum spill_reason spill_admit_driver_reason(const struct spill_request *request)
{
	return request->admission.over_limit ? SPILL_REASON_LIMIT : SPILL_REASON_FITS;
}

/* The reason of a placement, by a rule or by a step of the fallback. */
static inline enum spill_reason spill_admit_place_reason(const struct spill_request *request)
{
	if (request->admission.at_once)
		return SPILL_REASON_RULE;
	return request->admission.over_limit ? SPILL_REASON_LIMIT : SPILL_REASON_OOM;
}

/* Device bytes of the request; those asked for before the driver's share is known. */
static inline uint64_t spill_admit_weight(const struct spill_request *request)
{
	return request->admission.weight ? request->admission.weight : request->bytes;
}

#endif
