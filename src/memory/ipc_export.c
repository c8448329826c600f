/*
 * The exporter's side of ipc.h: the list of exported placements, and the thread that serves their
 * chunks. It starts with the first export. It ends with the process, also if it is the last thread
 * there is.
 */
#include "ipc.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "ledger.h"
#include "lock.h"
#include "process.h"
#include "shared_chunks.h"
#include "small_file.h"
#include "thread.h"

/* How often a caller looks whether another thread has started the serving thread. */
#define POLL_NS 100000
/* A pause after an accept that lacked something, so that there is no busy loop. */
#define RETRY_NS 10000000

struct part {
	uint64_t handle, bytes; /* a handle of our own: the memory lives as long as this entry. */
};

struct spill_ipc_exported {
	LIST_ENTRY(spill_ipc_exported) link;
	const struct spill_backend *backend;
	uint64_t number;
	unsigned users; /* the placement, and each answer that is being given. */
	unsigned count;
	struct part parts[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_IPC_EXPORT */
static LIST_HEAD(exported_list, spill_ipc_exported) list = LIST_HEAD_INITIALIZER(list);
static uint64_t last_number;

/* -- the list ---------------------------------------------------------------------------------- */

static void release_parts(const struct spill_ipc_exported *exported)
{
	for (unsigned i = 0; i < exported->count; i++)
		exported->backend->physical->release(exported->parts[i].handle);
}

/* Ends one use. */
static void drop(struct spill_ipc_exported *exported)
{
	pthread_mutex_lock(&lock);
	bool last = --exported->users == 0;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	release_parts(exported);
	free(exported);
}

static struct spill_ipc_exported *use(uint64_t number)
{
	struct spill_ipc_exported *exported;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(exported, &list, link)
	if (exported->number == number) {
		exported->users++;
		break;
	}
	pthread_mutex_unlock(&lock);
	return exported;
}

/* Takes a handle of each chunk. NULL: one cannot be handed on, or there is no memory. */
static struct spill_ipc_exported *make(const struct spill_chunked *chunked)
{
	const struct spill_backend *backend = chunked->base.backend;
	struct spill_ipc_exported *made = malloc(sizeof(*made) + chunked->count * sizeof(struct part));
	int descriptor = -1;
	if (!made)
		return NULL;
	*made = (struct spill_ipc_exported){.backend = backend, .users = 1};
	for (unsigned i = 0; i < chunked->count; i++) {
		struct part *part = &made->parts[i];
		part->bytes = chunked->chunks[i].bytes;
		if (chunked->chunks[i].unmapped ||
		    backend->physical->retain(spill_chunked_address(chunked, i), &part->handle))
			goto fail;
		made->count++;
		/* The vendor refuses memory that was made before it was known to be shareable. */
		if (backend->physical->to_descriptor(part->handle, &descriptor))
			goto fail;
		close(descriptor);
	}
	return made;
fail:
	release_parts(made);
	free(made);
	return NULL;
}

/* -- the thread -------------------------------------------------------------------------------- */

/* FAILED: nothing is served, for good. ENDED: the process ends. Who sets STARTING or ENDED uses `thread`. */
enum state { NONE, STARTING, RUNNING, FAILED, ENDED };

static _Atomic enum state state;
static pthread_t thread;
static unsigned char name[SPILL_FD_PASS_NAME];
static _Atomic int listener = -1, connection = -1;
static struct stat listener_file;
static pid_t owner; /* the process that listens; a child that no handler saw has none of it */

static void answer(int socket, const struct spill_ipc_question *question)
{
	struct spill_ipc_answer reply = {0};
	struct spill_ipc_exported *exported = use(question->number);
	int descriptor = -1;
	if (exported && question->index < exported->count) {
		const struct part *part = &exported->parts[question->index];
		if (!exported->backend->physical->to_descriptor(part->handle, &descriptor))
			reply = (struct spill_ipc_answer){exported->count, part->bytes};
	}
	if (exported)
		drop(exported);
	spill_fd_pass_send(socket, &reply, sizeof(reply), descriptor);
	if (descriptor >= 0)
		close(descriptor);
}

static void serve(int socket)
{
	struct spill_ipc_question question;
	int unwanted;
	while (atomic_load(&state) != ENDED &&
	       spill_fd_pass_receive(socket, &question, sizeof(question), &unwanted)) {
		if (unwanted >= 0)
			close(unwanted);
		answer(socket, &question);
	}
}

/*
 * A process ends with the last of its threads, and this one is not the program's. A main thread that has
 * ended stays as a zombie beside the last one. The folder has a link for each thread, its own two
 * besides. Without /proc this thread is taken for one of several.
 */
static bool is_last_thread(void)
{
	char text[512];
	struct stat folder;
	if (stat("/proc/self/task", &folder) || folder.st_nlink != 4 ||
	    !spill_small_file_read("/proc/self/stat", text, sizeof(text)))
		return false;
	const char *name_end = strrchr(text, ')'); /* PID (NAME) STATE … */
	return name_end && strncmp(name_end, ") Z", 3) == 0;
}

/* An error of accept that passes, or is about one connection. */
static bool goes_on(int error)
{
	if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM)
		spill_clock_sleep(RETRY_NS);
	else if (error != EAGAIN && error != EACCES && error != ECONNABORTED && error != EINTR)
		return false;
	return error != EAGAIN || !is_last_thread();
}

/* Nothing is served any more. The thread goes by itself, and the process may end with it. */
static void leave(void)
{
	enum state running = RUNNING, starting = STARTING;
	if (atomic_compare_exchange_strong(&state, &running, FAILED) ||
	    atomic_compare_exchange_strong(&state, &starting, FAILED))
		pthread_detach(pthread_self());
	spill_thread.depth = 0;
}

/* Programs close descriptors that they did not open, and the number can be another file's by now. */
static bool is_still_ours(int socket)
{
	struct stat file;
	return !fstat(socket, &file) && file.st_dev == listener_file.st_dev &&
	       file.st_ino == listener_file.st_ino;
}

static void *serving_thread(void *unused)
{
	spill_thread.depth = 1; /* its calls are libspill's */
	pthread_setname_np(pthread_self(), "spill-ipc");
	while (atomic_load(&state) != ENDED && is_still_ours(atomic_load(&listener))) {
		int socket = spill_fd_pass_accept(atomic_load(&listener));
		if (socket >= 0) {
			atomic_store(&connection, socket);
			serve(socket);
			atomic_store(&connection, -1);
			close(socket);
		} else if (!goes_on(errno)) {
			break;
		}
	}
	leave();
	return NULL;
}

/* Runs at exit, and when this library is unloaded, as the end of host_ahead.c. */
static void end_thread(void)
{
	if (owner != getpid() || atomic_exchange(&state, ENDED) != RUNNING)
		return;
	if (is_still_ours(atomic_load(&listener)))
		shutdown(atomic_load(&listener), SHUT_RDWR);
	int socket = atomic_load(&connection);
	if (socket >= 0)
		shutdown(socket, SHUT_RDWR);
	spill_thread_end(thread);
}

/* A child of a fork inherits what is registered. */
static bool prepare(void)
{
	static bool registered; /* by the caller that set STARTING */
	if (!registered)
		registered = atexit(end_thread) == 0;
	if (!registered || getrandom(name, sizeof(name), GRND_NONBLOCK) != sizeof(name))
		return false;
	int socket = spill_fd_pass_listen(name);
	bool good = socket >= 0 && !fstat(socket, &listener_file);
	if (socket >= 0 && !good)
		close(socket);
	owner = getpid();
	if (good)
		atomic_store(&listener, socket);
	return good;
}

static void close_listener(void)
{
	int socket = atomic_exchange(&listener, -1);
	if (socket >= 0 && is_still_ours(socket))
		close(socket);
}

/* False: nothing is served in this process. Waits while another thread starts the serving thread. */
static bool serves(void)
{
	enum state none = NONE, starting = STARTING;
	if (atomic_compare_exchange_strong(&state, &none, STARTING)) {
		bool started = prepare() && spill_thread_start(&thread, serving_thread);
		if (!started)
			close_listener();
		atomic_compare_exchange_strong(&state, &starting, started ? RUNNING : FAILED);
	}
	while (atomic_load(&state) == STARTING)
		spill_clock_sleep(POLL_NS);
	return atomic_load(&state) == RUNNING;
}

/* -- for the engine ---------------------------------------------------------------------------- */

bool spill_ipc_serves(const struct spill_allocation *allocation)
{
	const struct spill_vendor_physical *physical = allocation->backend->physical;
	bool chunks = allocation->place == SPILL_PLACE_MOVABLE || allocation->place == SPILL_PLACE_SPLIT;
	return chunks && !allocation->ordered && !allocation->handle &&
	       allocation->bytes > SPILL_SHARED_CHUNKS_LARGEST && physical && physical->shareable &&
	       physical->shareable(allocation->device, false) &&
	       (!allocation->held.host || physical->shareable(allocation->device, true));
}

bool spill_ipc_export(struct spill_placement *placement, uint64_t bytes, void *handle)
{
	struct spill_chunked *chunked = spill_chunked_of(placement);
	struct spill_ipc_handle made = {.magic = SPILL_IPC_MAGIC, .bytes = bytes};
	if (!chunked || chunked->set || !placement->backend->physical->to_descriptor || !serves())
		return false;
	struct spill_ipc_exported *mine = chunked->exported ? NULL : make(chunked);
	pthread_mutex_lock(&lock);
	if (mine && !chunked->exported) {
		mine->number = ++last_number;
		LIST_INSERT_HEAD(&list, mine, link);
		chunked->exported = mine;
		mine = NULL;
	}
	if (chunked->exported)
		made.number = chunked->exported->number;
	pthread_mutex_unlock(&lock);
	if (mine)
		drop(mine); /* another thread was first */
	if (!made.number)
		return false;
	memcpy(made.name, name, sizeof(name));
	memset(handle, 0, SPILL_IPC_HANDLE_BYTES);
	memcpy(handle, &made, sizeof(made));
	return true;
}

bool spill_ipc_is_own(const void *handle)
{
	const struct spill_ipc_handle *made = handle;
	return atomic_load(&state) == RUNNING && memcmp(made->name, name, sizeof(name)) == 0;
}

void spill_ipc_exported_ends(struct spill_chunked *chunked)
{
	struct spill_ipc_exported *exported = chunked->exported;
	if (!exported)
		return;
	pthread_mutex_lock(&lock);
	LIST_REMOVE(exported, link);
	pthread_mutex_unlock(&lock);
	chunked->exported = NULL;
	drop(exported);
}

/* The child of a fork has no thread, no device, and no business with its parent's importers. */
static void forget_parent(void)
{
	LIST_INIT(&list);
	close_listener();
	int inherited = atomic_exchange(&connection, -1);
	if (inherited >= 0)
		close(inherited);
	if (atomic_load(&state) != ENDED)
		atomic_store(&state, NONE);
}

const struct spill_fork_lock spill_ipc_export_fork_lock = {&lock, forget_parent};
