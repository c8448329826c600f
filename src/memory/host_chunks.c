#include "host_chunks.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "account.h"
#include "clock.h"
#include "chunked.h"
#include "process.h"

/* Most bytes kept after promotions, for the next demotion. host.ahead can raise it. */
#define MOST_KEPT_BYTES (512ull << 20)
/* Chunks that one trim releases, 1 ms each. */
#define TRIM_COUNT 4
/* Sizes that can be wanted. Most chunks have the size movable.chunk. */
#define MOST_SIZES 32
/* How long no chunk is made ahead after host memory was short. */
#define SHORT_NS 1000000000ull

struct kept_chunk {
	TAILQ_ENTRY(kept_chunk) link;
	const struct spill_backend *backend;
	int device;
	struct spill_host_chunk chunk;
};
TAILQ_HEAD(chunk_list, kept_chunk);

/* Chunks of one size to have ahead of need. */
struct wanted_size {
	const struct spill_backend *backend;
	int device;
	uint64_t bytes;
	uint64_t count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_HOST_CHUNKS */
/* Oldest first; charged to the host account. */
static struct chunk_list kept_chunks = TAILQ_HEAD_INITIALIZER(kept_chunks);
static _Atomic uint64_t kept_bytes;
static struct wanted_size wanted_sizes[MOST_SIZES]; /* together at most host.ahead bytes */
static unsigned wanted_count;
static uint64_t short_until_ns;

static uint64_t host_ahead_bytes(void)
{
	return spill_amount_resolve(spill_process_policy()->host_ahead, 0, 0);
}

/* Releases a chunk and its charge. */
static void release_chunk(const struct spill_backend *backend, const struct spill_host_chunk *chunk)
{
	spill_view_end(backend, chunk->view, chunk->bytes);
	backend->physical->release(chunk->handle);
	spill_account_physical_return(chunk->bytes);
}

/* Releases chunks that are no longer in `kept_chunks`. Returns their bytes. */
static uint64_t release_list(struct chunk_list *list)
{
	uint64_t bytes = 0;
	struct kept_chunk *kept;
	while ((kept = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, kept, link);
		release_chunk(kept->backend, &kept->chunk);
		bytes += kept->chunk.bytes;
		free(kept);
	}
	return bytes;
}

/* pre: locked */
static void move_to_list(struct chunk_list *list, struct kept_chunk *kept)
{
	TAILQ_REMOVE(&kept_chunks, kept, link);
	TAILQ_INSERT_TAIL(list, kept, link);
	kept_bytes -= kept->chunk.bytes;
}

/* pre: locked */
static void add_kept(struct kept_chunk *kept)
{
	TAILQ_INSERT_TAIL(&kept_chunks, kept, link);
	kept_bytes += kept->chunk.bytes;
}

static bool kept_matches(const struct kept_chunk *kept, const struct spill_backend *backend, int device,
                         uint64_t bytes)
{
	return kept->backend == backend && kept->device == device && kept->chunk.bytes == bytes;
}

/*
 * Compares kept with wanted chunks. Stores the missing number of each size. Returns the oldest
 * surplus chunk, or NULL. pre: locked
 */
static struct kept_chunk *find_surplus(uint64_t missing[MOST_SIZES])
{
	struct kept_chunk *kept, *oldest = NULL;
	for (unsigned i = 0; i < wanted_count; i++)
		missing[i] = wanted_sizes[i].count;
	TAILQ_FOREACH_REVERSE(kept, &kept_chunks, chunk_list, link)
	{
		unsigned i = 0;
		while (i < wanted_count &&
		       !(missing[i] && kept_matches(kept, wanted_sizes[i].backend, wanted_sizes[i].device,
		                                    wanted_sizes[i].bytes)))
			i++;
		if (i < wanted_count)
			missing[i]--;
		else
			oldest = kept;
	}
	return oldest;
}

static uint64_t most_kept(void)
{
	uint64_t ahead = host_ahead_bytes();
	return ahead > MOST_KEPT_BYTES ? ahead : MOST_KEPT_BYTES;
}

/*
 * Takes up to `count` surplus chunks, oldest first, and none that is wanted. None while exchanges
 * follow each other: then all are needed again, and a request that is refused host memory drops
 * them. pre: locked
 */
static void take_surplus(struct chunk_list *list, unsigned count)
{
	uint64_t missing[MOST_SIZES];
	struct kept_chunk *kept;
	if (spill_chunked_is_held())
		return;
	while (count-- && kept_bytes > most_kept() && (kept = find_surplus(missing)) != NULL)
		move_to_list(list, kept);
}

bool spill_host_chunks_trim(void)
{
	struct chunk_list out = TAILQ_HEAD_INITIALIZER(out);
	if (kept_bytes <= most_kept())
		return false;
	pthread_mutex_lock(&lock);
	take_surplus(&out, TRIM_COUNT);
	bool more = spill_chunked_is_held() || !TAILQ_EMPTY(&out);
	pthread_mutex_unlock(&lock);
	release_list(&out);
	return more;
}

/* pre: locked. False: nothing is missing */
static bool next_missing(struct wanted_size *next)
{
	uint64_t missing[MOST_SIZES];
	find_surplus(missing);
	for (unsigned i = 0; i < wanted_count; i++)
		if (missing[i]) {
			*next = wanted_sizes[i];
			return true;
		}
	return false;
}

static struct kept_chunk *take_kept(const struct spill_backend *backend, int device, uint64_t bytes)
{
	struct chunk_list none = TAILQ_HEAD_INITIALIZER(none);
	pthread_mutex_lock(&lock);
	struct kept_chunk *kept = TAILQ_FIRST(&kept_chunks);
	while (kept && !kept_matches(kept, backend, device, bytes))
		kept = TAILQ_NEXT(kept, link);
	if (kept)
		move_to_list(&none, kept);
	pthread_mutex_unlock(&lock);
	return kept;
}

/* Makes a new chunk, as spill_host_chunk_get. */
static const char *make_chunk(const struct spill_backend *backend, int device, uint64_t bytes,
                              struct spill_host_chunk *chunk)
{
	uint64_t handle;
	const char *refused = spill_physical_charge(spill_process_policy(), bytes);
	if (refused)
		return refused;
	int result = spill_chunk_create(backend, device, true, bytes, &handle);
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
	struct kept_chunk *kept = take_kept(backend, device, bytes);
	if (kept) {
		*chunk = kept->chunk;
		free(kept);
		return NULL;
	}
	const char *error = make_chunk(backend, device, bytes, chunk);
	/* Kept chunks of other sizes may use up the host memory. */
	if (error && spill_host_chunks_drop(backend))
		error = make_chunk(backend, device, bytes, chunk);
	return error;
}

void spill_host_chunk_put(const struct spill_backend *backend, int device,
                          const struct spill_host_chunk *chunk, bool keep)
{
	struct chunk_list out = TAILQ_HEAD_INITIALIZER(out);
	struct kept_chunk *kept = keep ? malloc(sizeof(*kept)) : NULL;
	if (!kept) {
		release_chunk(backend, chunk);
		return;
	}
	*kept = (struct kept_chunk){.backend = backend, .device = device, .chunk = *chunk};
	pthread_mutex_lock(&lock);
	add_kept(kept);
	take_surplus(&out, UINT_MAX);
	pthread_mutex_unlock(&lock);
	release_list(&out);
}

/* Takes the kept chunks of a device; -1: of all devices. pre: locked */
static void take_kept_of(const struct spill_backend *backend, int device, struct chunk_list *list)
{
	for (struct kept_chunk *kept = TAILQ_FIRST(&kept_chunks), *next; kept; kept = next) {
		next = TAILQ_NEXT(kept, link);
		if (kept->backend == backend && (device < 0 || kept->device == device))
			move_to_list(list, kept);
	}
}

uint64_t spill_host_chunks_drop(const struct spill_backend *backend)
{
	struct chunk_list out = TAILQ_HEAD_INITIALIZER(out);
	pthread_mutex_lock(&lock);
	take_kept_of(backend, -1, &out);
	/* Else the thread would at once take the memory that was just released for a request. */
	short_until_ns = spill_clock_ns() + SHORT_NS;
	pthread_mutex_unlock(&lock);
	return release_list(&out);
}

/* pre: locked */
static void clear_wanted(const struct spill_backend *backend, int device)
{
	unsigned left = 0;
	for (unsigned i = 0; i < wanted_count; i++)
		if (wanted_sizes[i].backend != backend || wanted_sizes[i].device != device)
			wanted_sizes[left++] = wanted_sizes[i];
	wanted_count = left;
}

static bool is_of_size(const struct wanted_size *size, const struct spill_backend *backend, int device,
                       uint64_t bytes)
{
	return size->backend == backend && size->device == device && size->bytes == bytes;
}

/* pre: locked. False: there is no room for one more size */
static bool add_wanted(const struct spill_backend *backend, int device, uint64_t bytes)
{
	unsigned i = 0;
	while (i < wanted_count && !is_of_size(&wanted_sizes[i], backend, device, bytes))
		i++;
	if (i == MOST_SIZES)
		return false;
	if (i == wanted_count)
		wanted_sizes[wanted_count++] = (struct wanted_size){backend, device, bytes, 0};
	wanted_sizes[i].count++;
	return true;
}

/* The part of host.ahead that other devices leave. pre: locked */
static uint64_t wanted_room(uint64_t most)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < wanted_count; i++)
		sum += wanted_sizes[i].bytes * wanted_sizes[i].count;
	return most > sum ? most - sum : 0;
}

