/* What is read of an ELF file, from one that is made here; and of each part that is damaged, why. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_file.h"

enum { INTERPRETER, LOAD, DYNAMIC, NOTE, HEADERS };
enum { NEEDED, ALSO_NEEDED, RPATH, RUNPATH, STRINGS, SIZE, SYMBOLS, HASH, END, ENTRIES };
enum { BASE = 0x10000 };

static struct made {
	Elf64_Ehdr top;
	Elf64_Phdr header[HEADERS];
	Elf64_Dyn entry[ENTRIES];
	char interpreter[16];
	struct {
		Elf64_Nhdr header;
		char name[4], id[4];
	} note;
	char strings[64];
} made;

static struct elf_file file;
static int fd;
static Elf64_Ehdr ours;

static Elf64_Phdr part(uint32_t type, size_t offset, size_t bytes)
{
	return (Elf64_Phdr){.p_type = type, .p_offset = offset, .p_vaddr = BASE + offset, .p_filesz = bytes};
}

#define PART(type, member) part(type, offsetof(struct made, member), sizeof(made.member))

static int setup(void **state)
{
	int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool got = read(own, &ours, sizeof(ours)) == sizeof(ours);

	close(own);
	fd = memfd_create("made", MFD_CLOEXEC);
	made = (struct made){
	    .top = {.e_type = ET_DYN,
	            .e_machine = ours.e_machine,
	            .e_phoff = offsetof(struct made, header),
	            .e_phnum = HEADERS,
	            .e_phentsize = sizeof(Elf64_Phdr),
	            .e_shoff = 7,
	            .e_shnum = 5,
	            .e_shentsize = sizeof(Elf64_Shdr)},
	    .header = {[INTERPRETER] = PART(PT_INTERP, interpreter),
	               [LOAD] = part(PT_LOAD, 0, sizeof(made)),
	               [DYNAMIC] = PART(PT_DYNAMIC, entry),
	               [NOTE] = PART(PT_NOTE, note)},
	    .entry = {[NEEDED] = {DT_NEEDED, {1}},
	              [ALSO_NEEDED] = {DT_NEEDED, {7}},
	              [RPATH] = {DT_RPATH, {13}},
	              [RUNPATH] = {DT_RUNPATH, {17}},
	              [STRINGS] = {DT_STRTAB, {BASE + offsetof(struct made, strings)}},
	              [SIZE] = {DT_STRSZ, {sizeof(made.strings)}},
	              [SYMBOLS] = {DT_SYMTAB, {BASE + 64}},
	              [HASH] = {DT_GNU_HASH, {BASE + 72}}},
	    .interpreter = "/lib/the-ld.so",
	    .note = {{4, 4, NT_GNU_BUILD_ID}, "GNU", {0x12, 0x34, 0x56, 0x78}},
	    .strings = "\0liba0\0libb0\0/r0\0/run0",
	};
	memcpy(made.top.e_ident, ours.e_ident, sizeof(ours.e_ident));
	return fd >= 0 && got ? 0 : -1;
}

static int teardown(void **state)
{
	return close(fd);
}

static void read_cut(size_t bytes)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, &made, bytes, 0), bytes);
	elf_read(&file, fd);
}

/* Why it is damaged; "": it is ours. */
static const char *problem(void)
{
	read_cut(sizeof(made));
	assert_int_equal(file.kind, file.problem ? ELF_DAMAGED : ELF_OURS);
	return file.problem ? file.problem : "";
}

TEST(all_of_a_good_file)
{
	char name[ELF_NAME], id[SPILL_BUILD_ID];

	assert_string_equal(problem(), "");
	assert_int_equal(file.size, sizeof(made));
	assert_int_equal(file.bits, 64);
	assert_int_equal(file.machine, ours.e_machine);
	assert_true(file.interpreted);
	assert_string_equal(file.interpreter, "/lib/the-ld.so");
	assert_string_equal(file.rpath, "/r0");
	assert_string_equal(file.runpath, "/run0");
	assert_int_equal(file.needed_count, 2);
	assert_true(elf_needed(&file, 0, name));
	assert_string_equal(name, "liba0");
	assert_true(elf_needed(&file, 1, name));
	assert_string_equal(name, "libb0");
	assert_false(elf_needed(&file, 2, name));
	assert_int_equal(file.symbols, 64);
	assert_int_equal(file.symbol_hash, 72);
	assert_int_equal(file.headers, offsetof(struct made, header));
	assert_int_equal(file.header_count, HEADERS);
	assert_int_equal(file.sections, 7);
	assert_int_equal(file.section_count, 5);
	assert_true(elf_build_id(&file, id));
	assert_string_equal(id, "12345678");
	made.header[NOTE].p_type = PT_NULL;
	problem();
	assert_false(elf_build_id(&file, id));
	/* Section headers of another size are none. */
	made.top.e_shentsize--;
	problem();
	assert_int_equal(file.sections + file.section_count, 0);
}

