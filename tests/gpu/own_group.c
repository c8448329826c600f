#include "own_group.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Notes a step and how it ended; returns whether it went well. */
static bool step(struct own_group *group, const char *what, bool done)
{
	size_t used = strlen(group->steps);
	const char *error = done ? "ok" : strerrorname_np(errno);
	snprintf(group->steps + used, sizeof(group->steps) - used, "%s%s: %s", used ? "; " : "", what, error);
	return done;
}

static bool put(const char *folder, const char *file, const char *text)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	int error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return done;
}

static bool has(const char *folder, const char *file)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return access(path, R_OK) == 0;
}

static bool holds(const char *folder, const char *file, const char *word)
{
	char path[1024], text[1024] = "";
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	FILE *stream = fopen(path, "re");
	size_t length = stream ? fread(text, 1, sizeof(text) - 1, stream) : 0;
	if (stream)
		fclose(stream);
	text[length] = '\0';
	return strstr(text, word) != NULL;
}

const char *own_group_file(const struct own_group *group)
{
	return group->version == 2 ? "memory.current" : "memory.usage_in_bytes";
}

double own_group_usage(const struct own_group *group)
{
	char path[1024], text[64] = "";
	snprintf(path, sizeof(path), "%s/%s", group->folder, own_group_file(group));
	FILE *stream = group->folder[0] ? fopen(path, "re") : NULL;
	bool got = stream && fgets(text, sizeof(text), stream);
	if (stream)
		fclose(stream);
	return got ? strtod(text, NULL) / (1 << 20) : -1;
}

static void go_back(struct own_group *group)
{
	char pid[32];
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (group->made) {
		put(group->parent, "cgroup.procs", pid);
		if (rmdir(group->folder) != 0)
			fprintf(stderr, "own_group: %s is left: %s\n", group->folder, strerrorname_np(errno));
	}
	if (group->enabled)
		put(group->parent, "cgroup.subtree_control", "-memory");
	group->made = group->enabled = false;
}

/* A group below `parent`, with this process in it. */
static bool make_below(struct own_group *group, const char *parent, int version)
{
	char pid[32];
	group->version = version;
	if (!has(parent, "cgroup.procs"))
		return step(group, parent, false);
	if (version == 2 && !holds(parent, "cgroup.subtree_control", "memory")) {
		group->enabled = step(group, "+memory", put(parent, "cgroup.subtree_control", "+memory"));
		if (!group->enabled)
			return false;
	}
	snprintf(group->parent, sizeof(group->parent), "%s", parent);
	snprintf(group->folder, sizeof(group->folder), "%s/spill-probe-%d", parent, (int)getpid());
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (!step(group, group->folder, mkdir(group->folder, 0755) == 0)) {
		group->folder[0] = '\0';
		return false;
	}
	group->made = true;
	if (step(group, "enter", put(group->folder, "cgroup.procs", pid)) &&
	    step(group, "figure", has(group->folder, own_group_file(group))))
		return true;
	go_back(group);
	return false;
}

/* In a mount namespace of our own: nobody else sees it. */
static bool mount_anew(struct own_group *group, const char *type, const char *options)
{
	if (!group->mount[0]) {
		if (!step(group, "unshare", unshare(CLONE_NEWNS) == 0) ||
		    !step(group, "private", mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0))
			return false;
		strcpy(group->mount, "/tmp/spill-probe-XXXXXX");
		if (!step(group, "mkdtemp", mkdtemp(group->mount) != NULL)) {
			group->mount[0] = '\0';
			return false;
		}
	}
	return step(group, type, mount("none", group->mount, type, 0, options) == 0);
}

void own_group_enter(struct own_group *group)
{
	if (make_below(group, "/sys/fs/cgroup", 2) || make_below(group, "/sys/fs/cgroup/memory", 1))
		return;
	if (mount_anew(group, "cgroup2", NULL)) {
		if (make_below(group, group->mount, 2))
			return;
		umount(group->mount);
	}
	if (mount_anew(group, "cgroup", "memory")) {
		if (make_below(group, group->mount, 1))
			return;
		umount(group->mount);
	}
	/* The one that it is in, as a container shows it. */
	snprintf(group->folder, sizeof(group->folder), "/sys/fs/cgroup");
	for (group->version = 2; group->version > 0; group->version--) {
		if (has(group->folder, own_group_file(group)))
			return;
		snprintf(group->folder, sizeof(group->folder), "/sys/fs/cgroup/memory");
	}
	group->folder[0] = '\0';
}

void own_group_leave(struct own_group *group)
{
	go_back(group);
	if (group->mount[0]) {
		umount(group->mount);
		rmdir(group->mount);
	}
	group->folder[0] = group->mount[0] = '\0';
}
