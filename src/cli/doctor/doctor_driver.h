/*
 * Tries a vendor's driver in a child process with a time limit. A driver that hangs or crashes
 * takes only that process. No other code of the command loads a driver.
 */
#ifndef SPILL_CLI_DOCTOR_DRIVER_H
#define SPILL_CLI_DOCTOR_DRIVER_H

#include <stdbool.h>

#include "backend.h"
#include "card_use.h"
#include "movable.h"

/* The step that the trial has reached. A hang or crash happened in this step. */
enum driver_stage {
	DRIVER_ABSENT,   /* no such library */
	DRIVER_LOADING,  /* dlopen */
	DRIVER_STARTING, /* cuInit */
	DRIVER_ASKING,   /* its devices are read */
	DRIVER_TOUCHING, /* memory is made on `device` */
	DRIVER_COPYING,  /* copies to and from `device` */
	DRIVER_DONE,
};

enum driver_end { DRIVER_ENDED, DRIVER_HANGS, DRIVER_CRASHED };

struct driver_touch {
	bool tried;
	int error;               /* the vendor's error; 0: it worked */
	bool full;               /* out of memory, which may be temporary */
	char call[24], name[48]; /* the failed call, and the error's name */
};

enum driver_kind { TOUCH_CONTEXT, TOUCH_DEVICE_CHUNK, TOUCH_HOST_CHUNK, TOUCH_MANAGED, TOUCH_HOST, TOUCHES };

/* GB/s (10^9 bytes a second), medians of copies of `bytes`. 0: see `problem`. */
struct driver_link {
	double to_device, from_device;
	uint64_t bytes;
	bool simulated; /* no real link: copies stay in host memory */
	char problem[96];
};

/* Programs that hold memory on a device and are named. */
#define DRIVER_USERS 4

struct driver_device {
	struct spill_log_device identity;
	uint64_t held; /* by other programs, before the trial; 0 if it is not known */
	struct cli_card_user user[DRIVER_USERS];
	unsigned users;
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
	bool finished; /* the trial has completed */
	enum driver_end end;
	int signal;                      /* the signal of DRIVER_CRASHED */
	char library[256], problem[256]; /* its path; the reason why it was not loaded */
	bool complete;                   /* has all functions that libspill needs */
	char missing[256]; /* if not, those that it lacks; else those that features lack. The first few */
	int error;         /* error of its start */
	char error_name[48];
	int version;
	unsigned device, count;
	struct driver_device devices[SPILL_DEVICES];
};

/* A function of the vendor that libspill calls. */
struct driver_function {
	const char *name;
	bool needed;
};

struct driver_vendor {
	const char *name; /* "NVIDIA", "AMD" */
	const struct spill_backend *backend;
	enum spill_domain domain;
	const char *const *files;                /* names for dlopen in order; ends with NULL */
	const char *start;                       /* symbol of: int start(unsigned flags) */
	int no_device[2];                        /* errors that mean "no device" */
	const struct driver_function *functions; /* that libspill calls; ends with a NULL name */
	/* reads attributes beyond the capabilities */
	void (*read_attributes)(int device, struct driver_device *facts);
	/* Copies between pinned host memory and the current device. Returns after the copy. */
	int (*copy)(uint64_t to, uint64_t from, uint64_t bytes);
};

extern const struct driver_vendor driver_cuda, driver_hip;

/* Runs the trial; `copying` measures links too. NULL: it could not start. Facts stay valid. */
const struct driver_facts *driver_try(const struct driver_vendor *vendor, unsigned timeout_ms, bool copying);

/* Private to driver.c: tries each kind of memory on a device (touch.c). */
void driver_touch(const struct spill_backend *backend, int device, struct driver_device *facts);

/* Private to driver.c: measures a device's link (link.c). */
void driver_link(const struct driver_vendor *vendor, int device, struct driver_device *facts);

#endif
