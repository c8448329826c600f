/*
 * Finds the libraries that a program needs, and judges them. It searches as ld.so(8) does: RPATH,
 * LD_LIBRARY_PATH, RUNPATH, the cache, the standard folders. It reads files only, because the
 * loader's own tool (ldd) may execute the program.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hazards.h"
#include "doctor.h"
#include "elf_file.h"
#include "glob.h"
#include "cli.h"

#define MOST_LIBRARIES 512
/* Paths of one name in the loader's cache, one for each architecture. */
#define MOST_CACHED 16

/* Libraries with known names; the first match counts. policy/decide/hazards.def comes before. */
static const struct {
	const char *name;
	enum doctor_finding finding;
} named_libraries[] = {
    {"libcuda.so*", DOCTOR_library_gpu},       {"libcudart.so*", DOCTOR_library_gpu},
    {"libamdhip64.so*", DOCTOR_library_gpu},   {"libnccl.so*", DOCTOR_library_ranks},
    {"librccl.so*", DOCTOR_library_ranks},     {"libucp.so*", DOCTOR_library_ranks},
    {"libuct.so*", DOCTOR_library_ranks},      {"libnvshmem_host.so*", DOCTOR_library_ranks},
    {"libmpi_cuda.so*", DOCTOR_library_ranks},
};

static const char *const standard_folders[] = {
    "/lib/" SPILL_MULTIARCH, "/usr/lib/" SPILL_MULTIARCH, "/lib64", "/usr/lib64", "/lib", "/usr/lib"};

/* A needed library. Each name is examined once, breadth first like the loader. */
struct library {
	char name[ELF_NAME], path[PATH_MAX];
};

static struct {
	struct library list[MOST_LIBRARIES];
	unsigned count;
	char rpath[4096], origin[PATH_MAX]; /* of the program; they apply to all of its libraries */
} seen;

static bool open_ours(const char *path, struct elf_file *file)
{
	int error, fd = cli_open(path, CLI_REGULAR, &error);

	if (fd < 0)
		return false;
	elf_read(file, fd);
	if (file->kind == ELF_OURS)
		return true;
	close(fd); /* the loader goes on to the next folder too */
	return false;
}

/* Expands $ORIGIN and $LIB in a folder of a path list. False: the result is too long. */
static bool expand_folder(const char *item, size_t length, const char *origin, char *folder, size_t size)
{
	static const struct {
		const char *token;
		const char *value; /* NULL: replaced by `origin` */
	} tokens[] = {{"$ORIGIN", NULL},
	              {"${ORIGIN}", NULL},
	              {"$LIB", "lib/" SPILL_MULTIARCH},
	              {"${LIB}", "lib/" SPILL_MULTIARCH}};
	size_t used = 0;

	while (length) {
		const char *source = item;
		size_t consumed = 1, length_out = 1;

		for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
			size_t token = strlen(tokens[i].token);

			if (length < token || strncmp(item, tokens[i].token, token) != 0)
				continue;
			source = tokens[i].value ? tokens[i].value : origin;
			consumed = token;
			length_out = strlen(source);
			break;
		}
		if (length_out >= size - used)
			return false;
		memcpy(folder + used, source, length_out);
		used += length_out;
		item += consumed;
		length -= consumed;
	}
	folder[used] = '\0';
	return true;
}

static bool open_in(const char *folder, const char *name, char path[PATH_MAX], struct elf_file *file)
{
	return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && open_ours(path, file);
}

static bool open_in_list(const char *list, const char *origin, const char *name, char path[PATH_MAX],
                         struct elf_file *file)
{
	char folder[PATH_MAX];

	for (const char *at = list; at && *at; at += strspn(at, ":;")) {
		size_t length = strcspn(at, ":;");

		if (length && expand_folder(at, length, origin, folder, sizeof(folder)) &&
		    open_in(folder, name, path, file))
			return true;
		at += length;
	}
	return false;
}

static bool open_cached(const struct doctor_patient *patient, const char *name, char path[PATH_MAX],
                        struct elf_file *file)
{
	static struct ld_cache cache;
	static bool known;
	uint32_t from = 0;

	if (!known)
		ld_cache_read(&cache, patient->root);
	known = true;
	for (unsigned i = 0; i < MOST_CACHED && ld_cache_find(&cache, name, &from, path, PATH_MAX); i++) {
		if (open_ours(path, file))
			return true;
	}
	return false;
}

/* `origin` and `runpath` belong to the file that needs the library. */
static bool open_library(const struct doctor_patient *patient, const char *name, const char *origin,
                         const char *runpath, char path[PATH_MAX], struct elf_file *file)
{
	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return open_ours(path, file);
	}
	if ((!*runpath && open_in_list(seen.rpath, seen.origin, name, path, file)) ||
	    open_in_list(getenv("LD_LIBRARY_PATH"), origin, name, path, file) ||
	    open_in_list(runpath, origin, name, path, file) || open_cached(patient, name, path, file))
		return true;
	for (size_t i = 0; i < sizeof(standard_folders) / sizeof(standard_folders[0]); i++) {
		if (open_in(standard_folders[i], name, path, file))
			return true;
	}
	return false;
}

