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
#include "note.h"

/*
 * The file stays empty, and what others write there is not read: only locks of its offsets say anything (fcntl_locking(2): they may be
 * beyond the end). A slot's first offset is its process's for as long as that lives; as many behind it as it holds units are locked with
 * it, which makes one lock of both.
 */
#define UNIT 4096
#define SLOT ((off_t)1 << 40)
/* Behind the slots: of a check. */
#define GATE (SPILL_HOST_SLOTS * SLOT)
/* A check takes microseconds. */
#define TRIES 400
#define POLL_NS 50000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_HOST_SHARE */
static _Atomic bool used;                                /* from the start on */
static bool unusable, joining;
static char own_path[64];
static const char *path;
static uint64_t at_start;
static int fd = -1; /* not joined */
static struct stat file;
static off_t mine; /* our slot's first offset */
static off_t told; /* units that are locked behind it */
static bool gate_taken, stuck;

/* Never waits; two descriptions exclude each other also within a process. */
static bool set(short type, off_t start, off_t length)
{
	struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
	return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

/*
 * What the slots [from, to) say, in bytes. The kernel tells one lock that is there, and not the first: what is below and above it is
 * asked next, by whole slots, as it may grow meanwhile; the larger part by the loop, so that it goes no deeper than the slots' logarithm.
 * A lock that is not of our form counts nothing.
 */
static uint64_t held_in(int descriptor, int from, int to)
{
	uint64_t bytes = 0;
	while (from < to) {
		struct flock found = {.l_type = F_WRLCK, .l_start = from * SLOT, .l_len = (to - from) * SLOT};
		if (fcntl(descriptor, F_OFD_GETLK, &found) != 0 || found.l_type == F_UNLCK)
			break;
		int slot = found.l_start < from * SLOT ? from : (int)(found.l_start / SLOT);
		if (found.l_start == slot * SLOT && found.l_len > 0 && found.l_len <= SLOT)
			bytes += (uint64_t)(found.l_len - 1) * UNIT;
		if (slot - from < to - slot - 1) {
			bytes += held_in(descriptor, from, slot);
			from = slot + 1;
		} else {
			bytes += held_in(descriptor, slot + 1, to);
			to = slot;
		}
	}
	return bytes;
}

/* Tells what this process holds, rounded up. Where the kernel has no memory for a lock, the next time. pre: locked, joined */
static void tell(void)
{
	uint64_t units = (spill_account_host_held() + UNIT - 1) / UNIT;
	off_t now = units < SLOT - 1 ? (off_t)units : SLOT - 1;
	bool more = now > told;
	if (now != told &&
	    set(more ? F_WRLCK : F_UNLCK, mine + 1 + (more ? told : now), more ? now - told : told - now))
		told = now;
}

static const char *refusal(const struct stat *found)
{
	if (!S_ISREG(found->st_mode) || found->st_nlink > 1)
		return "it is not a regular file";
	if (found->st_uid != geteuid())
		return "it belongs to another user";
	return NULL;
}

/* Looks once, and makes nothing. pre: locked */
static uint64_t look(void)
{
	struct stat found;
	uint64_t sum = 0;
	int other = spill_fd_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (other < 0)
		return 0;
	if (fstat(other, &found) == 0 && !refusal(&found))
		sum = held_in(other, 0, SPILL_HOST_SLOTS);
	close(other);
	return sum;
}

/* Opens `path`. Returns why not, or NULL; *opened is a descriptor, also then, or -1. */
static const char *open_file(int *opened, struct stat *found)
{
	const char *problem;
	*opened =
	    spill_fd_open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	if (*opened < 0)
		return errno == ELOOP ? "it is a symbolic link" : strerrordesc_np(errno);
	*opened = spill_fd_out_of_the_way(*opened);
	if (*opened < 0 || fstat(*opened, found) != 0)
		return strerrordesc_np(errno);
	problem = refusal(found);
	if (!problem && (found->st_mode & 07777) != 0600 && fchmod(*opened, 0600) != 0)
		problem = strerrordesc_np(errno);
	return problem;
}

/* Still the file that others open, by a descriptor that nobody has closed? pre: locked */
static bool joined(void)
{
	struct stat now;
	return fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == file.st_dev && now.st_ino == file.st_ino &&
	       now.st_nlink == 1;
}

/* What is held has changed. What is told later than it is given back errs to the safe side. */
static void changed(void)
{
	pthread_mutex_lock(&lock);
	if (joined())
		tell();
	pthread_mutex_unlock(&lock);
}

static const char *take_slot(void)
{
	for (int slot = 0; slot < SPILL_HOST_SLOTS; slot++) {
		mine = slot * SLOT;
		if (set(F_WRLCK, mine, 1))
			return NULL;
		if (errno != EAGAIN && errno != EACCES)
			return strerrordesc_np(errno);
	}
	return "too many processes take part";
}

/* pre: locked */
static void leave(void)
{
	struct stat now;
	spill_account_host_tell(NULL);
	/* The program may have closed it, and the number may be another file's. */
	if (fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == file.st_dev && now.st_ino == file.st_ino)
		close(fd);
	fd = -1;
	told = 0;
}

/* Opens the file without the lock: a thread may be held up there by others that need it. pre: locked, before and after */
static void join(void)
{
	struct stat found = {0};
	char text[256];
	int opened;
	leave();
	joining = true;
	pthread_mutex_unlock(&lock);
	const char *problem = open_file(&opened, &found);
	pthread_mutex_lock(&lock);
	joining = false;
	fd = opened;
	file = found;
	if (!problem)
		problem = take_slot();
	if (!problem) {
		spill_account_host_tell(changed);
		tell();
		return;
	}
	leave();
	unusable = true;
	snprintf(text, sizeof(text), "%s cannot be used: %s; host.limit holds for this process alone", path,
	         problem);
	spill_note("host-share", text);
}

void spill_host_share_use(const char *given)
{
	pthread_mutex_lock(&lock);
	snprintf(own_path, sizeof(own_path), "/dev/shm/spill-%u", (unsigned)geteuid());
	path = given ? given : own_path;
	leave();
	unusable = false;
	used = true;
	at_start = look();
	pthread_mutex_unlock(&lock);
}

uint64_t spill_host_share_at_start(void)
{
	if (!used)
		return 0;
	pthread_mutex_lock(&lock);
	uint64_t bytes = at_start;
	pthread_mutex_unlock(&lock);
	return bytes;
}

uint64_t spill_host_share_begin(void)
{
	if (!used)
		return 0;
	pthread_mutex_lock(&lock);
	if (unusable)
		return 0;
	if (!joining && !joined())
		join();
	/* Another thread is about to join: this once the others are not seen. */
	if (fd < 0)
		return 0;
	for (int tries = stuck ? TRIES : 0; !(gate_taken = set(F_WRLCK, GATE, 1)) && tries < TRIES; tries++)
		spill_clock_sleep(POLL_NS);
	stuck = !gate_taken; /* who holds it is stopped: it is waited for once */
	return held_in(fd, 0, SPILL_HOST_SLOTS);
}

void spill_host_share_end(void)
{
	if (!used)
		return;
	if (fd >= 0)
		tell();
	if (gate_taken)
		set(F_UNLCK, GATE, 1);
	gate_taken = false;
	pthread_mutex_unlock(&lock);
}

void spill_host_share_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void spill_host_share_fork_done(bool child)
{
	if (child) {
		leave();
		joining = false;
	}
	pthread_mutex_unlock(&lock);
}
