/*
 * The page of counters: its contents, the users that can change it, and the conditions that prevent
 * it. Each case in a process of its own, which has no page yet.
 */
#define CHILD_SECONDS 120
#define KEEPS_DESCRIPTORS /* the page */
#include "childtest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "fake_clock.h"
#include "fake_libc.h"
#include "live_page.h"
#include "ledger.h"

#define S 1000000000ull

/* -- what libc says ------------------------------------------------------------------------------------------ */

/* The wall's clock runs back as the other goes on. */
static bool wall(long arguments[6], long *result)
{
	if (arguments[0] != CLOCK_REALTIME)
		return false;
	*(struct timespec *)arguments[1] =
	    (struct timespec){.tv_sec = 1000000000 - (time_t)(fake_clock.ns / S)};
	*result = 0;
	return true;
}

static bool refuses_the_later_seal(long arguments[6], long *result)
{
	errno = EINVAL;
	return arguments[1] == F_ADD_SEALS && arguments[2] & 0x10;
}

/* -- help ---------------------------------------------------------------------------------------------------- */

/* The descriptor of this process's page; -1 if there is none. */
static int find(void)
{
	DIR *list = opendir("/proc/self/fd");
	int found = -1;

	for (struct dirent *entry; (entry = readdir(list));) {
		char target[256] = "";

		if (readlinkat(dirfd(list), entry->d_name, target, sizeof(target) - 1) > 0 &&
		    !strcmp(target, "/memfd:" SPILL_LIVE_PAGE_NAME " (deleted)"))
			found = atoi(entry->d_name);
	}
	closedir(list);
	return found;
}

static unsigned descriptors(void)
{
	DIR *list = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(list))
		count++;
	closedir(list);
	return count;
}

static const struct spill_log_device two[] = {
    {.name = "One", .uuid = "GPU-1", .pci = "0000:01:00.0", .bytes = 1000},
    {.name = "Two", .uuid = "GPU-2", .pci = "0000:02:00.0", .bytes = 2000},
};

static void open_page(void)
{
	struct spill_policy policy;

	spill_policy_default(&policy);
	policy.device_limits[1] = (struct spill_amount){SPILL_AMOUNT_BYTES, 500};
	spill_live_page_open(&policy,
	                     &(struct spill_log_start){.backend = "cuda", .devices = two, .device_count = 2});
}

/* As a reader has it; the process may only read it. */
static const struct spill_live_page *read_page(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", find());
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	const struct spill_live_page *page =
	    mmap(NULL, sizeof(struct spill_live_page), PROT_READ, MAP_SHARED, fd, 0);
	CHECK(page != MAP_FAILED);
	close(fd);
	return page;
}

static uint64_t figure(const struct spill_live_page *page, unsigned device, enum spill_counter counter)
{
	return spill_seq_get(page->figures[device].figure[counter]);
}

/* -- the cases ----------------------------------------------------------------------------------------------- */

CHILD_TEST(who_and_what)
{
	open_page();
	const struct spill_live_page *page = read_page();
	CHECK(page->head.magic == SPILL_LIVE_PAGE_MAGIC && page->head.version == SPILL_LIVE_PAGE_VERSION);
	CHECK(page->head.size == sizeof(*page) && page->head.pid == (uint32_t)getpid());
	CHECK(!strcmp(page->head.program, "test_live_page") && !strcmp(page->head.mode, "spill"));
	CHECK(!strcmp(page->head.backend, "cuda") && !strcmp(page->head.log, ""));
	CHECK(page->head.devices == 2 && !strcmp(page->devices[1].uuid, "GPU-2"));
	CHECK(!strcmp(page->devices[0].name, "One") && !strcmp(page->devices[0].pci, "0000:01:00.0"));
	CHECK(page->devices[0].bytes == 1000 && page->devices[0].limit == SPILL_UNLIMITED);
	CHECK(page->devices[1].limit == 500);
	CHECK(page->head.start_us > 1600000000ull * 1000000);
	CHECK(spill_seq_read_begin(&page->decided) == 0);
	CHECK(find() >= 100); /* where no program names descriptors by number */
	CHECK(fcntl(find(), F_GETFD) & FD_CLOEXEC);
}

