/* What a library exports, by its table of hashes: the C library's has many chains, and the small ones of other tests have one. */
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_file.h"
#include "symbol_table.h"

TEST(what_the_c_library_exports)
{
	static const char *const names[] = {"printf", "malloc", "free",  "qsort",   "strlen", "open",
	                                    "close",  "read",   "write", "environ", "exit",   "getenv"};
	static struct elf_file file;
	Dl_info found;

	assert_true(dladdr((void *)(uintptr_t)qsort, &found) && found.dli_fname);
	int fd = open(found.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	elf_read(&file, fd);
	assert_int_equal(file.kind, ELF_OURS);
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_true(elf_defines(&file, names[i]));
	assert_false(elf_defines(&file, "no_such_name"));
	assert_false(elf_defines(&file, "cuMemAlloc_v2"));
	close(fd);
}

/* A table of two buckets. Names of one letter hash to its code plus an odd number, so "a" is in the first, and "b" in the second. */
TEST(a_bucket_without_names)
{
	enum { FIRST = 2 };
	static struct {
		uint64_t nothing; /* an offset of 0 would be no table */
		Elf64_Sym symbols[FIRST + 2];
		uint32_t header[4];
		uint64_t filter;
		uint32_t buckets[2], hashes[2];
		char strings[8];
	} table = {.symbols = {[FIRST] = {.st_name = 1, .st_shndx = 1, .st_info = STB_GLOBAL << 4},
	                       [FIRST + 1] = {.st_name = 3, .st_shndx = 1, .st_info = STB_GLOBAL << 4}},
	           .header = {2, FIRST, 1, 0},
	           .buckets = {FIRST, FIRST + 1},
	           .strings = "\0a\0b"};
	struct elf_file file = {.fd = memfd_create("table", MFD_CLOEXEC),
	                        .size = sizeof(table),
	                        .symbols = offsetof(__typeof__(table), symbols),
	                        .symbol_hash = offsetof(__typeof__(table), header),
	                        .strings = offsetof(__typeof__(table), strings),
	                        .strings_size = sizeof(table.strings)};

	assert_true(file.fd >= 0);
	table.hashes[0] = spill_elf_hash("a") | 1;
	table.hashes[1] = spill_elf_hash("b") | 1;
	/* 0 is a bucket without names. A damaged one may tell a symbol before those that have hashes. */
	for (uint32_t index = 0; index <= FIRST + 1; index++) {
		table.buckets[1] = index;
		assert_int_equal(pwrite(file.fd, &table, sizeof(table), 0), sizeof(table));
		assert_true(elf_defines(&file, "a"));
		assert_int_equal(elf_defines(&file, "b"), index == FIRST + 1);
	}
	/* The buckets are behind the end of the file. */
	file.size = offsetof(__typeof__(table), buckets);
	assert_false(elf_defines(&file, "a"));
	close(file.fd);
}

/* Also if the list in it ends before the file does. */
TEST(a_dynamic_section_lies_in_the_file)
{
	static struct {
		Elf64_Ehdr top;
		Elf64_Phdr header;
		Elf64_Dyn end;
	} made = {.top = {.e_ident = ELFMAG, .e_type = ET_DYN, .e_phnum = 1},
	          .header = {.p_type = PT_DYNAMIC, .p_offset = offsetof(__typeof__(made), end)}};
	static struct elf_file file;
	int fd = memfd_create("made", MFD_CLOEXEC);
	static const char outside[] = "its dynamic section is not in the file";
	Elf64_Ehdr ours;
	int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && read(own, &ours, sizeof(ours)) == sizeof(ours));
	close(own);
	memcpy(made.top.e_ident, ours.e_ident, sizeof(ours.e_ident));
	made.top.e_machine = ours.e_machine;
	made.top.e_phoff = offsetof(__typeof__(made), header);
	made.top.e_phentsize = sizeof(made.header);
	for (unsigned more = 0; more <= 1; more++) {
		made.header.p_filesz = sizeof(made.end) + more;
		assert_int_equal(pwrite(fd, &made, sizeof(made), 0), sizeof(made));
		elf_read(&file, fd);
		assert_int_equal(file.kind, ELF_DAMAGED);
		assert_int_equal(strcmp(file.problem, outside) == 0, more); /* it has no strings */
	}
	made.header.p_offset = sizeof(made) + 1;
	made.header.p_filesz = 0;
	assert_int_equal(pwrite(fd, &made, sizeof(made), 0), sizeof(made));
	elf_read(&file, fd);
	assert_string_equal(file.problem, outside);
	close(fd);
}
