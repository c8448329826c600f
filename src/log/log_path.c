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
#include "text.h"

#define DEFAULT_NAME "%e-%p.jsonl"

/* One path component made of text that we did not choose: it must not climb or descend. */
static void add_component(struct spill_text *path, const char *name)
{
	if (name[0] == '.') {
		spill_text_add(path, "_");
		name++;
	}
	for (; *name; name++)
		spill_text_bytes(path, *name == '/' || (unsigned char)*name < 0x20 ? "_" : name, 1);
}

/* False for a %-letter that we do not know: a file of an unforeseen name helps nobody. */
static bool expand(struct spill_text *path, const char *pattern, const char *program)
{
	struct utsname system;

	for (const char *at = pattern; *at; at++) {
		if (*at != '%') {
			spill_text_bytes(path, at, 1);
			continue;
		}
		switch (*++at) {
		case 'h':
			add_component(path, uname(&system) == 0 ? system.nodename : "host");
			break;
		case 'e':
			add_component(path, program[0] ? program : "program");
			break;
		case 'p':
			spill_text_number(path, (uint64_t)getpid());
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

/*
 * An absolute path of the environment, or NULL. It is taken as it is: a % in a home folder's name
 * means nothing.
 */
static const char *folder_of(const char *variable)
{
	const char *value = secure_getenv(variable);

	return value && value[0] == '/' ? value : NULL;
}

static bool is_there(const char *folder)
{
	struct stat now;

	return stat(folder, &now) == 0 && S_ISDIR(now.st_mode);
}

static const char no_home[] = "the folder that HOME names is not there";

static void add_home(struct spill_logpath *found, struct spill_text *path, const char *home)
{
	spill_text_add(path, home);
	found->base = path->length;
	if (!is_there(home))
		found->problem = no_home;
}

/* Length of `home` without slashes at its end if `path` is it or below it, else 0. */
static size_t home_in(const char *path, const char *home)
{
	size_t length = home ? strlen(home) : 0;

	while (length > 0 && home[length - 1] == '/')
		length--;
	if (length && strncmp(path, home, length) == 0 && (path[length] == '/' || !path[length]))
		return length;
	return 0;
}

/* Length of the folder above `path`, with its slash. pre: absolute */
static size_t above(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	while (length > 1 && path[length - 1] != '/')
		length--;
	return length;
}

/*
 * It may be made itself (XDG Base Directory Specification). But it may be what another variable
 * made of a HOME that is not there, and that one stays as it is.
 */
static void add_state(struct spill_logpath *found, struct spill_text *path, const char *state)
{
	size_t home = home_in(state, folder_of("HOME"));
	char cut;

	spill_text_add(path, state);
	found->base = home ? home : above(state);
	if (found->base >= path->length)
		return; /* the root, or too long, which is told later */
	cut = path->buffer[found->base];
	path->buffer[found->base] = '\0';
	if (!is_there(path->buffer))
		found->problem =
		    home ? no_home : "the folder above the one that XDG_STATE_HOME names is not there";
	path->buffer[found->base] = cut;
}

static void add_default_folder(struct spill_logpath *found, struct spill_text *path)
{
	const char *state = folder_of("XDG_STATE_HOME"), *home = folder_of("HOME");

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

/* Makes it absolute, because the program may change its folder before we open again. */
static const char *begin_path(struct spill_logpath *found, struct spill_text *path, const char *pattern)
{
	const char *home = folder_of("HOME");

	if (pattern[0] == '~' && pattern[1] == '/') {
		if (home)
			add_home(found, path, home);
		else
			found->problem = "log.path begins with ~/, and HOME names no folder that is there";
		return pattern + 1;
	}
	if (pattern[0] != '/' && getcwd(path->buffer, path->size)) {
		path->length = strlen(path->buffer);
		spill_text_add(path, "/");
	}
	return pattern;
}

static void add_name_in_folder(struct spill_text *path, const char *program)
{
	struct stat folder;
	bool slash = path->length > 0 && path->buffer[path->length - 1] == '/';

	if (!slash && (stat(path->buffer, &folder) != 0 || !S_ISDIR(folder.st_mode)))
		return;
	if (!slash)
		spill_text_add(path, "/");
	expand(path, DEFAULT_NAME, program);
}

void spill_log_path_find(struct spill_logpath *found, const char *pattern, const char *program)
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
		understood = expand(&path, begin_path(found, &path, pattern), program);
	if (!understood)
		found->problem = "log.path knows %h, %e, %p and %% only";
	if (!found->problem)
		add_name_in_folder(&path, program);
	if (path.length >= path.size - 1)
		found->problem = "its name is too long";
	if (found->problem)
		found->path[0] = '\0';
}

/* The default folder holds what programs were called with: for its owner alone, however it was made. */
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

/* The folder that is the path up to `end`; an errno value. */
static int make_folder(char *path, char *end)
{
	int error = 0;

	*end = '\0';
	if (mkdir(path, 0700) != 0 && errno != EEXIST && access(path, F_OK) != 0)
		error = errno;
	*end = '/';
	return error;
}

int spill_log_path_make_folders(struct spill_logpath *found)
{
	char *last = NULL, *first = found->path + found->base + 1;

	for (char *at = strchr(first, '/'); at; at = strchr(at + 1, '/')) {
		int error = make_folder(found->path, at);

		if (error)
			return error;
		last = at;
	}
	if (last && found->in_default) {
		*last = '\0';
		close_to_others(found->path);
		*last = '/';
	}
	return 0;
}