/* Neither by the descriptor nor by opening it anew, and no other process either. */
CHILD_TEST(nobody_else_can_change_it)
{
	open_page();
	int fd = find(), again;
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK((again = open(path, O_RDWR | O_CLOEXEC)) >= 0 || errno == EACCES || errno == EPERM);
	for (int i = 0; i < 2 && (i ? again : fd) >= 0; i++) {
		int one = i ? again : fd;
		CHECK(pwrite(one, "x", 1, 0) < 0 && errno == EPERM);
		CHECK(ftruncate(one, 0) < 0 && ftruncate(one, 1 << 20) < 0);
		CHECK(fallocate(one, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0);
		CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, one, 0) == MAP_FAILED);
		CHECK(fcntl(one, F_ADD_SEALS, 1) < 0);
	}
	const struct spill_live_page *page = read_page();
	CHECK(mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) < 0);
	spill_live_page_decided(0, 1, &(struct spill_live_page_text){.what = "spill"});
	CHECK(spill_seq_read_begin(&page->decided) == 2); /* and we still can */
}

static struct spill_allocation entry(uint64_t ptr, int device, uint64_t on_device, uint64_t on_host)
{
	static struct spill_placement placement;

	return (struct spill_allocation){.ptr = ptr,
	                                 .bytes = on_device + on_host,
	                                 .device = device,
	                                 .held = {.device = on_device, .host = on_host},
	                                 .placement = on_host ? &placement : NULL};
}

CHILD_TEST(the_ledgers_figures)
{
	open_page();
	const struct spill_live_page *page = read_page();
	struct spill_allocation plain = entry(0x1000, 0, 100, 0), spilled = entry(0x2000, 1, 30, 70);
	uint64_t order;
	struct spill_level level;
	CHECK(spill_ledger_add(&plain) && spill_ledger_add(&spilled));
	CHECK(figure(page, 0, SPILL_COUNTER_DEVICE) == 100 && figure(page, 0, SPILL_COUNTER_AWAY) == 0);
	CHECK(figure(page, 0, SPILL_COUNTER_PEAK_DEVICE) == 100 &&
	      figure(page, 1, SPILL_COUNTER_PEAK_HOST) == 70);
	CHECK(figure(page, 0, SPILL_COUNTER_ALLOCS) == 1 && figure(page, 0, SPILL_COUNTER_SPILLS) == 0);
	CHECK(figure(page, 1, SPILL_COUNTER_DEVICE) == 30 && figure(page, 1, SPILL_COUNTER_AWAY) == 70);
	CHECK(figure(page, 1, SPILL_COUNTER_SPILLS) == 1 &&
	      figure(page, 1, SPILL_COUNTER_SPILLED_HOST) == 70);
	CHECK(spill_ledger_moved(0x2000, spilled.seq, &(struct spill_bytes){.device = 90, .host = 10}, &order,
	                         &level));
	CHECK(figure(page, 1, SPILL_COUNTER_AWAY) == 10 && figure(page, 1, SPILL_COUNTER_PROMOTED) == 60);
	CHECK(spill_ledger_moved(0x2000, spilled.seq, &(struct spill_bytes){.device = 40, .host = 60}, &order,
	                         &level));
	CHECK(figure(page, 1, SPILL_COUNTER_DEMOTED) == 50 && figure(page, 1, SPILL_COUNTER_DEMOTIONS) == 1);
	CHECK(figure(page, 1, SPILL_COUNTER_PEAK_DEVICE) == 90 && figure(page, 1, SPILL_COUNTER_HOST) == 60);
	struct spill_allocation *taken = spill_ledger_take(0x2000);
	CHECK(figure(page, 1, SPILL_COUNTER_HOST) == 0 && figure(page, 1, SPILL_COUNTER_AWAY) == 0);
	CHECK(figure(page, 1, SPILL_COUNTER_FREES) == 0);
	spill_ledger_put_back(taken);
	CHECK(figure(page, 1, SPILL_COUNTER_HOST) == 60 && figure(page, 1, SPILL_COUNTER_AWAY) == 60);
	spill_ledger_end(spill_ledger_take(0x2000));
	CHECK(figure(page, 1, SPILL_COUNTER_FREES) == 1 && figure(page, 1, SPILL_COUNTER_DEVICE) == 0);
	spill_ledger_count_oom(1);
	CHECK(figure(page, 1, SPILL_COUNTER_OOMS) == 1 && figure(page, 0, SPILL_COUNTER_OOMS) == 0);
	spill_ledger_held_up(1, 9);
	CHECK(figure(page, 1, SPILL_COUNTER_MOVES_US) == 9 && figure(page, 0, SPILL_COUNTER_MOVES_US) == 0);
	spill_ledger_in_place(1, &(struct spill_in_place){.bytes = 30, .us = 20, .most_us = 10});
	CHECK(figure(page, 1, SPILL_COUNTER_IN_PLACE) == 30 &&
	      figure(page, 1, SPILL_COUNTER_IN_PLACE_US) == 20);
	/* A device beyond all is told with the last. */
	struct spill_allocation beyond = entry(0x3000, SPILL_DEVICES, 5, 0), before = entry(0x4000, -1, 6, 0);
	CHECK(spill_ledger_add(&beyond) && spill_ledger_add(&before));
	CHECK(figure(page, SPILL_DEVICES - 1, SPILL_COUNTER_DEVICE) == 11);
}

