/*
 * Reads ELF files as the loader would (System V ABI, "Object Files" and "Program Loading and
 * Dynamic Linking").
 *
 * The file is not trusted. Offsets are checked against its size, and counts are bounded. Nothing is
 * mapped, so a shrinking file gives a short read and no signal.
 */
#ifndef SPILL_CLI_ELF_FILE_H
#define SPILL_CLI_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "build_id.h"

enum elf_kind {
	ELF_NONE,    /* not an ELF file */
	ELF_FOREIGN, /* for another architecture; only `bits` and `machine` are set */
	ELF_DAMAGED, /* `problem` says why */
	ELF_OURS,
};

#define ELF_NAME 256
#define ELF_MOST_NEEDED 256
#define ELF_MOST_LOADS 64

struct elf_file {
	enum elf_kind kind;
	const char *problem;
	int fd; /* owned by the caller */
	uint64_t size;
	unsigned bits, machine;
	bool interpreted;           /* has a PT_INTERP */
	char interpreter[ELF_NAME]; /* the loader's path */
	char rpath[4096], runpath[4096];
	unsigned needed_count;
	uint64_t needed[ELF_MOST_NEEDED]; /* offsets in the strings */
	uint64_t strings, strings_size;   /* offset and size of .dynstr */
	uint64_t symbols, symbol_hash;    /* offsets of .dynsym and DT_GNU_HASH; 0: none */
	uint64_t headers, sections;       /* offsets of the program and section headers; 0: none */
	unsigned header_count, section_count;
	unsigned load_count;
	struct {
		uint64_t address, offset, bytes;
	} load[ELF_MOST_LOADS];
};

void elf_read(struct elf_file *file, int fd);

/* The name of a needed library. False: the file is damaged there. */
bool elf_needed(const struct elf_file *file, unsigned which, char name[ELF_NAME]);

/* True if the word is one of the dynamic strings, a symbol that the file defines or needs. */
bool elf_names(const struct elf_file *file, const char *word);

/* True if the file exports the symbol. False for a file without DT_GNU_HASH, which is rare. */
bool elf_defines(const struct elf_file *file, const char *name);

/* The file's build id. False: it has none. */
bool elf_build_id(const struct elf_file *file, char build_id[SPILL_BUILD_ID]);

/* A function in the file. Addresses are as in the file's program headers. */
struct elf_function {
	uint64_t address;
	uint32_t bytes;
	uint32_t name; /* offset in the strings */
};

struct elf_functions {
	struct elf_function *list; /* by address; the caller frees it */
	size_t count;
	uint64_t strings, strings_size; /* offset and size of the names in the file */
};

/*
 * elf_functions.c: reads the functions of .symtab, or of .dynsym if the file is stripped. At most
 * `most` of them; a file with more has none. False: the file has none that can be read.
 */
bool elf_functions_read(struct elf_functions *functions, const struct elf_file *file, size_t most);

/* The name of the function that has the address. False: none has it, or the file is damaged there. */
bool elf_function_at(const struct elf_functions *functions, const struct elf_file *file, uint64_t address,
                     char name[ELF_NAME]);

/* For elf_functions.c: reads exactly these bytes. False: the file does not have them. */
bool elf_read_bytes(const struct elf_file *file, uint64_t at, void *to, size_t bytes);

/* True if the file contains each of up to 8 words. Reads at most `most` bytes. */
bool elf_contains(const struct elf_file *file, const char *const *words, unsigned count, uint64_t most);

#endif
