#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"
#include "minmax.h"
#include "policy.h"
#include "scratch.h"
#include "small_file.h"

/* The fields of a line of /proc/self/mountinfo (proc(5)) that matter. */
struct mount {
	char *root; /* of the hierarchy: what of it is seen at `point` */
	char *point;
	const char *type, *options;
};

/* A search for the group `path`. */
struct search {
	const char *files; /* the file system below it is looked at */
	const char *type, *controller;
	struct spill_cgroup_home *home;
	size_t hidden; /* how much of the hierarchy the best mount yet does not show */
	struct room *room;
	int error; /* why the list of mounts could not be read */
};

/* What a search, and then the limits, need of room: more than a small stack has. */
struct room {
	char text[8064];
	char folder[SPILL_CGROUP_PATH];
	char path[SPILL_CGROUP_PATH];
	bool lost; /* some file of a limit could not be read for the moment */
};
_Static_assert(sizeof(struct room) <= SPILL_SCRATCH, "room for it");

/* Space, tab, newline and backslash are written as three octal digits. */
static void unescape(char *text)
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
static bool cut(char *line, struct mount *mount)
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
	unescape(mount->root);
	unescape(mount->point);
	return true;
}

/* Is `word` one of the words of `list`, which has commas between them? */
static bool listed(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (; list; list = strchr(list, ','), list += list != NULL)
		if (strncmp(list, word, length) == 0 && (list[length] == ',' || list[length] == '\0'))
			return true;
	return false;
}

/* Is that folder a group? Something else may be mounted over it. */
static bool is_group(const char *files, const char *folder, struct room *room)
{
	return spill_small_file_path(files, folder, "cgroup.procs", room->path, sizeof(room->path)) &&
	       access(room->path, F_OK) == 0;
}

/* What follows `root` in `path`, or NULL if that is not below it. */
static const char *below(const char *path, const char *root)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
		return NULL;
	return strcmp(path + length, "/") == 0 ? "" : path + length;
}

/*
 * Takes the mount if it shows more of the hierarchy than the best yet. One that does not show our group, as in a container with
 * another idea of the hierarchy's top, is better than none: its own top is what the container is limited by.
 */
static void consider(struct search *search, const struct mount *mount)
{
	struct spill_cgroup_home *home = search->home;
	char *folder = search->room->folder;
	const size_t size = sizeof(search->room->folder);
	if (strcmp(mount->type, search->type) != 0 ||
	    (search->controller && !listed(mount->options, search->controller)))
		return;
	const char *rest = below(home->path, mount->root);
	size_t hidden = strlen(mount->root);
	if (!rest || (size_t)snprintf(folder, size, "%s%s", mount->point, rest) >= size ||
	    !is_group(search->files, folder, search->room)) {
		hidden = SIZE_MAX - 1;
		if ((size_t)snprintf(folder, size, "%s", mount->point) >= size ||
		    !is_group(search->files, folder, search->room))
			return;
	}
	if (hidden > search->hidden)
		return;
	search->hidden = hidden;
	strcpy(home->folder, folder);
	home->top = strlen(mount->point);
}