bool doctor_open_library(const struct doctor_patient *patient, const char *name, char path[PATH_MAX],
                         struct elf_file *file)
{
	return open_library(patient, name, "", "", path, file);
}

/* Adds a library. NULL: it is listed already, or the list is full. */
static struct library *add_library(const char *name)
{
	for (unsigned i = 0; i < seen.count; i++) {
		if (!strcmp(seen.list[i].name, name))
			return NULL;
	}
	if (seen.count == MOST_LIBRARIES)
		return NULL;
	seen.list[seen.count] = (struct library){0};
	strcpy(seen.list[seen.count].name, name);
	return &seen.list[seen.count++];
}

struct doctor_needs doctor_needs;

/* Remembers a need. The first of each vendor is told. */
static void add_need(const char *name, const char *by)
{
	static const char runtime[] = "libcudart.so.";
	bool hip = !strncmp(name, "libamdhip64", 11);
	char *text = hip ? doctor_needs.hip : doctor_needs.cuda;

	if (!text[0])
		snprintf(text, sizeof(doctor_needs.cuda), "%s needs %s", by, name);
	if (strncmp(name, runtime, strlen(runtime)) != 0)
		return;
	unsigned major = (unsigned)strtoul(name + strlen(runtime), NULL, 10);
	if (major <= doctor_needs.runtime_major)
		return;
	doctor_needs.runtime_major = major;
	snprintf(doctor_needs.runtime, sizeof(doctor_needs.runtime), "%s needs %s", by, name);
}

static void judge_name(const struct doctor_patient *patient, const char *name, const char *by)
{
	int row = spill_hazard_find(name);

	if (row >= 0) {
		const char *open = spill_hazard_row((unsigned)row)->open;
		bool idle = *open && !doctor_is_there(patient, open);

		doctor_find(idle ? DOCTOR_library_around_idle : DOCTOR_library_around, "%s needs %s: %s", by,
		            name, spill_hazard_row((unsigned)row)->what);
		return;
	}
	for (size_t i = 0; i < sizeof(named_libraries) / sizeof(named_libraries[0]); i++) {
		if (!spill_glob(named_libraries[i].name, name))
			continue;
		doctor_find(named_libraries[i].finding, "%s needs %s", by, name);
		if (named_libraries[i].finding == DOCTOR_library_gpu)
			add_need(name, by);
		return;
	}
}

static void folder_of(const char *path, char folder[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

/* Examines a file's libraries. Its RUNPATH applies to it alone, the program's RPATH to all. */
static void examine_file(const struct doctor_patient *patient, const char *path, const struct elf_file *file)
{
	char name[ELF_NAME], origin[PATH_MAX];
	struct elf_file there;

	folder_of(path, origin);
	for (unsigned i = 0; i < file->needed_count; i++) {
		struct library *library;

		if (!elf_needed(file, i, name)) {
			doctor_find(DOCTOR_program_damaged,
			            "%s: the name of a library that it needs is not in the file", path);
			continue;
		}
		library = add_library(name);
		if (!library)
			continue;
		judge_name(patient, name, spill_file_name(path));
		if (open_library(patient, name, origin, file->runpath, library->path, &there)) {
			close(there.fd);
			continue;
		}
		library->path[0] = '\0';
		doctor_find(DOCTOR_library_missing, "%s needs %s, which is not found", spill_file_name(path),
		            name);
	}
	/* libc and the loader contain these names without using them. */
	if (strncmp(spill_file_name(path), "libc.so", 7) != 0 &&
	    strncmp(spill_file_name(path), "ld-linux", 8) != 0 &&
	    (elf_names(file, "dlmopen") ||
	     elf_contains(file, (const char *const[]){"RTLD_DEEPBIND"}, 1, 64u << 20)))
		doctor_find(DOCTOR_deepbind, "%s names RTLD_DEEPBIND or dlmopen", spill_file_name(path));
}

void doctor_look_at_libraries(const struct doctor_patient *patient, const char *path,
                              const struct elf_file *file)
{
	struct elf_file library;

	strcpy(seen.rpath, *file->runpath ? "" : file->rpath);
	folder_of(path, seen.origin);
	examine_file(patient, path, file);
	for (unsigned i = 0; i < seen.count; i++) {
		if (!seen.list[i].path[0] || !open_ours(seen.list[i].path, &library))
			continue;
		examine_file(patient, seen.list[i].path, &library);
		close(library.fd);
	}
	if (!doctor_needs.cuda[0] && !doctor_needs.hip[0])
		doctor_find(DOCTOR_library_none,
		            "%s and its %u libraries name no CUDA or HIP library as needed",
		            spill_file_name(path), seen.count);
}
