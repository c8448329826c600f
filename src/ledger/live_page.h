/*
 * The live page, for `spill top`: the memory that this process holds, and its last decision. It is
 * a sealed memfd that this process writes. Readers find it among its descriptors (/proc/PID/fd), if
 * they may inspect the process. No other process can write it or change its size. The library never
 * reads it back.
 */
#ifndef SPILL_LIVE_PAGE_H
#define SPILL_LIVE_PAGE_H

#include "ledger_totals.h"
#include "log.h"
#include "policy.h"
#include "record.h"
#include "seqlock.h"

#define SPILL_LIVE_PAGE_NAME "spill-counters"
#define SPILL_LIVE_PAGE_MAGIC 0x72746e636c6c7073ull /* "spllcntr" */
#define SPILL_LIVE_PAGE_VERSION 3u                  /* changes with everything below */

/*
 * The figures of a device, in lists of those that change together. The order of the lists is the
 * order in the page. A row is X(ID, name, member of struct spill_device_totals).
 */
#define SPILL_COUNTERS_LIVE(X) \
	X(DEVICE, "device_bytes", totals.live.device) \
	X(HOST, "host_bytes", totals.live.host) \
	X(MANAGED, "managed_bytes", totals.live.managed) \
	X(AWAY, "away_bytes", away)
#define SPILL_COUNTERS_PEAK(X) \
	X(PEAK_DEVICE, "peak_device_bytes", totals.peak.device) \
	X(PEAK_HOST, "peak_host_bytes", totals.peak.host) \
	X(PEAK_MANAGED, "peak_managed_bytes", totals.peak.managed) \
	X(PEAK_AWAY, "peak_away_bytes", totals.away.peak) \
	X(PEAK_WANTED, "peak_wanted_bytes", totals.away.wanted)
#define SPILL_COUNTERS_RARE(X) \
	X(SPILLS, "spills", totals.spills) \
	X(SPILLED_HOST, "spilled_host_bytes", totals.spilled.host) \
	X(SPILLED_MANAGED, "spilled_managed_bytes", totals.spilled.managed) \
	X(DEMOTIONS, "demotions", totals.demotions) \
	X(PROMOTIONS, "promotions", totals.promotions) \
	X(DEMOTED, "demoted_bytes", totals.demoted) \
	X(PROMOTED, "promoted_bytes", totals.promoted) \
	X(OOMS, "ooms", totals.ooms) \
	X(MOVES_US, "moves_us", totals.away.moves_us) \
	X(FOLLOWED, "followed_bytes", totals.away.in_place.followed) \
	X(IN_PLACE, "in_place_bytes", totals.away.in_place.bytes) \
	X(IN_PLACE_US, "in_place_us", totals.away.in_place.us) \
	X(IN_PLACE_MOST_US, "in_place_most_us", totals.away.in_place.most_us)
#define SPILL_COUNTERS_COUNTS(X) \
	X(ALLOCS, "allocs", totals.allocs) \
	X(FREES, "frees", totals.frees)
#define SPILL_COUNTERS(X) \
	SPILL_COUNTERS_LIVE(X) SPILL_COUNTERS_PEAK(X) SPILL_COUNTERS_RARE(X) SPILL_COUNTERS_COUNTS(X)

enum spill_counter {
#define X(id, name, member) SPILL_COUNTER_##id,
	// clang-format off
	SPILL_COUNTERS(X)
#undef X
	SPILL_COUNTERS_COUNT
	// clang-format on
};

struct spill_live_page_device {
	char name[96], uuid[48], pci[24];
	uint64_t bytes; /* 0: the vendor did not say */
	uint64_t limit; /* device.limit; UINT64_MAX: none */
};

/* The last decision of interest: a spill, a move or an out of memory. Long texts are cut. */
struct spill_live_page_decision {
	uint64_t count;   /* of such decisions so far; 0: none */
	uint64_t time_us; /* wall-clock, since 1970 */
	uint64_t bytes;
	uint64_t device;
	char what[16];   /* "spill", "would spill", "demote", "promote", "oom" */
	char place[16];  /* "split"; of a move: its destination */
	char reason[32]; /* as in the log; of an oom: the refusal */
	char rule[64], api[64], caller[128];
};

/* Written once. Complete when its magic is there. */
struct spill_live_page_head {
	_Atomic uint64_t magic; /* stored last, because a reader may find the page at any time */
	uint32_t version, size; /* of struct spill_live_page */
	uint32_t pid;           /* in its own container; outside it has another one */
	uint32_t devices;
	uint64_t start_us; /* wall-clock, since 1970, of the first GPU memory call */
	char mode[16], backend[16], release[16];
	char program[256];
	char log[1024]; /* its path; "" without a log, or if the path is longer */
};

/* Figures that are read together. The ledger's lock excludes other writers. */
struct spill_live_page_figures {
	spill_seqlock lock;
	_Atomic uint64_t figure[SPILL_COUNTERS_COUNT];
};

struct spill_live_page {
	struct spill_live_page_head head;
	struct spill_live_page_device
	    devices[SPILL_DEVICES]; /* the first head.devices are known; written once */
	spill_seqlock decided;
	_Atomic uint64_t decision[sizeof(struct spill_live_page_decision) / 8];
	struct spill_live_page_figures figures[SPILL_DEVICES];
};

/*
 * Makes the page, at the first GPU memory call. There is no page if that fails (a limit, an old
 * kernel) or if the program is privileged.
 */
void spill_live_page_open(const struct spill_policy *policy, const struct spill_log_start *start);

/* Stores the devices of the start line, SPILL_DEVICES at most. Returns their number. */
unsigned spill_live_page_devices(struct spill_live_page_device *devices, const struct spill_policy *policy,
                                 const struct spill_log_start *start);

/* Flags of changes since the last time. FREES and ALLOCS are always written. */
enum { SPILL_CHANGED_LIVE = 1, SPILL_CHANGED_PEAK = 2, SPILL_CHANGED_RARE = 4, SPILL_CHANGED_ALL = 7 };

/* Copies a device's figures, without a system call. pre: device < SPILL_DEVICES; ledger locked */
void spill_live_page_publish(unsigned device, const struct spill_device_totals *counted, unsigned changed);

/* Shows a decision. If another thread is writing one, this one is left out. */
struct spill_live_page_text {
	const char *what, *place, *reason, *rule, *api, *caller; /* NULL: "" */
};
void spill_live_page_decided(int device, uint64_t bytes, const struct spill_live_page_text *text);

/* Unmaps the parent's page. The first GPU memory call of the child makes its own. */
void spill_live_page_fork_child(void);

#endif
