/*
 * What every request for device memory goes through, whatever it asks for: decide and charge, ask the driver or make it where a
 * rule says, and when the device is full the steps of the remedy. The kinds of request differ in a struct of functions, one a file:
 * engine_alloc.c and its neighbours.
 */
#ifndef SPILL_ADMIT_H
#define SPILL_ADMIT_H

#include "backend.h"
#include "engine.h"
#include "place.h"

enum spill_instead {
	SPILL_INSTEAD_NOT, /* the driver's plain call it is */
	SPILL_INSTEAD_SERVED,
	SPILL_INSTEAD_LIMIT, /* *error; as an out of memory of device.limit */
	SPILL_INSTEAD_FULL,  /* *error; as the driver's */
};

struct spill_alloc_kind_ops {
	/*
	 * Completes the request: bytes, device, context. False: not for us (nonsense, no context, memory that is no
	 * device's); the vendor's own answer is the right one.
	 */
	bool (*prepare)(struct spill_request *request, const struct spill_backend *backend);
	/*
	 * Decides (request->decision) and charges request->charged in the same moment. True: the driver is to be asked. `ask` lacks
	 * the weight. NULL: request->weight bytes against device.limit.
	 */
	bool (*admit)(struct spill_request *request, struct spill_ask *ask,
	              const struct spill_backend *backend);
	/* Takes back what admit charged: the driver refused. NULL: request->charged. */
	void (*retract)(struct spill_request *request, const struct spill_backend *backend);
	/*
	 * Makes it in another way in place of the driver's plain call, if that is wanted: enters it in the ledger and stores what
	 * the program gets. What admit charged is returned or taken over. NULL: never.
	 */
	enum spill_instead (*instead)(struct spill_request *request, const struct spill_backend *backend,
	                              const char **error);
	/* Bytes that the driver takes of the device for it now, which costs a question. NULL: its weight. */
	uint64_t (*growth)(struct spill_request *request, const struct spill_backend *backend);
	/*
	 * The driver served it: false if it took so much more than it was expected to that the limit does not hold,
	 * and the memory has been given back; the request then goes on as one over the limit. NULL: it takes what is
	 * expected.
	 */
	bool (*keep)(struct spill_request *request, const struct spill_backend *backend);
	/* It is kept: enters it in the ledger. */
	void (*served)(struct spill_request *request, const struct spill_backend *backend);
	/*
	 * Makes it by a step of a remedy other than trim and demote, or where a rule wants it at once, enters it in the ledger and stores what the program gets.
	 * False with *error, a static string, if that cannot be. NULL: this kind of memory is nowhere but on the
	 * device.
	 */
	bool (*place)(struct spill_request *request, enum spill_step step,
	              const struct spill_place_request *want, const char **error);
	/* What the vendor leaves in the program's variables after an out of memory that it was not asked about. */
	void (*refused)(struct spill_request *request);
	/* What the step `split` makes of it is on host as a whole. */
	bool whole;
};

/* Steps a request of that kind; returns true to have the real function called (request.h). */
bool spill_admit(struct spill_request *request, const struct spill_alloc_kind_ops *demand);

/* What places are asked for; `device_room` as there. */
struct spill_place_request spill_admit_want(const struct spill_request *request,
                                            const struct spill_backend *backend, uint64_t device_room);

/* Entries of request->tried. Both static storage. */
void spill_admit_tried(struct spill_request *request, const char *step, const char *error);

/* An entry for the ledger with what the request says; the caller adds ptr, place, held, charged, placement. */
struct spill_allocation spill_admit_describe(const struct spill_request *request,
                                             const struct spill_backend *backend);

/*
 * Enters it in the ledger and the log, and marks the runtime's calls above as seen. False if there is no memory for
 * the entry: the allocation is then nobody's, and the caller's to undo.
 */
bool spill_admit_record(struct spill_request *request, struct spill_allocation *allocation,
                        const char *reason);

/* The reason of something placed by a rule, or by a step of a remedy. */
static inline const char *spill_admit_reason(const struct spill_request *request)
{
	if (request->at_once)
		return "rule";
	return request->over_limit ? "limit" : "oom";
}

#endif
