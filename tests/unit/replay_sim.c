#include "replay_sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "access_model.h"
#include "chunk_map.h"
#include "chunked.h"
#include "contexts.h"
#include "exchange.h"
#include "gate.h"
#include "fake_clock.h"
#include "launch_access.h"
#include "movable.h"
#include "process.h"
#include "promote.h"
#include "quiesce.h"
#include "registry.h"

#define US 1000ull
#define MIB ((uint64_t)1 << 20)
/* Measured on an H200: copies between memory that exists, both ways at once. */
#define COPY_NS_PER_MIB 29000
/* Launches that wait on the device before the program has to wait, too. */
#define QUEUE 1024
#define TIMERS (2 * SPILL_STOPWATCHES)
#define MOST_MOVES 4096
#define FIRST_ADDRESS (UINT64_C(0x300) << 32)

struct place {
	struct spill_chunked *chunked;
	unsigned index;
};

struct move {
	struct place of;
	bool to_device;
};

static struct {
	uint64_t done_ns; /* when all work is done */
	uint64_t ends[QUEUE];
	unsigned submitted;
	uint64_t free; /* bytes */
	uint64_t came;
	unsigned timed, unreported; /* launches */
	uint64_t maintained_ns;
	uint64_t lost_ns, used_bytes; /* by uses on the host */
	uint64_t timers[TIMERS];      /* when they pass */
	unsigned timer_count;
	struct move moves[MOST_MOVES]; /* of the exchange that is collected now */
	unsigned move_count, exchanges;
} device;

const struct replay_price replay_usual = {32 * US, 50 * US, 200 * US, 0, 0};
const struct replay_price replay_dear = {32 * US, 50 * US, 200 * US, 500 * US, 3};

static const struct replay_price *price;
static struct spill_policy policy;
static struct place *places; /* of the recording's chunks */
static struct spill_chunked **allocations;
static unsigned allocation_count;

uint64_t replay_copy_ns(uint64_t bytes)
{
	return bytes / MIB * COPY_NS_PER_MIB;
}

/* -- the vendor -------------------------------------------------------------------------------- */

static char context;

static bool start(spill_resolve_fn *resolve)
{
	return true;
}

static bool current(int *number, void **of)
{
	*number = 0;
	*of = &context;
	return true;
}

static int create_timer(int number, void *of, void **timer)
{
	if (device.timer_count == TIMERS)
		return 2;
	*timer = &device.timers[device.timer_count++];
	return 0;
}

/* It passes when all work so far is done. */
static int record_timer(int number, void *of, void *stream, bool per_thread, void *timer)
{
	uint64_t now = spill_clock_ns();
	*(uint64_t *)timer = device.done_ns > now ? device.done_ns : now;
	return 0;
}

static int has_timer_passed(int number, void *of, void *timer, bool *passed)
{
	*passed = *(uint64_t *)timer <= spill_clock_ns();
	return 0;
}

static int between_timers(int number, void *of, void *begin, void *end, uint64_t *ns)
{
	*ns = *(uint64_t *)end - *(uint64_t *)begin;
	return 0;
}

static void destroy_timer(int number, void *of, void *timer)
{
}

static const struct spill_backend vendor = {
    .name = "replay",
    .start = start,
    .devices = &(const struct spill_vendor_devices){.current = current},
    .timers = &(const struct spill_vendor_timers){create_timer, record_timer, has_timer_passed,
                                                  between_timers, destroy_timer},
};

/* -- stand-ins for residency/ and work/ -------------------------------------------------------- */

bool spill_movable_may_move(const struct spill_backend *backend, int number)
{
	return true;
}

uint64_t spill_promote_room(const struct spill_backend *backend, int number)
{
	return device.free;
}

void spill_promote_hold(void)
{
}

bool spill_quiesce_look(const struct spill_backend *backend, int number, uint64_t gate_ns,
                        uint64_t deadline_ns)
{
	uint64_t until = device.done_ns < deadline_ns ? device.done_ns : deadline_ns;
	if (until > spill_clock_ns())
		fake_clock.ns = until;
	return device.done_ns <= spill_clock_ns();
}

uint64_t spill_exchange_kept(void)
{
	return 0;
}

uint64_t spill_exchange_drop(void)
{
	return 0;
}

void spill_exchange_reset(void)
{
	device.move_count = 0;
}

bool spill_exchange_add(struct spill_exchange *exchange, struct spill_chunked *chunked, unsigned index)
{
	const struct spill_chunk *chunk = &chunked->chunks[index];
	struct spill_move_batch *batch = chunk->on_host ? &exchange->comes : &exchange->goes;
	assert_true(device.move_count < MOST_MOVES);
	device.moves[device.move_count++] = (struct move){{chunked, index}, chunk->on_host};
	batch->count++;
	batch->bytes += chunk->bytes;
	return true;
}

