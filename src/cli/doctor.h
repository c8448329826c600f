/* Inside `spill doctor`: the report, and one function an area that adds what it finds. The findings are doctor.def. */
#ifndef SPILL_CLI_DOCTOR_H
#define SPILL_CLI_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy.h"

enum doctor_finding {
#define FINDING(id, level, area, why, what_to_do) DOCTOR_##id,
#include "doctor.def"
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

/* The links of a vendor's devices, and what decode would cost over them (doctor_speed.c); and all of them as JSON. */
struct driver_vendor;
struct driver_facts;
void doctor_look_at_links(const struct doctor_patient *patient, const struct driver_vendor *vendor,
                          const struct driver_facts *facts);
void doctor_print_links(void);
void doctor_look_at_host(const struct doctor_patient *patient, const struct spill_policy *policy);

/* Returns the policy that the program would have; static storage. */
const struct spill_policy *doctor_look_at_policy(const struct doctor_patient *patient);
void doctor_look_at_environment(const struct doctor_patient *patient);

/* What the file and its libraries need and name (doctor_library.c). `path` is an ELF file of our kind. */
struct elf_file;
void doctor_look_at_libraries(const struct doctor_patient *patient, const char *path,
                              const struct elf_file *file);

/* Opens a library as the loader finds it, by path or bare name. The caller closes file->fd. */
bool doctor_open_library(const struct doctor_patient *patient, const char *name, char path[PATH_MAX],
                         struct elf_file *file);

/* Whether root + path is there. */
bool doctor_is_there(const struct doctor_patient *patient, const char *path);

#endif
