/* What a library exports, by its table of hashes: the C library's has many chains, and the small ones of other tests have one. */
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "elf_file.h"

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
