#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "minmax.h"
#include "policy.h"
#include "scratch.h"
#include "small_file.h"

/* The fields of a line of /proc/self/mountinfo (proc(5)) that matter. */
struct mount {
	char *root; /* the part of the hierarchy that is mounted at `point` */
	char *point;
	const char *type, *options;
};

/* A search for the folder of this process's group in one hierarchy. */
struct group_search {
	const char *files; /* the root of the file system; "" for the real one */
	const char *type, *controller;
	struct spill_cgroup_home *home;
	size_t hidden; /* how much of the hierarchy the best mount so far does not show */
	struct buffers *buffers;
	int error; /* why the list of mounts could not be read */
};

/* Memory for a search and then for the limits. It is too large for a small stack. */
struct buffers {
	char text[8064];
	char folder[SPILL_CGROUP_PATH];
	char path[SPILL_CGROUP_PATH];
	bool lost; /* the file of a limit could not be read for the moment */
};
_Static_assert(sizeof(struct buffers) <= SPILL_SCRATCH, "it comes from spill_scratch_take");

/* Space, tab, newline and backslash are written as three octal digits. */
static void unescape_octal(char *text)
{
	char *to = text;
	for (; *text; to++)
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' && text[2] <= '7' &&
		    text[3] >= '0' && text[3] <= '7') {
			*to = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
			text += 4;
		} else {
			*to = *text++;
		}
	*to = '\0';
}

/* 36 35 98:0 ROOT POINT OPTIONS [TAGS…] - TYPE SOURCE OPTIONS */
static bool parse_mount(char *line, struct mount *mount)
{
	char *field;
	*mount = (struct mount){0};
	for (int i = 0; (field = strsep(&line, " ")) && !(i > 5 && strcmp(field, "-") == 0); i++)
		if (i == 3)
			mount->root = field;
		else if (i == 4)
			mount->point = field;
	if (!field || !mount->root || !mount->point)
		return false;
	mount->type = strsep(&line, " ");
	strsep(&line, " ");
	mount->options = strsep(&line, " ");
	if (!mount->type || !mount->options)
		return false;
	unescape_octal(mount->root);
	unescape_octal(mount->point);
	return true;
}

/* True if the comma-separated `list` has `word`. */
static bool list_has(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (; list; list = strchr(list, ',')) {
		list += *list == ',';
		if (strncmp(list, word, length) == 0 && (list[length] == ',' || list[length] == '\0'))
			return true;
	}
	return false;
}

/* False for a folder that is no group, because something else may be mounted over it. */
static bool is_group(const char *files, const char *folder, struct buffers *buffers)
{
	return spill_small_file_path(files, folder, "cgroup.procs", buffers->path, sizeof(buffers->path)) &&
	       access(buffers->path, F_OK) == 0;
}

/* The part of `path` after `root`, or NULL if `path` is not below `root`. */
static const char *path_below(const char *path, const char *root)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
		return NULL;
	return strcmp(path + length, "/") == 0 ? "" : path + length;
}

/*
 * Is `rest` of the mount's point a group? Makes it buffers->folder. A path that does not fit is none: the path of its
 * file is longer still.
 */
static bool try_folder(const struct group_search *search, const char *point, const char *rest)
{
	struct buffers *buffers = search->buffers;
	_Static_assert(sizeof(buffers->path) <= sizeof(buffers->folder), "a folder that is cut has no file");
	snprintf(buffers->folder, sizeof(buffers->folder), "%s%s", point, rest);
	return is_group(search->files, buffers->folder, buffers);
}

/*
 * Takes the mount if it shows more of the hierarchy than the best one so far. A mount that does not
 * show our group is better than none. Such a mount is in a container that sees another top of the
 * hierarchy, and the limits at the mount's own top are those of the container.
 */
static void consider_mount(struct group_search *search, const struct mount *mount)
{
	struct spill_cgroup_home *home = search->home;
	if (strcmp(mount->type, search->type) != 0 ||
	    (search->controller && !list_has(mount->options, search->controller)))
		return;
	const char *rest = path_below(home->path, mount->root);
	size_t hidden = strlen(mount->root);
	if (!rest || !try_folder(search, mount->point, rest)) {
		hidden = SIZE_MAX;
		if (!try_folder(search, mount->point, ""))
			return;
	}
	if (hidden > search->hidden)
		return;
	search->hidden = hidden;
	strcpy(home->folder, search->buffers->folder);
	home->top = strlen(mount->point);
}

