/*
 * The policy: what the user asked for, and the pure decisions that follow from it.
 *
 * Everything here is a function of its arguments: no vendor types, no I/O, no clock, no globals, no
 * malloc (a test checks that the archive's undefined symbols are mem* and str* only). Sizes are
 * bytes. The words and defaults are those of docs/options.md, generated from policy/options.def.
 */
#ifndef SPILL_POLICY_H
#define SPILL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most devices one process can hold limits for. NVIDIA's own tools stop at 32 a node. */
#define SPILL_DEVICES 32

#define SPILL_UNLIMITED UINT64_MAX

/* No node of the host's by number. Linux has 1024 at most (CONFIG_NODES_SHIFT). */
#define SPILL_NODE_NEAREST (-1)
#define SPILL_NODES 1024

enum spill_mode { SPILL_MODE_SPILL, SPILL_MODE_OBSERVE, SPILL_MODE_OFF };

/* Where the bytes of an allocation are. */
enum spill_place {
	SPILL_PLACE_DEVICE,
	SPILL_PLACE_SPLIT,   /* what fits on the device, the rest on host, one virtual range */
	SPILL_PLACE_MANAGED, /* unified memory, with advice */
	SPILL_PLACE_HOST,    /* pinned host memory, read in place */
	SPILL_PLACE_MOVABLE, /* chunks on the device that can go to host later and come back */
	SPILL_PLACES
};

/* Steps of oom.chain: what to try when the device is full. */
enum spill_step {
	SPILL_STEP_TRIM,   /* give back what is held and not used, then ask the driver again */
	SPILL_STEP_DEMOTE, /* move cold chunks of movable allocations to host, then ask the driver again */
	SPILL_STEP_SPLIT,
	SPILL_STEP_MANAGED,
	SPILL_STEP_HOST,
	SPILL_STEPS
};

/* An amount as the user wrote it: unset, bytes, or a share of something known only later. */
enum spill_amount_kind { SPILL_AMOUNT_NONE, SPILL_AMOUNT_BYTES, SPILL_AMOUNT_PERCENT };

struct spill_amount {
	enum spill_amount_kind kind;
	uint64_t value; /* bytes, or thousandths of a percent (75% is 75000) */
};

/* How a device's memory and the host's belong together. */
enum spill_memory {
	SPILL_MEMORY_AUTO,       /* as the device says; of a device itself: never */
	SPILL_MEMORY_DISCRETE,   /* its own chips, the host's behind a bus */
	SPILL_MEMORY_INTEGRATED, /* the same chips: an integrated GPU, an APU */
	SPILL_MEMORY_COHERENT, /* its own chips; of the host's it reads every page by a coherent link: Grace Hopper */
};

enum spill_location { SPILL_LOCATION_NONE, SPILL_LOCATION_DEVICE, SPILL_LOCATION_HOST };

enum spill_log_level { SPILL_LOG_ALL, SPILL_LOG_SPILLS, SPILL_LOG_OFF };
enum spill_log_stderr { SPILL_STDERR_FIRST, SPILL_STDERR_ALL, SPILL_STDERR_OFF };

#define SPILL_PATH_MAX 4096

/* Whose first out of memory surfaces before anything is spilled for it (retry.h). */
enum spill_retry_state_first { SPILL_HONEST_AUTO, SPILL_HONEST_ON, SPILL_HONEST_OFF };

struct spill_fallback_chain {
	bool by_capability; /* oom.chain was not set: what the device can do */
	unsigned count;     /* 0 with by_capability unset: never spill */
	enum spill_step step[SPILL_STEPS];
};

/* Which leave the device first. */
enum spill_priority { SPILL_PRIORITY_COLD, SPILL_PRIORITY_NORMAL, SPILL_PRIORITY_HOT };

enum spill_switch { SPILL_SWITCH_AUTO, SPILL_SWITCH_ON, SPILL_SWITCH_OFF };

/* What the program is told about free and total memory (meminfo.h). */
enum spill_meminfo_report { SPILL_MEMINFO_HONEST, SPILL_MEMINFO_LIMIT, SPILL_MEMINFO_SPILL };

/* What the driver is told about managed memory that we make: `[managed]`, or a rule's. */
struct spill_managed_advice {
	enum spill_location preferred;
	bool accessed_by_device, accessed_by_host;
	bool read_mostly;
	struct spill_amount prefetch_below; /* what is smaller is brought to the device at once, if it fits */
};

struct spill_rules; /* rule.h */
struct spill_rule;

