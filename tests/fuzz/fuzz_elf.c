/* Any file, as `spill doctor -- FILE` reads it. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_file.h"
#include "fuzz.h"

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
	elf_names(file, "dlmopen");
	elf_defines(file, "dlsym");
	elf_contains(file, words, 2, 1 << 20);
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
	/* Cut behind our back, as a file that is being replaced. */
	fuzz_require(ftruncate(fd, (off_t)(size / 2)) == 0, "a file to cut");
	ask(&file);
	close(fd);
	return 0;
}
