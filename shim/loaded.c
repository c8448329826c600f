#include "libc_symbol.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaded_objects.h"

/* The loader's list. Weak, because a strong reference would add a NEEDED entry for the loader. */
#pragma weak _r_debug
/* Our own dynamic section, which identifies our entry in the list. */
extern Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

struct library {
	const Elf64_Sym *symbols;
	const Elf64_Half *versions; /* NULL: none */
	const uint32_t *hash;       /* DT_GNU_HASH; every supported glibc has it */
	const char *strings;
};

static bool is_same(const char *left, const char *right)
{
	while (*left && *left == *right) {
		left++;
		right++;
	}
	return *left == *right;
}

/* glibc replaces the section's offsets by addresses, unless the section is read-only. */
static const void *address_of(const struct link_map *map, const Elf64_Dyn *entry)
{
	uintptr_t address = entry->d_un.d_ptr;
	return (const void *)(address < map->l_addr ? map->l_addr + address : address);
}

/* True if the library has this DT_SONAME and all tables for a look-up. */
static bool read_library(const struct link_map *map, const char *soname, struct library *library)
{
	const Elf64_Dyn *name = NULL;
	*library = (struct library){0};
	for (const Elf64_Dyn *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SONAME)
			name = entry;
		else if (entry->d_tag == DT_STRTAB)
			library->strings = address_of(map, entry);
		else if (entry->d_tag == DT_SYMTAB)
			library->symbols = address_of(map, entry);
		else if (entry->d_tag == DT_VERSYM)
			library->versions = address_of(map, entry);
		else if (entry->d_tag == DT_GNU_HASH)
			library->hash = address_of(map, entry);
	}
	return name && library->strings && library->symbols && library->hash &&
	       is_same(library->strings + name->d_un.d_val, soname);
}

/* The top bit marks a version that only references with its name may bind to. */
#define HIDDEN_VERSION 0x8000

static bool is_function(const struct library *library, uint32_t index, const char *name)
{
	const Elf64_Sym *symbol = &library->symbols[index];
	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
	       !(library->versions && library->versions[index] & HIDDEN_VERSION) &&
	       is_same(library->strings + symbol->st_name, name);
}

/*
 * DT_GNU_HASH: the number of buckets, the first symbol, the number of filter words, a shift. Then
 * the filter, the buckets, and a hash for each symbol. A hash's lowest bit ends its chain.
 */
static const Elf64_Sym *find_symbol(const struct library *library, const char *name)
{
	uint32_t wanted = spill_elf_hash(name);
	uint32_t bucket_count = library->hash[0], first = library->hash[1], filter_words = library->hash[2];
	const uint32_t *buckets = library->hash + 4 + filter_words * (sizeof(Elf64_Addr) / sizeof(uint32_t));
	const uint32_t *hashes = buckets + bucket_count;
	uint32_t index = bucket_count ? buckets[wanted % bucket_count] : 0;
	if (index < first)
		return NULL;
	for (;; index++) {
		uint32_t hash = hashes[index - first];
		if ((hash | 1) == (wanted | 1) && is_function(library, index, name))
			return &library->symbols[index];
		if (hash & 1)
			return NULL;
	}
}

void *spill_loaded_function(const char *soname, const char *name)
{
	const struct link_map *list = &_r_debug ? _r_debug.r_map : NULL;
	const struct link_map *map = list;
	struct library library;
	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	if (!map)
		/* the list belongs to another namespace, which has its own C library */
		return NULL;
	for (map = list; map; map = map->l_next) {
		if (!read_library(map, soname, &library))
			continue;
		const Elf64_Sym *found = find_symbol(&library, name);
		return found ? (void *)(map->l_addr + found->st_value) : NULL;
	}
	return NULL;
}
