/*
 * What a vendor's driver says and does, found out in a process of its own, with a time limit: a driver that hangs or crashes takes
 * that process, and not the command. Nothing but this loads a driver.
 */
#ifndef SPILL_CLI_DOCTOR_DRIVER_H
#define SPILL_CLI_DOCTOR_DRIVER_H

#include <stdbool.h>

#include "backend.h"
#include "movable.h"

/* How far it came; of a driver that hangs or crashes: within what. */
enum driver_stage {
	DRIVER_ABSENT,   /* no such library */
	DRIVER_LOADING,  /* dlopen */
	DRIVER_STARTING, /* cuInit */
	DRIVER_ASKING,   /* its devices */
	DRIVER_TOUCHING, /* memory of `device` */
	DRIVER_COPYING,  /* to and from `device` */
	DRIVER_DONE,
};

enum driver_end { DRIVER_ENDED, DRIVER_HANGS, DRIVER_CRASHED };

/* A trial of one kind of memory. */
struct driver_touch {
	bool tried;
	int error;               /* the vendor's; 0: it worked */
	bool full;               /* out of memory, which may pass */
	char call[24], name[48]; /* what failed, and the error's name */
};

enum driver_kind { TOUCH_CONTEXT, TOUCH_DEVICE_CHUNK, TOUCH_HOST_CHUNK, TOUCH_MANAGED, TOUCH_HOST, TOUCHES };

/* Rates in GB/s (10^9 bytes a second), medians of copies of `bytes`; 0: not measured, and `problem` says why. */
struct driver_link {
	double to_device, from_device;
	uint64_t bytes;
	bool simulated; /* no link at all: copies within the host's memory */
	char problem[96];
};

struct driver_device {
	struct spill_log_device is;
	unsigned capabilities; /* enum spill_capability */
	bool vmm, host_vmm, concurrent, pageable, host_tables;
	uint64_t free;
	struct driver_touch touch[TOUCHES];
	bool probed;
	enum spill_probe move;
	struct driver_link link;
};

struct driver_facts {
	enum driver_stage stage;
	bool finished; /* the trial's own last word */
	enum driver_end end;
	int signal;                      /* of DRIVER_CRASHED */
	char library[256], problem[256]; /* where it is; why it was not loaded */
	bool complete;                   /* it has what libspill needs */
	int error;                       /* of its start */
	char error_name[48];
	int version;
	unsigned device, count;
	struct driver_device devices[SPILL_DEVICES];
};

struct driver_vendor {
	const char *name; /* "NVIDIA", "AMD" */
	const struct spill_backend *backend;
	enum spill_domain domain;
	const char *const *files; /* names for dlopen, the first that loads; ends with NULL */
	const char *start;        /* int start(unsigned flags) */
	int no_device[2];         /* its answers where there is none */
	void (*ask)(int device, struct driver_device *facts); /* attributes beyond the capabilities */
	/* Between pinned host memory and the current device, either way; returns when it is done. */
	int (*copy)(uint64_t to, uint64_t from, uint64_t bytes);
};

extern const struct driver_vendor driver_cuda, driver_hip;

/*
 * The facts are in memory of ours for as long as the process lives; NULL if the trial could not even be begun. `copying`: the links
 * are measured, too.
 */
const struct driver_facts *driver_try(const struct driver_vendor *vendor, unsigned timeout_ms, bool copying);

/* Inside: the trial of one device's memory (touch.c). */
void driver_touch(const struct spill_backend *backend, int device, struct driver_device *facts);

/* Inside: how fast its link is (link.c). */
void driver_link(const struct driver_vendor *vendor, int device, struct driver_device *facts);

#endif
