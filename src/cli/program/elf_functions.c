/* The functions of an ELF file, by address (System V ABI, "Symbol Table"). */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "elf_file.h"

/* Symbols read at once */
#define PIECE 1024

/* Functions that may begin between an address and the one that has it: names for a part of it. */
#define NESTED 16

static bool read_section(const struct elf_file *file, uint64_t index, Elf64_Shdr *section)
{
	return index < file->section_count && file->sections < file->size &&
	       elf_read_bytes(file, file->sections + index * sizeof(*section), section, sizeof(*section));
}

/* The table of symbols of this type, and its strings. False: there is none, or it is damaged. */
static bool find_table(const struct elf_file *file, uint32_t type, Elf64_Shdr *table, Elf64_Shdr *strings)
{
	for (unsigned i = 0; i < file->section_count; i++) {
		if (!read_section(file, i, table))
			return false;
		if (table->sh_type == type)
			return table->sh_entsize == sizeof(Elf64_Sym) && table->sh_offset <= file->size &&
			       table->sh_size <= file->size - table->sh_offset &&
			       read_section(file, table->sh_link, strings) &&
			       strings->sh_type == SHT_STRTAB && strings->sh_offset <= file->size &&
			       strings->sh_size <= file->size - strings->sh_offset;
	}
	return false;
}

/* Only functions with a size, so that no address is named by a function before it. */
static bool is_function(const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_size && symbol->st_size <= UINT32_MAX;
}

static void add_piece(struct elf_functions *functions, size_t *room, const Elf64_Sym *symbols, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_function(&symbols[i]))
			continue;
		functions->list =
		    cli_grow(functions->list, functions->count, room, sizeof(functions->list[0]));
		functions->list[functions->count++] = (struct elf_function){
		    symbols[i].st_value, (uint32_t)symbols[i].st_size, symbols[i].st_name};
	}
}

static int compare_addresses(const void *left, const void *right)
{
	const struct elf_function *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

bool elf_functions_read(struct elf_functions *functions, const struct elf_file *file, size_t most)
{
	static Elf64_Sym piece[PIECE];
	Elf64_Shdr table, strings;
	size_t left, count, room = 0;

	*functions = (struct elf_functions){0};
	if (!find_table(file, SHT_SYMTAB, &table, &strings) &&
	    !find_table(file, SHT_DYNSYM, &table, &strings))
		return false;
	left = table.sh_size / sizeof(piece[0]);
	if (left > most)
		return false;
	for (uint64_t at = table.sh_offset; left; at += count * sizeof(piece[0]), left -= count) {
		count = left < PIECE ? left : PIECE;
		if (!elf_read_bytes(file, at, piece, count * sizeof(piece[0])))
			break; /* the file shrinks: what was read has names no longer */
		add_piece(functions, &room, piece, count);
	}
	functions->strings = strings.sh_offset;
	functions->strings_size = strings.sh_size;
	if (functions->count)
		qsort(functions->list, functions->count, sizeof(functions->list[0]), compare_addresses);
	return functions->count != 0;
}

/* The number of functions that begin at or before the address. */
static size_t count_before(const struct elf_functions *functions, uint64_t address)
{
	size_t low = 0, high = functions->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (functions->list[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool read_name(const struct elf_functions *functions, const struct elf_file *file, uint32_t at,
                      char name[ELF_NAME])
{
	uint64_t left = at < functions->strings_size ? functions->strings_size - at : 0;
	size_t room = left < ELF_NAME ? (size_t)left : ELF_NAME;

	if (!room || !elf_read_bytes(file, functions->strings + at, name, room))
		return false;
	if (!memchr(name, '\0', room))
		name[room - 1] = '\0'; /* templates have names of any length */
	return name[0] != '\0';
}

bool elf_function_at(const struct elf_functions *functions, const struct elf_file *file, uint64_t address,
                     char name[ELF_NAME])
{
	size_t next = count_before(functions, address);

	for (unsigned i = 0; i < NESTED && next-- > 0; i++) {
		const struct elf_function *function = &functions->list[next];

		if (address - function->address < function->bytes)
			return read_name(functions, file, function->name, name);
	}
	return false;
}
