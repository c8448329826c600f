/*
 * Conditions that could harm the host program or the log: limits, full disks, signals,
 * cancellation, descriptors, deadlocks.
 */
#include "fake_disk.h"
#include "fake_libc.h"
#include "log_file.h"
#include "logtest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>

/* write(2) as a test wants it: a disk, and something done in the middle of it. */
static void (*_Atomic in_write)(void);
static _Atomic long interrupted; /* so many writes to a file are, by a signal */

static bool busy_disk(long arguments[6], long *result)
{
	void (*action)(void) = atomic_exchange(&in_write, NULL);

	if (action)
		action();
	if (interrupted > 0 && arguments[0] > STDERR_FILENO) {
		interrupted--;
		errno = EINTR;
		return true;
	}
	return disk(arguments, result);
}

static void write_note(unsigned number, enum spill_log_when when)
{
	char line[256];

	spill_log_write(line, test_line(line, sizeof(line), 0, number), when);
}

/* Lines that the notes say are lost, and their bytes. */
struct lost {
	unsigned long lines, bytes;
};

static struct lost lost_by_notes(const struct lines *lines)
{
	struct lost sum = {0}, one;

	for (unsigned i = 0; i < lines->count; i++) {
		if (strcmp(text_of(lines->at[i], "code"), "log-lost") != 0)
			continue;
		CHECK(sscanf(text_of(lines->at[i], "text"), "%lu lines (%lu bytes) ", &one.lines,
		             &one.bytes) == 2);
		sum.lines += one.lines;
		sum.bytes += one.bytes;
	}
	return sum;
}