/* Considers every mount, in order. Skips lines that are longer than a control group's can be. */
static void search_mountinfo(int fd, struct group_search *search)
{
	char *text = search->buffers->text;
	const size_t size = sizeof(search->buffers->text);
	struct mount mount;
	size_t used = 0;
	bool skip = false;
	ssize_t got;
	while ((got = spill_fd_read(fd, text + used, size - used)) > 0) {
		char *line = text, *end;
		used += (size_t)got;
		while ((end = memchr(line, '\n', used)) != NULL) {
			*end++ = '\0';
			if (!skip && parse_mount(line, &mount))
				consider_mount(search, &mount);
			skip = false;
			used -= (size_t)(end - line);
			line = end;
		}
		memmove(text, line, used);
		skip = skip || used == size;
		used = skip ? 0 : used;
	}
	search->error = got < 0 ? errno : 0;
}

static void search_mounts(void *data)
{
	struct group_search *search = data;
	char *path = search->buffers->text;
	search->error = 0;
	search->hidden = SIZE_MAX;
	if (!spill_small_file_path(search->files, "/proc/self", "mountinfo", path,
	                           sizeof(search->buffers->text)))
		return;
	int fd = spill_fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0) {
		search->error = errno;
		return;
	}
	search_mountinfo(fd, search);
	close(fd);
}

/* With its path: else the group would count as searched, and as one without a folder. */
static void forget_home(struct spill_cgroup_home *home)
{
	home->path[0] = home->folder[0] = '\0';
}

/* Finds the group `path`. False if that fails for the moment: the next call tries again. */
static bool find_home(const char *root, const char *path, bool v2, struct spill_cgroup_home *home,
                      struct buffers *buffers)
{
	if (buffers && strcmp(home->path, path) == 0 &&
	    (!home->folder[0] || is_group(root, home->folder, buffers)))
		return true;
	forget_home(home);
	if (!buffers || strlen(path) >= sizeof(home->path))
		return buffers;
	strcpy(home->path, path);
	struct group_search search = {
	    .files = root,
	    .type = v2 ? "cgroup2" : "cgroup",
	    .controller = v2 ? NULL : "memory",
	    .home = home,
	    .buffers = buffers,
	};
	search_mounts(&search);
	if (search.error == EMFILE)
		spill_fd_elsewhere(search_mounts, &search);
	bool lost = spill_fd_momentary(search.error);
	if (lost)
		forget_home(home);
	return !lost;
}

static void find_group(const char *root, const char *path, bool v2, struct spill_cgroup_homes *homes)
{
	struct buffers *buffers = spill_scratch_take();
	if (!find_home(root, path, v2, v2 ? &homes->v2 : &homes->v1, buffers))
		homes->lost = true;
	spill_scratch_give_back(buffers);
}

/* /proc/self/cgroup has lines `ID:CONTROLLERS:PATH`; version 2 is `0::PATH`. */
static void find_groups(const char *root, char *text, struct spill_cgroup_homes *homes)
{
	bool v1_told = false, v2_told = false;
	for (char *line = strsep(&text, "\n"); line; line = strsep(&text, "\n")) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		controllers++;
		bool v2 = controllers[0] == '\0';
		if (!v2 && !list_has(controllers, "memory"))
			continue;
		*(v2 ? &v2_told : &v1_told) = true;
		find_group(root, group, v2, homes);
	}
	if (!v1_told)
		forget_home(&homes->v1);
	if (!v2_told)
		forget_home(&homes->v2);
}

void spill_cgroup_find(const char *root, struct spill_cgroup_homes *homes)
{
	char *text = spill_scratch_take();
	homes->lost = false;
	if (text && spill_small_file_read_in(root, "/proc/self", "cgroup", text, SPILL_SCRATCH)) {
		find_groups(root, text, homes);
	} else {
		homes->lost = !text || spill_fd_momentary(errno);
		forget_home(&homes->v1);
		forget_home(&homes->v2);
	}
	spill_scratch_give_back(text);
}

/* The number in that file of buffers->folder. */
static uint64_t limit_file_number(const char *root, const char *file, struct buffers *buffers)
{
	if (!spill_small_file_read_in(root, buffers->folder, file, buffers->text, sizeof(buffers->text))) {
		buffers->lost = buffers->lost || spill_fd_momentary(errno);
		return SPILL_UNLIMITED;
	}
	return spill_small_file_number(buffers->text);
}

/* The value of the line `name value` in a file such as memory.stat; 0 if there is no such line. */
static uint64_t stat_field(const char *root, const char *file, const char *name, struct buffers *buffers)
{
	if (!spill_small_file_read_in(root, buffers->folder, file, buffers->text, sizeof(buffers->text)))
		return 0;
	size_t length = strlen(name);
	for (const char *line = buffers->text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && line[length] == ' ') {
			uint64_t value = spill_small_file_number(line + length);
			return value == SPILL_UNLIMITED ? 0 : value;
		}
	}
	return 0;
}

/* The files of one version of control groups. */
struct cgroup_version {
	struct {
		const char *limit, *usage;
	} bound[2];
	const char *cache; /* the field of memory.stat for page cache that the kernel can drop */
};

static const struct cgroup_version v1 = {{{"memory.limit_in_bytes", "memory.usage_in_bytes"},
                                          {"memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"}},
                                         "total_inactive_file"};
