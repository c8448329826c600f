#include "host_share.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "account.h"
#include "clock.h"
#include "fd.h"
#include "hash.h"
#include "note.h"

/*
 * The file stays empty and its content is never read. Only locks count, and they may be beyond its
 * end (fcntl_locking(2)). Each process has a slot of offsets. It locks the slot's first offset for
 * its life, and one more offset for each unit that it holds. The kernel joins them into one lock.
 *
 * A second slot in the upper half of the offsets shows the part that is physical memory.
 *
 * Each job has such offsets of its own, by a hash of its number. If two jobs get the same ones,
 * they count together, which is safe. Offsets need no file for a job, so none is left behind.
 */
#define UNIT 4096
#define SLOT ((off_t)1 << 40)
/* An offset after all slots. The process that checks the sum locks it. */
#define GATE (SPILL_HOST_SLOTS * SLOT)
#define UPPER (GATE + SLOT)
#define JOB (2 * UPPER)
#define JOBS 8191 /* offsets are positive numbers of 64 bits */
_Static_assert(JOB == (off_t)1 << 50 && JOBS < (1 << 13), "the last offset fits");
/* Attempts to lock the gate. A check takes microseconds. */
#define TRIES 400
#define POLL_NS 50000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_HOST_SHARE */
static _Atomic bool used;                                /* set once, at the start */
static bool unusable, joining;
static char own_path[64];
static const char *path;
static struct spill_host_others at_start;
static off_t base;  /* the first offset of the job */
static int fd = -1; /* not joined */
static struct stat file;
static off_t own_slot; /* its first offset */
static off_t locked_units, locked_physical;
static bool gate_taken, stuck;