void spill_host_chunks_ahead(const struct spill_backend *backend, int device, const uint64_t *sizes,
                             unsigned count)
{
	uint64_t most = host_ahead_bytes();
	struct wanted_size next;
	if (!most)
		return;
	pthread_mutex_lock(&lock);
	clear_wanted(backend, device);
	uint64_t left = wanted_room(most);
	for (unsigned i = 0; i < count && sizes[i] <= left && add_wanted(backend, device, sizes[i]); i++)
		left -= sizes[i];
	bool wake = next_missing(&next) && spill_clock_ns() >= short_until_ns;
	pthread_mutex_unlock(&lock);
	if (wake)
		spill_host_ahead_wake();
}

/* Keeps a chunk that was made ahead, if it is still missing and host memory is not short. */
static bool keep_made(const struct wanted_size *made, const struct spill_host_chunk *chunk)
{
	struct chunk_list out = TAILQ_HEAD_INITIALIZER(out);
	uint64_t missing[MOST_SIZES];
	struct kept_chunk *kept = malloc(sizeof(*kept));
	bool keep = false;
	pthread_mutex_lock(&lock);
	bool short_of_host = spill_clock_ns() < short_until_ns;
	find_surplus(missing);
	for (unsigned i = 0; kept && !short_of_host && i < wanted_count; i++)
		keep = keep ||
		       (missing[i] && is_of_size(&wanted_sizes[i], made->backend, made->device, made->bytes));
	if (keep) {
		*kept =
		    (struct kept_chunk){.backend = made->backend, .device = made->device, .chunk = *chunk};
		add_kept(kept);
		take_surplus(&out, UINT_MAX);
	}
	pthread_mutex_unlock(&lock);
	release_list(&out);
	if (keep)
		return true;
	release_chunk(made->backend, chunk);
	free(kept);
	return false;
}

