/*
 * decide: where a request goes, what to do when the device is full, and how much room there is.
 *
 * This room also has eviction order (victim.h), repeated requests (retry.h), reported memory
 * (meminfo.h) and the lists of libraries that need care (hazards.h). It never moves or allocates
 * memory: src/ carries out each answer. Each function is pure and total. It takes no lock and makes
 * no system call. Begin reading at spill_decide.
 */
#ifndef SPILL_DECIDE_H
#define SPILL_DECIDE_H

#include "policy.h"
#include "rule.h"

/* The abilities of a device. The backend finds them out (backend.h). */
enum spill_capability {
	SPILL_CAN_SPLIT = 1u << SPILL_PLACE_SPLIT,     /* VMM with host-backed chunks */
	SPILL_CAN_MANAGED = 1u << SPILL_PLACE_MANAGED, /* managed memory that migrates and oversubscribes */
	SPILL_CAN_HOST = 1u << SPILL_PLACE_HOST,       /* mapped pinned host memory */
	SPILL_CAN_MOVE = 1u << SPILL_PLACE_MOVABLE,    /* as SPLIT, and it can tell when a context is idle */
	/* Its enum spill_memory. Neither: discrete. */
	SPILL_IS_INTEGRATED = 1u << SPILL_PLACES,
	SPILL_IS_COHERENT = 1u << (SPILL_PLACES + 1),
};

/* Memory in use, for spill_decide. */
struct spill_view {
	uint64_t device_used;  /* device bytes in this process's ledger, without the request */
	uint64_t device_limit; /* resolved device.limit of that device, or SPILL_UNLIMITED */
	uint64_t rule_used;    /* device bytes that the rule holds, if it has a cap */
};

enum spill_verdict {
	SPILL_VERDICT_DRIVER, /* ask the driver, which reports a full device itself */
	SPILL_VERDICT_PLACE,  /* allocate at `place` at once */
	SPILL_VERDICT_FULL,   /* as if the driver had reported out of memory: spill_decide_full */
	SPILL_VERDICT_REFUSE, /* out of memory, without any other step */
};

struct spill_decision {
	enum spill_verdict verdict; /* with mode=observe always DRIVER, without chunks */
	enum spill_verdict would;   /* the verdict with mode=spill */
	enum spill_place place;     /* if `would` is PLACE: where; else DEVICE */
	/* DRIVER: in movable chunks? AUTO: movable.* decides. */
	enum spill_switch chunks;
	const char *rule;                 /* name of the rule that decided: static, or the policy's */
	enum spill_refused_by refused_by; /* if `would` is FULL or REFUSE; else NONE */
};

/* The state that matters when the device is full. */
struct spill_full_view {
	unsigned capabilities; /* enum spill_capability of the device */
	bool capped;           /* rule.cap refused: the device need not be full. */
	bool capturing;        /* its own stream captures, or one that forbids the calls of a placement. */
	bool any_capture;      /* some stream of the process captures. */
	bool asks_again;       /* the caller is in retriers.def for this kind of request. */
	bool repeats;          /* the repeat of a failure that surfaced (retry.h) */
	bool supposed;         /* answer with mode=observe as with mode=spill */
};

/* What to do when the device is full. With mode=observe: nothing. */
struct spill_fallback {
	unsigned count; /* steps to try in order; 0: out of memory */
	enum spill_step step[SPILL_STEPS];
	/* Return out of memory before the first step other than TRIM (oom.honest_first). */
	bool surfaces;
	/*
	 * Why TRIM is the only step: CAPTURE or RULE_OVER. NONE: the chain, or observed.
	 */
	enum spill_refused_by refused_by;
};

struct spill_host_view {
	uint64_t limit;     /* resolved host.limit */
	uint64_t held;      /* spilled bytes on host, of all processes that share the limit */
	uint64_t available; /* host memory that is obtainable now: MemAvailable within the cgroup */
};

/* device.limit of a `device` of `total` bytes, or SPILL_UNLIMITED. */
uint64_t spill_policy_device_limit(const struct spill_policy *policy, int device, uint64_t total);

/* device.reserve of `device`, in bytes. Loads of code may have raised it: reserve.h. */
uint64_t spill_policy_device_reserve(const struct spill_policy *policy, int device);

/*
 * Do `bytes` fit below `limit` with `used` in use? Subtraction keeps a request of nearly 2^64 bytes
 * from wrapping around.
 */
static inline bool spill_fits(uint64_t bytes, uint64_t used, uint64_t limit)
{
	return limit == SPILL_UNLIMITED || (used <= limit && bytes <= limit - used);
}

/*
 * The decision of the hot path, before the driver is asked. `rule` is the answer of
 * spill_rule_find, or NULL.
 */
struct spill_decision spill_decide(const struct spill_policy *policy, const struct spill_rule *rule,
                                   const struct spill_ask *ask, const struct spill_view *view);

/* The decision when the driver, device.limit or a rule's cap has no room for the request. */
struct spill_fallback spill_decide_full(const struct spill_policy *policy, const struct spill_rule *rule,
                                        const struct spill_ask *ask, const struct spill_full_view *view);

/* The kind of memory of a device, by device.memory or by its capabilities. Never AUTO. */
enum spill_memory spill_policy_memory(const struct spill_policy *policy, unsigned capabilities);

/*
 * Does a demotion free device memory? Not with integrated memory, unless the user wrote a chain or
 * set device.memory.
 */
bool spill_policy_gains_by_moving(const struct spill_policy *policy, unsigned capabilities);

/*
 * The steps to try in order when the device is full; returns their count. oom.chain = auto: the
 * steps that the device supports, in the order for its kind of memory, without `demote` if
 * movable.enable is off. A chain that the user wrote stays as written. A step that the device
 * cannot do then fails, and `tried` in the log shows it.
 */
unsigned spill_policy_chain(const struct spill_policy *policy, unsigned capabilities,
                            enum spill_step step[SPILL_STEPS]);

/*
 * Device bytes that may be taken: `free` without the `reserve`, and no more than `limit`
 * (or SPILL_UNLIMITED) leaves above `held`.
 */
uint64_t spill_policy_device_room(uint64_t reserve, uint64_t free, uint64_t held, uint64_t limit);

/* May memory be demoted? A chain without `demote` forbids it. */
bool spill_policy_demotes(const struct spill_policy *policy);

/* Bytes that must leave the device for a request: at least, and with the reserve left free. */
struct spill_shortfall {
	uint64_t least, wanted;
};

/* `free` is the driver's figure for the device; `reserve`, `held`, `limit` as above. */
struct spill_shortfall spill_policy_shortfall(uint64_t reserve, uint64_t bytes, uint64_t free, uint64_t held,
                                              uint64_t limit);

/*
 * Bytes of a whole chunk of an allocation of `bytes`: a multiple of `unit`, the device's granule.
 * pre: `unit` is a power of two
 */
uint64_t spill_policy_chunk(const struct spill_policy *policy, uint64_t bytes, uint64_t unit);

/* Bytes that may still be spilled to host under host.limit and host.reserve. */
uint64_t spill_policy_host_room(const struct spill_policy *policy, const struct spill_host_view *view);

#endif
