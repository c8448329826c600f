/*
 * Simulates where libspill would place the allocations of a recorded run, under another policy or
 * on another card. Every decision comes from policy/. The model does the accounts of drivers and
 * places. It does no I/O.
 *
 * It predicts placement, not speed, and assumes:
 * - The program makes the same requests.
 * - The device is idle when memory must move.
 * - Demoted memory returns when there is room, after 20 ms without a demotion.
 *
 * It does not model the driver's own memory (apart from `other`), fragmentation, or memory kept in
 * pools.
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

/* Unit of chunks, and of blocks that small allocations share (docs/measurements.md). */
#define CLI_GRANULE ((uint64_t)2 << 20)

enum cli_ask_kind {
	CLI_ASK_ALLOC,
	CLI_ASK_FREE,
	CLI_ASK_REFUSED, /* a recorded out of memory; its lifetime is not known */
	/* the same for lack of host memory, which is all that the log tells of the host */
	CLI_ASK_REFUSED_BY_HOST,
};

/* Kinds of memory that the engine treats differently. */
enum cli_memory {
	CLI_MEMORY_PLAIN,
	CLI_MEMORY_ORDERED,  /* in stream order: on the host as a whole */
	CLI_MEMORY_PHYSICAL, /* a handle: on the host as a whole */
	CLI_MEMORY_ARRAY,    /* on the device only */
	CLI_MEMORY_MANAGED,  /* asked for by the program; left alone */
	CLI_MEMORY_HOST,     /* the same */
};

/* Small, because a million of them are read several times. */
struct cli_ask {
	uint64_t bytes;
	uint64_t time_us;
	uint32_t allocation; /* the allocation's number, from 0 on */
	uint32_t slot;       /* unique among live allocations */
	uint32_t site;
	int16_t device;
	uint8_t kind, memory;
};
_Static_assert(sizeof(struct cli_ask) == 32, "as small as can be");

/* A call site, and the policy's answers for it. */
struct cli_site {
	uint64_t rules;      /* of spill_rules_of */
	unsigned asks_again; /* enum spill_retry: operations whose failures surface first */
	bool known;          /* has an address, which growth of its requests is counted by */
	bool exports;        /* the library exports its memory (policy/decide/exporters.def) */
};

struct cli_card {
	uint64_t total, limit; /* limit: or SPILL_UNLIMITED */
	uint64_t other;        /* part of the total that others hold */
	unsigned capabilities; /* enum spill_capability */
};

struct cli_model_setting {
	const struct spill_policy *policy;
	const struct spill_backend *backend;
	const struct cli_site *sites;
	unsigned device_count; /* visible to the program */
	struct cli_card cards[SPILL_DEVICES];
	uint64_t host; /* available host memory at start; SPILL_UNLIMITED: not known */
};

/* The result of a request. Texts are static or the policy's. */
struct cli_answer {
	bool served;
	bool surfaced; /* oom.honest_first returned the first failure, and this is the repeat */
	enum spill_place place;
	struct spill_bytes held;
	const char *reason, *rule, *refused_by; /* as in the log */
};

struct cli_model_slot {
	bool live, chunked, pooled, dead;
	uint8_t priority; /* enum spill_priority */
	int16_t device;
	int16_t rule; /* index of the rule whose cap is charged; -1: none */
	enum spill_place place;
	uint32_t allocation, list_index; /* list_index: index in `movable`, or of a shared block */
	uint64_t bytes;
	struct spill_bytes held; /* as in the log */
	uint64_t charged, small; /* on the device. `small`: the part in shared blocks */
	uint64_t charged_host, charged_rule;
	/* For chunked memory, as in chunked.h. `first`: bytes made on the device. */
	uint64_t range, chunk, first, stays_from, run;
};

