/* A recorded run in memory, to be decided several times: requests in order, and places. */
#ifndef SPILL_CLI_RECORDING_H
#define SPILL_CLI_RECORDING_H

#include "live.h"
#include "model.h"
#include "sorter.h"

/* Where an allocation was in its life. */
enum cli_where {
	CLI_WHERE_DEVICE,
	CLI_WHERE_LEFT, /* on the device, then partly demoted */
	CLI_WHERE_SPLIT,
	CLI_WHERE_MANAGED,
	CLI_WHERE_HOST,
	CLI_WHERE_NOWHERE, /* out of memory */
	CLI_WHERES
};

struct cli_whereabouts {
	uint64_t away; /* most bytes off the device */
	enum cli_where where;
};

struct cli_recorded_alloc {
	uint64_t seq, bytes;
	struct cli_whereabouts was;
	const struct cli_name *who; /* for people; decisions follow from the site */
	uint32_t site;
};

struct cli_recorded_site {
	const struct cli_name *caller, *api;
	enum cli_memory memory; /* kind of memory of the function */
	bool summed;            /* its requests are levels of sum lines, not the program's own sizes */
};

#define CLI_RECENT_SITES 256

struct cli_recording {
	struct cli_ask *asks;
	size_t ask_count, ask_size;
	struct cli_recorded_alloc *allocs; /* by allocation; includes each recorded out of memory */
	size_t alloc_count, alloc_size;
	struct cli_recorded_site *sites;
	size_t site_count, site_size;
	size_t slots;      /* most allocations at once */
	uint64_t refused;  /* recorded out of memory, without oom.honest_first */
	bool host_refused; /* one of them for lack of host memory */
	struct cli_recorded_device {
		/* Device memory of others, from out of memory lines and moves. */
		bool known;
		uint64_t other;
		/* While the log is read, bytes that the program holds: all; the part that stands for
		 * memory without lines (levels.c); and the real bytes of such memory. */
		uint64_t held, levels, summed;
	} devices[SPILL_DEVICES];
	/* While the log is read: */
	const struct spill_backend *backend;
	uint64_t taken[SPILL_DEVICES]; /* this program's memory as the driver counts it */
	uint64_t small[SPILL_DEVICES];
	struct spill_record_oom oom; /* the last one, without texts */
	struct cli_live live, known_sites;
	struct cli_live levels; /* bytes of call sites of sum lines, each as one allocation */
	struct cli_recent_site {
		const struct cli_name *caller, *api;
		uint32_t number;    /* from 1 on */
	} recent[CLI_RECENT_SITES]; /* a cache of known_sites */
	uint32_t *unused;           /* free slots */
	size_t unused_count, unused_size;
};

void cli_recording_begin(struct cli_recording *recording, const struct spill_backend *backend);

void cli_recording_event(struct cli_recording *recording, const struct cli_event *event);

/* Keeps an out of memory line; its event follows. */
void cli_recording_oom(struct cli_recording *recording, const struct spill_record_oom *oom);

void cli_recording_free(struct cli_recording *recording);

/* -- between recording.c and levels.c: memory that sum lines tell ----------------------------- */

/* Before an event: what its line says about memory without lines. */
void cli_levels_event(struct cli_recording *recording, const struct cli_event *event);

/* A sum line. pre: cli_levels_event */
void cli_levels_sum(struct cli_recording *recording, const struct cli_event *event);

/* The number of the event's call site. That of a SUM is apart from that of its other requests. */
uint32_t cli_recording_site(struct cli_recording *recording, const struct cli_event *event);

/* Records an allocation, and its entry in the table, or a free. key: of the entry; 0: it gets none. */
void cli_recording_put(struct cli_recording *recording, struct cli_live *table, uint64_t key,
                       const struct cli_event *event);
void cli_recording_take(struct cli_recording *recording, struct cli_live *table, uint64_t key,
                        const struct cli_event *event);

/* The first place as an enum cli_where. */
enum cli_where cli_where_of(enum spill_place place);

#endif