/* The notes 0, 1, … of write_note: each line and byte is here, or said to be lost. */
static void check_all_accounted(const char *path, unsigned written)
{
	struct lines lines = read_lines(path);
	struct lost lost = lost_by_notes(&lines);
	unsigned here = 0;
	size_t bytes = 0;
	char line[256];

	for (unsigned i = 0; i < written; i++)
		bytes += test_line(line, sizeof(line), 0, i);
	for (unsigned i = 0; i < lines.count; i++) {
		if (strcmp(text_of(lines.at[i], "code"), "0") != 0)
			continue;
		here++;
		lost.bytes += test_line(line, sizeof(line), 0, (unsigned)atoi(text_of(lines.at[i], "text")));
	}
	CHECK(here + lost.lines == written);
	CHECK(lost.bytes == bytes);
	CHECK(count_lines(&lines, "kind", "start") == 1);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

CHILD_TEST(a_file_size_limit_kills_nobody)
{
	const char *path = in_folder("limit");
	sigset_t before = {0}, after = {0}, pending; /* libc fills a part only */
	struct stat now;

	open_log_at(path);
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	limit_file_size(10000);
	for (unsigned i = 0; i < 1000; i++) {
		errno = E2BIG;
		write_note(i, i % 3 ? SPILL_LOG_SOON : SPILL_LOG_NOW);
		CHECK(errno == E2BIG);
	}
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	sigpending(&pending);
	CHECK(memcmp(&before, &after, sizeof(before)) == 0);
	CHECK(!sigismember(&pending, SIGXFSZ));
	CHECK(stat(path, &now) == 0 && now.st_size == 10000);
	limit_file_size(RLIM_INFINITY);
	write_note(1000, SPILL_LOG_NOW);
	struct lines lines = read_lines(path);
	CHECK(lost_by_notes(&lines).lines > 0);
	check_all_accounted(path, 1001);
}

#define VERY_MANY 1000000

CHILD_TEST(a_write_that_is_always_interrupted_ends)
{
	const char *path = in_folder("interrupted");

	open_log_at(path);
	interrupted = 5;
	write_note(0, SPILL_LOG_NOW);
	CHECK(interrupted == 0);
	struct lines lines = read_lines(path);
	CHECK(count_lines(&lines, "kind", "note") == 1);
	interrupted = VERY_MANY;
	for (unsigned i = 1; i < 100; i++)
		write_note(i, SPILL_LOG_NOW);
	CHECK(interrupted > 0); /* each came to an end */
	interrupted = 0;
	write_note(100, SPILL_LOG_NOW);
	check_all_accounted(path, 101);
}

CHILD_TEST(the_programs_own_pending_signal_stays)
{
	sigset_t xfsz, pending;

	open_log_at(in_folder("pending"));
	sigemptyset(&xfsz);
	sigaddset(&xfsz, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &xfsz, NULL);
	raise(SIGXFSZ);
	limit_file_size(100);
	write_note(0, SPILL_LOG_NOW);
	sigpending(&pending);
	CHECK(sigismember(&pending, SIGXFSZ));
	signal(SIGXFSZ, SIG_IGN); /* drops it */
	pthread_sigmask(SIG_UNBLOCK, &xfsz, NULL);
}

/* However a write is cut short: nothing torn, nothing twice, nothing uncounted. */
CHILD_TEST(a_disk_full_at_any_byte_tears_no_short_line)
{
	char long_line[6000], text[5000];
	const char *path = in_folder("cut");

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (long cut = 0; cut < 6000; cut += cut < 400 ? 1 : 97) {
		size_t length = spill_record_note(0, 1, "0", text, long_line, sizeof(long_line));

		unlink(path);
		open_log_at(path);
		room = cut;
		write_note(0, SPILL_LOG_NOW);
		write_note(1, SPILL_LOG_SOON);
		write_note(2, SPILL_LOG_NOW);
		spill_log_write(long_line, length, SPILL_LOG_NOW);
		write_note(4, SPILL_LOG_NOW);
		room = -1;
		spill_log_flush();
		write_note(5, SPILL_LOG_NOW);
		struct lines lines = {0, NULL};
		/* A line whose rest is lost stays half; the next begins on its own line. */
		size_t bytes;
		char *content = read_all(path, &bytes);
		unsigned here = 0, broken = 0;
		CHECK(content[bytes - 1] == '\n');
		for (char *at = strtok(content, "\n"); at; at = strtok(NULL, "\n")) {
			cJSON *line = cJSON_Parse(at);

			here += line && strcmp(text_of(line, "code"), "0") == 0;
			broken += !line;
			if (line && strcmp(text_of(line, "code"), "log-lost") == 0) {
				lines.at = &line;
				lines.count = 1;
				here += (unsigned)lost_by_notes(&lines).lines;
			}
			cJSON_Delete(line);
		}
		CHECK(here == 6);
		CHECK(broken <= 1);
		spill_log_fork_child(); /* closes it, for the next round */
	}
}

CHILD_TEST(a_full_disk_is_told_when_it_has_room_again)
{
	static const char junk[65536];
	const char *path = in_folder("disk/log");
	char filler[128];
	int fd;

	strcpy(filler, in_folder("disk/filler"));
	CHECK(mkdir(in_folder("disk"), 0700) == 0);
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", in_folder("disk"), "tmpfs", 0, "size=64k") != 0) {
		dprintf(STDOUT_FILENO, "no disk of our own: mount is refused (%s)\n", strerrorname_np(errno));
		syscall_exit(SKIPPED);
	}
	open_log_at(path);
	CHECK(spill_log_active());
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	while (write(fd, junk, 4096) > 0)
		;
	close(fd);
	for (unsigned i = 0; i < 1000; i++)
		write_note(i, i % 3 ? SPILL_LOG_SOON : SPILL_LOG_NOW);
	CHECK(unlink(filler) == 0);
	write_note(1000, SPILL_LOG_NOW);
	struct lines lines = read_lines(path);
	CHECK(lost_by_notes(&lines).lines > 0);
	check_all_accounted(path, 1001);
}

static _Atomic bool cancelled, finished;

static void *write_cancelled(void *argument)
{
	while (!cancelled)
		sched_yield(); /* no cancellation point */
	for (unsigned i = 0; i < 100; i++)
		write_note(i, SPILL_LOG_NOW);
	finished = true;
	pthread_testcancel();
	return NULL;
}

CHILD_TEST(a_cancelled_thread_is_not_cancelled_in_us)
{
	pthread_t thread;
	void *result;

	open_log_at(in_folder("cancel"));
	CHECK(pthread_create(&thread, NULL, write_cancelled, NULL) == 0);
	CHECK(pthread_cancel(thread) == 0);
	cancelled = true;
	pthread_join(thread, &result);
	CHECK(finished && result == PTHREAD_CANCELED);
	check_all_accounted(in_folder("cancel"), 100);
}

