#include "log_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fd.h"
#include "process_ranks.h"
#include "text.h"

/* Adds foreign text as one path component: it must not be "..", contain a slash, or be hidden. */
static void add_bytes(struct spill_text *path, const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		bool bad = name[i] == '/' || (unsigned char)name[i] < 0x20 || (i == 0 && name[i] == '.');

		spill_text_bytes(path, bad ? "_" : &name[i], 1);
	}
}

static void add_component(struct spill_text *path, const char *name)
{
	add_bytes(path, name, strlen(name));
}

/* A value from the launcher, or `otherwise` if it set none. Cut: a file's name has 255 bytes. */
static void add_rank(struct spill_text *path, const char *(*find)(const struct spill_record_ranks *ranks),
                     const char *otherwise)
{
	const struct spill_record_ranks ranks = spill_process_ranks();
	const char *value = find(&ranks);

	value = value && value[0] ? value : otherwise;
	add_bytes(path, value, strnlen(value, SPILL_RANK_BYTES));
}

/* False for an unknown letter after %. */
static bool expand_pattern(struct spill_text *path, const char *pattern, const char *program)
{
	struct utsname system;

	for (const char *next = pattern; *next; next++) {
		if (*next != '%') {
			spill_text_bytes(path, next, 1);
			continue;
		}
		switch (*++next) {
		case 'h':
			add_component(path, uname(&system) == 0 ? system.nodename : "host");
			break;
		case 'e':
			add_component(path, program[0] ? program : "program");
			break;
		case 'p':
			spill_text_number(path, (uint64_t)getpid());
			break;
		case 'j':
			add_rank(path, spill_ranks_job, "nojob");
			break;
		case 't':
			add_rank(path, spill_ranks_rank, "norank");
			break;
		case '%':
			spill_text_add(path, "%");
			break;
		default:
			return false;
		}
	}
	return true;
}

/* An absolute path in the environment, or NULL. It is no pattern: % means nothing in it. */
static const char *folder_variable(const char *variable)
{
	const char *value = secure_getenv(variable);

	return value && value[0] == '/' ? value : NULL;
}

static bool folder_exists(const char *folder)
{
	struct stat now;

	return stat(folder, &now) == 0 && S_ISDIR(now.st_mode);
}

static const char no_home[] = "HOME names a folder that does not exist";

static void add_home(struct spill_log_path *found, struct spill_text *path, const char *home)
{
	spill_text_add(path, home);
	found->base = path->length;
	if (!folder_exists(home))
		found->problem = no_home;
}

/* The length of `home` without trailing slashes if `path` is at or below it, else 0. */
static size_t home_prefix(const char *path, const char *home)
{
	size_t length = home ? strlen(home) : 0;

	while (length > 0 && home[length - 1] == '/')
		length--;
	if (length && strncmp(path, home, length) == 0 && (path[length] == '/' || !path[length]))
		return length;
	return 0;
}

/* The length of the parent of `path`, with its slash. pre: absolute */
static size_t parent_length(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	while (length > 1 && path[length - 1] != '/')
		length--;
	return length;
}

/*
 * XDG_STATE_HOME itself may be created (XDG Base Directory Specification). But it may be derived
 * from a HOME that does not exist, and that one is not created.
 */
static void add_state(struct spill_log_path *found, struct spill_text *path, const char *state)
{
	size_t home = home_prefix(state, folder_variable("HOME"));
	char cut;

	spill_text_add(path, state);
	found->base = home ? home : parent_length(state);
	if (found->base > path->length)
		return; /* a path that is too long: that problem is found later */
	cut = path->buffer[found->base];
	path->buffer[found->base] = '\0';
	if (!folder_exists(path->buffer))
		found->problem = home ? no_home : "XDG_STATE_HOME is in a folder that does not exist";
	path->buffer[found->base] = cut;
}

static void add_default_folder(struct spill_log_path *found, struct spill_text *path)
{
	const char *state = folder_variable("XDG_STATE_HOME"), *home = folder_variable("HOME");

	if (state) {
		add_state(found, path, state);
	} else if (home) {
		add_home(found, path, home);
		spill_text_add(path, "/.local/state");
	} else {
		found->problem = "neither XDG_STATE_HOME nor HOME names a folder for it";
	}
	spill_text_add(path, "/spill/");
}

