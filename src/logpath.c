#include "logpath.h"

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

/* Values of the environment are taken as they are: a % in a home folder's name means nothing. */
static bool add_default_folder(struct spill_text *path)
{
	const char *state = secure_getenv("XDG_STATE_HOME");
	const char *home = secure_getenv("HOME");

	if (state && state[0] == '/') {
		spill_text_add(path, state);
	} else if (home && home[0] == '/') {
		spill_text_add(path, home);
		spill_text_add(path, "/.local/state");
	} else {
		return false;
	}
	spill_text_add(path, "/spill/");
	return true;
}

/* Makes it absolute, because the program may change its folder before we open again. */
static const char *begin_path(struct spill_text *path, const char *pattern)
{
	const char *home = secure_getenv("HOME");

	if (pattern[0] == '~' && pattern[1] == '/' && home && home[0] == '/') {
		spill_text_add(path, home);
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

void spill_logpath_find(struct spill_logpath *found, const char *pattern, const char *program)
{
	struct spill_text path = spill_text_begin(found->path, sizeof(found->path));
	bool understood = true;

	found->problem = NULL;
	found->in_default = pattern[0] == '\0';
	if (strcmp(pattern, "off") == 0)
		return;
	if (found->in_default) {
		if (!add_default_folder(&path))
			found->problem = "neither XDG_STATE_HOME nor HOME names a folder for it";
	} else {
		understood = expand(&path, begin_path(&path, pattern), program);
	}
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

int spill_logpath_make_folders(struct spill_logpath *found)
{
	char *last = NULL;

	for (char *at = strchr(found->path + 1, '/'); at; at = strchr(at + 1, '/')) {
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
