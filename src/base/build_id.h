/* The build id of an ELF file: the linker's hash of its content, by which copies are recognised. */
#ifndef SPILL_BUILD_ID_H
#define SPILL_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>

/* Hexadecimal digits of the longest build id, that of SHA-256, and a NUL. */
#define SPILL_BUILD_ID 65

/* Finds it in notes, the content of a PT_NOTE segment, which may be damaged. False: no build id. */
bool spill_build_id_find(const void *notes, size_t size, char build_id[SPILL_BUILD_ID]);

#endif
