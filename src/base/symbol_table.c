#include "symbol_table.h"

#include <elf.h>
#include <stddef.h>

bool spill_symbol_is(const char *left, const char *right)
{
	while (*left && *left == *right) {
		left++;
		right++;
	}
	return *left == *right;
}

/* glibc replaces the section's offsets by addresses, unless the section is read-only. */
static const void *address_of(const ElfW(Dyn) * entry, uintptr_t base)
{
	uintptr_t address = entry->d_un.d_ptr;
	return (const void *)(address < base ? base + address : address);
}

bool spill_symbol_table_read(const ElfW(Dyn) * dynamic, uintptr_t base, struct spill_symbol_table *table)
{
	const ElfW(Dyn) *name = NULL;
	*table = (struct spill_symbol_table){.base = base};
	for (const ElfW(Dyn) *entry = dynamic; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SONAME)
			name = entry;
		else if (entry->d_tag == DT_STRTAB)
			table->strings = address_of(entry, base);
		else if (entry->d_tag == DT_SYMTAB)
			table->symbols = address_of(entry, base);
		else if (entry->d_tag == DT_VERSYM)
			table->versions = address_of(entry, base);
		else if (entry->d_tag == DT_GNU_HASH)
			table->hash = address_of(entry, base);
	}
	if (name && table->strings)
		table->soname = table->strings + name->d_un.d_val;
	return table->strings && table->symbols && table->hash;
}

bool spill_symbol_table_of(const struct dl_phdr_info *info, struct spill_symbol_table *table)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_DYNAMIC)
			return spill_symbol_table_read(
			    (const ElfW(Dyn) *)(info->dlpi_addr + segment->p_vaddr), info->dlpi_addr, table);
	}
	return false;
}

/* The top bit marks a version that only references with its name may bind to. */
#define HIDDEN_VERSION 0x8000

static bool is_wanted(const struct spill_symbol_table *table, uint32_t index, const char *name, unsigned type)
{
	const ElfW(Sym) *symbol = &table->symbols[index];
	return ELF64_ST_TYPE(symbol->st_info) == type && symbol->st_shndx != SHN_UNDEF &&
	       !(table->versions && table->versions[index] & HIDDEN_VERSION) &&
	       spill_symbol_is(table->strings + symbol->st_name, name);
}

/*
 * DT_GNU_HASH: the number of buckets, the first symbol, the number of filter words, a shift. Then
 * the filter, the buckets, and a hash for each symbol. A hash's lowest bit ends its chain.
 */
void *spill_symbol_table_find(const struct spill_symbol_table *table, const char *name, unsigned type)
{
	uint32_t wanted = spill_elf_hash(name);
	uint32_t bucket_count = table->hash[0], first = table->hash[1], filter_words = table->hash[2];
	const uint32_t *buckets = table->hash + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *hashes = buckets + bucket_count;
	uint32_t index = bucket_count ? buckets[wanted % bucket_count] : 0;
	if (index < first)
		return NULL;
	for (;; index++) {
		uint32_t hash = hashes[index - first];
		if ((hash | 1) == (wanted | 1) && is_wanted(table, index, name, type))
			return (void *)(table->base + table->symbols[index].st_value);
		if (hash & 1)
			return NULL;
	}
}
