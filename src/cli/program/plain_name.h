/*
 * Names of C++ functions for people: "_ZN18ggml_cuda_pool_vmm5allocEmPm" is
 * "ggml_cuda_pool_vmm::alloc". Only the qualified name is read. Parameters and the arguments of
 * templates are left out, because they are longer than a line.
 */
#ifndef SPILL_CLI_PLAIN_NAME_H
#define SPILL_CLI_PLAIN_NAME_H

#include <stddef.h>

#define PLAIN_NAME 128

/*
 * The plain name of a symbol, at most PLAIN_NAME - 1 bytes. Of a longer one the last parts are kept,
 * after "…". A symbol of another form is returned as it is, cut.
 */
void plain_name(const char *symbol, char name[PLAIN_NAME]);

#endif