/* What a reader takes belongs together: here device and host are always 100. */
struct back_and_forth {
	uint64_t seq;
	_Atomic bool stop;
};

static void *move_back_and_forth(void *data)
{
	struct back_and_forth *moves = data;
	uint64_t order;
	struct spill_level level;
	for (uint64_t host = 1; !atomic_load(&moves->stop); host = host % 99 + 1)
		spill_ledger_moved(0x2000, moves->seq,
		                   &(struct spill_bytes){.device = 100 - host, .host = host}, &order, &level);
	return NULL;
}

CHILD_TEST(figures_that_belong_together)
{
	struct back_and_forth moves = {0};
	struct spill_allocation one = entry(0x2000, 0, 30, 70);
	pthread_t mover;
	unsigned whole = 0;
	open_page();
	const struct spill_live_page *page = read_page();
	CHECK(spill_ledger_add(&one));
	moves.seq = one.seq;
	CHECK(pthread_create(&mover, NULL, move_back_and_forth, &moves) == 0);
	while (whole == 0 || figure(page, 0, SPILL_COUNTER_DEMOTIONS) < 200000) {
		uint32_t version = spill_seq_read_begin(&page->figures[0].lock);
		uint64_t device = figure(page, 0, SPILL_COUNTER_DEVICE);
		uint64_t away = figure(page, 0, SPILL_COUNTER_AWAY);
		uint64_t moved =
		    figure(page, 0, SPILL_COUNTER_PROMOTED) - figure(page, 0, SPILL_COUNTER_DEMOTED);
		if (!spill_seq_read_end(&page->figures[0].lock, version))
			continue;
		CHECK(device + away == 100 && device == 30 + moved);
		whole++;
	}
	atomic_store(&moves.stop, true);
	CHECK(pthread_join(mover, NULL) == 0);
}

CHILD_TEST(the_last_decision)
{
	union {
		struct spill_live_page_decision decision;
		uint64_t words[sizeof(struct spill_live_page_decision) / 8];
	} now;
	char long_name[500];
	open_page();
	const struct spill_live_page *page = read_page();
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	spill_live_page_decided(0, 1, &(struct spill_live_page_text){.what = "oom"});
	spill_live_page_decided(
	    1, 70,
	    &(struct spill_live_page_text){"spill", "split", "oom", "default", "cuMemAlloc_v2", long_name});
	spill_seq_take(now.words, page->decision, sizeof(now.words) / 8);
	CHECK(now.decision.count == 2 && now.decision.bytes == 70 && now.decision.device == 1);
	CHECK(!strcmp(now.decision.what, "spill") && !strcmp(now.decision.place, "split"));
	CHECK(!strcmp(now.decision.rule, "default") && !strcmp(now.decision.api, "cuMemAlloc_v2"));
	CHECK(strlen(now.decision.caller) == sizeof(now.decision.caller) - 1);
	CHECK(now.decision.time_us >= page->head.start_us);
}