struct cli_model_device {
	/* charged memory: `whole` in blocks of its own, `small` in shared blocks */
	uint64_t whole, small;
	/* `managed`: prefetched part of `whole`. `resident`: not evicted. */
	uint64_t managed, resident;
	uint64_t peak;
	uint64_t movable; /* movable, on the device */
	uint64_t away;    /* movable, on the host */
	bool changed;     /* memory was freed since the last promotion */
	bool begun;       /* spilling has begun: device.reserve is kept */
	/* For the reserve: bytes taken since the last check, and times of the next checks. */
	uint64_t taken, look_us, retry_us;
	struct cli_shared blocks;              /* the driver's blocks for `small` */
	struct cli_shared pools[SPILL_PLACES]; /* chunks on the host that small requests share */
};

struct cli_model {
	const struct cli_model_setting *setting;
	/* Called after each move. NULL: not wanted. */
	void (*moved)(void *data, const struct cli_model_slot *slot, bool demoted, uint64_t bytes,
	              const char *reason);
	void *data;
	/* Totals so far: */
	/* Allocations placed or moved off the full device. A rule's place does not count. */
	uint64_t spills;
	uint64_t refused; /* requests that ended in out of memory */
	uint64_t honest;  /* failures that surfaced first, so that the program asks again */
	uint64_t host_peak;
	/* Private to the model: */
	struct cli_model_device devices[SPILL_DEVICES];
	uint64_t host;
	uint64_t rule_used[SPILL_RULES];
	struct spill_growth growth;
	struct cli_model_slot *slots;
	size_t slot_count;
	uint32_t *movable; /* slots in any order */
	unsigned movable_count;
	struct spill_victim *victims; /* as many as slots */
	uint64_t now_us, back_us;     /* back_us: time of the next promotion */
	bool host_refuses;
};

/* Begins with room for `slots` allocations at once. */
void cli_model_begin(struct cli_model *model, const struct cli_model_setting *setting, size_t slots);

/* Decides a request. The answer to a FREE means nothing. */
struct cli_answer cli_model_take(struct cli_model *model, const struct cli_ask *ask);

/* Keeps device.reserve after the last answer was recorded. pre: cli_model_take of this ask */
void cli_model_settle(struct cli_model *model, const struct cli_ask *ask);

/* Frees everything. The setting may change before the next request. */
void cli_model_reset(struct cli_model *model);

void cli_model_free(struct cli_model *model);

/* -- between model.c, model_place.c and model_move.c ------------------------------------------ */

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

/* Serves the request by the driver's call or by chunks. NULL, or the reason of a refusal. */
const char *cli_model_serve(struct cli_model_request *request, enum spill_switch chunks);

/* Places the request by a step of the chain. NULL, or the reason of a refusal. */
const char *cli_model_place(struct cli_model_request *request, enum spill_step step, uint64_t device_room);

/* Charges host memory. NULL, or the reason of a refusal. */
const char *cli_model_charge_host(struct cli_model *model, uint64_t bytes);

void cli_model_release(struct cli_model *model, struct cli_model_slot *slot);

/* True if the device supports chunks that move. */
bool cli_model_may_move(const struct cli_model *model, int device);

/* Adds a chunked allocation to `movable`. `grows`: earlier ones of its run are dead. */
void cli_model_enlist(struct cli_model *model, struct cli_model_slot *slot, bool grows);
void cli_model_delist(struct cli_model *model, struct cli_model_slot *slot);

/* What is kept free on the device: device.reserve, or nothing. */
uint64_t cli_model_reserve(const struct cli_model *model, int device);

/* True if the request leaves device.reserve free. Demotes memory first if needed. */
bool cli_model_leaves_reserve(struct cli_model *model, int device, uint64_t weight);

/* Demotes memory to make room for `bytes`. True: there is enough. */
bool cli_model_demote(struct cli_model *model, int device, uint64_t bytes, const char *reason);

/* Restores device.reserve after `taken` bytes were allocated. */
void cli_model_keep_reserve(struct cli_model *model, int device, uint64_t taken);

void cli_model_promote(struct cli_model *model);

#endif
