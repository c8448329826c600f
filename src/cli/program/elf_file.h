/*
 * What an ELF file says of itself (System V ABI, "Object Files" and "Program Loading and Dynamic Linking"), as far as the loader
 * would ask. The file is not trusted: every offset is compared with its size, every count is bounded, and nothing is mapped, so
 * that a file that shrinks meanwhile is a short read and no signal.
 */
#ifndef SPILL_CLI_ELF_FILE_H
#define SPILL_CLI_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum elf_kind {
	ELF_NONE,    /* no ELF file */
	ELF_FOREIGN, /* of another architecture: only `bits` and `machine` are told */
	ELF_DAMAGED, /* `problem` says why */
	ELF_OURS,
};

#define ELF_NAME 256
#define ELF_MOST_NEEDED 256
#define ELF_MOST_LOADS 64

struct elf_file {
	enum elf_kind kind;
	const char *problem;
	int fd; /* the caller's */
	uint64_t size;
	unsigned bits, machine;
	bool interpreted;           /* it has a PT_INTERP */
	char interpreter[ELF_NAME]; /* its path */
	char rpath[4096], runpath[4096];
	unsigned needed_count;
	uint64_t needed[ELF_MOST_NEEDED]; /* where in the strings */
	uint64_t strings, strings_size;   /* .dynstr: where in the file */
	uint64_t symbols, symbol_hash;    /* .dynsym and DT_GNU_HASH: where in the file; 0: none */
	unsigned load_count;
	struct {
		uint64_t address, offset, bytes;
	} load[ELF_MOST_LOADS];
};

void elf_read(struct elf_file *file, int fd);

/* The name of a needed library; false if the file is wrong there. */
bool elf_needed(const struct elf_file *file, unsigned which, char name[ELF_NAME]);

/* Is that a whole word of the dynamic strings: a symbol it has or wants? */
bool elf_names(const struct elf_file *file, const char *word);

/* Does the file define that symbol for others? False for a file without DT_GNU_HASH, which is rare. */
bool elf_defines(const struct elf_file *file, const char *name);

/* Is each of the words (up to 8) somewhere in the file? Reads at most `most` bytes of it. */
bool elf_contains(const struct elf_file *file, const char *const *words, unsigned count, uint64_t most);

#endif
