/*
 * What the programs that load a model share: memory whose every word is known, by its seed. An allocation that fails is the end
 * of the program: it could not be loaded.
 */
#ifndef SCENARIO_MODEL_H
#define SCENARIO_MODEL_H

#include <stdint.h>

struct memory {
	uint64_t address, bytes, seed;
};

/* Ends the program with 1 if a call failed that cannot where there is memory. */
void model_must(const char *call, int result);

void model_start(const char *kernels);

/* Allocates and fills it; prints a line that ends with the result. Out of memory ends the program with 2. */
void model_get(struct memory *memory, const char *what, unsigned number, uint64_t bytes);
void model_free(const struct memory *memory);

/* The device looks at those bytes; nobody waits. */
void model_use(const struct memory *memory, uint64_t from, uint64_t bytes);

/* Waits for all of the current device's work. */
void model_wait(void);

/* Prints how it went; the exit status of the program. */
int model_result(void);

#endif