static void write_and_flush_again(void)
{
	write_note(1, SPILL_LOG_NOW); /* counted as lost: the thread is in the middle of another */
	spill_log_flush();
}

CHILD_TEST(a_handler_that_interrupts_us_does_not_wait_for_itself)
{
	struct lines lines;

	open_log_at(in_folder("reentry"));
	in_write = write_and_flush_again;
	write_note(0, SPILL_LOG_NOW);
	write_note(2, SPILL_LOG_NOW);
	lines = read_lines(in_folder("reentry"));
	CHECK(count_lines(&lines, "text", "0") == 1 && count_lines(&lines, "text", "2") == 1);
	CHECK(count_lines(&lines, "text", "1") == 0 && lost_by_notes(&lines).lines == 1);
}

static sem_t writing, go_on;

static void stop_in_write(void)
{
	sem_post(&writing);
	sem_wait(&go_on);
}

static void *write_one(void *argument)
{
	write_note(0, SPILL_LOG_NOW);
	return NULL;
}

CHILD_TEST(a_stuck_writer_does_not_stop_the_end)
{
	pthread_t thread;

	sem_init(&writing, 0, 0);
	sem_init(&go_on, 0, 0);
	open_log_at(in_folder("stuck"));
	in_write = stop_in_write;
	pthread_create(&thread, NULL, write_one, NULL);
	sem_wait(&writing);
	spill_log_flush(); /* comes back although the other thread never will */
	sem_post(&go_on);
	pthread_join(thread, NULL);
	check_all_accounted(in_folder("stuck"), 1);
}

CHILD_TEST(a_data_file_with_our_number_gets_nothing)
{
	const char *path = in_folder("stolen"), *data = in_folder("data");
	struct lines lines;
	struct stat now;
	int fd;

	open_log_at(path);
	fd = find_descriptor(path);
	CHECK(fd >= 100);
	write_note(0, SPILL_LOG_SOON);
	close(fd); /* as daemons do with all there are */
	CHECK(dup2(open(data, O_RDWR | O_CREAT, 0600), fd) == fd);
	write_note(1, SPILL_LOG_NOW);
	CHECK(fstat(fd, &now) == 0 && now.st_size == 0);
	lines = read_lines(path);
	CHECK(count_lines(&lines, "code", "log-reopened") == 1);
	check_all_accounted(path, 2);
	fd = find_descriptor(path);
	CHECK(fd >= 100 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
}

CHILD_TEST(a_log_that_cannot_be_had_again_ends)
{
	const char *path = in_folder("sub/gone");

	open_log_at(path);
	close(find_descriptor(path));
	CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0); /* what is there now is refused */
	write_note(0, SPILL_LOG_NOW);
	CHECK(!spill_log_active());
	write_note(1, SPILL_LOG_NOW);
	rmdir(path);
}

CHILD_TEST(standard_descriptors_are_never_ours)
{
	struct rlimit limit = {16, 16};

	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	close(STDIN_FILENO);
	open_log_at(in_folder("low"));
	CHECK(spill_log_active() && find_descriptor(in_folder("low")) > STDERR_FILENO);
	CHECK(open("/dev/null", O_RDONLY) == STDIN_FILENO);
}

static void check_refused(const char *path, const char *word)
{
	char told[2048];
	int ends[2];
	ssize_t length;

	CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
	spill_stderr_remember();
	open_log_at(path);
	CHECK(!spill_log_active() && spill_log_path()[0] == '\0');
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	length = read(ends[0], told, sizeof(told) - 1);
	CHECK(length > 0);
	told[length] = '\0';
	CHECK(strncmp(told, "spill: no log: ", 15) == 0 && strchr(told, '\n') == told + length - 1);
	if (!strstr(told, word))
		dprintf(STDOUT_FILENO, "'%s' is not in: %s", word, told);
	CHECK(strstr(told, word) && strstr(told, path));
}

