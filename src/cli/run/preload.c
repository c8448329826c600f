#include "preload.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "elf_file.h"
#include "glob.h"
#include "open_file.h"
#include "put.h"

#define PATH_SIZE (PATH_MAX + 64)
#define NAME "libspill.so"

/* A 32-bit one may lie where another system has ours. */
static bool is_library(const char *path)
{
	struct elf_file file;
	int error, fd = cli_open(path, CLI_REGULAR, &error);

	if (fd < 0)
		return false;
	elf_read(&file, fd);
	close(fd);
	return file.kind == ELF_OURS;
}

/* The folder of this command, with a slash behind it. */
static bool own_folder(char folder[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
	char *slash;

	if (length <= 0)
		return false;
	folder[length] = '\0';
	slash = strrchr(folder, '/');
	if (slash)
		slash[1] = '\0';
	return slash != NULL;
}

/* Beside the command (a build folder: *installed is false), or in the lib folder of where it is installed. */
static bool find_library(const char *folder, char path[PATH_SIZE], bool *installed)
{
	static const char *const places[] = {"", "../" SPILL_LIBDIR "/", "../lib/" SPILL_MULTIARCH "/",
	                                     "../lib64/", "../lib/"};
	char there[2 * PATH_SIZE];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(there, sizeof(there), "%s%s" NAME, folder, places[i]);
		if (is_library(there) && realpath(there, path)) {
			*installed = i > 0;
			return true;
		}
	}
	return false;
}

static bool is_same_file(const char *left, const char *right)
{
	struct stat a, b;

	return !stat(left, &a) && !stat(right, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/*
 * PREFIX/$LIB/libspill.so, if that is the file: ld.so(8) puts lib or lib64 for $LIB, Debian's lib/x86_64-linux-gnu, and for a
 * 32-bit program its own folder, where `meson install` has laid one that does nothing. What it puts only the loader itself knows, so
 * it is asked; a libspill.so that sees no GPU call does nothing here, and the program takes this process's place.
 */
static bool by_token(const char *folder, const char *library, char token[PATH_SIZE])
{
	char prefix[PATH_MAX], up[PATH_SIZE];
	struct link_map *map;
	void *handle;

	snprintf(up, sizeof(up), "%s..", folder);
	if (!realpath(up, prefix) || strchr(prefix, '$'))
		return false;
	snprintf(token, PATH_SIZE, "%s/$LIB/" NAME, strcmp(prefix, "/") ? prefix : "");
	handle = dlopen(token, RTLD_LAZY | RTLD_LOCAL);
	return handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map) && is_same_file(map->l_name, library);
}

struct preloaded {
	const char *library;
	bool ours;
	char other[PATH_MAX]; /* another file of the name; "" if there is none */
};

static int look_at_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
	struct preloaded *found = data;

	if (strcmp(spill_file_name(info->dlpi_name), NAME) != 0)
		return 0;
	if (is_same_file(info->dlpi_name, found->library))
		found->ours = true;
	else
		snprintf(found->other, sizeof(found->other), "%s", info->dlpi_name);
	return 0;
}

/* What the loader made of LD_PRELOAD, however it is written, is in this process as it will be in the program. */
static bool is_preloaded(const char *library)
{
	static struct preloaded found;

	found.library = library;
	dl_iterate_phdr(look_at_loaded, &found);
	if (!found.ours && found.other[0])
		cli_fprintf(stderr, "spill run: another libspill.so is preloaded already and is used: %s\n",
		            found.other);
	return found.ours || found.other[0];
}

static int append(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char *list;
	int failed;

	if (!before || !before[strspn(before, " :")])
		failed = setenv("LD_PRELOAD", library, 1);
	else if (asprintf(&list, "%s:%s", before, library) < 0)
		failed = -1;
	else {
		failed = setenv("LD_PRELOAD", list, 1);
		free(list);
	}
	if (failed)
		perror("spill run");
	return failed ? CLI_FINDINGS : CLI_FINE;
}

int cli_preload(void)
{
	char folder[PATH_MAX], library[PATH_SIZE], token[PATH_SIZE];
	bool installed;

	if (!own_folder(folder) || !find_library(folder, library, &installed)) {
		fputs("spill run: libspill.so is neither beside this command nor in ../lib\n", stderr);
		return CLI_FINDINGS;
	}
	if (is_preloaded(library))
		return CLI_FINE;
	if (installed && by_token(folder, library, token))
		strcpy(library, token);
	if (strpbrk(library, " :")) {
		cli_fprintf(stderr,
		            "spill run: the loader splits LD_PRELOAD at blanks and colons, so it cannot load "
		            "this path: %s\n"
		            "move or link the library to a path that has neither\n",
		            library);
		return CLI_FINDINGS;
	}
	return append(library);
}
