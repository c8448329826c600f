/* The hash of a symbol's name in DT_GNU_HASH, the table by which the loader looks up symbols. */
#ifndef SPILL_ELF_HASH_H
#define SPILL_ELF_HASH_H

#include <stdint.h>

static inline uint32_t spill_elf_hash(const char *name)
{
	uint32_t hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

#endif
