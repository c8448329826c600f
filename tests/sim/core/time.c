/*
 * SPILL_SIM_TIME: a model of time. Work takes as long as the model says, however fast this machine
 * is, and the difference is waited out.
 *
 * - A kernel takes `launch`, and the bytes that it says it uses (SIM_RANGE in kernel.h). Those on
 *   its device take `device`, all others `link`. What a kernel uses again comes over the link
 *   again. On the device a cache serves it, so it takes no more.
 * - A copy takes its bytes at `link`. Each device carries one copy a way at a time, and both ways
 *   at once. Within a device a copy reads and writes at `device`.
 * - A set takes its bytes at the rate of the place.
 *
 * Streams do not slow each other down, but for copies. Other work takes as long as it really takes.
 * So do kernels that do not say which bytes they use, such as those that wait for the host.
 *
 * Events have the modelled times. So these are the same twice, even on a busy machine, as long as
 * the program runs ahead of the device.
 */
#include <errno.h>
#include <time.h>

#include "core_internal.h"

/* The work that this thread runs. */
static __thread struct {
	uint64_t at; /* modelled time so far */
	bool modelled;
} work;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t carries[SIM_DEVICES][2]; /* until then, each way of the link; under the lock */

static bool is_on(void)
{
	const struct sim_config *config = sim_config();

	return config->time_device || config->time_link || config->time_launch;
}

static uint64_t ns_of(uint64_t bytes, uint64_t bytes_per_second)
{
	return bytes_per_second ? (uint64_t)((double)bytes * 1e9 / (double)bytes_per_second) : 0;
}

/* -- where the bytes are ----------------------------------------------------------------------- */

/*
 * Does the device itself have the granule's memory? *again: if not, it fetches it at each use.
 * pre: sim_memory_lock is held
 */
static bool is_local(uint64_t address, int device, bool *again)
{
	const struct range *range = va_range(address);
	const uint64_t granule = range ? (address - range->address) / SIM_GRANULE : 0;

	*again = true;
	if (!range)
		return false; /* the program's own memory */
	if (range->kind == SIM_VMM) {
		const struct mapping *mapping = range->map[granule];

		return mapping && mapping->physical->place == SIM_ON_DEVICE &&
		       mapping->physical->id == device;
	}
	if (range->kind == SIM_MANAGED) {
		const struct page *page = &range->page[granule];

		*again = page->mapped & 1u << device; /* else the first use brings the page */
		return page->resident == device;
	}
	return range->kind == SIM_DEVICE && range->device == device;
}

struct split {
	uint64_t local, remote, fetched; /* bytes; `fetched`: those of `remote`, as often as they come */
};

static struct split split_of(uint64_t address, uint64_t bytes, uint64_t times, int device)
{
	struct split split = {0};
	bool again;

	pthread_mutex_lock(&sim_memory_lock);
	for (uint64_t at = address, end = address + bytes, next; at < end; at = next) {
		next = at / SIM_GRANULE * SIM_GRANULE + SIM_GRANULE;
		next = next < end ? next : end;
		if (is_local(at, device, &again)) {
			split.local += next - at;
			continue;
		}
		split.remote += next - at;
		split.fetched += (next - at) * (again ? times : 1);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return split;
}

/* -- what work says ---------------------------------------------------------------------------- */

void time_launch(void)
{
	work.at += sim_config()->time_launch * 1000;
}

void time_use(uint64_t address, uint64_t bytes, uint64_t times, int device)
{
	if (!is_on() || !bytes || !times)
		return;
	struct split split = split_of(address, bytes, times, device);
	work.at += ns_of(split.local, sim_config()->time_device);
	work.at += ns_of(split.fetched, sim_config()->time_link);
	work.modelled = true;
}

void time_copy(uint64_t to, uint64_t from, uint64_t bytes, int device)
{
	if (!is_on())
		return;
	const struct split in = split_of(from, bytes, 1, device), out = split_of(to, bytes, 1, device);
	const uint64_t remote = in.remote > out.remote ? in.remote : out.remote;

	work.modelled = true;
	work.at += ns_of(2 * (bytes - remote), sim_config()->time_device);
	if (!remote)
		return;
	pthread_mutex_lock(&lock);
	uint64_t *until = &carries[device][out.remote >= in.remote];
	if (work.at < *until)
		work.at = *until;
	work.at += ns_of(remote, sim_config()->time_link);
	*until = work.at;
	pthread_mutex_unlock(&lock);
}

/* -- the stream's part ------------------------------------------------------------------------- */

uint64_t time_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void time_begin(uint64_t start)
{
	work.at = start;
	work.modelled = false;
}

static void wait_until(uint64_t ns)
{
	const struct timespec end = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

uint64_t time_end(bool nothing)
{
	uint64_t now = time_now();

	if (!is_on())
		return now;
	if (now < work.at)
		wait_until(work.at);
	return work.modelled || nothing || now < work.at ? work.at : now;
}
