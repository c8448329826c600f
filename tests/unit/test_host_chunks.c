/*
 * Host memory for chunks is made, kept and given back with its account, within the bounds. A thread
 * makes chunks ahead. It exists only while it is needed, and never blocks fork or exit.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "account.h"
#include "clock.h"
#include "host_chunks.h"
#include "chunked.h"
#include "process.h"

#define MIB (1ull << 20)
#define S 1000000000ull
#define OUT_OF_MEMORY 2
#define GRANULE (2 * MIB)

/* -- the vendor, the clock and the settings ---------------------------------------------------------------- */

static struct spill_policy policy;
static _Atomic uint64_t clock_ns;
static _Atomic bool leave;   /* the thread has had nothing to do for long enough */
static _Atomic bool waiting; /* it has nothing to do */
static _Atomic unsigned made, alive, refusals;
static _Atomic unsigned ranges, mappings;
static _Atomic unsigned view_fails_at; /* step of a view: 1 to 3 */
static _Atomic unsigned rests, tight;  /* pauses of the thread; chunks that it made without one before them */
static _Atomic bool rested = true;
static _Atomic uint64_t alive_bytes;
static _Atomic bool fails;
static void (*_Atomic in_create)(void);

/* Time passes when a test says so. */
static uint64_t now(void)
{
	return clock_ns;
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static bool wait_for_work(sem_t *semaphore, uint64_t ns)
{
	if (ns < S) {
		rests++;
		rested = true;
		return false;
	}
	while (sem_trywait(semaphore)) {
		if (atomic_load(&leave)) {
			atomic_store(&waiting, false);
			return false;
		}
		atomic_store(&waiting, true);
		pause_a_little();
	}
	atomic_store(&waiting, false);
	return true;
}

static const struct spill_clock test_clock = {.now = now, .wait = wait_for_work};

/* A handle is the bytes that it stands for, and a number. */
static int create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	void (*meanwhile)(void) = atomic_load(&in_create);

	if (meanwhile)
		meanwhile();
	if (spill_thread.depth) {
		tight += !rested;
		rested = false;
	}
	if (!on_host || atomic_load(&fails)) {
		atomic_fetch_add(&refusals, 1);
		return OUT_OF_MEMORY;
	}
	*handle = bytes | atomic_fetch_add(&made, 1);
	atomic_fetch_add(&alive, 1);
	atomic_fetch_add(&alive_bytes, bytes);
	return 0;
}

static int release(uint64_t handle)
{
	atomic_fetch_sub(&alive, 1);
	atomic_fetch_sub(&alive_bytes, handle / MIB * MIB);
	return 0;
}

/* An address is the bytes of its range. */
static int reserve(uint64_t bytes, uint64_t alignment, uint64_t *va)
{
	if (view_fails_at == 1 || alignment != GRANULE)
		return OUT_OF_MEMORY;
	ranges++;
	*va = bytes;
	return 0;
}

static int unreserve(uint64_t va, uint64_t bytes)
{
	ranges -= va == bytes;
	return 0;
}

static int map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	if (view_fails_at == 2 || va != bytes || handle / MIB * MIB != bytes)
		return OUT_OF_MEMORY;
	mappings++;
	return 0;
}

static int unmap(uint64_t va, uint64_t bytes)
{
	mappings -= va == bytes;
	return 0;
}

static int allow(uint64_t va, uint64_t bytes, int device)
{
	return view_fails_at == 3 ? OUT_OF_MEMORY : 0;
}

static unsigned capabilities(int device)
{
	return SPILL_CAN_SPLIT;
}

static int granularity(int device, bool on_host, uint64_t *bytes)
{
	*bytes = GRANULE;
	return 0;
}

static const char *error_name(int error)
{
	return error == OUT_OF_MEMORY ? "FAKE_OUT_OF_MEMORY" : "FAKE_ERROR";
}

static const struct spill_backend vendor = {
    .error_name = error_name,
    .devices = &(const struct spill_vendor_devices){.capabilities = capabilities},
    .physical =
        &(const struct spill_vendor_physical){
            .granularity = granularity,
            .create = create,
            .release = release,
        },
    .vmm =
        &(const struct spill_vendor_vmm){
            .reserve = reserve,
            .unreserve = unreserve,
            .map = map,
            .unmap = unmap,
            .allow = allow,
        },
};
static const struct spill_backend other_vendor = {
    .physical = &(const struct spill_vendor_physical){.create = create, .release = release},
    .error_name = error_name,
};

