/*
 * The policy: the value of each option.
 *
 * Sizes are bytes. docs/options.md has the words and the defaults; it is generated from
 * options.def.
 */
#ifndef SPILL_POLICY_H
#define SPILL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "amount.h"
#include "words.h"

/* Most devices that one process can have limits for. NVIDIA's own tools stop at 32 a node. */
#define SPILL_DEVICES 32

/*
 * The NUMA node nearest to the device, and how many nodes Linux has at most (CONFIG_NODES_SHIFT).
 */
#define SPILL_NODE_NEAREST (-1)
#define SPILL_NODES 1024

#define SPILL_PATH_MAX 4096

enum spill_mode { SPILL_MODE_SPILL, SPILL_MODE_OBSERVE, SPILL_MODE_OFF };
enum spill_location { SPILL_LOCATION_NONE, SPILL_LOCATION_DEVICE, SPILL_LOCATION_HOST };
enum spill_log_level { SPILL_LOG_ALL, SPILL_LOG_EACH, SPILL_LOG_SPILLS, SPILL_LOG_OFF };
enum spill_log_stderr { SPILL_STDERR_FIRST, SPILL_STDERR_ALL, SPILL_STDERR_OFF };
enum spill_switch { SPILL_SWITCH_AUTO, SPILL_SWITCH_ON, SPILL_SWITCH_OFF };
enum spill_follow { SPILL_FOLLOW_AUTO, SPILL_FOLLOW_ON, SPILL_FOLLOW_OFF, SPILL_FOLLOW_OVERLAP };

/* Whether the first out of memory surfaces before anything is spilled for it (retry.h). */
enum spill_honest_first { SPILL_HONEST_AUTO, SPILL_HONEST_ON, SPILL_HONEST_OFF };

/* The free and total memory that the program is told (meminfo.h). */
enum spill_meminfo_report { SPILL_MEMINFO_HONEST, SPILL_MEMINFO_LIMIT, SPILL_MEMINFO_SPILL };

/* Eviction order. */
enum spill_priority { SPILL_PRIORITY_COLD, SPILL_PRIORITY_NORMAL, SPILL_PRIORITY_HOT };

struct spill_fallback_chain {
	bool by_capability; /* oom.chain = auto: the steps that the device supports */
	unsigned count;     /* 0 and not by_capability: never spill */
	enum spill_step step[SPILL_STEPS];
};

/* Advice to the driver about managed memory that we make: `[managed]`, or a rule's. */
struct spill_managed_advice {
	enum spill_location preferred;
	bool accessed_by_device, accessed_by_host;
	bool read_mostly;
	struct spill_amount prefetch_below; /* smaller allocations are prefetched at once if they fit */
};

struct spill_rules; /* rule.h */
struct spill_rule;

struct spill_policy {
	enum spill_mode mode;
	unsigned profile;                 /* index of the word of spill.profile; 0: none (ini_file.h) */
	unsigned run_framework;           /* index of the word; 0: none (src/cli/run/framework.c) */
	struct spill_amount device_limit; /* of each device without a limit of its own */
	struct spill_amount device_limits[SPILL_DEVICES]; /* [device N] */
	struct spill_amount device_reserve;
	struct spill_amount device_reserves[SPILL_DEVICES]; /* [device N] */
	enum spill_memory device_memory;
	struct spill_amount host_limit;
	struct spill_amount host_reserve;
	int host_numa;   /* node of host placements, or SPILL_NODE_NEAREST */
	bool host_share; /* all processes of the user share host.limit */
	struct spill_fallback_chain chain;
	enum spill_switch movable_enable;
	struct spill_amount movable_min, movable_chunk;
	struct spill_amount movable_above; /* a percentage */
	uint64_t movable_wait_us;
	enum spill_follow movable_follow;
	bool movable_audit;
	char movable_record[SPILL_PATH_MAX]; /* a pattern, a folder, or "off"; empty is off */
	struct spill_amount host_ahead;
	enum spill_honest_first honest_first;
	uint64_t honest_window_us;
	struct spill_managed_advice advice;
	enum spill_meminfo_report meminfo_report;
	char log_path[SPILL_PATH_MAX]; /* a pattern, a folder, "off", or empty for the default */
	enum spill_log_level log_level;
	enum spill_log_stderr log_stderr;
	uint64_t log_max;
	unsigned log_keep;
	char log_metrics[SPILL_PATH_MAX]; /* a pattern, a folder, or "off"; empty is off */
	const struct spill_rules *rules;  /* NULL: none. The loader of the policy owns them. */
};

/* Every option at its default. */
void spill_policy_default(struct spill_policy *policy);

#endif
