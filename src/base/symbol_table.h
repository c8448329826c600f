/*
 * The dynamic symbols of a loaded object, read from its own tables. No function is called: another
 * preload may wrap it, and its wrapper may call us.
 */
#ifndef SPILL_SYMBOL_TABLE_H
#define SPILL_SYMBOL_TABLE_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct spill_symbol_table {
	uintptr_t base;     /* what the object's addresses are relative to. */
	const char *soname; /* DT_SONAME, or NULL. */
	const ElfW(Sym) * symbols;
	const ElfW(Half) * versions; /* NULL: none. */
	const uint32_t *hash;        /* DT_GNU_HASH; every supported glibc has it. */
	const char *strings;
};

/* Reads the dynamic section of an object. False if it lacks a table for look-ups. */
bool spill_symbol_table_read(const ElfW(Dyn) * dynamic, uintptr_t base, struct spill_symbol_table *table);

/* The same for an object of dl_iterate_phdr(3). */
bool spill_symbol_table_of(const struct dl_phdr_info *info, struct spill_symbol_table *table);

/*
 * The address of the object's own symbol, in its default version, of this type (STT_FUNC,
 * STT_OBJECT). NULL if there is none.
 */
void *spill_symbol_table_find(const struct spill_symbol_table *table, const char *name, unsigned type);

/* As strcmp(3) == 0. */
bool spill_symbol_is(const char *left, const char *right);

/* The hash of a symbol's name in DT_GNU_HASH. */
static inline uint32_t spill_elf_hash(const char *name)
{
	uint32_t hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

#endif