TEST(words_in_it)
{
	static const char *const words[] = {"liba", "/run0", "GNU"};

	problem();
	assert_true(elf_names(&file, "liba0"));
	assert_true(elf_names(&file, "/run0"));
	assert_false(elf_names(&file, "liba"));
	assert_false(elf_names(&file, "iba0"));
	assert_false(elf_names(&file, "GNU"));
	assert_true(elf_contains(&file, words, 3, UINT64_MAX));
	assert_true(elf_contains(&file, words, 3, offsetof(struct made, strings) + 23));
	assert_false(elf_contains(&file, words, 3, offsetof(struct made, strings) + 21));
	assert_true(elf_contains(&file, words + 2, 1, offsetof(struct made, strings)));
	assert_false(elf_contains(&file, words, 2, offsetof(struct made, strings)));
}

/* It is searched in pieces, whose ends lie over each other. */
TEST(words_where_pieces_end)
{
	static const char *const words[] = {"liba0", "needle"};
	static char large[3 << 16];

	for (size_t end = (1 << 16) - 8; end < (1 << 16) + 8; end++) {
		memset(large, 0, sizeof(large));
		memcpy(large, "liba0", 5);
		memcpy(large + end, "needle", 6);
		assert_int_equal(pwrite(fd, large, sizeof(large), 0), sizeof(large));
		file = (struct elf_file){.fd = fd, .size = sizeof(large)};
		assert_true(elf_contains(&file, words, 2, UINT64_MAX));
		assert_true(elf_contains(&file, words, 2, end + 6));
		assert_false(elf_contains(&file, words, 2, end + 5));
	}
}

TEST(files_that_are_not_ours)
{
	static const size_t machine = offsetof(Elf64_Ehdr, e_version);

	read_cut(0);
	assert_int_equal(file.kind, ELF_NONE);
	read_cut(SELFMAG - 1);
	assert_int_equal(file.kind, ELF_NONE);
	read_cut(SELFMAG);
	assert_int_equal(file.kind, ELF_DAMAGED);
	assert_string_equal(file.problem, "its header is cut");
	read_cut(machine - 1);
	assert_string_equal(file.problem, "its header is cut");
	read_cut(sizeof(made.top) - 1);
	assert_string_equal(file.problem, "its header is cut");
	read_cut(sizeof(made.top));
	assert_string_equal(file.problem, "its program headers are not in the file");
	/* One of another machine is known by its first bytes. */
	made.top.e_machine++;
	read_cut(machine);
	assert_int_equal(file.kind, ELF_FOREIGN);
	assert_int_equal(file.machine, made.top.e_machine);
	made.top.e_machine--;
	made.top.e_ident[EI_DATA] = ELFDATA2MSB;
	read_cut(machine);
	assert_int_equal(file.kind, ELF_FOREIGN);
	made.top.e_ident[EI_DATA] = ELFDATA2LSB;
	made.top.e_ident[EI_CLASS] = ELFCLASS32;
	read_cut(machine);
	assert_int_equal(file.kind, ELF_FOREIGN);
	assert_int_equal(file.bits, 32);
	made.top.e_ident[1] = 'e';
	read_cut(sizeof(made));
	assert_int_equal(file.kind, ELF_NONE);
}

TEST(types_and_headers)
{
	static const char bad[] = "its program headers are none, too many, or of another size",
	                  outside[] = "its program headers are not in the file";

	made.top.e_type = ET_EXEC;
	assert_string_equal(problem(), "");
	made.top.e_type = ET_CORE;
	assert_string_equal(problem(), "it is no program and no library");
	made.top.e_type = ET_DYN;
	made.top.e_phnum = 0;
	assert_string_equal(problem(), bad);
	made.top.e_phnum = 513;
	assert_string_equal(problem(), bad);
	made.top.e_phnum = 512;
	assert_string_not_equal(problem(), bad);
	made.top.e_phnum = HEADERS;
	made.top.e_phentsize++;
	assert_string_equal(problem(), bad);
	made.top.e_phentsize--;
	made.top.e_phoff = sizeof(made) - sizeof(made.header) + 1;
	assert_string_equal(problem(), outside);
	made.top.e_phoff = UINT64_MAX - 10;
	assert_string_equal(problem(), outside);
	made.top.e_phoff = sizeof(made);
	assert_string_equal(problem(), outside);
}