static struct spill_amount size(uint64_t bytes)
{
	return (struct spill_amount){SPILL_AMOUNT_BYTES, bytes};
}

static int setup(void **state)
{
	spill_clock_use(&test_clock);
	spill_process_use_policy(&policy);
	spill_policy_default(&policy);
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
	policy.host_reserve = policy.host_ahead = size(0);
	atomic_fetch_add(&clock_ns, 10 * S); /* what was short is so no more */
	fails = leave = false;
	in_create = NULL;
	made = refusals = view_fails_at = 0;
	return 0;
}

static void until(bool (*reached)(void))
{
	while (!reached())
		pause_a_little();
}

static bool nothing_is_alive(void)
{
	return !alive && !spill_account_host_held() && !spill_account_physical_held();
}

/* The thread, too, gives back what it has just made for nobody. */
static int teardown(void **state)
{
	in_create = NULL;
	for (int device = 0; device < 3; device++)
		spill_host_chunks_forget(&vendor, device);
	spill_host_chunks_drop(&vendor);
	spill_host_chunks_drop(&other_vendor);
	until(nothing_is_alive);
	return (int)(ranges + mappings);
}

static struct spill_host_chunk get(int device, uint64_t bytes)
{
	struct spill_host_chunk chunk = {0};
	assert_null(spill_host_chunk_get(&vendor, device, bytes, &chunk));
	assert_int_equal(chunk.bytes, bytes);
	assert_int_equal(chunk.handle / MIB * MIB, bytes);
	return chunk;
}

static void put(int device, const struct spill_host_chunk *chunk)
{
	spill_host_chunk_put(&vendor, device, chunk, true);
}

/* Those that make chunks ahead, by the name that the thread has given itself. */
static unsigned ahead_threads(void)
{
	unsigned count = 0;
	char path[300], name[32];
	DIR *folder = opendir("/proc/self/task");
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		FILE *file = fopen(path, "re");
		count += file && fgets(name, sizeof(name), file) && !strcmp(name, "spill-ahead\n");
		if (file)
			fclose(file);
	}
	closedir(folder);
	return count;
}

static _Atomic bool inside, go_on;

static void stay_inside(void)
{
	inside = true;
	while (!go_on)
		pause_a_little();
	inside = false;
}

static bool is_inside(void)
{
	return inside;
}

/* -- the end of the process -------------------------------------------------------------------------------- */