/* Sets a lock without waiting. Two open file descriptions exclude each other in a process too. */
static bool set_lock(short type, off_t start, off_t length)
{
	struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
	return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

/*
 * The bytes that the slots [from, to) behind `first` show. The kernel reports any one lock in a
 * range, so the slots below and above it are asked next. Whole slots are asked, because a lock may
 * grow meanwhile. The larger part is left to the loop, so that the recursion is no deeper than the
 * logarithm of the slots. A lock that has another form is ignored.
 */
static uint64_t bytes_in_slots(int descriptor, off_t first, int from, int to)
{
	uint64_t bytes = 0;
	while (from < to) {
		struct flock found = {
		    .l_type = F_WRLCK, .l_start = first + from * SLOT, .l_len = (to - from) * SLOT};
		if (fcntl(descriptor, F_OFD_GETLK, &found) != 0 || found.l_type == F_UNLCK)
			break;
		int slot = found.l_start < first + from * SLOT ? from : (int)((found.l_start - first) / SLOT);
		if (found.l_start == first + slot * SLOT && found.l_len > 0 && found.l_len <= SLOT)
			bytes += (uint64_t)(found.l_len - 1) * UNIT;
		if (slot - from < to - slot - 1) {
			bytes += bytes_in_slots(descriptor, first, from, slot);
			from = slot + 1;
		} else {
			bytes += bytes_in_slots(descriptor, first, slot + 1, to);
			to = slot;
		}
	}
	return bytes;
}

/* Physical memory counts for control groups only, so without a job it is not read. */
static struct spill_host_others read_others(int descriptor)
{
	return (struct spill_host_others){
	    .held = bytes_in_slots(descriptor, base, 0, SPILL_HOST_SLOTS),
	    .physical = base ? bytes_in_slots(descriptor, base + UPPER, 0, SPILL_HOST_SLOTS) : 0,
	};
}

/*
 * Locks one offset for each unit of `bytes`, rounded up, from `first` on. *locked has the number
 * that is locked. If the kernel has no memory for a lock, the next call tries again. pre: locked
 */
static void show_bytes(off_t first, uint64_t bytes, off_t *locked)
{
	uint64_t units = (bytes + UNIT - 1) / UNIT;
	off_t now = units < SLOT - 1 ? (off_t)units : SLOT - 1;
	bool more = now > *locked;
	if (now != *locked && set_lock(more ? F_WRLCK : F_UNLCK, first + (more ? *locked : now),
	                               more ? now - *locked : *locked - now))
		*locked = now;
}

/*
 * The upper slot's first offset is locked with the first unit, so that the form is the same. pre:
 * locked, joined
 */
static void show_held(void)
{
	uint64_t physical = base ? spill_account_physical_held() : 0;
	show_bytes(own_slot + 1, spill_account_host_held(), &locked_units);
	show_bytes(own_slot + UPPER, physical ? physical + UNIT : 0, &locked_physical);
}

/* What all processes hold, without creating the file. pre: locked */
static struct spill_host_others read_sum(void)
{
	struct stat found;
	struct spill_host_others sum = {0, 0};
	int other = spill_fd_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (other < 0)
		return sum;
	if (fstat(other, &found) == 0 && !spill_fd_refusal(&found))
		sum = read_others(other);
	close(other);
	return sum;
}

/* Opens `path`. Returns NULL or the problem. In both cases *opened is a descriptor or -1. */
static const char *open_share_file(int *opened, struct stat *found)
{
	const char *problem;
	*opened =
	    spill_fd_open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	if (*opened < 0)
		return errno == ELOOP ? "the file is a symbolic link" : spill_error_text(errno);
	*opened = spill_fd_out_of_the_way(*opened);
	if (*opened < 0 || fstat(*opened, found) != 0)
		return spill_error_text(errno);
	problem = spill_fd_refusal(found);
	if (!problem && (found->st_mode & 07777) != 0600 && fchmod(*opened, 0600) != 0)
		problem = spill_error_text(errno);
	return problem;
}

/* True if our descriptor is still open, and others still open the same file. pre: locked */
static bool is_joined(void)
{
	struct stat now;
	return fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == file.st_dev && now.st_ino == file.st_ino &&
	       now.st_nlink == 1;
}

/* Called after each change of the account. If it is late, others see too much, which is safe. */
static void host_changed(void)
{
	pthread_mutex_lock(&lock);
	if (is_joined())
		show_held();
	pthread_mutex_unlock(&lock);
}

static const char *take_slot(void)
{
	for (int slot = 0; slot < SPILL_HOST_SLOTS; slot++) {
		own_slot = base + slot * SLOT;
		if (set_lock(F_WRLCK, own_slot, 1))
			return NULL;
		if (errno != EAGAIN && errno != EACCES)
			return spill_error_text(errno);
	}
	return "too many processes take part";
}

/* pre: locked */
static void leave_share(void)
{
	struct stat now;
	spill_account_host_observe(NULL);
	/* The program may have closed our descriptor and reused its number. */
	if (fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == file.st_dev && now.st_ino == file.st_ino)
		close(fd);
	fd = -1;
	locked_units = locked_physical = 0;
}

/* Joins the others. Releases the lock meanwhile, as opening may block. pre: locked */
static void join_share(void)
{
	struct stat found = {0};
	char text[256];
	int opened;
	leave_share();
	joining = true;
	pthread_mutex_unlock(&lock);
	const char *problem = open_share_file(&opened, &found);
	pthread_mutex_lock(&lock);
	joining = false;
	fd = opened;
	file = found;
	if (!problem)
		problem = take_slot();
	if (!problem) {
		spill_account_host_observe(host_changed);
		show_held();
		return;
	}
	leave_share();
	unusable = true;
	snprintf(text, sizeof(text), "%s cannot be used: %s; host.limit holds for this process alone", path,
	         problem);
	spill_note("host-share", text);
}

void spill_host_share_use(const char *given, uint64_t job)
{
	pthread_mutex_lock(&lock);
	snprintf(own_path, sizeof(own_path), "/dev/shm/spill-%u", (unsigned)geteuid());
	path = given ? given : own_path;
	leave_share();
	base = job ? (off_t)(1 + spill_hash(0, job) % (JOBS - 1)) * JOB : 0;
	unusable = false;
	used = true;
	at_start = read_sum();
	pthread_mutex_unlock(&lock);
}

struct spill_host_others spill_host_share_at_start(void)
{
	if (!used)
		return (struct spill_host_others){0, 0};
	pthread_mutex_lock(&lock);
	struct spill_host_others others = at_start;
	pthread_mutex_unlock(&lock);
	return others;
}

struct spill_host_others spill_host_share_begin(void)
{
	const struct spill_host_others none = {0, 0};
	if (!used)
		return none;
	pthread_mutex_lock(&lock);
	if (unusable)
		return none;
	if (!joining && !is_joined())
		join_share();
	/* Another thread is joining: this charge does not count the others. */
	if (fd < 0)
		return none;
	for (int tries = stuck ? TRIES : 0;
	     !(gate_taken = set_lock(F_WRLCK, base + GATE, 1)) && tries < TRIES; tries++)
		spill_clock_sleep(POLL_NS);
	stuck = !gate_taken; /* a stopped process holds the gate: wait for it only once */
	return read_others(fd);
}

void spill_host_share_end(void)
{
	if (!used)
		return;
	if (fd >= 0)
		show_held();
	if (gate_taken)
		set_lock(F_UNLCK, base + GATE, 1);
	gate_taken = false;
	pthread_mutex_unlock(&lock);
}

/* The child takes part as a process of its own, from its first spill on. */
static void forget_parent(void)
{
	leave_share();
	joining = false;
}

const struct spill_fork_lock spill_host_share_fork_lock = {&lock, forget_parent};