TEST(interpreters)
{
	static const char odd[] = "the name of its loader is empty or too long",
	                  outside[] = "the name of its loader is not in the file";
	Elf64_Phdr *header = &made.header[INTERPRETER];

	header->p_filesz = 1;
	assert_string_equal(problem(), odd);
	header->p_filesz = ELF_NAME + 1;
	assert_string_equal(problem(), odd);
	header->p_filesz = 14; /* without the end of the text */
	assert_string_equal(problem(), outside);
	header->p_filesz = 15;
	assert_string_equal(problem(), "");
	header->p_filesz = ELF_NAME;
	header->p_offset = sizeof(made) - ELF_NAME;
	assert_string_equal(problem(), "");
	header->p_offset++;
	assert_string_equal(problem(), outside);
	header->p_type = PT_NULL;
	assert_string_equal(problem(), "");
	assert_false(file.interpreted);
}

TEST(segments)
{
	static const char outside[] = "a segment is not in the file";
	Elf64_Phdr *header = &made.header[LOAD];

	header->p_filesz++;
	assert_string_equal(problem(), outside);
	header->p_filesz--;
	header->p_offset = sizeof(made) + 1;
	assert_string_equal(problem(), outside);
	header->p_offset = 0;
	header->p_vaddr = UINT64_MAX - sizeof(made) + 1;
	assert_string_equal(problem(), outside);
	header->p_vaddr--;
	assert_string_equal(problem(),
	                    "its dynamic strings are not in the file"); /* which have other addresses */
}

TEST(many_segments)
{
	static struct {
		struct made made;
		Elf64_Phdr header[ELF_MOST_LOADS + 1];
	} many;

	for (unsigned more = 0; more <= 1; more++) {
		many.made = made;
		many.made.top.e_phoff = offsetof(__typeof__(many), header);
		many.made.top.e_phnum = (uint16_t)(ELF_MOST_LOADS + more);
		for (unsigned i = 0; i <= ELF_MOST_LOADS; i++)
			many.header[i] = made.header[LOAD];
		assert_int_equal(pwrite(fd, &many, sizeof(many), 0), sizeof(many));
		elf_read(&file, fd);
		assert_int_equal(file.kind, more ? ELF_DAMAGED : ELF_OURS);
		assert_int_equal(file.load_count, ELF_MOST_LOADS);
		if (more)
			assert_string_equal(file.problem, "it has too many segments");
	}
}

TEST(dynamic_sections)
{
	static const char strings[] = "its dynamic strings are not in the file",
	                  paths[] = "its library path is not in the file";
	char name[ELF_NAME];

	made.entry[SIZE].d_un.d_val = sizeof(made) - offsetof(struct made, strings) + 1;
	assert_string_equal(problem(), strings);
	assert_int_equal(file.strings_size, 0);
	made.entry[SIZE].d_un.d_val--;
	assert_string_equal(problem(), "");
	made.entry[SIZE].d_un.d_val = sizeof(made.strings);
	made.entry[STRINGS].d_un.d_ptr = BASE - 1;
	assert_string_equal(problem(), strings);
	made.entry[STRINGS].d_un.d_ptr = BASE + sizeof(made);
	assert_string_equal(problem(), strings);
	made.entry[STRINGS].d_un.d_ptr = BASE + offsetof(struct made, strings);
	/* A path must end within the strings. */
	for (unsigned which = RPATH; which <= RUNPATH; which++) {
		uint64_t before = made.entry[which].d_un.d_val;

		made.entry[which].d_un.d_val = sizeof(made.strings) - 1;
		assert_string_equal(problem(), "");
		made.entry[which].d_un.d_val++;
		assert_string_equal(problem(), paths);
		made.entry[which].d_un.d_val = before;
	}
	/* A name, too, and it is not empty. */
	made.entry[NEEDED].d_un.d_val = 0;
	made.entry[ALSO_NEEDED].d_un.d_val = sizeof(made.strings);
	assert_string_equal(problem(), "");
	assert_false(elf_needed(&file, 0, name));
	assert_false(elf_needed(&file, 1, name));
	/* What is missing, or at no segment's address, is nowhere. */
	made.entry[SYMBOLS].d_un.d_ptr = 0;
	made.entry[HASH].d_un.d_ptr = BASE + sizeof(made);
	assert_string_equal(problem(), "");
	assert_int_equal(file.symbols + file.symbol_hash, 0);
	/* What is behind the end of the list does not count. */
	made.entry[NEEDED].d_tag = DT_NULL;
	assert_string_equal(problem(), strings);
	assert_int_equal(file.needed_count, 0);
	made.header[DYNAMIC].p_type = PT_NULL;
	assert_string_equal(problem(), "");
	made.header[DYNAMIC] = part(PT_DYNAMIC, sizeof(made) - 1, 2);
	assert_string_equal(problem(), "its dynamic section is not in the file");
}