static int exit_status(pid_t child)
{
	int status;
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* As fork handlers do it (runtime.c). */
static pid_t fork_as_the_library_does(void)
{
	fflush(NULL);
	spill_fork_lock_take(&spill_host_chunks_fork_lock);
	pid_t child = fork();
	spill_fork_lock_release(&spill_host_chunks_fork_lock, child == 0);
	if (child == 0)
		spill_account_reset();
	return child;
}

static _Atomic bool torn_down;

/* Stays for as long as a call takes, unless the vendor's end comes first, which it must not. */
static void stay_inside_at_exit(void)
{
	inside = true;
	while (!go_on)
		pause_a_little();
	for (int i = 0; i < 2000 && !torn_down; i++)
		pause_a_little();
	inside = false;
}

/* Registered before the thread is: as a vendor's own. */
static void end_of_the_vendor(void)
{
	torn_down = true;
	if (inside)
		_exit(3);
	if (ahead_threads())
		_exit(4);
}

static void end_of_the_program(void)
{
	go_on = true;
}

/* The first test: its vendor must be there before the thread. */
TEST(exit_waits_for_the_vendors_call)
{
	static const uint64_t sizes[] = {64 * MIB, 64 * MIB};
	pid_t child = fork_as_the_library_does();
	if (child)
		assert_int_equal(exit_status(child), 42);
	if (child)
		return;
	policy.host_ahead = size(128 * MIB);
	in_create = stay_inside_at_exit;
	atexit(end_of_the_vendor);
	spill_host_chunks_ahead(&vendor, 0, sizes, 2);
	until(is_inside);
	atexit(end_of_the_program);
	exit(42);
}

/* -- kept -------------------------------------------------------------------------------------------------- */

TEST(what_is_kept_is_used_again)
{
	struct spill_host_chunk one = get(0, 64 * MIB), other = get(0, 62 * MIB);
	assert_int_equal(spill_account_host_held(), 126 * MIB);
	put(0, &one);
	put(0, &other);
	assert_int_equal(alive, 2);
	assert_int_equal(spill_account_host_held(), 126 * MIB);
	/* Of that size, for that device and that vendor. */
	struct spill_host_chunk again = get(0, 64 * MIB);
	assert_int_equal(again.handle, one.handle);
	struct spill_host_chunk elsewhere = get(1, 62 * MIB), foreign;
	assert_int_equal(made, 3);
	assert_null(spill_host_chunk_get(&other_vendor, 0, 62 * MIB, &foreign));
	assert_int_equal(made, 4);
	assert_int_equal(spill_account_host_held(), alive_bytes);
	/* Not to be kept. */
	spill_host_chunk_put(&vendor, 0, &again, false);
	spill_host_chunk_put(&vendor, 1, &elsewhere, false);
	spill_host_chunk_put(&other_vendor, 0, &foreign, false);
	assert_int_equal(alive_bytes, 62 * MIB);
	assert_int_equal(spill_account_host_held(), 62 * MIB);
	assert_int_equal(spill_host_chunks_drop(&other_vendor), 0);
	assert_int_equal(spill_host_chunks_drop(&vendor), 62 * MIB);
	assert_true(nothing_is_alive());
}

TEST(only_so_much_is_kept)
{
	struct spill_host_chunk chunks[20];
	for (int i = 0; i < 20; i++)
		chunks[i] = get(0, 64 * MIB);
	for (int i = 0; i < 10; i++)
		put(0, &chunks[i]);
	assert_int_equal(alive_bytes, (10 + 8) * 64 * MIB);
	assert_int_equal(spill_account_host_held(), alive_bytes);
	/* The newest stay. */
	struct spill_host_chunk oldest = get(0, 64 * MIB);
	assert_int_equal(oldest.handle, chunks[2].handle);
	put(0, &oldest);
	policy.host_ahead = size(1024 * MIB);
	for (int i = 10; i < 20; i++)
		put(0, &chunks[i]);
	assert_int_equal(alive_bytes, 16 * 64 * MIB);
	assert_int_equal(spill_host_chunks_drop(&vendor), 1024 * MIB);
	/* More than all that may be kept is not. */
	struct spill_host_chunk large = get(0, 1100 * MIB);
	put(0, &large);
	assert_true(nothing_is_alive());
}

/* While memory follows its use all is kept that was made; afterwards what is too much is given back, a little at a time. */
TEST(all_is_kept_while_memory_follows_its_use)
{
	struct spill_host_chunk chunks[20];
	unsigned times = 0;
	for (int i = 0; i < 20; i++)
		chunks[i] = get(0, 64 * MIB);
	assert_false(spill_host_chunks_trim());
	spill_chunked_hold(UINT64_MAX);
	for (int i = 0; i < 20; i++)
		put(0, &chunks[i]);
	assert_true(spill_host_chunks_trim());
	assert_int_equal(alive_bytes, 20 * 64 * MIB);
	spill_chunked_hold(0);
	for (uint64_t before = alive_bytes; spill_host_chunks_trim(); before = alive_bytes, times++)
		assert_in_range(before - alive_bytes, 1, 4 * 64 * MIB);
	assert_int_equal(times, 3);
	assert_int_equal(alive_bytes, 8 * 64 * MIB);
	assert_int_equal(spill_account_host_held(), alive_bytes);
	assert_int_equal(spill_host_chunks_drop(&vendor), 8 * 64 * MIB);
	assert_true(nothing_is_alive());
}

TEST(what_is_kept_gives_way)
{
	struct spill_host_chunk one = get(0, 64 * MIB), two = {.bytes = 1};
	policy.host_limit = size(128 * MIB);
	assert_string_equal(spill_host_chunk_get(&vendor, 0, 96 * MIB, &two), "host.limit");
	assert_int_equal(two.bytes, 1); /* untouched */
	put(0, &one);
	two = get(0, 96 * MIB);
	assert_int_equal(spill_account_host_held(), 96 * MIB);
	/* The vendor's word counts, and costs no account. */
	fails = true;
	assert_string_equal(spill_host_chunk_get(&vendor, 0, 2 * MIB, &one), "FAKE_OUT_OF_MEMORY");
	assert_int_equal(spill_account_host_held(), 96 * MIB);
	spill_host_chunk_put(&vendor, 0, &two, false);
}

TEST(a_device_without_use_keeps_nothing)
{
	struct spill_host_chunk one = get(0, 64 * MIB), two = get(1, 64 * MIB);
	put(0, &one);
	put(1, &two);
	spill_host_chunks_forget(&vendor, 0);
	assert_int_equal(alive, 1);
	assert_int_equal(get(1, 64 * MIB).handle, two.handle);
	spill_host_chunk_put(&vendor, 1, &two, false);
}

/* -- ahead ------------------------------------------------------------------------------------------------- */

static uint64_t expected_bytes;

static bool as_expected(void)
{
	return alive_bytes == expected_bytes && spill_account_host_held() == expected_bytes &&
	       spill_account_physical_held() == expected_bytes;
}

static bool is_waiting(void)
{
	return waiting;
}

/* The thread's making ends behind the vendor's call and the charge: with what it made on the list. */
static void until_alive(uint64_t bytes)
{
	expected_bytes = bytes;
	until(as_expected);
	until(is_waiting);
}

/* It is there already. */
static void take_made(int device, uint64_t bytes)
{
	unsigned before = made;
	struct spill_host_chunk chunk = get(device, bytes);
	assert_int_equal(made, before);
	spill_host_chunk_put(&vendor, device, &chunk, false);
}

TEST(without_ahead_there_is_no_thread)
{
	static const uint64_t sizes[] = {64 * MIB};
	spill_host_chunks_ahead(&vendor, 0, sizes, 1);
	assert_false(spill_host_chunks_make());
	assert_int_equal(ahead_threads(), 0);
	assert_int_equal(made, 0);
}

/* In the order given, and as many as there is room for. */
TEST(what_leaves_next_is_made_first)
{
	static const uint64_t sizes[] = {64 * MIB, 64 * MIB, 32 * MIB, 200 * MIB, 2 * MIB};
	static const uint64_t others[] = {64 * MIB, 32 * MIB, 2 * MIB};
	policy.host_ahead = size(256 * MIB);
	spill_host_chunks_ahead(&vendor, 0, sizes, 5);
	until_alive(160 * MIB);
	assert_false(spill_host_chunks_make());
	assert_int_equal(made, 3);
	take_made(0, 32 * MIB);
	/* They are there: nothing to do but for the one that was taken. */
	spill_host_chunks_ahead(&vendor, 0, sizes, 5);
	until_alive(160 * MIB);
	/* What another device wants comes off the same bound. */
	spill_host_chunks_ahead(&vendor, 1, others, 3);
	until_alive(256 * MIB);
	take_made(1, 64 * MIB);
	take_made(1, 32 * MIB);
	take_made(0, 64 * MIB);
	take_made(0, 64 * MIB);
	take_made(0, 32 * MIB);
}

/* There is room for so many sizes of all devices together. What is behind them is not wanted. */
TEST(sizes_that_there_is_no_room_for)
{
	enum { MOST_SIZES = 32 };
	uint64_t sizes[MOST_SIZES + 2], sum = 0;
	policy.host_ahead = size(4096 * MIB);
	for (unsigned i = 0; i < MOST_SIZES; i++)
		sum += sizes[i] = (i + 1) * GRANULE;
	sizes[MOST_SIZES] = 100 * GRANULE;
	sizes[MOST_SIZES + 1] = GRANULE;
	spill_host_chunks_ahead(&vendor, 0, sizes, MOST_SIZES + 2);
	until_alive(sum);
	assert_int_equal(made, MOST_SIZES);
	assert_false(spill_host_chunks_make());
	for (unsigned i = 0; i < MOST_SIZES; i++)
		take_made(0, sizes[i]);
}

/* Mapped for the copy; by the move, if the vendor refuses it here. Goes with its chunk. */
TEST(what_is_made_ahead_has_a_view)
{
	static const uint64_t sizes[] = {64 * MIB};
	policy.host_ahead = size(64 * MIB);
	for (unsigned step = 0; step <= 3; step++) {
		view_fails_at = step;
		spill_host_chunks_ahead(&vendor, 0, sizes, 1);
		until_alive(64 * MIB);
		struct spill_host_chunk one = get(0, 64 * MIB);
		assert_int_equal(one.view, step ? 0 : 64 * MIB);
		assert_int_equal(ranges, step == 0);
		assert_int_equal(mappings, step == 0);
		put(0, &one);
		assert_int_equal(get(0, 64 * MIB).view, one.view);
		spill_host_chunk_put(&vendor, 0, &one, false);
		assert_int_equal(ranges + mappings, 0);
	}
	assert_int_equal(made, 4);
}

/* Or the program's own calls would wait for it. */
TEST(the_thread_rests_between_two_chunks)
{
	static const uint64_t sizes[] = {2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB};
	policy.host_ahead = size(8 * MIB);
	rests = tight = 0;
	spill_host_chunks_ahead(&vendor, 0, sizes, 4);
	until_alive(8 * MIB);
	assert_int_equal(tight, 0);
	assert_true(rests >= 4);
}

/* What is no longer wanted goes before what is. */
TEST(what_is_wanted_stays)
{
	static const uint64_t small[] = {64 * MIB, 64 * MIB}, large[] = {300 * MIB, 300 * MIB};
	policy.host_ahead = size(600 * MIB);
	spill_host_chunks_ahead(&vendor, 0, large, 2);
	until_alive(600 * MIB);
	spill_host_chunks_ahead(&vendor, 0, small, 2);
	until_alive((300 + 128) * MIB); /* one had to go for the second */
	struct spill_host_chunk more[10];
	for (int i = 0; i < 10; i++)
		more[i] = get(1, 64 * MIB);
	for (int i = 0; i < 10; i++)
		put(1, &more[i]);
	until_alive((128 + 7 * 64) * MIB);
	take_made(0, 64 * MIB);
	take_made(0, 64 * MIB);
}

static bool was_refused(void)
{
	return refusals != 0;
}

/* No second try before its time, and none that takes back what somebody else needs. */
TEST(short_host_memory_is_left_alone)
{
	static const uint64_t sizes[] = {64 * MIB, 64 * MIB};
	policy.host_ahead = size(128 * MIB);
	fails = true;
	spill_host_chunks_ahead(&vendor, 0, sizes, 2);
	until(was_refused);
	until(is_waiting);
	assert_true(nothing_is_alive());
	fails = false;
	for (int i = 0; i < 100; i++)
		spill_host_chunks_ahead(&vendor, 0, sizes, 2);
	assert_false(spill_host_chunks_make());
	assert_int_equal(refusals, 1);
	clock_ns += 2 * S;
	spill_host_chunks_ahead(&vendor, 0, sizes, 2);
	until_alive(128 * MIB);
	assert_int_equal(spill_host_chunks_drop(&vendor), 128 * MIB);
	spill_host_chunks_ahead(&vendor, 0, sizes, 2);
	assert_false(spill_host_chunks_make());
	assert_int_equal(made, 2);
	/* The limit holds for it as for all. */
	policy.host_limit = size(100 * MIB);
	clock_ns += 2 * S;
	spill_host_chunks_ahead(&vendor, 0, sizes, 2);
	until_alive(64 * MIB);
	assert_int_equal(made, 3);
}

static _Atomic int its_depth = -1;
static _Atomic bool all_blocked;

static void look_at_the_thread(void)
{
	sigset_t blocked;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	all_blocked = sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGCHLD) &&
	              sigismember(&blocked, SIGPROF) && sigismember(&blocked, SIGRTMIN) &&
	              sigismember(&blocked, SIGRTMAX - 2); /* qemu-user knows no signals 63 and 64 */
	its_depth = (int)spill_thread.depth;
}