/* As the library has it. */
static struct spill_live_page *written_page(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned long at = 0;

	while (!at && fgets(line, sizeof(line), maps))
		if (strstr(line, " rw-s ") && strstr(line, "/memfd:" SPILL_LIVE_PAGE_NAME))
			at = strtoul(line, NULL, 16);
	fclose(maps);
	CHECK(at);
	return (struct spill_live_page *)at;
}

static uint64_t decisions_told(const struct spill_live_page *page)
{
	spill_live_page_decided(0, 1, &(struct spill_live_page_text){.what = "oom"});
	return spill_seq_get(page->decision[0]);
}

/* A longjmp took a thread out of the middle: for a second nothing is told, as while it may be at it, and then all of it again. */
CHILD_TEST(a_writer_that_never_ends)
{
	open_page();
	const struct spill_live_page *page = read_page();
	CHECK(decisions_told(page) == 1);
	fake_clock_use(100 * S);
	fake_libc[FAKE_clock_gettime].hook = wall;
	CHECK(spill_seq_write_begin(&written_page()->decided));
	for (int i = 0; i < 3; i++)
		CHECK(decisions_told(page) == 1 && spill_seq_read_begin(&page->decided) == 3);
	fake_clock.ns += 2 * S;
	CHECK(decisions_told(page) == 2 && spill_seq_read_begin(&page->decided) == 6);
	CHECK(decisions_told(page) == 3 && spill_seq_read_begin(&page->decided) == 8);
	/* Another that is at it has a second of its own. */
	CHECK(spill_seq_write_begin(&written_page()->decided));
	fake_clock.ns += 3 * S;
	CHECK(decisions_told(page) == 3);
	fake_clock.ns += 2 * S;
	CHECK(decisions_told(page) == 4);
}

/* Nothing is made, nothing is left open, and what comes later does no harm. */
static void check_none(void)
{
	unsigned before = descriptors();
	open_page();
	CHECK(find() < 0 && descriptors() == before);
	struct spill_allocation plain = entry(0x1000, 0, 100, 0);
	CHECK(spill_ledger_add(&plain));
	spill_live_page_decided(0, 1, &(struct spill_live_page_text){.what = "oom"});
	spill_live_page_fork_child();
}

CHILD_TEST(no_memfd_at_all)
{
	fake_libc_fail(FAKE_memfd_create, 1, FAKE_LIBC_FOR_EVER, EPERM);
	check_none();
}

CHILD_TEST(no_descriptor_left)
{
	struct rlimit usual;
	CHECK(getrlimit(RLIMIT_NOFILE, &usual) == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, usual.rlim_max}) == 0);
	open_page();
	CHECK(setrlimit(RLIMIT_NOFILE, &usual) == 0);
	CHECK(find() < 0);
}

/* The limit's own signal would end the program. */
CHILD_TEST(no_file_may_be_so_long)
{
	CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, RLIM_INFINITY}) == 0);
	check_none();
}

CHILD_TEST(a_kernel_that_wipes_nothing_in_children)
{
	fake_libc_fail(FAKE_madvise, 1, FAKE_LIBC_FOR_EVER, EINVAL);
	check_none();
}

/* Then its size is sealed, which is what keeps us alive. */
CHILD_TEST(a_kernel_without_the_later_seal)
{
	fake_libc[FAKE_fcntl64].hook = refuses_the_later_seal;
	open_page();
	CHECK(find() >= 0 && ftruncate(find(), 0) < 0 && errno == EPERM);
}

CHILD_TEST(a_signal_in_between)
{
	fake_libc_fail(FAKE_fallocate64, 1, 5, EINTR);
	open_page();
	CHECK(find() >= 0);
}

CHILD_TEST(signals_all_the_time)
{
	fake_libc_fail(FAKE_fallocate64, 1, FAKE_LIBC_FOR_EVER, EINTR);
	check_none();
	CHECK(fake_libc[FAKE_fallocate64].calls < 1000000);
}