/* Makes the path absolute, because the program may change its folder before we reopen the log. */
static const char *begin_path(struct spill_log_path *found, struct spill_text *path, const char *pattern)
{
	const char *home = folder_variable("HOME");

	if (pattern[0] == '~' && pattern[1] == '/') {
		if (home)
			add_home(found, path, home);
		else
			found->problem = "the path begins with ~/, but HOME names no folder";
		return pattern + 1;
	}
	if (pattern[0] != '/' && getcwd(path->buffer, path->size)) {
		path->length = strlen(path->buffer);
		spill_text_add(path, "/");
	}
	return pattern;
}

/* log_keep.c and `spill log PID` know the names by their end, -%p. */
static const char *default_name(void)
{
	const struct spill_record_ranks ranks = spill_process_ranks();

	if (!spill_ranks_rank(&ranks))
		return "%e-%p";
	return spill_ranks_job(&ranks) ? "%j-%h-%t-%e-%p" : "%h-%t-%e-%p";
}

static void add_name_in_folder(struct spill_text *path, const char *program, const char *suffix)
{
	struct stat folder;
	bool slash = path->length > 0 && path->buffer[path->length - 1] == '/';

	if (!slash && (stat(path->buffer, &folder) != 0 || !S_ISDIR(folder.st_mode)))
		return;
	if (!slash)
		spill_text_add(path, "/");
	expand_pattern(path, default_name(), program);
	spill_text_add(path, suffix);
}

void spill_log_path_find(struct spill_log_path *found, const char *pattern, const char *program,
                         const char *suffix)
{
	struct spill_text path = spill_text_begin(found->path, sizeof(found->path));
	bool understood = true;

	found->problem = NULL;
	found->base = 0;
	found->in_default = pattern[0] == '\0';
	if (strcmp(pattern, "off") == 0)
		return;
	if (found->in_default)
		add_default_folder(found, &path);
	else
		understood = expand_pattern(&path, begin_path(found, &path, pattern), program);
	if (!understood)
		found->problem = "the path knows %h, %e, %p, %j, %t and %% only";
	if (!found->problem)
		add_name_in_folder(&path, program, suffix);
	if (path.length >= path.size - 1)
		found->problem = "the path is too long";
	if (found->problem)
		found->path[0] = '\0';
}

/* The default folder holds programs' arguments, so only its owner may enter, whoever created it. */
static void close_to_others(const char *folder)
{
	struct stat now;
	int fd = spill_fd_open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (fstat(fd, &now) == 0 && now.st_uid == geteuid() && (now.st_mode & 077) != 0)
		fchmod(fd, 0700);
	close(fd);
}

/* Creates the folder that is `path` up to `end`. Returns 0 or an errno value. */
static int make_folder(char *path, char *end)
{
	int error;

	*end = '\0';
	error = mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : errno;
	if (error && access(path, F_OK) == 0)
		error = 0;
	*end = '/';
	return error;
}

static int make_folders_below(struct spill_log_path *found)
{
	char *first = found->path + found->base + 1;

	for (char *slash = strchr(first, '/'); slash; slash = strchr(slash + 1, '/')) {
		int error = make_folder(found->path, slash);

		if (error)
			return error;
	}
	return 0;
}

/*
 * Looks first: a mkdir that fails is still work for the server of a shared file system, and the
 * ranks of a job begin all at once.
 */
int spill_log_path_make_folders(struct spill_log_path *found)
{
	char *last = strchr(found->path + found->base + 1, '/') ? strrchr(found->path, '/') : NULL;
	int error = 0;

	if (!last)
		return 0;
	*last = '\0';
	if (!folder_exists(found->path)) {
		*last = '/';
		error = make_folders_below(found);
		*last = '\0';
	}
	if (!error && found->in_default)
		close_to_others(found->path);
	*last = '/';
	return error;
}
