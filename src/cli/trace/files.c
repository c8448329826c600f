#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "elf_file.h"
#include "small_file.h"

/* -- files on this machine, each read once for all runs --------------------------------------- */

/* Bounds of memory and time: files that stay open, and the symbols of all of them. */
#define MOST_OPEN 64
#define MOST_SYMBOLS ((size_t)8 << 20)

struct symbols {
	char *path;
	bool good; /* its functions were read */
	struct elf_file file;
	struct elf_functions functions;
	char build_id[SPILL_BUILD_ID]; /* "" without one */
	char changed[32];              /* time of its last change, in the form of a start line's */
};

static struct symbols *symbols[MOST_OPEN];
static unsigned symbols_count;
static size_t symbols_left = MOST_SYMBOLS;

/* The time as "2026-11-21T03:50:51.123456Z": such texts compare as their times. */
static void put_time(const struct timespec *time, char text[32])
{
	struct tm parts;
	size_t length = 0;

	if (gmtime_r(&time->tv_sec, &parts))
		length = strftime(text, 21, "%Y-%m-%dT%H:%M:%S.", &parts);
	snprintf(text + length, 32 - length, "%06ldZ", time->tv_nsec / 1000);
}

/* A copy may keep its time of modification, but not that of its inode. */
static void get_changed(const struct stat *status, char text[32])
{
	char inode[32];

	put_time(&status->st_mtim, text);
	put_time(&status->st_ctim, inode);
	if (strcmp(inode, text) > 0)
		memcpy(text, inode, sizeof(inode));
}

static void read_symbols(struct symbols *of)
{
	struct stat status;
	int error, fd = cli_open(of->path, CLI_REGULAR, &error);

	if (fd < 0)
		return;
	elf_read(&of->file, fd);
	of->good = of->file.kind == ELF_OURS && !fstat(fd, &status) &&
	           elf_functions_read(&of->functions, &of->file, symbols_left);
	if (!of->good) {
		close(fd);
		return;
	}
	symbols_left -= of->functions.count;
	get_changed(&status, of->changed);
	if (!elf_build_id(&of->file, of->build_id))
		of->build_id[0] = '\0';
}

/* NULL: too many files. */
static const struct symbols *symbols_of(const char *path)
{
	struct symbols *of;

	for (unsigned i = 0; i < symbols_count; i++) {
		if (!strcmp(symbols[i]->path, path))
			return symbols[i];
	}
	if (symbols_count == MOST_OPEN)
		return NULL;
	of = cli_realloc(NULL, 1, sizeof(*of));
	memset(of, 0, sizeof(*of));
	of->path = cli_strdup(path);
	symbols[symbols_count++] = of;
	read_symbols(of);
	return of;
}

/* -- files of a run --------------------------------------------------------------------------- */

static bool is_same(const char *left, const char *right)
{
	return left && right ? !strcmp(left, right) : left == right;
}

static struct cli_run_file *find_file(const struct cli_run_files *files, const char *name, size_t length)
{
	for (size_t i = 0; i < files->count; i++) {
		struct cli_run_file *file = &files->list[i];

		if (strlen(file->name) == length && !memcmp(file->name, name, length))
			return file;
	}
	return NULL;
}

static void set_file(struct cli_run_file *file, const struct spill_record_file *source, bool from_start)
{
	*file = (struct cli_run_file){
	    .name = cli_strdup(source->name),
	    .path = cli_strdup(source->path),
	    .build_id = cli_strdup(source->build_id),
	    .from_start = from_start,
	};
}

static void free_file(struct cli_run_file *file)
{
	free(file->name);
	free(file->path);
	free(file->build_id);
}

static void add_file(struct cli_run_files *files, const struct spill_record_file *source, bool from_start)
{
	struct cli_run_file *file = find_file(files, source->name, strlen(source->name));

	if (file && file->from_start) {
		free_file(file);
		set_file(file, source, from_start);
	} else if (file) {
		file->several |=
		    !is_same(file->path, source->path) || !is_same(file->build_id, source->build_id);
	} else if (files->count < CLI_RUN_FILES) {
		files->list = cli_grow(files->list, files->count, &files->size, sizeof(files->list[0]));
		set_file(&files->list[files->count++], source, from_start);
	}
}

bool cli_is_this_machine(const struct spill_record_start *start)
{
	struct utsname machine;

	return start->host && !uname(&machine) && !strcmp(start->host, machine.nodename);
}

bool cli_is_this_boot(const struct spill_record_start *start)
{
	char boot[64] = "";

	spill_small_file_read("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	boot[strcspn(boot, "\n")] = '\0';
	return start->boot && !strcmp(start->boot, boot);
}

void cli_run_files_begin(struct cli_run_files *files, const struct spill_record_start *start)
{
	const struct spill_record_file program = {.name = start->program, .path = start->exe};
	cli_run_files_free(files);
	files->time = cli_strdup(start->time);
	files->here = cli_is_this_machine(start) && cli_is_this_boot(start);
	if (start->program && start->exe)
		add_file(files, &program, true);
}

void cli_run_files_add(struct cli_run_files *files, const struct spill_record_file *file)
{
	add_file(files, file, false);
}

void cli_run_files_free(struct cli_run_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free_file(&files->list[i]);
	free(files->list);
	free(files->time);
	*files = (struct cli_run_files){0};
}

/* True if the file on this machine is surely the one of the run. */
static bool is_believed(const struct cli_run_files *files, const struct cli_run_file *file,
                        const struct symbols *found)
{
	if (file->build_id)
		return !strcmp(file->build_id, found->build_id);
	if (!file->from_start && found->build_id[0])
		return false; /* the run's file had none */
	return files->here && files->time && strcmp(found->changed, files->time) <= 0;
}

/* Names of files may have a '+', too. */
size_t cli_caller_object(const char *caller)
{
	const char *plus = strrchr(caller, '+');

	return plus && !strncmp(plus, "+0x", 3) ? (size_t)(plus - caller) : strlen(caller);
}

/* "libfoo.so+0x1a2b": its file and offset. NULL: it has another form, or its file is not known. */
static const struct cli_run_file *parse_caller(const struct cli_run_files *files, const char *caller,
                                               uint64_t *offset)
{
	size_t length = cli_caller_object(caller);
	const char *digits;
	char *end;

	if (!caller[length])
		return NULL;
	digits = caller + length + strlen("+0x");
	*offset = strtoull(digits, &end, 16);
	return *end || end == digits ? NULL : find_file(files, caller, length);
}

void cli_run_files_function(const struct cli_run_files *files, const char *caller, char name[PLAIN_NAME])
{
	const struct cli_run_file *file;
	const struct symbols *found;
	char symbol[ELF_NAME];
	uint64_t offset;

	name[0] = '\0';
	file = files && caller ? parse_caller(files, caller, &offset) : NULL;
	if (!file || file->several || file->path[0] != '/' || !offset)
		return;
	found = symbols_of(file->path);
	/* The offset is that of the return address: the next function may begin there. */
	if (found && found->good && is_believed(files, file, found) &&
	    elf_function_at(&found->functions, &found->file, offset - 1, symbol))
		plain_name(symbol, name);
}

struct cli_caller_text cli_caller_text(const struct cli_run_files *files, const char *caller)
{
	struct cli_caller_text result;
	char function[PLAIN_NAME];
	const char *shown = caller ? caller : "not known";

	cli_run_files_function(files, caller, function);
	if (function[0])
		snprintf(result.text, sizeof(result.text), "%s (%s)", shown, function);
	else
		snprintf(result.text, sizeof(result.text), "%s", shown);
	return result;
}
