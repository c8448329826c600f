/*
 * What this process holds and what was decided last, for `spill top`: a sealed memfd that the process writes and others find among
 * its descriptors (/proc/PID/fd) and read. Whoever may look into the process may read it; nobody else can write it or change its size.
 * It is a copy: the library reads nothing back.
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
#define SPILL_LIVE_PAGE_VERSION 1u                  /* of everything below: it grows with every change */

/*
 * What a device's figures are, in lists of those that change together: their order in the page, their names, and what of struct
 * spill_ledger_totals_sum they are.
 */
#define SPILL_COUNTERS_LIVE(X) \
	X(DEVICE, "device_bytes", totals.live.device) \
	X(HOST, "host_bytes", totals.live.host) \
	X(MANAGED, "managed_bytes", totals.live.managed) \
	X(AWAY, "away_bytes", away)
#define SPILL_COUNTERS_PEAK(X) \
	X(PEAK_DEVICE, "peak_device_bytes", totals.peak.device) \
	X(PEAK_HOST, "peak_host_bytes", totals.peak.host) \
	X(PEAK_MANAGED, "peak_managed_bytes", totals.peak.managed)
#define SPILL_COUNTERS_RARE(X) \
	X(SPILLS, "spills", totals.spills) \
	X(SPILLED_HOST, "spilled_host_bytes", totals.spilled.host) \
	X(SPILLED_MANAGED, "spilled_managed_bytes", totals.spilled.managed) \
	X(DEMOTIONS, "demotions", totals.demotions) \
	X(PROMOTIONS, "promotions", totals.promotions) \
	X(DEMOTED, "demoted_bytes", totals.demoted) \
	X(PROMOTED, "promoted_bytes", totals.promoted) \
	X(OOMS, "ooms", totals.ooms)
#define SPILL_COUNTERS_COUNTS(X) \
	X(ALLOCS, "allocs", totals.allocs) \
	X(FREES, "frees", totals.frees)
#define SPILL_COUNTERS(X) \
	SPILL_COUNTERS_LIVE(X) SPILL_COUNTERS_PEAK(X) SPILL_COUNTERS_RARE(X) SPILL_COUNTERS_COUNTS(X)

enum spill_counter {
#define X(id, name, of) SPILL_COUNTER_##id,
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

/* The last thing that a person would ask about: something spilled, moved, or was out of memory. Texts that are too long are cut. */
struct spill_live_page_decision {
	uint64_t count;   /* of such decisions until now; 0: none */
	uint64_t time_us; /* wall-clock, since 1970 */
	uint64_t bytes;
	uint64_t device;
	char what[16];   /* "spill", "would spill", "demote", "promote", "oom" */
	char place[16];  /* "split"; a move's: where it went */
	char reason[32]; /* as in the log; an oom's: what refused it */
	char rule[64], api[64], caller[128];
};

/* Written once, before anybody can know of the page. */
struct spill_live_page_head {
	uint64_t magic;
	uint32_t version, size; /* of struct spill_live_page */
	uint32_t pid;           /* as the process itself knows it: in a container another than outside */
	uint32_t devices;
	uint64_t start_us; /* wall-clock, since 1970, of the first GPU memory call */
	char mode[16], backend[16], release[16];
	char program[256];
	char log[1024]; /* its path; "" if there is none, or if it is longer */
};

/* Figures that are read together: one writer at a time, by the ledger's lock. */
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
 * Makes the page, at the first GPU memory call. What stands in the way (a limit, an old kernel, a privileged program) only means that
 * there is none.
 */
void spill_live_page_open(const struct spill_policy *policy, const struct spill_log_start *start);

/* What has changed since the last time; FREES and ALLOCS are always told. */
enum { SPILL_CHANGED_LIVE = 1, SPILL_CHANGED_PEAK = 2, SPILL_CHANGED_RARE = 4, SPILL_CHANGED_ALL = 7 };

/* Copies the ledger's figures of a device, which is below SPILL_DEVICES. pre: the ledger is locked. A few stores; no system call. */
void spill_live_page_publish(unsigned device, const struct spill_device_totals *counted, unsigned changed);

/* A decision; texts are cut to their room, `time_us` and `count` are filled in. If another thread is telling one, that one is told. */
struct spill_live_page_text {
	const char *what, *place, *reason, *rule, *api, *caller; /* NULL: "" */
};
void spill_live_page_decided(int device, uint64_t bytes, const struct spill_live_page_text *text);

/* The child has no GPU memory of its parent's; its own first call makes a page of its own. */
void spill_live_page_fork_child(void);

#endif
