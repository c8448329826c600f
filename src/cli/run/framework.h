/* run.framework: the variables by which a framework asks for memory in stream order. */
#ifndef SPILL_CLI_FRAMEWORK_H
#define SPILL_CLI_FRAMEWORK_H

#include <stdbool.h>

/*
 * Sets the variables of the framework that run.framework names in the policy of `program`, a
 * command line. Prints what is set, or why nothing is. `asked`: a word that counts also if a file of
 * the policy is bad, or NULL. Returns CLI_FINE, or CLI_FINDINGS without memory.
 */
int cli_framework_set(char *const *program, const char *asked);

/* True if below `root` there is the driver of AMD's cards, and none of NVIDIA's. */
bool cli_framework_finds_amd(const char *root);

#endif
