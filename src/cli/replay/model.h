/*
 * What libspill would decide about a recorded run under another policy or on another card: where each allocation would be. A
 * simulation of the accounts, in which every decision is asked of the policy itself (policy/); what is modelled here is what the
 * drivers and the places make of it. No I/O.
 *
 * It predicts placement, not speed, and takes for granted: the program does what it did; the device is idle when something is to
 * move; what left the device comes back when there is room and nothing left it for 20 ms. What the driver itself takes, apart
 * from `other`, fragmentation and what pools in stream order keep are not in it.
 */
#ifndef SPILL_CLI_MODEL_H
#define SPILL_CLI_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend.h"
#include "growth.h"
#include "usage_estimate.h"
#include "decide.h"
#include "record.h"
#include "retry.h"
#include "rule.h"
#include "shared_blocks.h"
#include "victim.h"

/* Of chunks on either side, and of the driver's blocks that small allocations share (docs/measurements.md). */
#define CLI_GRANULE ((uint64_t)2 << 20)

enum cli_ask_kind {
	CLI_ASK_ALLOC,
	CLI_ASK_FREE,
	CLI_ASK_REFUSED, /* an out of memory was recorded: how long it would have lived is not known */
	CLI_ASK_REFUSED_BY_HOST, /* and the host had no room for it, which is all that is known of the host */
};

/* What is asked for, as far as the engine treats it differently. */
enum cli_memory {
	CLI_MEMORY_PLAIN,
	CLI_MEMORY_ORDERED,  /* in stream order: whole on the host if it does not fit */
	CLI_MEMORY_PHYSICAL, /* a handle: likewise */
	CLI_MEMORY_ARRAY,    /* never elsewhere */
	CLI_MEMORY_MANAGED,  /* asked for as such, */
	CLI_MEMORY_HOST,     /* and left alone */
};

/* As small as can be: a million of them are gone through several times. */
struct cli_ask {
	uint64_t bytes;
	uint64_t time_us;
	uint32_t allocation; /* its number, from 0 on; of FREE: the one that ends */
	uint32_t slot;       /* a number that no other has that is there at the same time */
	uint32_t site;
	int16_t device;
	uint8_t kind, memory;
};
_Static_assert(sizeof(struct cli_ask) == 32, "as small as can be");

/* Where calls came from, and what follows from it under the policy. */
struct cli_site {
	uint64_t rules;      /* spill_rules_of */
	unsigned asks_again; /* enum spill_retry: of which its failures surface first */
	bool known;          /* it has an address: growth is told by it */
	bool exports;        /* its library exports what it allocates (policy/decide/exporters.def) */
};

struct cli_card {
	uint64_t total, limit; /* limit: SPILL_UNLIMITED */
	uint64_t other;        /* of the total, what is not this program's */
	unsigned capabilities; /* enum spill_capability */
};

struct cli_model_setting {
	const struct spill_policy *policy;
	const struct spill_backend *backend;
	const struct cli_site *sites;
	unsigned device_count; /* visible to the program */
	struct cli_card cards[SPILL_DEVICES];
	uint64_t host; /* memory of the host that was available at start; SPILL_UNLIMITED: not known */
};

/* What became of a request. Texts are static or the policy's. */
struct cli_answer {
	bool served;
	bool surfaced; /* its first failure was told by oom.honest_first; it has been asked again since */
	enum spill_place place;
	struct spill_bytes held;
	const char *reason, *rule, *refused_by; /* as in the log */
};

struct cli_model_slot {
	bool live, chunked, pooled, dead;
	uint8_t priority; /* enum spill_priority */
	int16_t device;
	int16_t rule; /* its cap is charged; -1: none */
	enum spill_place place;
	uint32_t allocation, at; /* at: in the list of what may move; which of the shared blocks it is in */
	uint64_t bytes;
	struct spill_bytes held; /* as in the log */
	uint64_t charged, small; /* on the device; small: in blocks that others share */
	uint64_t charged_host, charged_rule;
	uint64_t range, chunk, first, stays_from,
	    run; /* of chunked: as chunked.h; first: made on the device */
};

