/* Any file, as `spill doctor -- FILE` reads it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_file.h"
#include "fuzz.h"
#include "plain_name.h"
#include "program_file.h"

static void check_name(const char *symbol)
{
	char name[PLAIN_NAME];

	memset(name, 'x', sizeof(name));
	plain_name(symbol, name);
	fuzz_require(memchr(name, '\0', sizeof(name)) != NULL, "a plain name ends");
	fuzz_require(!*symbol || *name, "every symbol has a plain name");
}

/* Functions, whether or not the headers are damaged. */
static void ask_functions(const struct elf_file *file)
{
	char build_id[SPILL_BUILD_ID], name[ELF_NAME];
	struct elf_functions functions;

	if (elf_build_id(file, build_id))
		fuzz_require(build_id[0] && memchr(build_id, '\0', sizeof(build_id)), "a build id ends");
	elf_functions_read(&functions, file, 4096);
	fuzz_require(functions.count <= 4096, "the list has an end");
	for (size_t i = 0; i < functions.count; i++) {
		memset(name, 'x', sizeof(name));
		if (elf_function_at(&functions, file, functions.list[i].address, name)) {
			fuzz_require(name[0] && memchr(name, '\0', sizeof(name)), "a function's name ends");
			check_name(name);
		}
	}
	free(functions.list);
}

/* A symbol, as any bytes could be one. */
static void ask_name(const uint8_t *data, size_t size)
{
	char symbol[512] = "_Z";
	size_t length = size < sizeof(symbol) - 3 ? size : sizeof(symbol) - 3;

	if (length)
		memcpy(symbol + 2, data, length);
	check_name(symbol);
	check_name(symbol + 2);
}

/* All that may be asked, whatever the kind. */
static void ask(const struct elf_file *file)
{
	static const char *const words[] = {"libcuda.so.1", "cuGetProcAddress"};
	char name[ELF_NAME];

	for (unsigned i = 0; i < file->needed_count; i++) {
		memset(name, 'x', sizeof(name));
		if (elf_needed(file, i, name))
			fuzz_require(name[0] && memchr(name, '\0', sizeof(name)), "a needed name ends");
	}
	fuzz_require(!elf_needed(file, file->needed_count, name), "no name behind the last");
	ask_functions(file);
	elf_names(file, "dlmopen");
	elf_defines(file, "dlsym");
	elf_contains(file, words, 2, 1 << 20);
}

/* A script names its interpreter in the first line. */
static void ask_interpreter(int fd)
{
	char name[PATH_MAX];

	memset(name, 'x', sizeof(name));
	if (program_interpreter(fd, name))
		fuzz_require(name[0] && memchr(name, '\0', 256) && !strpbrk(name, " \t\n"),
		             "one word of the first line");
}

static void check(const struct elf_file *file)
{
	fuzz_require((file->kind == ELF_DAMAGED) == (file->problem != NULL),
	             "what is damaged says why, and nothing else");
	fuzz_require(file->needed_count <= ELF_MOST_NEEDED && file->load_count <= ELF_MOST_LOADS,
	             "lists have an end");
	fuzz_require(memchr(file->interpreter, '\0', sizeof(file->interpreter)) != NULL ||
	                 file->kind == ELF_DAMAGED,
	             "the loader's name ends");
	fuzz_require(memchr(file->rpath, '\0', sizeof(file->rpath)) != NULL || file->kind == ELF_DAMAGED,
	             "rpath ends");
	fuzz_require(memchr(file->runpath, '\0', sizeof(file->runpath)) != NULL || file->kind == ELF_DAMAGED,
	             "runpath ends");
	fuzz_require(file->strings_size <= file->size && file->strings <= file->size - file->strings_size,
	             "the strings are in the file");
	for (unsigned i = 0; i < file->load_count; i++)
		fuzz_require(file->load[i].bytes <= file->size &&
		                 file->load[i].offset <= file->size - file->load[i].bytes,
		             "a segment is in the file");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct elf_file file;

	fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file to read");
	elf_read(&file, fd);
	check(&file);
	ask(&file);
	ask_name(data, size);
	ask_interpreter(fd);
	/* Cut behind our back, as a file that is being replaced. */
	fuzz_require(ftruncate(fd, (off_t)(size / 2)) == 0, "a file to cut");
	ask(&file);
	close(fd);
	return 0;
}