CHILD_TEST(what_is_planted_is_refused)
{
	char path[128], target[128];
	struct stat now;

	strcpy(path, in_folder("planted"));
	strcpy(target, in_folder("target"));
	close(open(target, O_WRONLY | O_CREAT, 0644));
	CHECK(symlink(target, path) == 0);
	check_refused(path, "link");
	CHECK(unlink(path) == 0 && symlink(in_folder("nowhere"), path) == 0);
	check_refused(path, "link");
	CHECK(access(in_folder("nowhere"), F_OK) != 0);
	CHECK(unlink(path) == 0 && link(target, path) == 0);
	check_refused(path, "second name");
	CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
	check_refused(path, "not a regular file");
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	check_refused(path, "not a regular file");
	close(reader);
	check_refused("/dev/full", "not a regular file");
	CHECK(stat(target, &now) == 0 && now.st_size == 0 && (now.st_mode & 0777) == 0644);
}

/* Another user in a shared folder gives a file of ours the log's name, and takes the name away before we look at the file. */
static char lure[128], mine[128];
static unsigned lures; /* so many times */

static bool link_lure(long arguments[6], long *result)
{
	if (lures > 0)
		CHECK(link(mine, lure) == 0);
	return false;
}

static bool unlink_lure(long arguments[6], long *result)
{
	if (lures > 0 && lures--)
		CHECK(unlink(lure) == 0);
	return false;
}

CHILD_TEST(a_name_that_led_to_another_file_of_ours)
{
	struct spill_log_file file;
	struct stat before, now;

	strcpy(lure, in_folder("lure"));
	strcpy(mine, in_folder("mine"));
	close(open(mine, O_WRONLY | O_CREAT, 0644));
	CHECK(stat(mine, &before) == 0);
	fake_libc[FAKE_open64].hook = link_lure;
	fake_libc[FAKE_flock].hook = unlink_lure;
	lures = 1000;
	CHECK(spill_log_file_open(&file, lure) == spill_log_file_taken && file.fd == -1);
	lures = 1;
	CHECK(!spill_log_file_open(&file, lure) && file.ino != before.st_ino);
	CHECK(stat(mine, &now) == 0 && now.st_mode == before.st_mode);
}

CHILD_TEST(foreign_and_unwritable_is_refused)
{
	const char *path = in_folder("foreign"), *locked = in_folder("locked");

	close(open(path, O_WRONLY | O_CREAT, 0666));
	CHECK(mkdir(locked, 0500) == 0 && chmod(folder, 0755) == 0 && chmod(path, 0666) == 0);
	if (geteuid() == 0) {
		CHECK(setgid(65534) == 0 && setuid(65534) == 0);
		check_refused(path, "another user");
	}
	check_refused(in_folder("locked/log"), "Permission denied");
	check_refused(in_folder("locked/new/log"), "Permission denied");
}

CHILD_TEST(only_its_owner_can_read_it)
{
	const char *path = in_folder("state/spill");
	struct stat now;

	umask(0);
	setenv("XDG_STATE_HOME", in_folder("state"), 1);
	CHECK(mkdir(in_folder("state"), 0755) == 0 && mkdir(path, 0777) == 0);
	open_log_at("");
	CHECK(spill_log_active() && strncmp(spill_log_path(), path, strlen(path)) == 0);
	CHECK(stat(spill_log_path(), &now) == 0 && (now.st_mode & 07777) == 0600);
	CHECK(stat(path, &now) == 0 && (now.st_mode & 07777) == 0700);
	spill_log_fork_child();
	CHECK(mkdir(in_folder("open"), 0777) == 0);
	close(open(in_folder("open/log"), O_WRONLY | O_CREAT, 0666));
	open_log_at(in_folder("open/log"));
	CHECK(stat(in_folder("open/log"), &now) == 0 && (now.st_mode & 07777) == 0600);
	CHECK(stat(in_folder("open"), &now) == 0 && (now.st_mode & 07777) == 0777); /* not ours to change */
	spill_log_fork_child();
	open_log_at(in_folder("a/b/log"));
	CHECK(stat(in_folder("a/b"), &now) == 0 && (now.st_mode & 07777) == 0700);
}

int main(void)
{
	fake_libc[FAKE_write].hook = busy_disk;
	return run_unit_tests(make_folder, remove_folder);
}
