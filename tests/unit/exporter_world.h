/*
 * The exporter alone. The connection, the thread, the vendor and the files of /proc are replaced, and say what they are
 * asked. The serving thread runs when the test calls it.
 */
#ifndef SPILL_TEST_EXPORTER_WORLD_H
#define SPILL_TEST_EXPORTER_WORLD_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_clock.h"
#include "fake_libc.h"
#include "ipc.h"
#include "ledger.h"
#include "lock.h"
#include "process.h"
#include "registered_end.h"
#include "said.h"
#include "shared_chunks.h"
#include "thread.h"
#include "unit.h"

enum { DEVICE = 3, CHUNKS = 2, UNIT = 4096, REFUSED = 700 };
/* Numbers of descriptors that are open nowhere but in this test. */
enum { LISTENER = 600, CONNECTION = 610, PART = 620, UNWANTED = 630 };

#define RETRY_NS 10000000

static struct {
	int listener, connection, part, unwanted; /* the descriptors that the next calls give */
	pid_t process;
	dev_t device; /* of the file behind the listener's number */
	ino_t inode;
	unsigned names; /* given so far */
	const char *stat;
	unsigned threads; /* in /proc */
	bool no_proc;
	unsigned accepts, questions; /* so many come yet */
	int accept_error;            /* behind them */
	struct spill_ipc_question question;
	void (*on_accept)(void), (*on_receive)(void), (*on_descriptor)(void), (*on_start)(void);
	struct spill_ipc_answer answer; /* the last one, and the descriptor that went with it */
	int sent;
} world;

/* What the exporter has started. */
static void *(*serving)(void *);

/* -- in place of libc -------------------------------------------------------------------------- */

ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
	assert_int_equal(flags, GRND_NONBLOCK); /* a program at the machine's start is not held up */
	memset(bytes, (int)++world.names, size);
	return is_refused("getrandom") ? (ssize_t)size - 1 : (ssize_t)size;
}

pid_t getpid(void)
{
	return world.process;
}

/* Those of this test only. A program may have closed its standard input, so 0 is a number like any other. */
int close(int fd)
{
	if (fd > 0 && fd < LISTENER)
		return (int)syscall(SYS_close, fd);
	say("close", (uint64_t)fd);
	return 0;
}

int shutdown(int fd, int how)
{
	assert_int_equal(how, SHUT_RDWR);
	say("shutdown", (uint64_t)fd);
	return 0;
}

static bool look_at_listener(long arguments[6], long *result)
{
	if (arguments[0] != world.listener)
		return false;
	*(struct stat *)arguments[1] = (struct stat){.st_dev = world.device, .st_ino = world.inode};
	*result = is_refused("fstat") ? -1 : 0;
	return true;
}

int stat(const char *path, struct stat *file)
{
	assert_string_equal(path, "/proc/self/task");
	*file = (struct stat){.st_nlink = 2 + world.threads};
	return world.no_proc ? -1 : 0;
}

/* A file with the text of world.stat. */
static bool open_stat(long arguments[6], long *result)
{
	if (strcmp((const char *)arguments[0], "/proc/self/stat") != 0)
		return false;
	errno = ENOENT;
	*result = world.stat ? memfd_create("stat", MFD_CLOEXEC) : -1;
	if (*result >= 0)
		assert_int_equal(pwrite((int)*result, world.stat, strlen(world.stat), 0), strlen(world.stat));
	return true;
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	assert_true(pthread_equal(thread, pthread_self()));
	say(name, 0);
	return 0;
}

int pthread_detach(pthread_t thread)
{
	assert_true(pthread_equal(thread, pthread_self()));
	say("detach", 0);
	return 0;
}

/* -- in place of the thread and the connection ------------------------------------------------- */

/* The test runs it, when it likes. */
bool spill_thread_start(pthread_t *thread, void *(*run)(void *unused))
{
	*thread = pthread_self();
	serving = run;
	call_once(&world.on_start);
	return !is_refused("start");
}

void spill_thread_end(pthread_t thread)
{
	assert_true(pthread_equal(thread, pthread_self()));
	say("join", 0);
}

int spill_fd_pass_listen(const unsigned char name[SPILL_FD_PASS_NAME])
{
	say("listen", name[0]);
	return is_refused("listen") ? -1 : world.listener;
}

int spill_fd_pass_accept(int listener)
{
	assert_int_equal(listener, world.listener);
	assert_int_equal(spill_thread.depth, 1); /* the calls of the thread are libspill's */
	call_once(&world.on_accept);
	if (!world.accepts) {
		errno = world.accept_error;
		world.accept_error = EBADF;
		say("error", (uint64_t)errno);
		return -1;
	}
	world.accepts--;
	return world.connection;
}

