#include "elf_file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "symbol_table.h"

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#error "which machine?"
#endif

#define MOST_HEADERS 512
#define MOST_DYNAMIC 4096

/* Reads at most `bytes`; fewer at the end of the file. */
static size_t read_some(const struct elf_file *file, uint64_t at, void *to, size_t bytes)
{
	unsigned left = SPILL_FD_TRIES;
	size_t done = 0;

	while (done < bytes && at + done < file->size) {
		ssize_t got = pread(file->fd, (char *)to + done, bytes - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR && --left > 0)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

bool elf_read_bytes(const struct elf_file *file, uint64_t at, void *to, size_t bytes)
{
	return at < file->size && bytes <= file->size - at && read_some(file, at, to, bytes) == bytes;
}

static bool mark_damaged(struct elf_file *file, const char *problem)
{
	file->kind = ELF_DAMAGED;
	file->problem = problem;
	return false;
}

/* Converts an address into an offset in the file. False: no segment has the address. */
static bool offset_of(const struct elf_file *file, uint64_t address, uint64_t *offset)
{
	for (unsigned i = 0; i < file->load_count; i++) {
		uint64_t into = address - file->load[i].address;

		if (address >= file->load[i].address && into < file->load[i].bytes) {
			*offset = file->load[i].offset + into;
			return true;
		}
	}
	return false;
}

/* As offset_of, but 0 for a missing address. Only the file's header is at offset 0. */
static uint64_t offset_or_0(const struct elf_file *file, uint64_t address)
{
	uint64_t offset;

	return address && offset_of(file, address, &offset) ? offset : 0;
}

static bool read_string(const struct elf_file *file, uint64_t at, char *text, size_t size)
{
	uint64_t left = at < file->strings_size ? file->strings_size - at : 0;
	size_t room = left < size ? (size_t)left : size;
	size_t got = read_some(file, file->strings + at, text, room);

	return memchr(text, '\0', got) != NULL;
}

static bool read_interpreter(struct elf_file *file, const Elf64_Phdr *header)
{
	if (header->p_filesz < 2 || header->p_filesz > sizeof(file->interpreter))
		return mark_damaged(file, "the name of its loader is empty or too long");
	if (!elf_read_bytes(file, header->p_offset, file->interpreter, header->p_filesz) ||
	    !memchr(file->interpreter, '\0', header->p_filesz))
		return mark_damaged(file, "the name of its loader is not in the file");
	file->interpreted = true;
	return true;
}

static bool read_load_segment(struct elf_file *file, const Elf64_Phdr *header)
{
	if (header->p_offset > file->size || header->p_filesz > file->size - header->p_offset ||
	    header->p_vaddr > UINT64_MAX - header->p_filesz)
		return mark_damaged(file, "a segment is not in the file");
	if (file->load_count == ELF_MOST_LOADS)
		return mark_damaged(file, "it has too many segments");
	file->load[file->load_count].address = header->p_vaddr;
	file->load[file->load_count].offset = header->p_offset;
	file->load[file->load_count++].bytes = header->p_filesz;
	return true;
}

/* Entries may come before the strings that they name, so the names are read in a second pass. */
static bool read_dynamic(struct elf_file *file, const Elf64_Phdr *header)
{
	uint64_t entries = header->p_filesz / sizeof(Elf64_Dyn), address = 0, rpath = UINT64_MAX,
	         runpath = UINT64_MAX, symbols = 0, hash = 0;
	Elf64_Dyn entry;

	for (uint64_t i = 0; i < entries && i < MOST_DYNAMIC; i++) {
		if (!elf_read_bytes(file, header->p_offset + i * sizeof(entry), &entry, sizeof(entry)))
			return mark_damaged(file, "its dynamic section is not in the file");
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_STRTAB)
			address = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			file->strings_size = entry.d_un.d_val;
		else if (entry.d_tag == DT_SYMTAB)
			symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_GNU_HASH)
			hash = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_RPATH)
			rpath = entry.d_un.d_val;
		else if (entry.d_tag == DT_RUNPATH)
			runpath = entry.d_un.d_val;
		else if (entry.d_tag == DT_NEEDED && file->needed_count < ELF_MOST_NEEDED)
			file->needed[file->needed_count++] = entry.d_un.d_val;
	}
	if (!offset_of(file, address, &file->strings) || file->strings_size > file->size - file->strings) {
		file->strings_size = 0;
		return mark_damaged(file, "its dynamic strings are not in the file");
	}
	file->symbols = offset_or_0(file, symbols);
	file->symbol_hash = offset_or_0(file, hash);
	if ((rpath != UINT64_MAX && !read_string(file, rpath, file->rpath, sizeof(file->rpath))) ||
	    (runpath != UINT64_MAX && !read_string(file, runpath, file->runpath, sizeof(file->runpath))))
		return mark_damaged(file, "its library path is not in the file");
	return true;
}

