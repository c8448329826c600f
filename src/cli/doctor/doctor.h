/*
 * doctor: `spill doctor`. Whether libspill would work here: one function an area adds what it
 * finds to the report. The findings and their texts are findings.def.
 *
 * It changes nothing, and loads a driver only in a child process (driver.c): one that hangs or
 * crashes never takes the command.
 *
 * Begin with cli_doctor in doctor.c.
 */
#ifndef SPILL_CLI_DOCTOR_H
#define SPILL_CLI_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy.h"

enum doctor_finding {
#define FINDING(id, level, area, why, what_to_do) DOCTOR_##id,
#include "findings.def"
	DOCTOR_FINDINGS
};

/* What the checks look at. */
struct doctor_patient {
	const char *root;    /* of /proc, /sys, /dev and /etc; "" for the real one */
	const char *program; /* NULL: no program was named */
	unsigned timeout_ms; /* for a vendor's driver */
	bool quick;          /* no speed is measured */
	uint64_t overflow;   /* bytes, of which decode is predicted; 0: of several sizes */
};

/* Adds a finding; `format` says what was found. */
void doctor_find(enum doctor_finding finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "2.04 GiB"; valid until four more were asked for. */
const char *doctor_size(uint64_t bytes);

void doctor_look_at_program(const struct doctor_patient *patient);
void doctor_look_at_devices(const struct doctor_patient *patient);

/* The links of a vendor's devices, and what decode would cost over them (speed.c); and all of them as JSON. */
struct driver_vendor;
struct driver_facts;
void doctor_look_at_links(const struct doctor_patient *patient, const struct driver_vendor *vendor,
                          const struct driver_facts *facts);
void doctor_print_links(void);
void doctor_look_at_host(const struct doctor_patient *patient, const struct spill_policy *policy);

/* Returns the policy that the program would have; static storage. */
const struct spill_policy *doctor_look_at_policy(const struct doctor_patient *patient);
void doctor_look_at_environment(const struct doctor_patient *patient);

/* What the file and its libraries need and name (library.c). `path` is an ELF file of our kind. */
struct elf_file;
void doctor_look_at_libraries(const struct doctor_patient *patient, const char *path,
                              const struct elf_file *file);

/* Opens a library as the loader finds it, by path or bare name. The caller closes file->fd. */
bool doctor_open_library(const struct doctor_patient *patient, const char *name, char path[PATH_MAX],
                         struct elf_file *file);

/* Whether root + path is there. */
bool doctor_is_there(const struct doctor_patient *patient, const char *path);

/*
 * ld_cache.c: the loader's cache of where libraries are, /etc/ld.so.cache, in the format of glibc 2.32 and later (dl-cache.h,
 * "new" format). Of the file system below `root`, the same at each call: the `which`th path that the cache has for the name, of
 * whatever architecture; false if there are no more.
 */
bool ld_cache_find(const char *root, const char *name, unsigned which, char *path, size_t size);

/* host_speed.c: how fast this machine's CPUs read its memory: what bounds a program that leaves layers to them. */
struct host_speed {
	double rate;      /* GB/s (10^9 bytes a second), all threads together; 0: not measured */
	unsigned threads; /* one a CPU that this process may use, at most 64 */
	unsigned mib;     /* that they read, again and again */
};

/* Reads for about 100 ms, of memory that is given back. Nothing is measured where little memory is available. */
struct host_speed host_speed(void);

#endif