bool spill_fd_pass_receive(int socket, void *message, size_t bytes, int *descriptor)
{
	assert_int_equal(socket, world.connection);
	assert_int_equal(bytes, sizeof(world.question));
	say("receive", world.questions);
	call_once(&world.on_receive);
	*descriptor = -1;
	if (!world.questions)
		return false;
	world.questions--;
	memcpy(message, &world.question, bytes);
	*descriptor = world.unwanted;
	return true;
}

bool spill_fd_pass_send(int socket, const void *message, size_t bytes, int descriptor)
{
	assert_int_equal(socket, world.connection);
	assert_int_equal(bytes, sizeof(world.answer));
	memcpy(&world.answer, message, bytes);
	world.sent = descriptor;
	say("send", (uint64_t)descriptor);
	return true;
}

/* -- in place of the vendor -------------------------------------------------------------------- */

uint64_t spill_chunked_address(const struct spill_chunked *chunked, unsigned index)
{
	return chunked->base.ptr + chunked->chunks[index].offset;
}

struct spill_chunked *spill_chunked_of(struct spill_placement *placement)
{
	return (struct spill_chunked *)placement; /* which it begins with */
}

static int answer(const char *word, uint64_t number)
{
	say(word, number);
	char call[32];
	snprintf(call, sizeof(call), "%s:%u", word, (unsigned)number);
	return is_refused(call) ? REFUSED : 0;
}

/* Handles are numbers of chunks, from 1. */
static int vendor_retain(uint64_t va, uint64_t *handle)
{
	*handle = va / UNIT;
	return answer("retain", *handle);
}

static int vendor_release(uint64_t handle)
{
	return answer("release", handle);
}

static int vendor_to_descriptor(uint64_t handle, int *descriptor)
{
	int result = answer("descriptor", handle);
	if (!result)
		*descriptor = world.part;
	call_once(&world.on_descriptor);
	return result;
}

static bool vendor_shareable(int device, bool on_host)
{
	return !is_refused(on_host ? "host" : "device") && device == DEVICE;
}

static const struct spill_vendor_physical physical = {.shareable = vendor_shareable,
                                                      .retain = vendor_retain,
                                                      .release = vendor_release,
                                                      .to_descriptor = vendor_to_descriptor};
static const struct spill_backend vendor = {.physical = &physical};

/* ---------------------------------------------------------------------------------------------- */

static union {
	struct spill_chunked chunked;
	char room[sizeof(struct spill_chunked) + CHUNKS * sizeof(struct spill_chunk)];
} first, second;

static void make_chunks(struct spill_chunked *chunked, uint64_t ptr)
{
	memset(chunked, 0, sizeof(first));
	chunked->base = (struct spill_placement){.backend = &vendor, .device = DEVICE, .ptr = ptr};
	chunked->count = CHUNKS;
	for (unsigned i = 0; i < CHUNKS; i++)
		chunked->chunks[i] = (struct spill_chunk){.offset = i * UNIT, .bytes = UNIT / (i + 1)};
}

/* As in the child of a fork. */
static void forget(void)
{
	spill_fork_lock_take(&spill_ipc_export_fork_lock);
	spill_fork_lock_release(&spill_ipc_export_fork_lock, true);
}

static int setup(void **state)
{
	spill_ipc_exported_ends(&first.chunked);
	spill_ipc_exported_ends(&second.chunked);
	forget();
	make_chunks(&first.chunked, UNIT);
	make_chunks(&second.chunked, 11 * UNIT);
	memset(&world, 0, sizeof(world));
	world.listener = LISTENER;
	world.connection = CONNECTION;
	world.part = PART;
	world.unwanted = -1;
	world.process = 100;
	world.device = 8;
	world.inode = 9;
	world.threads = 2;
	world.stat = "100 (a program) S 1";
	world.accept_error = EBADF;
	serving = NULL;
	refused = NULL;
	fake_libc_reset();
	fake_libc[FAKE_fstat64].hook = look_at_listener;
	fake_libc[FAKE_open64].hook = open_stat;
	fake_clock_use(0);
	what_was_said();
	return 0;
}

static struct spill_ipc_handle handle;

static bool export_it(struct spill_chunked *chunked)
{
	char room[SPILL_IPC_HANDLE_BYTES];
	memset(room, 0xff, sizeof(room));
	bool made = spill_ipc_export(&chunked->base, 2 * UNIT - 100, room);
	if (made)
		memcpy(&handle, room, sizeof(handle));
	for (size_t i = sizeof(handle); i < sizeof(room); i++)
		assert_int_equal(room[i], made ? 0 : -1);
	return made;
}

#define EXPORTED "retain:1 descriptor:1 close:620 retain:2 descriptor:2 close:620"
#define REGISTERED "listen:1 " EXPORTED

/* Exports the first chunks, and lets the thread run until its next accept fails. */
static void serve(unsigned connections)
{
	if (!first.chunked.exported)
		assert_true(export_it(&first.chunked));
	what_was_said();
	world.accepts = connections;
	assert_null(serving(NULL));
	assert_int_equal(spill_thread.depth, 0);
}

#endif
