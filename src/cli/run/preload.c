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
#include "put.h"

#define PATH_SIZE (PATH_MAX + 64)
#define NAME "libspill.so"

/* Not for a 32-bit library, which another system may have in our place. */
static bool is_our_library(const char *path)
{
	struct elf_file file;
	int error, fd = cli_open(path, CLI_REGULAR, &error);

	if (fd < 0)
		return false;
	elf_read(&file, fd);
	close(fd);
	return file.kind == ELF_OURS;
}

/* The folder of this command, with a slash at its end. */
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

/* Looks beside the command, as in a build folder, then in the lib folders of an installation. */
static bool find_library(const char *folder, char path[PATH_SIZE], bool *installed)
{
	static const char *const places[] = {"", "../" SPILL_LIBDIR "/", "../lib/" SPILL_MULTIARCH "/",
	                                     "../lib64/", "../lib/"};
	char candidate[2 * PATH_SIZE];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(candidate, sizeof(candidate), "%s%s" NAME, folder, places[i]);
		if (is_our_library(candidate) && realpath(candidate, path)) {
			*installed = i > 0;
			return true;
		}
	}
	return false;
}

static bool name_same_file(const char *left, const char *right)
{
	struct stat a, b;

	return !stat(left, &a) && !stat(right, &b) && cli_is_same_file(&a, &b);
}

/*
 * Finds out whether PREFIX/$LIB/libspill.so is the library. ld.so(8) replaces $LIB by lib, lib64 or
 * Debian's lib/x86_64-linux-gnu. A 32-bit program gets its own folder, which has an empty
 * libspill.so from `meson install`. Only the loader knows the folder, so this loads the library,
 * which does nothing without a GPU call.
 */
static bool find_lib_token(const char *folder, const char *library, char token[PATH_SIZE])
{
	char prefix[PATH_MAX], parent[PATH_SIZE];
	struct link_map *map;
	void *handle;

	snprintf(parent, sizeof(parent), "%s..", folder);
	if (!realpath(parent, prefix) || strchr(prefix, '$'))
		return false;
	snprintf(token, PATH_SIZE, "%s/$LIB/" NAME, strcmp(prefix, "/") ? prefix : "");
	handle = dlopen(token, RTLD_LAZY | RTLD_LOCAL);
	return handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map) && name_same_file(map->l_name, library);
}

struct preloaded {
	const char *library;
	bool ours;
	char other[PATH_MAX]; /* another file with the name; "": none */
};

static int check_loaded_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct preloaded *found = data;

	if (strcmp(spill_file_name(info->dlpi_name), NAME) != 0)
		return 0;
	if (name_same_file(info->dlpi_name, found->library))
		found->ours = true;
	else
		snprintf(found->other, sizeof(found->other), "%s", info->dlpi_name);
	return 0;
}

/* This process has loaded what LD_PRELOAD names, as the program would. */
static bool is_preloaded(const char *library)
{
	static struct preloaded found;

	found.library = library;
	dl_iterate_phdr(check_loaded_object, &found);
	if (!found.ours && found.other[0])
		cli_fprintf(stderr, "spill run: another libspill.so is preloaded already and is used: %s\n",
		            found.other);
	return found.ours || found.other[0];
}

static int append_to_ld_preload(const char *library)
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
	if (installed && find_lib_token(folder, library, token))
		strcpy(library, token);
	if (strpbrk(library, " :")) {
		cli_fprintf(stderr,
		            "spill run: the loader splits LD_PRELOAD at blanks and colons, so it cannot load "
		            "this path: %s\n"
		            "move or link the library to a path that has neither\n",
		            library);
		return CLI_FINDINGS;
	}
	return append_to_ld_preload(library);
}
