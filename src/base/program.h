/* The program's name, as PROGRAM.conf, [app NAME], %e and the loud line use it. */
#ifndef SPILL_PROGRAM_H
#define SPILL_PROGRAM_H

#include <stddef.h>

/* Writes it into name[size]: of /proc/self/exe; of an interpreter, the script or the -m module. */
void spill_program_name(char *name, size_t size);

#endif
