/* The functions of an ELF file, from tables that are made here: which symbols count, whose address one is, and damage. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_file.h"

enum { TABLE = 1, STRINGS = 2, SECTIONS = 3, MOST_SYMBOLS = 1100 };

static int of_test; /* the descriptor of each test's file */
static struct elf_file file;
static struct elf_functions functions;
static Elf64_Shdr sections[SECTIONS + 1]; /* the last one does not count */
static Elf64_Sym symbols[MOST_SYMBOLS];
static unsigned count;
static char strings[8192];
static size_t string_bytes;

static int setup(void **state)
{
	memset(&file, 0, sizeof(file));
	memset(sections, 0, sizeof(sections));
	memset(symbols, 0, sizeof(symbols));
	memset(&functions, 0, sizeof(functions));
	count = 0;
	strings[0] = 0;
	string_bytes = 1;
	sections[TABLE] =
	    (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_link = STRINGS, .sh_entsize = sizeof(Elf64_Sym)};
	sections[STRINGS].sh_type = SHT_STRTAB;
	return 0;
}

static int teardown(void **state)
{
	free(functions.list);
	return 0;
}

static Elf64_Sym *add(const char *name, uint64_t address, uint64_t bytes)
{
	Elf64_Sym *symbol = &symbols[count++];
	*symbol = (Elf64_Sym){.st_name = (uint32_t)string_bytes,
	                      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
	                      .st_shndx = 1,
	                      .st_value = address,
	                      .st_size = bytes};
	string_bytes +=
	    (size_t)snprintf(strings + string_bytes, sizeof(strings) - string_bytes, "%s", name) + 1;
	return symbol;
}

/* The section headers, and behind them both tables; the strings or the symbols come last, up to the file's last byte. */
static void lay_out(bool strings_last)
{
	Elf64_Shdr *first = &sections[strings_last ? TABLE : STRINGS],
	           *last = &sections[strings_last ? STRINGS : TABLE];
	sections[TABLE].sh_size = count * sizeof(Elf64_Sym);
	sections[STRINGS].sh_size = string_bytes;
	first->sh_offset = sizeof(sections);
	last->sh_offset = first->sh_offset + first->sh_size;
	file.size = last->sh_offset + last->sh_size;
	file.sections = 0;
	file.section_count = SECTIONS;
}

static bool read_file(void)
{
	free(functions.list);
	file.fd = of_test;
	assert_int_equal(ftruncate(of_test, 0), 0);
	assert_int_equal(pwrite(file.fd, sections, sizeof(sections), 0), sizeof(sections));
	assert_true(pwrite(file.fd, symbols, count * sizeof(*symbols), (off_t)sections[TABLE].sh_offset) >=
	            0);
	assert_true(pwrite(file.fd, strings, string_bytes, (off_t)sections[STRINGS].sh_offset) >= 0);
	return elf_functions_read(&functions, &file, MOST_SYMBOLS);
}

/* "-": none has the address. */
static const char *at(uint64_t address)
{
	static char name[ELF_NAME];
	return elf_function_at(&functions, &file, address, name) ? name : "-";
}

TEST(each_address_has_the_name_of_its_function)
{
	for (unsigned strings_last = 0; strings_last < 2; strings_last++) {
		setup(NULL);
		add("fourth", 400, 10);
		add("second", 200, 50);
		add("third", 300, 10);
		add("first", 100, 100);
		lay_out(strings_last);
		assert_true(read_file());
		assert_int_equal(functions.count, 4);
		assert_string_equal(at(300), "third");
		assert_string_equal(at(409), "fourth");
		assert_string_equal(at(99), "-");
		assert_string_equal(at(100), "first");
		assert_string_equal(at(199), "first");
		assert_string_equal(at(200), "second");
		assert_string_equal(at(249), "second");
		assert_string_equal(at(250), "-");
	}
}

TEST(a_stripped_file_has_its_dynamic_symbols)
{
	add("first", 100, 100);
	sections[TABLE].sh_type = SHT_DYNSYM;
	lay_out(true);
	assert_true(read_file());
	assert_string_equal(at(100), "first");
}

TEST(what_is_no_function_does_not_count)
{
	add("data", 100, 10)->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	add("elsewhere", 200, 10)->st_shndx = SHN_UNDEF;
	add("empty", 300, 0);
	add("huge", 400, 1ull << 32);
	lay_out(true);
	assert_false(read_file());
	add("chosen", 500, UINT32_MAX)->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
	lay_out(true);
	assert_true(read_file());
	assert_int_equal(functions.count, 1);
	assert_string_equal(at(500), "chosen");
}