/* Moves those that come, or those that leave. Returns their bytes. */
static uint64_t move_all(bool to_device)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < device.move_count; i++) {
		const struct move *move = &device.moves[i];
		struct spill_chunk *chunk = &move->of.chunked->chunks[move->of.index];
		if (move->to_device != to_device || (to_device && chunk->bytes > device.free))
			continue;
		device.free += to_device ? -chunk->bytes : chunk->bytes;
		chunk->displaced = !chunk->displaced;
		spill_chunked_moved(move->of.chunked, move->of.index, 0);
		sum += chunk->bytes;
	}
	return sum;
}

void spill_exchange_carry_out(struct spill_exchange *exchange, uint64_t deadline_ns)
{
	assert_true(device.done_ns <= spill_clock_ns());
	uint64_t went = move_all(false);
	exchange->came = move_all(true);
	exchange->ns = (went > exchange->came ? went : exchange->came) / MIB * price->mib +
	               device.move_count * price->chunk + price->stop;
	if (price->every && ++device.exchanges % price->every == 0)
		exchange->ns += device.move_count * price->made;
	fake_clock.ns += exchange->ns;
	device.came += exchange->came;
	device.move_count = 0;
	exchange->comes = exchange->goes = (struct spill_move_batch){0};
}

/* -- memory ------------------------------------------------------------------------------------ */

/* An allocation of the chunks from `first` on. Returns its number of chunks. */
static unsigned make_allocation(const struct recording *of, unsigned first, uint64_t address, bool resident)
{
	unsigned count = 1;
	while (first + count < of->chunk_count && !of->chunks[first + count].begins)
		count++;
	struct spill_chunked *made = calloc(1, sizeof(*made) + count * sizeof(made->chunks[0]));
	assert_non_null(made);
	made->base.backend = &vendor;
	made->base.ptr = address;
	made->chunk_bytes = of->chunks[first].bytes;
	made->stays_from = UINT64_MAX;
	made->count = count;
	for (unsigned i = 0; i < count; i++) {
		const struct recorded_chunk *chunk = &of->chunks[first + i];
		bool on_host = chunk->on_host && !resident;
		made->chunks[i] =
		    (struct spill_chunk){.offset = made->range, .bytes = chunk->bytes, .on_host = on_host};
		*(on_host ? &made->base.held.host : &made->base.held.device) += chunk->bytes;
		made->range += chunk->bytes;
		places[first + i] = (struct place){made, i};
	}
	allocations[allocation_count++] = made;
	spill_chunked_enlist(made);
	return count;
}

static void make_memory(const struct recording *of, bool resident)
{
	uint64_t address = FIRST_ADDRESS;
	places = calloc(of->chunk_count, sizeof(*places));
	allocations = calloc(of->chunk_count, sizeof(struct spill_chunked *));
	assert_true(places && allocations);
	allocation_count = 0;
	for (unsigned first = 0; first < of->chunk_count;) {
		unsigned count = make_allocation(of, first, address, resident);
		first += count;
		address += allocations[allocation_count - 1]->range;
	}
}

static void free_memory(void)
{
	for (unsigned i = 0; i < allocation_count; i++) {
		spill_chunked_delist(allocations[i]);
		free(allocations[i]);
	}
	free(allocations);
	free(places);
}

/* -- the program ------------------------------------------------------------------------------- */

static bool is_on_host(unsigned chunk)
{
	return places[chunk].chunked->chunks[places[chunk].index].on_host;
}

/* As shim/hints.c tells a launch. */
static void describe(struct spill_launch_access *access, const struct recording *in,
                     const struct recorded_launch *launch)
{
	memset(access, 0, offsetof(struct spill_launch_access, keys));
	access->site = launch->site;
	access->once = launch->once;
	access->graph = launch->graph;
	access->sure = launch->sure;
	for (unsigned i = 0; i < launch->count && i < SPILL_LAUNCH_ACCESS_KEYS; i++) {
		unsigned chunk = launch->uses[i].chunk;
		const struct place *place = &places[chunk];
		uint64_t va = spill_chunked_address(place->chunked, place->index);
		uint32_t key = (uint32_t)(va >> SPILL_CHUNK_MAP_UNIT_SHIFT);
		access->keys[access->count++] = key;
		access->bytes += in->chunks[chunk].bytes;
		if (!is_on_host(chunk))
			continue;
		if (access->on_host < SPILL_LAUNCH_ACCESS_HOST_KEYS)
			access->host_keys[access->on_host] = key;
		access->on_host++;
		access->host_bytes += in->chunks[chunk].bytes;
	}
}

