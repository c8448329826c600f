#include "fuzz_tree.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

/* A file stays, also while it is missing: then it has another name. Creating it each time would take most of the time. */
struct file {
	const char *path;
	char place[512], aside[512];
	int fd;
	bool present, wanted;
	char *content;
	size_t length;
};

static struct {
	char root[256];
	struct file files[FUZZ_TREE_FILES];
	size_t count;
} tree;

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	return remove(path);
}

static void remove_tree(void)
{
	nftw(tree.root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_folders(const char *path)
{
	char folder[512];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		mkdir(folder, 0700);
	}
}

void fuzz_tree_begin(const char *const *paths, size_t count)
{
	const char *folder = getenv("TMPDIR"), *memory = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";

	fuzz_require(count <= FUZZ_TREE_FILES, "few files");
	snprintf(tree.root, sizeof(tree.root), "%s/spill-fuzz-XXXXXX", folder ? folder : memory);
	fuzz_require(mkdtemp(tree.root) != NULL, "a folder to write to");
	atexit(remove_tree);
	for (size_t i = 0; i < count; i++) {
		struct file *file = &tree.files[i];

		*file = (struct file){.path = paths[i]};
		snprintf(file->place, sizeof(file->place), "%s%s", tree.root, paths[i]);
		snprintf(file->aside, sizeof(file->aside), "%s/%zu", tree.root, i);
		make_folders(file->place);
		file->fd = open(file->aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		fuzz_require(file->fd >= 0, "a file to write");
	}
	tree.count = count;
}

const char *fuzz_tree_root(void)
{
	return tree.root;
}

static struct file *find_file(const char *path, size_t length)
{
	for (size_t i = 0; i < tree.count; i++) {
		if (strlen(tree.files[i].path) == length && !memcmp(tree.files[i].path, path, length))
			return &tree.files[i];
	}
	return NULL;
}

static void put_content(struct file *file, const char *content, size_t length)
{
	if (!file->content || file->length != length || memcmp(file->content, content, length) != 0) {
		file->content = realloc(file->content, length + 1);
		fuzz_require(file->content != NULL, "no memory");
		memcpy(file->content, content, length);
		file->content[length] = '\0';
		file->length = length;
		fuzz_require(ftruncate(file->fd, 0) == 0 &&
		                 pwrite(file->fd, content, length, 0) == (ssize_t)length,
		             "a file to write");
	}
	if (!file->present)
		fuzz_require(rename(file->aside, file->place) == 0, "a file to be there");
	file->present = true;
}

static void put_aside(struct file *file)
{
	if (file->present)
		fuzz_require(rename(file->place, file->aside) == 0, "a file to be missing");
	file->present = false;
}

void fuzz_tree_put(const char *path, const void *content, size_t length)
{
	struct file *file = find_file(path, strlen(path));

	fuzz_require(file != NULL, path);
	if (content)
		put_content(file, content, length);
	else
		put_aside(file);
}

/* The next header from `text` on; NULL: none. *content is what follows it. */
static const char *find_header(const char *text, const char *end, struct file **file, const char **content)
{
	static const char begin[] = "==> ", close[] = " <==\n";

	while ((text = memmem(text, (size_t)(end - text), begin, strlen(begin)))) {
		const char *path = text + strlen(begin);
		const char *after = memmem(path, (size_t)(end - path), close, strlen(close));

		*file = after ? find_file(path, (size_t)(after - path)) : NULL;
		*content = after ? after + strlen(close) : NULL;
		if (*file)
			return text;
		text = path;
	}
	return NULL;
}

/* `tail` puts an empty line before each header but the first. */
static void take_content(struct file *file, const char *content, const char *end, bool last)
{
	size_t length = (size_t)(end - content);

	put_content(file, content, length - (!last && length && content[length - 1] == '\n'));
	file->wanted = true;
}

void fuzz_tree_fill(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = text + size, *header, *content = NULL, *after = NULL;
	struct file *file = NULL, *next = NULL;

	for (size_t i = 0; i < tree.count; i++)
		tree.files[i].wanted = false;
	for (header = size ? find_header(text, end, &file, &content) : NULL; header;
	     file = next, content = after) {
		header = find_header(content, end, &next, &after);
		take_content(file, content, header ? header : end, !header);
	}
	for (size_t i = 0; i < tree.count; i++) {
		if (!tree.files[i].wanted)
			put_aside(&tree.files[i]);
	}
}

const char *fuzz_tree_content(const char *path, size_t *length)
{
	const struct file *file = find_file(path, strlen(path));

	fuzz_require(file != NULL, path);
	if (length)
		*length = file->present ? file->length : 0;
	return file->present ? file->content : NULL;
}