static bool the_thread_has_left(void)
{
	return ahead_threads() == 0;
}

TEST(the_thread_comes_and_goes)
{
	static const uint64_t sizes[] = {64 * MIB, 2 * MIB, 4 * MIB};
	sigset_t before, after;
	leave = true;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	policy.host_ahead = size(128 * MIB);
	in_create = look_at_the_thread;
	for (unsigned round = 1; round <= 3; round++) {
		spill_host_chunks_ahead(&vendor, 0, sizes, round);
		/* It may have been about to leave. */
		while (made < round) {
			pause_a_little();
			spill_host_chunks_ahead(&vendor, 0, sizes, round);
		}
		until(the_thread_has_left);
	}
	assert_int_equal(its_depth, 1);
	assert_true(all_blocked);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
	assert_int_equal(spill_thread.depth, 0);
}

/* The vendor's call ends late: for a device that nobody uses any more, and behind somebody's need. */
TEST(what_comes_too_late_is_not_kept)
{
	static const uint64_t sizes[] = {64 * MIB};
	policy.host_ahead = size(64 * MIB);
	for (int round = 0; round < 2; round++) {
		go_on = false;
		in_create = stay_inside;
		clock_ns += 2 * S;
		spill_host_chunks_ahead(&vendor, 2, sizes, 1);
		until(is_inside);
		if (round)
			spill_host_chunks_drop(&vendor);
		else
			spill_host_chunks_forget(&vendor, 2);
		go_on = true;
		until(nothing_is_alive);
	}
	in_create = NULL;
	assert_int_equal(made, 2);
}