/* Every mount, in order. Lines that are longer than any of a control group's are left out. */
static void look_at_mounts_in(int fd, struct search *search)
{
	char *text = search->room->text;
	const size_t size = sizeof(search->room->text);
	struct mount mount;
	size_t used = 0;
	bool skip = false;
	ssize_t got;
	while ((got = spill_fd_read(fd, text + used, size - used)) > 0) {
		char *line = text, *end;
		used += (size_t)got;
		while ((end = memchr(line, '\n', used)) != NULL) {
			*end++ = '\0';
			if (!skip && cut(line, &mount))
				consider(search, &mount);
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

static void look_at_mounts(void *data)
{
	struct search *search = data;
	char *path = search->room->text;
	search->error = 0;
	search->hidden = SIZE_MAX;
	if (!spill_small_file_path(search->files, "/proc/self", "mountinfo", path,
	                           sizeof(search->room->text)))
		return;
	int fd = spill_fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0) {
		search->error = errno;
		return;
	}
	look_at_mounts_in(fd, search);
	close(fd);
}

/* False: for the moment it cannot be looked for, and the next call does it again. */
static bool find_in(const char *root, const char *path, bool v2, struct spill_cgroup_home *home,
                    struct room *room)
{
	if (room && strcmp(home->path, path) == 0 && (!home->folder[0] || is_group(root, home->folder, room)))
		return true;
	home->folder[0] = '\0';
	home->path[0] = '\0';
	if (!room || strlen(path) >= sizeof(home->path))
		return room;
	strcpy(home->path, path);
	struct search search = {
	    .files = root,
	    .type = v2 ? "cgroup2" : "cgroup",
	    .controller = v2 ? NULL : "memory",
	    .home = home,
	    .room = room,
	};
	look_at_mounts(&search);
	if (search.error == EMFILE)
		spill_fd_elsewhere(look_at_mounts, &search);
	bool lost = spill_fd_momentary(search.error);
	if (lost)
		home->folder[0] = home->path[0] = '\0';
	return !lost;
}

static void find(const char *root, const char *path, bool v2, struct spill_cgroup_homes *homes)
{
	struct room *room = spill_scratch_take();
	if (!find_in(root, path, v2, v2 ? &homes->v2 : &homes->v1, room))
		homes->lost = true;
	spill_scratch_give_back(room);
}

/* /proc/self/cgroup has lines `ID:CONTROLLERS:PATH`; version 2 is `0::PATH`. */
void spill_cgroup_find(const char *root, struct spill_cgroup_homes *homes)
{
	char *text = spill_scratch_take();
	homes->lost = false;
	if (!text || !spill_small_file_read_in(root, "/proc/self", "cgroup", text, SPILL_SCRATCH)) {
		homes->lost = !text || spill_fd_momentary(errno);
		spill_scratch_give_back(text);
		homes->v1.folder[0] = homes->v2.folder[0] = '\0';
		return;
	}
	char *rest = text;
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		controllers++;
		if (controllers[0] == '\0')
			find(root, group, true, homes);
		else if (listed(controllers, "memory"))
			find(root, group, false, homes);
	}
	spill_scratch_give_back(text);
}

/* Of the file in room->folder. */
static uint64_t file_number(const char *root, const char *file, struct room *room)
{
	if (!spill_small_file_read_in(root, room->folder, file, room->text, sizeof(room->text))) {
		room->lost = room->lost || spill_fd_momentary(errno);
		return SPILL_UNLIMITED;
	}
	return spill_small_file_number(room->text);
}

/* A line `name value` of a file such as memory.stat; 0 if it is not there. */
static uint64_t field(const char *root, const char *file, const char *name, struct room *room)
{
	if (!spill_small_file_read_in(root, room->folder, file, room->text, sizeof(room->text)))
		return 0;
	size_t length = strlen(name);
	for (const char *line = room->text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && line[length] == ' ') {
			uint64_t value = spill_small_file_number(line + length);
			return value == SPILL_UNLIMITED ? 0 : value;
		}
	}
	return 0;
}

/* The files of a version: limits, each with what it is compared with, and the stat field of page cache that the kernel can drop. */
struct version {
	struct {
		const char *limit, *usage;
	} bound[2];
	const char *cache;
};

static const struct version v1 = {{{"memory.limit_in_bytes", "memory.usage_in_bytes"},
                                   {"memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"}},
                                  "total_inactive_file"};
/* Beyond memory.high the kernel slows the group down until it gives memory up, which pinned memory cannot be. */
static const struct version v2 = {{{"memory.max", "memory.current"}, {"memory.high", "memory.current"}},
                                  "inactive_file"};

/* Version 1 writes "none" as the largest multiple of a page. */
#define NO_LIMIT (1ull << 62)

static uint64_t folder_room(const char *root, const struct version *version, struct room *room)
{
	uint64_t least = SPILL_UNLIMITED, cache = SPILL_UNLIMITED;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t limit = file_number(root, version->bound[i].limit, room);
		if (limit >= NO_LIMIT)
			continue;
		uint64_t usage = file_number(root, version->bound[i].usage, room);
		if (cache == SPILL_UNLIMITED) /* the kernel adds up all of the file for it: once */
			cache = field(root, "memory.stat", version->cache, room);
		if (usage == SPILL_UNLIMITED)
			usage = 0;
		usage = spill_minus(usage, cache);
		least = spill_min(spill_minus(limit, usage), least);
	}
	return least;
}

/* The smallest room of a group and its ancestors. */
static uint64_t tree_room(const char *root, const struct spill_cgroup_home *home,
                          const struct version *version)
{
	uint64_t least = SPILL_UNLIMITED;
	if (!home->folder[0])
		return least;
	struct room *room = spill_scratch_take();
	if (!room)
		return 0;
	room->lost = false;
	strcpy(room->folder, home->folder);
	for (char *slash = room->folder; slash;) {
		uint64_t left = folder_room(root, version, room);
		least = spill_min(left, least);
		slash = strlen(room->folder) <= home->top ? NULL : strrchr(room->folder, '/');
		if (slash)
			*slash = '\0';
	}
	least = room->lost ? 0 : least;
	spill_scratch_give_back(room);
	return least;
}

uint64_t spill_cgroup_room(const char *root, const struct spill_cgroup_homes *homes)
{
	if (homes->lost)
		return 0;
	return spill_min(tree_room(root, &homes->v1, &v1), tree_room(root, &homes->v2, &v2));
}
