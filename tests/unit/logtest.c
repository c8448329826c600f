#include "logtest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/syscall.h>

#include "record.h"

#define DEADLINE_SECONDS 60

char folder[64];

/* Notes the lines that ran (tests/mutation/covered_exit.c). */
extern void covered_note(void) __attribute__((weak));

void syscall_exit(int status)
{
	if (covered_note)
		covered_note();
	for (;;)
		syscall(SYS_exit_group, status);
}

int child_status(void (*body)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(DEADLINE_SECONDS);
		test_begins();
		body();
		test_ends(true); /* the log's descriptor is open */
		syscall_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

void in_child(void (*body)(void))
{
	int status = child_status(body);

	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_int_equal(status, 0);
}

int make_folder(void **state)
{
	strcpy(folder, "/tmp/spill-unit-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *now, int type, struct FTW *walk)
{
	return remove(path);
}

int remove_folder(void **state)
{
	return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *in_folder(const char *name)
{
	static char paths[8][128];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

void open_log_of(const char *pattern, uint64_t max, enum spill_log_stderr how)
{
	static struct spill_policy policy;
	static const struct spill_log_device devices[] = {
	    {"Device \"zero\"", "GPU-0", "0000:01:00.0", 1073741824},
	    {"Device one", "", "", 42},
	};
	static const struct spill_log_option options[] = {
	    {"device.limit", "6GiB", "environment"},
	    {"oom.chain", "split, host", "/etc/spill/spill.conf:3"},
	};
	const struct spill_log_start start = {"cuda", 13000, devices, 2, options, 2};

	strcpy(policy.log_path, pattern);
	policy.log_max = max;
	policy.log_stderr = how;
	spill_log_open(&policy, &start);
}

void open_log_at(const char *pattern)
{
	open_log_of(pattern, UINT64_MAX, SPILL_STDERR_FIRST);
}

size_t test_line(char *buffer, size_t size, unsigned thread, unsigned number)
{
	char code[32], text[32];

	snprintf(code, sizeof(code), "%u", thread);
	snprintf(text, sizeof(text), "%u", number);
	return spill_record_note(0, 1, code, text, buffer, size);
}

/* What tests read lives as long as they do. Reachable from here, it is no leak: those that are found are the library's. */
static void keep(void *memory)
{
	static void **kept;
	static size_t count;

	void **more = realloc(kept, (count + 1) * sizeof(more[0]));

	CHECK(more);
	kept = more;
	kept[count++] = memory;
}

char *read_all(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	char *content;

	CHECK(file);
	fseek(file, 0, SEEK_END);
	*length = (size_t)ftell(file);
	rewind(file);
	content = calloc(1, *length + 1);
	keep(content);
	CHECK(fread(content, 1, *length, file) == *length);
	fclose(file);
	return content;
}

struct lines read_lines(const char *path)
{
	struct lines lines = {0, NULL};
	size_t length;
	char *content = read_all(path, &length), *at = content;

	while (at < content + length) {
		char *end = memchr(at, '\n', length - (size_t)(at - content));
		const char *parsed_to = NULL;

		CHECK(end);
		lines.at = realloc(lines.at, (lines.count + 1) * sizeof(lines.at[0]));
		lines.at[lines.count] = cJSON_ParseWithLengthOpts(at, (size_t)(end - at), &parsed_to, 0);
		CHECK(lines.at[lines.count]);
		CHECK(parsed_to == end);
		lines.count++;
		at = end + 1;
	}
	keep(lines.at);
	return lines;
}

const char *text_of(const cJSON *line, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, key));

	return text ? text : "";
}

unsigned count_lines(const struct lines *lines, const char *key, const char *value)
{
	unsigned count = 0;

	for (unsigned i = 0; i < lines->count; i++)
		count += strcmp(text_of(lines->at[i], key), value) == 0;
	return count;
}

int find_descriptor(const char *path)
{
	char resolved[PATH_MAX], wanted[PATH_MAX];
	DIR *open_files = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	CHECK(open_files);
	if (!realpath(path, wanted))
		strcpy(wanted, path);
	while ((entry = readdir(open_files)) != NULL) {
		ssize_t length = readlinkat(dirfd(open_files), entry->d_name, resolved, sizeof(resolved) - 1);

		if (length > 0 && (resolved[length] = '\0', strcmp(resolved, wanted) == 0))
			found = atoi(entry->d_name);
	}
	closedir(open_files);
	return found;
}
