/* A recorded run, kept so that it can be decided again several times: what was asked for, in order, and where it was. */
#ifndef SPILL_CLI_RECORDING_H
#define SPILL_CLI_RECORDING_H

#include "live.h"
#include "model.h"
#include "sorter.h"

/* Where an allocation was, over its life. */
enum cli_where {
	CLI_WHERE_DEVICE,
	CLI_WHERE_LEFT, /* on the device, and a part of it was moved to the host later */
	CLI_WHERE_SPLIT,
	CLI_WHERE_MANAGED,
	CLI_WHERE_HOST,
	CLI_WHERE_NOWHERE, /* out of memory */
	CLI_WHERES
};

struct cli_whereabouts {
	uint64_t away; /* bytes that were off the device at most */
	enum cli_where where;
};

/* One allocation. */
struct cli_told {
	uint64_t seq, bytes;
	struct cli_whereabouts was;
	uint32_t site;
};

struct cli_recorded_site {
	const struct cli_name *caller, *api;
	enum cli_memory memory; /* that its function gives */
};

#define CLI_RECENT_SITES 256

struct cli_recording {
	struct cli_ask *asks;
	size_t ask_count, ask_size;
	struct cli_told *told; /* by the allocation's number; a recorded out of memory has one, too */
	size_t told_count, told_size;
	struct cli_recorded_site *sites;
	size_t site_count, site_size;
	size_t slots;             /* as many as were there at once */
	uint64_t refused;         /* recorded out of memory, but for those of oom.honest_first */
	uint64_t refused_by_host; /* of these those for which the host had no room */
	/* Of each device what was taken that is not this program's, as out of memory lines tell it. */
	struct cli_recorded_device {
		bool told;
		uint64_t other;
	} devices[SPILL_DEVICES];
	/* While it is read: */
	const struct spill_backend *backend;
	uint64_t taken[SPILL_DEVICES]; /* by this program, as the driver counts it */
	uint64_t small[SPILL_DEVICES];
	struct spill_record_oom oom; /* the last; no text of it */
	struct cli_live live, known_sites;
	struct cli_recent_site {
		const struct cli_name *caller, *api;
		uint32_t number;    /* from 1 on */
	} recent[CLI_RECENT_SITES]; /* of known_sites, where they are looked for first */
	uint32_t *unused;           /* slots */
	size_t unused_count, unused_size;
};

void cli_recording_begin(struct cli_recording *recording, const struct spill_backend *backend);

void cli_recording_event(struct cli_recording *recording, const struct cli_event *event);

/* Its event follows. */
void cli_recording_oom(struct cli_recording *recording, const struct spill_record_oom *oom);

void cli_recording_free(struct cli_recording *recording);

/* By where it was put at first. */
enum cli_where cli_where_of(enum spill_place place);

#endif