struct spill_policy {
	enum spill_mode mode;
	unsigned
	    profile; /* the word of spill.profile; 0 is none. Whoever loads a policy reads it (profile.h) */
	struct spill_amount device_limit;                 /* all devices without one of their own */
	struct spill_amount device_limits[SPILL_DEVICES]; /* [device N] */
	struct spill_amount device_reserve;
	struct spill_amount device_reserves[SPILL_DEVICES]; /* [device N] */
	enum spill_memory device_memory;
	struct spill_amount host_limit;
	struct spill_amount host_reserve;
	int host_numa;   /* node of host placements; SPILL_NODE_NEAREST: the device's */
	bool host_share; /* host.limit is for all processes of the user together */
	struct spill_fallback_chain chain;
	enum spill_switch movable_enable;
	struct spill_amount movable_min, movable_chunk;
	struct spill_amount movable_above; /* a share */
	uint64_t movable_wait_us;
	enum spill_switch movable_follow;
	struct spill_amount host_ahead;
	enum spill_retry_state_first honest_first;
	uint64_t honest_window_us;
	struct spill_managed_advice advice;
	enum spill_meminfo_report meminfo_report;
	char log_path[SPILL_PATH_MAX]; /* a pattern, a folder, "off", or empty for the default */
	enum spill_log_level log_level;
	enum spill_log_stderr log_stderr;
	uint64_t log_max;
	unsigned log_keep;
	const struct spill_rules
	    *rules; /* NULL: none. Not owned: whoever loads a policy keeps them as long as it */
};

/* What the device can do; the backend finds out (backend.h). */
enum spill_capability {
	SPILL_CAN_SPLIT = 1u << SPILL_PLACE_SPLIT,     /* VMM with host-backed chunks */
	SPILL_CAN_MANAGED = 1u << SPILL_PLACE_MANAGED, /* managed memory that migrates and oversubscribes */
	SPILL_CAN_HOST = 1u << SPILL_PLACE_HOST,       /* mapped pinned host memory */
	SPILL_CAN_MOVE = 1u << SPILL_PLACE_MOVABLE,    /* as SPLIT, and it can tell when a context is idle */
	/* What it is: enum spill_memory. Neither: discrete. */
	SPILL_IS_INTEGRATED = 1u << SPILL_PLACES,
	SPILL_IS_COHERENT = 1u << (SPILL_PLACES + 1),
};

/* A request, as far as decisions go by it. */
struct spill_ask {
	uint64_t bytes;  /* that the program asks for: what rules look at, and what caps are charged with */
	uint64_t weight; /* device bytes that the driver takes for it: what limits are charged with */
	int device;
	uint64_t rules; /* that fit its call site (spill_rules_of) */
	bool grows;     /* one of a run of ever larger ones from its call site; known where a rule asks */
	/* It can be elsewhere than in the driver's plain call: not all kinds of memory can, and none while its stream captures. */
	bool placeable;
	/* The rule's place has been tried for it and could not be had: it goes on as without `place`. */
	bool place_failed;
};

struct spill_view {
	uint64_t device_used;  /* bytes this process holds on the device by its own ledger, without the ask */
	uint64_t device_limit; /* resolved device.limit of that device, or SPILL_UNLIMITED */
	uint64_t rule_used;    /* device bytes that the rule holds, where it has a cap */
};

enum spill_verdict {
	SPILL_VERDICT_DRIVER, /* the driver is asked; it says itself when the device is full */
	SPILL_VERDICT_PLACE,  /* made at `place` at once */
	SPILL_VERDICT_FULL,   /* as if the driver had said out of memory: spill_decide_full */
	SPILL_VERDICT_REFUSE, /* out of memory, whatever else there is */
};

struct spill_decision {
	enum spill_verdict verdict; /* with mode=observe always DRIVER, without chunks */
	enum spill_verdict would;   /* what it is with mode=spill */
	enum spill_place place;     /* would PLACE: where; else DEVICE */
	enum spill_switch
	    chunks;       /* DRIVER: in chunks that can move: as movable.* says (AUTO), in any case, never */
	const char *rule; /* name of the rule that decided: static storage, or the policy's */
	const char *refused_by; /* would FULL or REFUSE: "device.limit", "rule.cap", "rule.place"; static */
};

/* What matters once the device is full. */
struct spill_full_view {
	unsigned capabilities; /* enum spill_capability of the device */
	bool capped;           /* refused by "rule.cap": the device need not be full */
	bool capturing;        /* its own stream captures, or one that forbids what a placement does */
	bool any_capture;      /* some stream of the process captures */
	bool asks_again;       /* the caller is in retriers.def for this kind of request */
	bool repeats;          /* it is the repeat of a failure that surfaced (retry.h) */
	bool supposed;         /* with mode=observe, too, as it would be with mode=spill */
};

/* What to do about a full device; with mode=observe nothing. */
struct spill_fallback {
	unsigned count; /* steps to try in order; with none of them it is out of memory */
	enum spill_step step[SPILL_STEPS];
	/* Out of memory is told before the first step other than TRIM (oom.honest_first). Only where there is one to skip. */
	bool surfaces;
	/* Why there is no step but TRIM: "stream capture", "rule.over"; static. NULL: the chain says so, or it is observed. */
	const char *refused_by;
};

