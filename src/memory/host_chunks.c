#include "host_chunks.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "account.h"
#include "clock.h"
#include "host_ahead.h"
#include "chunked.h"
#include "process.h"

/* Kept after promotion, for the next demotion; more if host.ahead says so. */
#define KEPT_BYTES (512ull << 20)
/* Given back at a time: 1 ms each. */
#define TRIMMED 4
/* Different sizes that can be wanted: most chunks are of movable.chunk. */
#define WANTED 32
/* How long nothing is made ahead once host memory was short. */
#define SHORT_NS 1000000000ull

struct kept {
	TAILQ_ENTRY(kept) link;
	const struct spill_backend *backend;
	int device;
	struct spill_host_chunk chunk;
};
TAILQ_HEAD(list, kept);

/* So many of them are to be there ahead of need. */
struct wanted {
	const struct spill_backend *backend;
	int device;
	uint64_t bytes;
	uint64_t count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_HOST_CHUNKS */
static struct list kept = TAILQ_HEAD_INITIALIZER(kept);  /* oldest first; charged to the host account */
static _Atomic uint64_t kept_bytes;
static struct wanted wanted[WANTED]; /* together at most host.ahead bytes */
static unsigned wanted_count;
static uint64_t short_until_ns;

static uint64_t ahead_bytes(void)
{
	return spill_amount_resolve(spill_process_policy()->host_ahead, 0, 0);
}

/* Gives it back to the vendor, and its account. */
static void release(const struct spill_backend *backend, const struct spill_host_chunk *chunk)
{
	spill_view_end(backend, chunk->view, chunk->bytes);
	backend->physical->release(chunk->handle);
	spill_account_physical_return(chunk->bytes);
}

/* Of those that have left `kept`. Returns their bytes. */
static uint64_t release_all(struct list *list)
{
	uint64_t bytes = 0;
	struct kept *one;
	while ((one = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, one, link);
		release(one->backend, &one->chunk);
		bytes += one->chunk.bytes;
		free(one);
	}
	return bytes;
}

/* pre: locked */
static void move_to(struct list *list, struct kept *one)
{
	TAILQ_REMOVE(&kept, one, link);
	TAILQ_INSERT_TAIL(list, one, link);
	kept_bytes -= one->chunk.bytes;
}

/* pre: locked */
static void insert(struct kept *one)
{
	TAILQ_INSERT_TAIL(&kept, one, link);
	kept_bytes += one->chunk.bytes;
}

static bool is(const struct kept *one, const struct spill_backend *backend, int device, uint64_t bytes)
{
	return one->backend == backend && one->device == device && one->chunk.bytes == bytes;
}

/*
 * Compares what is kept with what is wanted: stores how many of each are missing, and returns the oldest that is kept and
 * not wanted, or NULL. pre: locked
 */
static struct kept *compare(uint64_t missing[WANTED])
{
	struct kept *one, *oldest = NULL;
	for (unsigned i = 0; i < wanted_count; i++)
		missing[i] = wanted[i].count;
	TAILQ_FOREACH_REVERSE(one, &kept, list, link)
	{
		unsigned i = 0;
		while (i < wanted_count &&
		       !(missing[i] && is(one, wanted[i].backend, wanted[i].device, wanted[i].bytes)))
			i++;
		if (i < wanted_count)
			missing[i]--;
		else
			oldest = one;
	}
	return oldest;
}

static uint64_t most_kept(void)
{
	uint64_t ahead = ahead_bytes();
	return ahead > KEPT_BYTES ? ahead : KEPT_BYTES;
}

/*
 * So many at most of what is too much to be kept leave the list, the oldest first, and nothing that is wanted. While chunks go and
 * come all the time, all that was made is needed again; who is refused host memory gets it. pre: locked
 */
static void evict(struct list *list, unsigned count)
{
	uint64_t missing[WANTED];
	struct kept *one;
	if (spill_chunked_is_held())
		return;
	while (count-- && kept_bytes > most_kept() && (one = compare(missing)) != NULL)
		move_to(list, one);
}

bool spill_host_chunks_trim(void)
{
	struct list out = TAILQ_HEAD_INITIALIZER(out);
	if (kept_bytes <= most_kept())
		return false;
	pthread_mutex_lock(&lock);
	evict(&out, TRIMMED);
	bool more = spill_chunked_is_held() || !TAILQ_EMPTY(&out);
	pthread_mutex_unlock(&lock);
	release_all(&out);
	return more;
}

/* pre: locked. False: nothing is missing */
static bool next_missing(struct wanted *next)
{
	uint64_t missing[WANTED];
	compare(missing);
	for (unsigned i = 0; i < wanted_count; i++)
		if (missing[i]) {
			*next = wanted[i];
			return true;
		}
	return false;
}

static struct kept *take(const struct spill_backend *backend, int device, uint64_t bytes)
{
	struct list none = TAILQ_HEAD_INITIALIZER(none);
	pthread_mutex_lock(&lock);
	struct kept *one = TAILQ_FIRST(&kept);
	while (one && !is(one, backend, device, bytes))
		one = TAILQ_NEXT(one, link);
	if (one)
		move_to(&none, one);
	pthread_mutex_unlock(&lock);
	return one;
}

/* As spill_host_chunk_get, of none that is kept. */
static const char *make(const struct spill_backend *backend, int device, uint64_t bytes,
                        struct spill_host_chunk *chunk)
{
	uint64_t handle;
	const char *refused = spill_physical_charge(spill_process_policy(), bytes);
	if (refused)
		return refused;
	int result = backend->physical->create(device, true, bytes, &handle);
	if (result) {
		spill_account_physical_return(bytes);
		return backend->error_name(result);
	}
	*chunk = (struct spill_host_chunk){.handle = handle, .bytes = bytes};
	return NULL;
}

const char *spill_host_chunk_get(const struct spill_backend *backend, int device, uint64_t bytes,
                                 struct spill_host_chunk *chunk)
{
	struct kept *one = take(backend, device, bytes);
	if (one) {
		*chunk = one->chunk;
		free(one);
		return NULL;
	}
	const char *error = make(backend, device, bytes, chunk);
	/* What is kept in other sizes may be what is missing. */
	if (error && spill_host_chunks_drop(backend))
		error = make(backend, device, bytes, chunk);
	return error;
}

void spill_host_chunk_put(const struct spill_backend *backend, int device,
                          const struct spill_host_chunk *chunk, bool keep)
{
	struct list out = TAILQ_HEAD_INITIALIZER(out);
	struct kept *one = keep ? malloc(sizeof(*one)) : NULL;
	if (!one) {
		release(backend, chunk);
		return;
	}
	*one = (struct kept){.backend = backend, .device = device, .chunk = *chunk};
	pthread_mutex_lock(&lock);
	insert(one);
	evict(&out, UINT_MAX);
	pthread_mutex_unlock(&lock);
	release_all(&out);
}

/* Takes those of a device (-1: of all) out of what is kept. pre: locked */
static void take_all(const struct spill_backend *backend, int device, struct list *list)
{
	for (struct kept *one = TAILQ_FIRST(&kept), *next; one; one = next) {
		next = TAILQ_NEXT(one, link);
		if (one->backend == backend && (device < 0 || one->device == device))
			move_to(list, one);
	}
}

uint64_t spill_host_chunks_drop(const struct spill_backend *backend)
{
	struct list out = TAILQ_HEAD_INITIALIZER(out);
	pthread_mutex_lock(&lock);
	take_all(backend, -1, &out);
	/* Or the thread would take back at once what somebody else needs. */
	short_until_ns = spill_clock_ns() + SHORT_NS;
	pthread_mutex_unlock(&lock);
	return release_all(&out);
}

/* pre: locked */
static void want_none(const struct spill_backend *backend, int device)
{
	unsigned left = 0;
	for (unsigned i = 0; i < wanted_count; i++)
		if (wanted[i].backend != backend || wanted[i].device != device)
			wanted[left++] = wanted[i];
	wanted_count = left;
}

/* pre: locked. False if there is no place for one more size */
static bool want(const struct spill_backend *backend, int device, uint64_t bytes)
{
	unsigned i = 0;
	while (i < wanted_count &&
	       !(wanted[i].backend == backend && wanted[i].device == device && wanted[i].bytes == bytes))
		i++;
	if (i == WANTED)
		return false;
	if (i == wanted_count)
		wanted[wanted_count++] = (struct wanted){backend, device, bytes, 0};
	wanted[i].count++;
	return true;
}

/* pre: locked. What other devices want comes off the same bound. */
static uint64_t left_to_want(uint64_t most)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < wanted_count; i++)
		sum += wanted[i].bytes * wanted[i].count;
	return most > sum ? most - sum : 0;
}