static bool read_program_headers(struct elf_file *file, const Elf64_Ehdr *top)
{
	Elf64_Phdr header, dynamic = {.p_type = PT_NULL};

	if (top->e_phentsize != sizeof(header) || !top->e_phnum || top->e_phnum > MOST_HEADERS)
		return mark_damaged(file, "its program headers are none, too many, or of another size");
	file->headers = top->e_phoff;
	file->header_count = top->e_phnum;
	if (top->e_shentsize == sizeof(Elf64_Shdr)) {
		file->sections = top->e_shoff;
		file->section_count = top->e_shnum;
	}
	for (unsigned i = 0; i < top->e_phnum; i++) {
		bool good = true;

		if (top->e_phoff > file->size ||
		    !elf_read_bytes(file, top->e_phoff + i * sizeof(header), &header, sizeof(header)))
			return mark_damaged(file, "its program headers are not in the file");
		if (header.p_type == PT_INTERP)
			good = read_interpreter(file, &header);
		else if (header.p_type == PT_LOAD)
			good = read_load_segment(file, &header);
		else if (header.p_type == PT_DYNAMIC)
			dynamic = header;
		if (!good)
			return false;
	}
	/* Reading finds entries behind the end. This check keeps a large offset from wrapping. */
	if (dynamic.p_type != PT_DYNAMIC)
		return true;
	if (dynamic.p_offset > file->size || dynamic.p_filesz > file->size - dynamic.p_offset)
		return mark_damaged(file, "its dynamic section is not in the file");
	return read_dynamic(file, &dynamic);
}

/* Checks the header of a file of ELF, and its program headers. False: not ours, or damaged. */
static bool read_header(struct elf_file *file, const Elf64_Ehdr *top, size_t got)
{
	/* Both classes have the same members up to the machine. */
	if (got < offsetof(Elf64_Ehdr, e_version))
		return mark_damaged(file, "its header is cut");
	file->bits = top->e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
	file->machine = top->e_machine;
	file->kind = ELF_FOREIGN;
	if (file->bits != 64 || top->e_ident[EI_DATA] != ELFDATA2LSB || file->machine != OUR_MACHINE)
		return false;
	if (got < sizeof(*top))
		return mark_damaged(file, "its header is cut");
	if (top->e_type != ET_EXEC && top->e_type != ET_DYN)
		return mark_damaged(file, "it is no program and no library");
	return read_program_headers(file, top);
}

void elf_read(struct elf_file *file, int fd)
{
	Elf64_Ehdr top = {0};
	struct stat status;
	size_t got;

	memset(file, 0, sizeof(*file));
	file->fd = fd;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode))
		return;
	file->size = (uint64_t)status.st_size;
	got = read_some(file, 0, &top, sizeof(top));
	if (got >= SELFMAG && !memcmp(top.e_ident, ELFMAG, SELFMAG) && read_header(file, &top, got))
		file->kind = ELF_OURS;
}

bool elf_needed(const struct elf_file *file, unsigned which, char name[ELF_NAME])
{
	return which < file->needed_count && read_string(file, file->needed[which], name, ELF_NAME) && *name;
}

/* A linker's notes are far shorter. */
#define MOST_NOTES 4096