/* Without recorded ranges, each chunk is one. */
static void describe_ranges(struct spill_launch_access *access, const struct recording *in,
                            const struct recorded_launch *launch)
{
	for (unsigned i = 0; !launch->range_count && i < access->count && i < SPILL_LAUNCH_ACCESS_RANGES; i++)
		access->ranges[access->range_count++] = (struct spill_access_range){
		    access->keys[i],
		    (uint32_t)(in->chunks[launch->uses[i].chunk].bytes >> SPILL_CHUNK_MAP_UNIT_SHIFT)};
	for (unsigned i = 0; i < launch->range_count && i < SPILL_LAUNCH_ACCESS_RANGES; i++) {
		const struct recorded_range *range = &launch->ranges[i];
		const struct place *place = &places[range->chunk];
		uint64_t va = spill_chunked_address(place->chunked, place->index);
		access->ranges[access->range_count++] = (struct spill_access_range){
		    (uint32_t)(va >> SPILL_CHUNK_MAP_UNIT_SHIFT) + range->offset, range->units};
	}
}

static void wait_until(uint64_t ns)
{
	if (ns > spill_clock_ns())
		fake_clock.ns = ns;
}

static void submit(const struct recording *in, const struct recorded_launch *launch)
{
	uint64_t lost_ns = 0, bytes = 0, *end = &device.ends[device.submitted++ % QUEUE], now;
	for (unsigned i = 0; i < launch->count; i++)
		if (is_on_host(launch->uses[i].chunk)) {
			lost_ns += launch->uses[i].in_place_ns;
			bytes += in->chunks[launch->uses[i].chunk].bytes;
		}
	device.lost_ns += launch->once ? 0 : lost_ns;
	device.used_bytes += launch->once ? 0 : bytes;
	fake_clock.ns += in->host_ns / 2;
	wait_until(*end); /* the queue is full */
	now = spill_clock_ns();
	device.done_ns = (device.done_ns > now ? device.done_ns : now) + launch->ns + lost_ns;
	*end = device.done_ns;
}

/* As the gate does. */
static void maintain(void)
{
	if (spill_clock_ns() - device.maintained_ns < SPILL_GATE_MAINTENANCE_NS)
		return;
	device.maintained_ns = spill_clock_ns();
	spill_launch_access_maintain();
}

static void run_launch(const struct recording *in, const struct recorded_launch *launch)
{
	static struct spill_launch_access access;
	if (launch->waits)
		wait_until(device.done_ns);
	maintain();
	describe(&access, in, launch);
	describe_ranges(&access, in, launch);
	bool wanted = spill_launch_access_wanted;
	device.unreported += !wanted;
	void *stopwatch = wanted ? spill_before_launch(&access) : NULL;
	device.timed += stopwatch != NULL;
	submit(in, launch);
	if (wanted)
		spill_after_launch(stopwatch);
	fake_clock.ns += in->host_ns / 2;
}

static void run_phase(const struct recording *in, const struct recorded_phase *phase,
                      struct replay_result *result)
{
	for (unsigned n = 0; n < phase->repeats; n++) {
		uint64_t before_ns = device.done_ns, came = device.came;
		unsigned timed = device.timed;
		assert_true(result->count < REPLAY_PERIODS);
		for (unsigned i = 0; i < phase->count; i++)
			run_launch(in, &in->launches[phase->first + i]);
		result->period_ns[result->count] = device.done_ns - before_ns;
		result->timed[result->count] = device.timed - timed;
		result->moved[result->count++] = device.came - came;
	}
}

static struct replay_result run(const struct recording *recording, enum spill_follow follow, bool resident)
{
	struct replay_result result = {.count = 0};
	spill_policy_default(&policy);
	policy.movable_follow = follow;
	spill_process_use_policy(&policy);
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &vendor);
	spill_contexts_made(&vendor, 0, &context);
	memset(&device, 0, sizeof(device));
	fake_clock_use(1000 * US);
	const uint64_t fake_clock_begin = device.done_ns = spill_clock_ns();
	spill_chunked_observe(spill_launch_access_moved);
	make_memory(recording, resident);
	for (unsigned i = 0; i < recording->phase_count; i++)
		run_phase(recording, &recording->phases[i], &result);
	result.ns = device.done_ns - fake_clock_begin;
	result.lost_ns = device.lost_ns;
	result.used_bytes = device.used_bytes;
	result.submitted = device.submitted;
	result.unreported = device.unreported;
	spill_access_model_in_place(&result.told, true);
	free_memory();
	spill_launch_access_reset();
	return result;
}

struct replay_result replay(const struct recording *recording, enum spill_follow follow,
                            const struct replay_price *of_exchanges)
{
	price = of_exchanges;
	return run(recording, follow, false);
}

struct replay_result replay_resident(const struct recording *recording)
{
	return run(recording, SPILL_FOLLOW_OFF, true);
}