void spill_host_chunks_ahead(const struct spill_backend *backend, int device, const uint64_t *sizes,
                             unsigned count)
{
	uint64_t most = ahead_bytes();
	struct wanted next;
	if (!most)
		return;
	pthread_mutex_lock(&lock);
	want_none(backend, device);
	uint64_t left = left_to_want(most);
	for (unsigned i = 0; i < count && sizes[i] <= left && want(backend, device, sizes[i]); i++)
		left -= sizes[i];
	bool wake = next_missing(&next) && spill_clock_ns() >= short_until_ns;
	pthread_mutex_unlock(&lock);
	if (wake)
		spill_host_ahead_wake();
}

/* Keeps what was made ahead, if it is still wanted and nobody was refused host memory meanwhile. */
static bool keep_made(const struct wanted *made, const struct spill_host_chunk *chunk)
{
	struct list out = TAILQ_HEAD_INITIALIZER(out);
	uint64_t missing[WANTED];
	struct kept *one = malloc(sizeof(*one));
	bool keep = false;
	pthread_mutex_lock(&lock);
	compare(missing);
	for (unsigned i = 0; one && i < wanted_count && spill_clock_ns() >= short_until_ns; i++)
		keep = keep || (missing[i] && wanted[i].backend == made->backend &&
		                wanted[i].device == made->device && wanted[i].bytes == made->bytes);
	if (keep) {
		*one = (struct kept){.backend = made->backend, .device = made->device, .chunk = *chunk};
		insert(one);
		evict(&out, UINT_MAX);
	}
	pthread_mutex_unlock(&lock);
	release_all(&out);
	if (keep)
		return true;
	release(made->backend, chunk);
	free(one);
	return false;
}