bool elf_build_id(const struct elf_file *file, char build_id[SPILL_BUILD_ID])
{
	char notes[MOST_NOTES];
	Elf64_Phdr header;

	for (unsigned i = 0; i < file->header_count; i++) {
		if (!elf_read_bytes(file, file->headers + i * sizeof(header), &header, sizeof(header)))
			return false;
		if (header.p_type == PT_NOTE && header.p_filesz <= sizeof(notes) &&
		    elf_read_bytes(file, header.p_offset, notes, header.p_filesz) &&
		    spill_build_id_find(notes, header.p_filesz, build_id))
			return true;
	}
	return false;
}

/* Visits a part of the file in pieces until one returns false. An overlap keeps words whole. */
static void scan(const struct elf_file *file, uint64_t at, uint64_t end, size_t overlap,
                 bool (*find_words_in_piece)(const char *piece, size_t bytes, void *user), void *user)
{
	static char piece[1 << 16];

	while (at < end) {
		size_t room = end - at < sizeof(piece) ? (size_t)(end - at) : sizeof(piece);
		size_t got = read_some(file, at, piece, room);

		if (!find_words_in_piece(piece, got, user) || got < sizeof(piece))
			return;
		at += got - overlap;
	}
}

/* Words to find. A word's bit is set in `found`. */
struct words {
	const char *const *word;
	size_t extra; /* NUL bytes required on either side of a word */
	unsigned count, found;
};

static bool find_words_in_piece(const char *piece, size_t bytes, void *user)
{
	struct words *words = user;
	char wanted[ELF_NAME] = "";

	for (unsigned i = 0; i < words->count; i++) {
		size_t length = strlen(words->word[i]);

		memset(wanted, 0, sizeof(wanted));
		memcpy(wanted + words->extra, words->word[i], length);
		if (memmem(piece, bytes, wanted, length + 2 * words->extra))
			words->found |= 1u << i;
	}
	return words->found != (1u << words->count) - 1;
}

/* The strings begin with an empty one, so every string has a NUL on both sides. */
bool elf_names(const struct elf_file *file, const char *word)
{
	struct words words = {.word = &word, .extra = 1, .count = 1};

	scan(file, file->strings, file->strings + file->strings_size, ELF_NAME, find_words_in_piece, &words);
	return words.found != 0;
}

bool elf_contains(const struct elf_file *file, const char *const *words, unsigned count, uint64_t most)
{
	struct words wanted = {.word = words, .count = count};

	scan(file, 0, file->size < most ? file->size : most, ELF_NAME, find_words_in_piece, &wanted);
	return wanted.found == (1u << count) - 1;
}

static bool is_definition(const struct elf_file *file, uint32_t index, const char *name)
{
	Elf64_Sym symbol;
	char text[ELF_NAME];

	return elf_read_bytes(file, file->symbols + index * sizeof(symbol), &symbol, sizeof(symbol)) &&
	       symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL &&
	       read_string(file, symbol.st_name, text, sizeof(text)) && !strcmp(text, name);
}

/* DT_GNU_HASH. shim/loaded.c reads the same table in memory. */
bool elf_defines(const struct elf_file *file, const char *name)
{
	enum { LONGEST_CHAIN = 4096 };
	uint32_t header[4], index, hash, wanted = spill_elf_hash(name);
	uint64_t buckets, hashes;

	if (!file->symbols || !file->symbol_hash ||
	    !elf_read_bytes(file, file->symbol_hash, header, sizeof(header)) || !header[0])
		return false;
	buckets = file->symbol_hash + sizeof(header) + header[2] * sizeof(Elf64_Addr);
	hashes = buckets + header[0] * sizeof(uint32_t);
	if (!elf_read_bytes(file, buckets + wanted % header[0] * sizeof(index), &index, sizeof(index)) ||
	    index < header[1])
		return false;
	for (unsigned i = 0; i < LONGEST_CHAIN; i++, index++) {
		if (!elf_read_bytes(file, hashes + (uint64_t)(index - header[1]) * sizeof(hash), &hash,
		                    sizeof(hash)))
			return false;
		if ((hash | 1) == (wanted | 1) && is_definition(file, index, name))
			return true;
		if (hash & 1)
			return false;
	}
	return false;
}