/* Above memory.high the kernel slows a group until it frees memory, but pinned memory stays. */
static const struct cgroup_version v2 = {
    {{"memory.max", "memory.current"}, {"memory.high", "memory.current"}}, "inactive_file"};

/* Version 1 writes the largest multiple of a page if there is no limit. */
#define NO_LIMIT (1ull << 62)

static uint64_t folder_room(const char *root, const struct cgroup_version *version, struct buffers *buffers)
{
	uint64_t least = SPILL_UNLIMITED, cache = SPILL_UNLIMITED;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t limit = limit_file_number(root, version->bound[i].limit, buffers);
		if (limit >= NO_LIMIT)
			continue;
		uint64_t usage = limit_file_number(root, version->bound[i].usage, buffers);
		if (cache == SPILL_UNLIMITED) /* once: the kernel computes all of it */
			cache = stat_field(root, "memory.stat", version->cache, buffers);
		if (usage == SPILL_UNLIMITED)
			usage = 0;
		usage = spill_minus(usage, cache);
		least = spill_min(spill_minus(limit, usage), least);
	}
	return least;
}

/* Makes buffers->folder the parent of that group. False: it is the top. */
static bool go_up(const struct spill_cgroup_home *home, struct buffers *buffers)
{
	char *slash = strlen(buffers->folder) <= home->top ? NULL : strrchr(buffers->folder, '/');
	if (slash)
		*slash = '\0';
	return slash;
}

typedef void look_fn(const char *root, const struct cgroup_version *version, struct buffers *buffers,
                     void *data);

/* Looks at a group, then at its ancestors. False: one of their files cannot be read for the moment. */
static bool look_at_tree(const char *root, const struct spill_cgroup_home *home,
                         const struct cgroup_version *version, look_fn *look, void *data)
{
	struct buffers *buffers = spill_scratch_take();
	if (!buffers)
		return false;
	buffers->lost = false;
	strcpy(buffers->folder, home->folder);
	do
		look(root, version, buffers, data);
	while (go_up(home, buffers));
	bool read = !buffers->lost;
	spill_scratch_give_back(buffers);
	return read;
}

static void look_for_room(const char *root, const struct cgroup_version *version, struct buffers *buffers,
                          void *data)
{
	uint64_t *least = data;
	*least = spill_min(folder_room(root, version, buffers), *least);
}

/* The bytes left under the limits of a group and its ancestors: the smallest. */
static uint64_t tree_room(const char *root, const struct spill_cgroup_home *home,
                          const struct cgroup_version *version)
{
	uint64_t least = SPILL_UNLIMITED;
	if (!home->folder[0])
		return least;
	return look_at_tree(root, home, version, look_for_room, &least) ? least : 0;
}

uint64_t spill_cgroup_room(const char *root, const struct spill_cgroup_homes *homes)
{
	if (homes->lost)
		return 0;
	return spill_min(tree_room(root, &homes->v1, &v1), tree_room(root, &homes->v2, &v2));
}

/* The lower limit of that group; SPILL_UNLIMITED if it has none. */
static uint64_t folder_limit(const char *root, const struct cgroup_version *version, struct buffers *buffers)
{
	uint64_t least = SPILL_UNLIMITED;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t limit = limit_file_number(root, version->bound[i].limit, buffers);
		if (limit < NO_LIMIT)
			least = spill_min(limit, least);
	}
	return least;
}

static uint64_t inode_of(const char *root, struct buffers *buffers)
{
	struct stat now;
	if (!spill_small_file_path(root, buffers->folder, "", buffers->path, sizeof(buffers->path)) ||
	    stat(buffers->path, &now) != 0)
		return 0;
	return now.st_ino;
}

/* The group with the lowest limit so far; of equal ones the last, which is the outermost. */
struct lowest {
	uint64_t limit, inode;
};

static void look_for_lowest(const char *root, const struct cgroup_version *version, struct buffers *buffers,
                            void *data)
{
	struct lowest *lowest = data;
	uint64_t limit = folder_limit(root, version, buffers);
	if (limit != SPILL_UNLIMITED && limit <= lowest->limit)
		*lowest = (struct lowest){limit, inode_of(root, buffers)};
}

static uint64_t tree_job(const char *root, const struct spill_cgroup_home *home,
                         const struct cgroup_version *version)
{
	struct lowest lowest = {SPILL_UNLIMITED, 0};
	if (!home->folder[0])
		return 0;
	return look_at_tree(root, home, version, look_for_lowest, &lowest) ? lowest.inode : 0;
}

uint64_t spill_cgroup_job(const char *root, const struct spill_cgroup_homes *homes)
{
	uint64_t job = homes->lost ? 0 : tree_job(root, &homes->v1, &v1);
	return job || homes->lost ? job : tree_job(root, &homes->v2, &v2);
}