/* A device's accounts. */
struct cli_model_device {
	uint64_t whole, small; /* charged: in pieces of its own, and of those that share blocks */
	uint64_t managed,
	    resident; /* of whole, managed memory that was brought there; of that, what others have not pushed out */
	uint64_t peak;    /* of both */
	uint64_t movable; /* of what may move, on the device */
	uint64_t away;    /* on the host, of what may come back */
	bool changed;     /* there may be room for it since the last look */
	bool begun;       /* to spill: device.reserve is kept from all requests (reserve.h) */
	uint64_t taken, look_us,
	    retry_us;             /* of the reserve: since the last look, and when the next ones are due */
	struct cli_shared blocks; /* of small, as the driver has them */
	struct cli_shared pools[SPILL_PLACES]; /* chunks on the host that small requests share */
};

struct cli_model {
	const struct cli_model_setting *setting;
	/* Each allocation of which something moved, with all that it holds from then on; NULL: nobody wants to know. */
	void (*moved)(void *data, const struct cli_model_slot *slot, bool demoted, uint64_t bytes,
	              const char *reason);
	void *data;
	/* Totals until now: */
	uint64_t
	    spills; /* placed off the device, or moved there, because it was full (not by a rule's place) */
	uint64_t refused; /* requests that ended in out of memory, */
	uint64_t honest;  /* and those that surfaced to be asked again */
	uint64_t host_peak;
	/* Inside: */
	struct cli_model_device devices[SPILL_DEVICES];
	uint64_t host;
	uint64_t rule_used[SPILL_RULES];
	struct spill_growth growth;
	struct cli_model_slot *slots;
	size_t slot_count;
	uint32_t *movable; /* slots, in no order */
	unsigned movable_count;
	struct spill_victim *victims; /* room for as many */
	uint64_t now_us, back_us;     /* back_us: from then on memory comes back */
	bool host_refuses;
};

/* Room for slots up to that number. */
void cli_model_begin(struct cli_model *model, const struct cli_model_setting *setting, size_t slots);

/* Of FREE the answer means nothing. */
struct cli_answer cli_model_take(struct cli_model *model, const struct cli_ask *ask);

/* What follows from the last answer, once it has been noted: device.reserve is kept. pre: cli_model_take of it */
void cli_model_settle(struct cli_model *model, const struct cli_ask *ask);

/* Everything is free again, as at the beginning; the setting may be another one then. */
void cli_model_reset(struct cli_model *model);

void cli_model_free(struct cli_model *model);

/* -- between model.c, model_place.c and model_move.c ------------------------------------------ */

/* A request on its way. */
struct cli_model_request {
	struct cli_model *model;
	const struct cli_ask *asked;
	struct spill_ask ask;
	struct cli_model_slot *slot;
	const struct spill_rule *rule;
	struct cli_answer answer;
	bool over_limit, at_once, repeats;
};

uint64_t cli_model_held(const struct cli_model *model, int device);
uint64_t cli_model_free_on(const struct cli_model *model, int device);
uint64_t cli_model_room(const struct cli_model *model, int device);

/* By the driver's call, or in chunks in its place. NULL, or what refuses. */
const char *cli_model_serve(struct cli_model_request *request, enum spill_switch chunks);

/* At the step's place. NULL, or what refuses. */
const char *cli_model_place(struct cli_model_request *request, enum spill_step step, uint64_t device_room);

/* NULL, and it is charged; or what refuses. */
const char *cli_model_charge_host(struct cli_model *model, uint64_t bytes);

/* Gives back all that it holds. */
void cli_model_release(struct cli_model *model, struct cli_model_slot *slot);

/* May chunks be made and moved there? */
bool cli_model_may_move(const struct cli_model *model, int device);

/* It is made of chunks: from now on it may move. `grows`: older ones of its run are dead. */
void cli_model_enlist(struct cli_model *model, struct cli_model_slot *slot, bool grows);
void cli_model_delist(struct cli_model *model, struct cli_model_slot *slot);

/* May the driver be asked for so much, or would that take of device.reserve? What moves makes way for it first. */
bool cli_model_leaves_reserve(struct cli_model *model, int device, uint64_t weight);

/* Others make way for `bytes`. True if that is enough. */
bool cli_model_demote(struct cli_model *model, int device, uint64_t bytes, const char *reason);

/* Behind what took memory of the device: device.reserve. */
void cli_model_keep_reserve(struct cli_model *model, int device, uint64_t taken);

/* What is on the host comes back where there is room. */
void cli_model_promote(struct cli_model *model);

#endif
