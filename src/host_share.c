#include "host_share.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "account.h"
#include "fd.h"
#include "note.h"
#include "quiet.h"

/* Of the file's form. One page, so it is there or it is not. */
#define MAGIC 0x31306c6c697073ull
/* The lock of slot i is byte i; of a check, the byte behind them. */
#define GATE SPILL_HOST_SLOTS
/* A check takes microseconds. */
#define TRIES 400
#define POLL_NS 50000

struct table {
	_Atomic uint64_t magic;
	_Atomic uint64_t
	    held[SPILL_HOST_SLOTS]; /* bytes; of a slot that nobody has locked: of one who is dead */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_HOST_SHARE */
static _Atomic bool used;                                /* from the start on */
static bool unusable, joining;
static char own_path[64];
static const char *path;
static uint64_t at_start;
static struct table *table; /* NULL: not opened */
static int fd = -1;
static struct stat file;
static int mine;
static bool gate_taken, stuck;

/* SETLK never waits; two descriptions exclude each other also within a process. */
static bool lock_byte(int descriptor, int command, int byte, short *type)
{
	struct flock range = {.l_type = *type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	int result = fcntl(descriptor, command, &range);
	*type = range.l_type;
	return result == 0;
}

static bool take(int byte)
{
	short type = F_WRLCK;
	return lock_byte(fd, F_OFD_SETLK, byte, &type);
}

static void give(int byte)
{
	short type = F_UNLCK;
	lock_byte(fd, F_OFD_SETLK, byte, &type);
}

static const char *refusal(const struct stat *found)
{
	if (!S_ISREG(found->st_mode) || found->st_nlink > 1)
		return "something else is in its place";
	if (found->st_uid != geteuid())
		return "it belongs to another user";
	if (found->st_size != 0 && found->st_size != sizeof(struct table))
		return "it is of another form";
	return NULL;
}

/* Looks once, and makes nothing. pre: locked */
static uint64_t look(void)
{
	struct table seen = {0};
	struct stat found;
	uint64_t sum = 0;
	int other = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (other < 0)
		return 0;
	if (fstat(other, &found) == 0 && !refusal(&found) &&
	    pread(other, &seen, sizeof(seen), 0) == sizeof(seen) && seen.magic == MAGIC)
		for (int i = 0; i < SPILL_HOST_SLOTS; i++) {
			short type = F_WRLCK;
			if (seen.held[i] && lock_byte(other, F_OFD_GETLK, i, &type) && type != F_UNLCK)
				sum += seen.held[i];
		}
	close(other);
	return sum;
}

/* Opens `path`. Returns why not, or NULL; *opened is a descriptor, also then, or -1. */
static const char *open_file(int *opened, struct stat *found)
{
	const char *problem;
	*opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	if (*opened < 0)
		return errno == ELOOP ? "a link is in its place" : strerrordesc_np(errno);
	*opened = spill_fd_out_of_the_way(*opened);
	if (*opened < 0 || fstat(*opened, found) != 0)
		return strerrordesc_np(errno);
	problem = refusal(found);
	if (!problem && (found->st_mode & 07777) != 0600 && fchmod(*opened, 0600) != 0)
		problem = strerrordesc_np(errno);
	if (problem)
		return problem;
	/* A page that is not there when it is touched would be a SIGBUS. */
	struct spill_quiet quiet; /* beyond RLIMIT_FSIZE it is a SIGXFSZ */
	spill_quiet_enter(&quiet);
	int error;
	do
		error = posix_fallocate(*opened, 0, sizeof(struct table));
	while (error == EINTR);
	spill_quiet_leave(&quiet);
	return error ? strerrordesc_np(error) : NULL;
}

static const char *map_file(void)
{
	uint64_t none = 0;
	void *mapped = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return strerrordesc_np(errno);
	table = mapped;
	if (!atomic_compare_exchange_strong(&table->magic, &none, MAGIC) && none != MAGIC)
		return "it is of another form";
	for (mine = 0; mine < SPILL_HOST_SLOTS; mine++)
		if (take(mine))
			return NULL;
		else if (errno != EAGAIN && errno != EACCES)
			return strerrordesc_np(errno);
	return "too many processes take part";
}

/*
 * A mapping keeps the open file, and so the lock, alive: that is why a program that closes all descriptors does not lose its slot, and
 * why it has to go here. Its address stays good, as a thread may be about to store there.
 */
static void leave(void)
{
	struct stat now;
	spill_account_host_tell(NULL);
	if (table)
		(void)mmap(table, sizeof(*table), PROT_READ | PROT_WRITE,
		           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	/* The program may have closed it, and the number may be another file's. */
	if (fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == file.st_dev && now.st_ino == file.st_ino)
		close(fd);
	fd = -1;
	table = NULL;
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
		problem = map_file();
	if (!problem) {
		spill_account_host_tell(&table->held[mine]);
		return;
	}
	leave();
	unusable = true;
	snprintf(text, sizeof(text), "%s cannot be used: %s; host.limit holds for this process alone", path,
	         problem);
	spill_note("host-share", text);
}

/* Still the file that others open, by a descriptor that nobody has closed? */
static bool joined(void)
{
	struct stat now;
	return table && fstat(fd, &now) == 0 && now.st_dev == file.st_dev && now.st_ino == file.st_ino &&
	       now.st_nlink == 1 && now.st_size == sizeof(struct table);
}

static uint64_t others(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < SPILL_HOST_SLOTS; i++) {
		uint64_t held = i == mine ? 0 : atomic_load(&table->held[i]);
		if (held && take(i)) {
			atomic_store(&table->held[i], 0); /* its process is dead */
			give(i);
		} else {
			sum += held;
		}
	}
	return sum;
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
	if (!table)
		return 0;
	for (int tries = stuck ? TRIES : 0; !(gate_taken = take(GATE)) && tries < TRIES; tries++)
		nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	stuck = !gate_taken; /* who holds it is stopped: it is waited for once */
	return others();
}

void spill_host_share_end(void)
{
	if (!used)
		return;
	if (gate_taken)
		give(GATE);
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