bool spill_host_chunks_make(void)
{
	struct wanted_size next;
	struct spill_host_chunk chunk = {0};
	/*
	 * The vendor makes and maps memory under one lock. The mover wakes this thread when it is
	 * done.
	 */
	if (spill_mover_busy())
		return false;
	pthread_mutex_lock(&lock);
	bool missing = spill_clock_ns() >= short_until_ns && next_missing(&next);
	pthread_mutex_unlock(&lock);
	if (!missing)
		return false;
	if (!make_chunk(next.backend, next.device, next.bytes, &chunk)) {
		/*
		 * Maps it for the copy while the program does not wait (move.h). If that fails, the
		 * move does.
		 */
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
	struct chunk_list out = TAILQ_HEAD_INITIALIZER(out);
	pthread_mutex_lock(&lock);
	clear_wanted(backend, device);
	take_kept_of(backend, device, &out);
	pthread_mutex_unlock(&lock);
	release_list(&out);
}

/* The memory is the parent's, so the child does not release it. */
static void forget_parent(void)
{
	TAILQ_INIT(&kept_chunks);
	kept_bytes = 0;
	short_until_ns = wanted_count = 0;
	spill_host_ahead_fork_child();
}

const struct spill_fork_lock spill_host_chunks_fork_lock = {&lock, forget_parent};