/* A part of a function can have a name of its own. As many are looked through; of two at one place, the first name. */
TEST(functions_within_another)
{
	add("whole", 1000, 1000);
	for (unsigned i = 0; i < 15; i++)
		add("part", 1010 + i, 1);
	add("twin", 3000, 10);
	add("twin_too", 3000, 10);
	lay_out(true);
	assert_true(read_file());
	assert_string_equal(at(1009), "whole");
	assert_string_equal(at(1010), "part");
	assert_string_equal(at(1100), "whole");
	assert_string_equal(at(3001), "twin_too");
	count -= 2;
	add("part", 1030, 1);
	lay_out(true);
	assert_true(read_file());
	assert_string_equal(at(1100), "-");
}

/* More than are read at once; no more than are wanted. */
TEST(many_functions)
{
	for (unsigned i = 0; i < MOST_SYMBOLS; i++)
		add("f", 16 * i, 16)->st_name = 1;
	lay_out(true);
	assert_true(read_file());
	assert_int_equal(functions.count, MOST_SYMBOLS);
	assert_string_equal(at(16 * MOST_SYMBOLS - 1), "f");
	assert_string_equal(at(16 * MOST_SYMBOLS), "-");
	free(functions.list);
	assert_false(elf_functions_read(&functions, &file, MOST_SYMBOLS - 1));
	assert_null(functions.list);
	/* It shrinks meanwhile: what is there counts. */
	assert_int_equal(ftruncate(file.fd, (off_t)(sections[TABLE].sh_offset + 1024 * sizeof(Elf64_Sym))),
	                 0);
	assert_true(elf_functions_read(&functions, &file, MOST_SYMBOLS));
	assert_int_equal(functions.count, 1024);
}

TEST(names_of_any_length)
{
	char text[400];
	memset(text, 'x', sizeof(text));
	text[ELF_NAME - 1] = 0;
	add(text, 100, 10);
	text[ELF_NAME - 1] = 'x';
	text[sizeof(text) - 1] = 0;
	add(text, 200, 10);
	add("", 300, 10);
	add("end", 400, 10);
	add("behind", 500, 10)->st_name = 1u << 20;
	string_bytes = symbols[3].st_name + 2; /* the strings end within the name */
	lay_out(true);
	assert_true(read_file());
	assert_int_equal(strlen(at(100)), ELF_NAME - 1);
	assert_int_equal(strlen(at(200)), ELF_NAME - 1);
	assert_string_equal(at(300), "-");
	assert_string_equal(at(400), "e");
	assert_string_equal(at(500), "-");
	symbols[4].st_name = (uint32_t)string_bytes; /* just behind them */
	assert_true(read_file());
	assert_string_equal(at(500), "-");
}

/* As by a linker that was told to leave all names out. */
TEST(without_names)
{
	add("first", 100, 100);
	string_bytes = 0;
	lay_out(true);
	assert_true(read_file());
	assert_string_equal(at(100), "-");
}

/* Each is refused, and nothing outside of the file is read. */
TEST(damaged_tables)
{
	add("first", 100, 100);
	for (unsigned which = 0; which < 10; which++) {
		sections[TABLE].sh_entsize = sizeof(Elf64_Sym);
		sections[TABLE].sh_link = STRINGS;
		sections[STRINGS].sh_type = SHT_STRTAB;
		lay_out(which % 2);
		switch (which) {
		case 0:
			sections[TABLE].sh_entsize++;
			break;
		case 1:
			sections[TABLE].sh_offset = file.size + 1;
			break;
		case 2:
			sections[TABLE].sh_size++;
			break;
		case 3:
			sections[STRINGS].sh_size++;
			break;
		case 4:
			sections[STRINGS].sh_offset = file.size + 1;
			break;
		case 5:
			sections[STRINGS].sh_type = SHT_NOBITS;
			break;
		case 6:
			sections[SECTIONS] = sections[STRINGS];
			sections[TABLE].sh_link = SECTIONS;
			break;
		case 7:
			file.section_count = TABLE;
			break;
		case 8:
			file.sections = file.size;
			break;
		case 9:
			file.sections = file.size + 64; /* it has become shorter */
			file.size += 4096;
			break;
		}
		assert_false(read_file());
	}
}

int main(void)
{
	of_test = memfd_create("elf", MFD_CLOEXEC);
	return of_test < 0 || run_unit_tests(NULL, NULL);
}
