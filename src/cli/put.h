/* What a log tells, for people. */
#ifndef SPILL_CLI_PUT_H
#define SPILL_CLI_PUT_H

#include <stdint.h>
#include <stdio.h>

#include "record.h"

/* Text of the log, without what could steer a terminal: a program chooses its own name. NULL is "?". */
void cli_put(FILE *out, const char *text);

/* "2.04 GiB" */
void cli_put_size(FILE *out, uint64_t bytes);

/* The same in a column of a table; "-" of 0. */
void cli_put_size_at(FILE *out, uint64_t bytes);

/* "5.00 GiB device, 2.04 GiB host", what is 0 left out; "nothing" if all is. */
void cli_put_sums(FILE *out, const struct spill_bytes *sums);

/* "; tried device: CUDA_ERROR_OUT_OF_MEMORY, split: host.limit" */
void cli_put_tried(FILE *out, const struct spill_attempt *tried, unsigned count);

#endif