/* -- a child of the process -------------------------------------------------------------------------------- */

/* LeakSanitizer asks at the end of a process: what the child forgets is its parent's. */
static bool is_child;
int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
	return is_child;
}

static void live_anew(const uint64_t *sizes)
{
	is_child = true;
	struct spill_host_chunk chunk;
	in_create = NULL;
	made = alive = 0;
	alive_bytes = 0;
	if (ahead_threads() || spill_host_chunks_make())
		_exit(5);
	if (spill_host_chunk_get(&vendor, 0, 2 * MIB, &chunk) || made != 1)
		_exit(6);
	spill_host_chunks_ahead(&vendor, 0, sizes, 1);
	until_alive(66 * MIB);
	if (ahead_threads() != 1 || spill_host_chunk_get(&vendor, 0, 64 * MIB, &chunk) || made != 2)
		_exit(7);
	exit(42); /* and it ends */
}

/* It has no thread and none of its parent's memory, and can have its own. */
TEST(a_child_begins_anew)
{
	static const uint64_t sizes[] = {64 * MIB};
#ifdef __SANITIZE_THREAD__
	print_message("ThreadSanitizer ends a process that forks with threads and starts one\n");
	skip();
#endif
	struct spill_host_chunk one = get(0, 2 * MIB);
	put(0, &one);
	policy.host_ahead = size(64 * MIB);
	in_create = stay_inside;
	inside = go_on = false;
	spill_host_chunks_ahead(&vendor, 0, sizes, 1);
	until(is_inside);
	pid_t child = fork_as_the_library_does();
	if (child == 0)
		live_anew(sizes);
	go_on = true;
	until_alive(66 * MIB);
	take_made(0, 64 * MIB);
	take_made(0, 2 * MIB);
	assert_int_equal(exit_status(child), 42);
}

/* -- threads ----------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 3000 };
static _Atomic unsigned failures;

static void *work(void *argument)
{
	static const uint64_t sizes[] = {2 * MIB, 4 * MIB, 2 * MIB, 8 * MIB};
	unsigned random = (unsigned)(uintptr_t)argument * 7919 + 1;
	for (int round = 0; round < ROUNDS; round++) {
		struct spill_host_chunk chunk;
		random = random * 1103515245u + 12345u;
		uint64_t bytes = sizes[(random >> 16) % 4];
		int device = (int)(random >> 20) % 2;
		if (spill_host_chunk_get(&vendor, device, bytes, &chunk) || chunk.bytes != bytes)
			atomic_fetch_add(&failures, 1);
		else
			spill_host_chunk_put(&vendor, device, &chunk, (random >> 24) % 4 != 0);
		if ((random >> 18) % 16 == 0)
			spill_host_chunks_ahead(&vendor, device, sizes, 4);
		if ((random >> 22) % 64 == 0)
			spill_host_chunks_drop(&vendor);
		clock_ns += S;
	}
	return NULL;
}

TEST(threads_lose_nothing)
{
	pthread_t threads[THREADS];
	policy.host_ahead = size(24 * MIB);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(failures, 0);
}