bool spill_host_chunks_make(void)
{
	struct wanted next;
	struct spill_host_chunk chunk = {0};
	/* The vendor makes memory and maps it under the same lock; who has moved something wakes us behind it. */
	if (spill_mover_busy())
		return false;
	pthread_mutex_lock(&lock);
	bool missing = spill_clock_ns() >= short_until_ns && next_missing(&next);
	pthread_mutex_unlock(&lock);
	if (!missing)
		return false;
	if (!make(next.backend, next.device, next.bytes, &chunk)) {
		/* Mapped for the copy while nobody waits (move.h); without that the move does it. */
		chunk.view = spill_view_make(next.backend, next.device, chunk.handle, chunk.bytes);
		return keep_made(&next, &chunk);
	}
	pthread_mutex_lock(&lock);
	short_until_ns = spill_clock_ns() + SHORT_NS;
	pthread_mutex_unlock(&lock);
	return false;
}

void spill_host_chunks_forget(const struct spill_backend *backend, int device)
{
	struct list out = TAILQ_HEAD_INITIALIZER(out);
	pthread_mutex_lock(&lock);
	want_none(backend, device);
	take_all(backend, device, &out);
	pthread_mutex_unlock(&lock);
	release_all(&out);
}

void spill_host_chunks_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

/* Its parent's memory is not the child's to give back. */
void spill_host_chunks_fork_done(bool child)
{
	if (child) {
		TAILQ_INIT(&kept);
		kept_bytes = 0;
		short_until_ns = wanted_count = 0;
		spill_host_ahead_fork_child();
	}
	pthread_mutex_unlock(&lock);
}
