/* The names of logs whose processes share one: NAME.jsonl, NAME-2.jsonl and so on. */
#include "logtest.h"

#include <dirent.h>
#include <fcntl.h>

#include "fd.h"
#include "log_file.h"

/* The most bytes of a log's path (log_path.c). The system allows one more. */
#define MOST (SPILL_LOG_NAME - 2)

struct log {
	struct spill_log_name name;
	struct spill_log_file file;
};

static const char *open_again(struct log *log)
{
	struct spill_signal_guard guard;
	const char *problem;

	spill_signal_guard_enter(&guard);
	problem = spill_log_name_open(&log->name, &log->file);
	spill_signal_guard_leave(&guard);
	return problem;
}

/* A process opens its log, whose path has so many bytes and ends so. Slashes fill it. */
static const char *open_log(struct log *log, size_t length, const char *end)
{
	*log = (struct log){.file.fd = -1};
	memset(log->name.name, '/', length);
	memcpy(log->name.name, folder, strlen(folder));
	strcpy(log->name.name + length - strlen(end), end);
	return open_again(log);
}

/* The file that the log is in, without its folder. */
static const char *file_of(const struct log *log)
{
	return strrchr(log->name.path, '/') + 1;
}

static unsigned files_in_folder(void)
{
	DIR *list = opendir(folder);
	unsigned count = 0;

	assert_non_null(list);
	for (const struct dirent *entry; (entry = readdir(list));)
		count += entry->d_name[0] != '.';
	closedir(list);
	return count;
}

TEST_WITH(each_process_has_a_file_of_its_own, make_folder, remove_folder)
{
	static const char *const names[] = {"x.jsonl", "x-2.jsonl", "x-3.jsonl"};
	static struct log logs[3];

	for (unsigned i = 0; i < 3; i++) {
		assert_null(open_log(&logs[i], 200, "x.jsonl"));
		assert_string_equal(file_of(&logs[i]), names[i]);
	}
	/* Who comes later takes the first that is free. */
	spill_log_file_close(&logs[1].file);
	assert_null(open_log(&logs[1], 200, "x.jsonl"));
	assert_string_equal(file_of(&logs[1]), names[1]);
	assert_int_equal(files_in_folder(), 3);
	for (unsigned i = 0; i < 3; i++)
		spill_log_file_close(&logs[i].file);
}

/* The number comes before the suffix, if the name has that and more, else behind it. */
TEST_WITH(where_the_number_is, make_folder, remove_folder)
{
	static const struct {
		const char *first, *second;
	} cases[] = {
	    {"x", "x-2"}, {"x.json", "x.json-2"}, {"xjsonl", "xjsonl-2"}, {"a.jsonl.b", "a.jsonl.b-2"}};
	static struct log first, second;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_null(open_log(&first, 200, cases[i].first));
		assert_null(open_log(&second, 200, cases[i].first));
		assert_string_equal(file_of(&first), cases[i].first);
		assert_string_equal(file_of(&second), cases[i].second);
		spill_log_file_close(&first.file);
		spill_log_file_close(&second.file);
	}
}

/* A path of the most bytes is a log's. With a number it would be too long, and none is cut. */
TEST_WITH(the_longest_path, make_folder, remove_folder)
{
	static struct log first, second;

	for (size_t length = MOST - 3; length <= MOST; length++) {
		assert_null(open_log(&first, length, "x.jsonl"));
		assert_int_equal(strlen(first.name.path), length);
		assert_string_equal(file_of(&first), "x.jsonl");
		if (length + strlen("-2") <= MOST) {
			assert_null(open_log(&second, length, "x.jsonl"));
			assert_string_equal(file_of(&second), "x-2.jsonl");
			spill_log_file_close(&second.file);
			assert_int_equal(unlink(second.name.path), 0);
		} else {
			assert_ptr_equal(open_log(&second, length, "x.jsonl"), spill_log_file_taken);
			assert_int_equal(second.file.fd, -1);
			assert_null(second.name.path);
		}
		assert_int_equal(files_in_folder(), 1);
		spill_log_file_close(&first.file);
	}
	/* One that is longer by one is told apart from one that was cut there. */
	assert_ptr_equal(open_log(&first, MOST + 1, "y.jsonl"), spill_log_file_taken);
	assert_int_equal(files_in_folder(), 1);
}

/* A thread without the lock may read the path of before while the log is opened under another name. */
TEST_WITH(the_path_of_before_stays, make_folder, remove_folder)
{
	static const char *const names[] = {"x.jsonl", "x-2.jsonl", "x-3.jsonl"};
	static struct log mine, others[2];

	assert_null(open_log(&mine, 200, "x.jsonl"));
	for (unsigned i = 0; i < 2; i++) {
		const char *before = mine.name.path;

		/* Another process takes the name. */
		spill_log_file_close(&mine.file);
		assert_int_equal(unlink(before), 0);
		assert_null(open_log(&others[i], 200, "x.jsonl"));
		assert_null(open_again(&mine));
		assert_ptr_not_equal(mine.name.path, before);
		assert_string_equal(strrchr(before, '/') + 1, names[i]);
		assert_string_equal(file_of(&mine), names[i + 1]);
	}
	spill_log_file_close(&mine.file);
	spill_log_file_close(&others[0].file);
	spill_log_file_close(&others[1].file);
}

/* So many processes of one name have logs. */
TEST_WITH(the_last_of_the_names, make_folder, remove_folder)
{
	static struct log logs[256], more;

	for (unsigned i = 0; i < 256; i++)
		assert_null(open_log(&logs[i], 200, "x.jsonl"));
	assert_string_equal(file_of(&logs[255]), "x-256.jsonl");
	assert_ptr_equal(open_log(&more, 200, "x.jsonl"), spill_log_file_taken);
	assert_int_equal(files_in_folder(), 256);
	for (unsigned i = 0; i < 256; i++)
		spill_log_file_close(&logs[i].file);
}
