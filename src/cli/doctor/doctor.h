/*
 * doctor: `spill doctor`. It finds out whether libspill would work here. Each area has a function
 * that adds findings. Their texts are in findings.def.
 *
 * It changes nothing. It loads a driver only in a child process (driver.c), so a driver that hangs
 * or crashes cannot take the command.
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

/* The subject of all checks. */
struct doctor_patient {
	const char *root;    /* folder with /proc, /sys, /dev and /etc, or "" */
	const char *program; /* NULL: none was given */
	char *const *words;  /* the program and its arguments */
	unsigned timeout_ms; /* time limit for a vendor's driver */
	bool quick, verbose;
	uint64_t overflow; /* weights to predict decode for; 0: several sizes */
};

/* Adds a finding with its observation. */
void doctor_find(enum doctor_finding finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

void doctor_look_at_program(const struct doctor_patient *patient);
void doctor_look_at_devices(const struct doctor_patient *patient);

/* speed.c: judges links and predicts decode. doctor_put_links writes a member. */
struct driver_vendor;
struct driver_facts;
void doctor_look_at_links(const struct doctor_patient *patient, const struct driver_vendor *vendor,
                          const struct driver_facts *facts);
struct spill_json;
void doctor_put_links(struct spill_json *json);

/* The visible devices of a vendor together. Rates are GB/s; 0: not measured. */
struct doctor_devices {
	unsigned count;
	uint64_t free;
	double copy_rate, memory_rate;
	bool simulated;
};

/* offload.c: judges a GGUF model in the program's arguments: its file, and its sizes. */
void doctor_look_at_model_file(const struct doctor_patient *patient);
void doctor_look_at_model(const struct doctor_patient *patient, const struct doctor_devices *devices);
/* speed.c: the rates of the vendor's first device. */
void doctor_measured_rates(const struct driver_facts *facts, struct doctor_devices *devices);

void doctor_look_at_host(const struct doctor_patient *patient, const struct spill_policy *policy);

/* Judges the policy for the program and returns it; static storage. */
const struct spill_policy *doctor_look_at_policy(const struct doctor_patient *patient);
void doctor_look_at_environment(const struct doctor_patient *patient);

/* library.c: judges the libraries that the program, an ELF file for this machine, needs. */
struct elf_file;
void doctor_look_at_libraries(const struct doctor_patient *patient, const char *path,
                              const struct elf_file *file);

/* What the program's file and libraries need, for the devices. "": nothing that is known. */
struct doctor_needs {
	char cuda[512], hip[512]; /* "prog needs libcudart.so.13" */
	char runtime[512];        /* the same of the newest CUDA runtime */
	unsigned runtime_major;   /* its version; 0: none is known */
};
extern struct doctor_needs doctor_needs;

/* Opens a library as the loader finds it, by path or name. The caller closes file->fd. */
bool doctor_open_library(const struct doctor_patient *patient, const char *name, char path[PATH_MAX],
                         struct elf_file *file);

/* True if the path exists below `root`. */
bool doctor_is_there(const struct doctor_patient *patient, const char *path);

/*
 * ld_cache.c: the loader's cache, /etc/ld.so.cache, in the "new" format of glibc 2.32 and later
 * (dl-cache.h). The file is not trusted.
 */
struct ld_cache {
	char *data;
	size_t size;
	uint32_t entries;
};

/* Reads it below `root`. A missing cache or another format has no entries. */
void ld_cache_read(struct ld_cache *cache, const char *root);

/*
 * Gives the next path for a name, of any architecture, from entry *from on, which is 0 at first.
 * False: no more.
 */
bool ld_cache_find(const struct ld_cache *cache, const char *name, uint32_t *from, char *path, size_t size);

void ld_cache_free(struct ld_cache *cache);

/* host_speed.c: how fast the CPUs read host memory, which bounds CPU offload. */
struct host_speed {
	double rate;      /* GB/s (10^9 bytes a second) of all threads; 0: not measured */
	unsigned threads; /* one per CPU that this process may use, at most 64 */
	unsigned mib;     /* size of the memory that is read repeatedly */
};

/* Measures for about 100 ms. Measures nothing if little memory is available. */
struct host_speed host_speed(void);

/*
 * speed.c: the cost of weights in host memory, which decode reads once a token. The device reads
 * them over the link, or the CPU computes those layers. Rates are GB/s (10^9 bytes a second).
 */

/* Rate of reading in place, relative to a copy: 51.4 of 55.5 GB/s (docs/measurements.md). */
#define DECODE_IN_PLACE 0.93

/* Added milliseconds per token for `bytes` in host memory. pre: copy_rate > 0 */
double decode_over_link(uint64_t bytes, double copy_rate);

/* Least milliseconds that a CPU needs to read `bytes`. pre: memory_rate > 0 */
double decode_by_cpu(uint64_t bytes, double memory_rate);

/* A model whose layers a program can leave to the CPU. Bytes with the cache. */
struct decode_model {
	unsigned layers;
	uint64_t layer_bytes;  /* of all layers */
	uint64_t output_bytes; /* of the rest, which comes to the device last */
};

struct decode_offload {
	uint64_t needs;             /* all bytes, with room for the results of the layers */
	bool offload_is_faster;     /* false too if a rate is 0 */
	unsigned layers;            /* that fit the device */
	double offload_ms, link_ms; /* added to a token of decode: by the CPU, or by libspill */
};

/* The least room that llama.cpp takes besides: the results of the layers (docs/measurements.md). */
#define DECODE_SCRATCH ((uint64_t)256 << 20)

/*
 * Compares two ways to run a model that needs more than is `free`: libspill reads the overflow over
 * the link, or the CPU computes the layers that do not fit, at three quarters of the memory's rate.
 * False: the model fits. A rate of 0: not measured. pre: model->layers > 0
 */
bool decode_offload(const struct decode_model *model, uint64_t free, double copy_rate, double memory_rate,
                    struct decode_offload *result);

enum decode_verdict { DECODE_CPU_FASTER, DECODE_CPU_SIMILAR, DECODE_CPU_SLOWER };

/* Compares with CPU offload. "faster" requires twice the rate, because the CPU computes too. */
enum decode_verdict decode_compare(double copy_rate, double memory_rate);

#endif