/* Then the page's file has the number 0. */
CHILD_TEST(nothing_stays_open_in_a_program_without_stdin)
{
	close(STDIN_FILENO);
	fake_libc_fail(FAKE_fallocate64, 1, FAKE_LIBC_FOR_EVER, ENOSPC);
	check_none();
	CHECK(fcntl(STDIN_FILENO, F_GETFD) == -1);
}

CHILD_TEST(at_most_one)
{
	open_page();
	unsigned before = descriptors();
	open_page();
	CHECK(descriptors() == before);
}

/* The program closes what it did not open, and gets the number again: that file is never ours. */
CHILD_TEST(the_program_closes_it)
{
	char path[] = "/tmp/counters-XXXXXX", byte = 0;
	open_page();
	const struct spill_live_page *page = read_page();
	int fd = find(), file = mkstemp(path);
	CHECK(file >= 0 && unlink(path) == 0 && dup2(file, fd) == fd && ftruncate(fd, 4096) == 0);
	struct spill_allocation plain = entry(0x1000, 0, 100, 0);
	CHECK(spill_ledger_add(&plain));
	CHECK(figure(page, 0, SPILL_COUNTER_DEVICE) == 100); /* it is still mapped */
	CHECK(pread(fd, &byte, 1, 0) == 1 && byte == 0);
	spill_live_page_fork_child();
	CHECK(fcntl(fd, F_GETFD) >= 0); /* nor closed in a child */
}

/* -- children ------------------------------------------------------------------------------------------------ */

static void wait_for(pid_t child)
{
	int status;
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* Mappings of this process that are such a page. */
static unsigned maps_of_pages(void)
{
	char line[512];
	unsigned count = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:" SPILL_LIVE_PAGE_NAME) != NULL;
	fclose(maps);
	return count;
}

static uint64_t mapped_pages(void)
{
	char line[128] = "";
	int fd = open("/proc/self/statm", O_RDONLY);
	CHECK(fd >= 0 && read(fd, line, sizeof(line) - 1) > 0);
	close(fd);
	return strtoull(line, NULL, 10);
}

/* As pthread_atfork has it done: the child has neither the page nor its descriptor, and makes its own. */
CHILD_TEST(a_forked_child)
{
	open_page();
	const struct spill_live_page *page = read_page();
	pid_t child = fork();
	if (child == 0) {
		CHECK(maps_of_pages() == 1 + 1); /* the test's own look at it, too */
		uint64_t before = mapped_pages(), whole = (sizeof(struct spill_live_page) + 4095) / 4096;
		spill_live_page_fork_child();
		CHECK(find() < 0);
		CHECK(maps_of_pages() == 1);
		CHECK(before - mapped_pages() == whole + 1); /* and what links the process to it */
		spill_live_page_decided(0, 1, &(struct spill_live_page_text){.what = "oom"});
		open_page();
		const struct spill_live_page *mine = read_page();
		struct spill_allocation plain = entry(0x1000, 0, 100, 0);
		CHECK(spill_ledger_add(&plain));
		CHECK(mine->head.pid == (uint32_t)getpid() && figure(mine, 0, SPILL_COUNTER_DEVICE) == 100);
		_exit(0);
	}
	wait_for(child);
	CHECK(figure(page, 0, SPILL_COUNTER_DEVICE) == 0 && spill_seq_read_begin(&page->decided) == 0);
	spill_live_page_decided(0, 1, &(struct spill_live_page_text){.what = "spill"});
	CHECK(spill_seq_read_begin(&page->decided) == 2);
}

/* A clone() that no handler sees: what it does is told nowhere. */
CHILD_TEST(a_bare_clone)
{
	open_page();
	const struct spill_live_page *page = read_page();
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	if (child == 0) {
		struct spill_allocation plain = entry(0x1000, 0, 100, 0);
		spill_ledger_add(&plain);
		spill_live_page_decided(0, 1, &(struct spill_live_page_text){.what = "oom"});
		_exit(0);
	}
	wait_for(child);
	CHECK(figure(page, 0, SPILL_COUNTER_DEVICE) == 0 && spill_seq_read_begin(&page->decided) == 0);
}