struct spill_host_view {
	uint64_t limit;     /* resolved host.limit */
	uint64_t held;      /* spilled bytes on host, of this process and of those that share its limit */
	uint64_t available; /* host memory obtainable now: MemAvailable within the cgroup */
};

/* Every option at its default. */
void spill_policy_default(struct spill_policy *policy);

/* Bytes that `amount` means when the whole is `whole`; `none` when it is unset. */
uint64_t spill_amount_resolve(struct spill_amount amount, uint64_t whole, uint64_t none);

/* device.limit that holds for `device` of `total` bytes, or SPILL_UNLIMITED. */
uint64_t spill_policy_device_limit(const struct spill_policy *policy, int device, uint64_t total);

/* device.reserve that holds for `device`, in bytes. A load may have shown that more is needed: reserve.h. */
uint64_t spill_policy_device_reserve(const struct spill_policy *policy, int device);

/*
 * Is there room for `bytes` below `limit` (SPILL_UNLIMITED: there is none) with `used` in use? Subtracting keeps a request of nearly
 * 2^64 bytes from wrapping into one that fits.
 */
static inline bool spill_fits(uint64_t bytes, uint64_t used, uint64_t limit)
{
	return limit == SPILL_UNLIMITED || (used <= limit && bytes <= limit - used);
}

/*
 * The question of the hot path, before the driver is asked. `rule` is what spill_rule_find says, or NULL. Pure and total:
 * for the same arguments the same answer. Takes no lock, no system call.
 */
struct spill_decision spill_decide(const struct spill_policy *policy, const struct spill_rule *rule,
                                   const struct spill_ask *ask, const struct spill_view *view);

/* The question when the device is full for it: by the driver's word, by device.limit or by a rule's cap. Pure and total. */
struct spill_fallback spill_decide_full(const struct spill_policy *policy, const struct spill_rule *rule,
                                      const struct spill_ask *ask, const struct spill_full_view *view);

/* What a device of these capabilities counts as: device.memory, or what it says of itself. Never AUTO. */
enum spill_memory spill_policy_memory(const struct spill_policy *policy, unsigned capabilities);

/*
 * Would what leaves the device be in other memory than before? Not with integrated memory, unless the user wrote a chain or says
 * in device.memory that it is none.
 */
bool spill_policy_gains_by_moving(const struct spill_policy *policy, unsigned capabilities);

/*
 * The steps to try in order when the device is full, for a device that can do `capabilities`
 * (enum spill_capability), in the order that fits its memory, and without demote if nothing is movable by movable.enable. A chain the user wrote is kept as written, also where the device cannot do a
 * step: the attempt fails and is recorded in `tried`, so that nobody wonders. Returns the count.
 */
unsigned spill_policy_chain(const struct spill_policy *policy, unsigned capabilities,
                            enum spill_step step[SPILL_STEPS]);

/*
 * Device bytes that may be taken without crowding others out: the `free` less the `reserve` to keep, within what `limit`
 * (SPILL_UNLIMITED: there is none) leaves above `held`.
 */
uint64_t spill_policy_device_room(uint64_t reserve, uint64_t free, uint64_t held, uint64_t limit);

/* May what is on the device leave it? Who wrote a chain without `demote` wants nothing to move. */
bool spill_policy_demotes(const struct spill_policy *policy);

/* Bytes that have to leave the device for `bytes` more: at the least, and with the reserve left free. */
struct spill_missing {
	uint64_t least, wanted;
};

/* `free`: of the device, as the driver says; `reserve`, `held`, `limit` as above. */
struct spill_missing spill_policy_missing(uint64_t reserve, uint64_t bytes, uint64_t free, uint64_t held,
                                          uint64_t limit);

/* Bytes of a whole chunk of an allocation of `bytes`: a multiple of `unit`, a power of two, the device's granule. */
uint64_t spill_policy_chunk(const struct spill_policy *policy, uint64_t bytes, uint64_t unit);

/* Bytes that may still be spilled to host under host.limit and host.reserve. */
uint64_t spill_policy_host_room(const struct spill_policy *policy, const struct spill_host_view *view);

/* The word of device.memory: "discrete", "integrated", "coherent". */
const char *spill_memory_name(enum spill_memory memory);

/* The word used in the policy file and the log: "device", "movable", "split", "managed", "host". */
const char *spill_place_name(enum spill_place place);

/* The word of oom.chain and of `tried` in the log: "trim", "demote", "split", "managed", "host". */
const char *spill_step_name(enum spill_step step);

/* Where the step puts an allocation; TRIM and DEMOTE: on the device. */
enum spill_place spill_step_place(enum spill_step step);

#endif
