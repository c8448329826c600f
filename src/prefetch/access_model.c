#include "access_model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "process.h"
#include "stopwatch.h"

#define MS 1000000ull

/* What did not pay is looked at again after this, and then twice that … */
#define STAY_NS (10 * MS)
#define STAY_MOST_NS (1000 * MS)
/* A use is timed at least so often, if none is. */
#define PROBE_NS (10 * MS)
/* And if those that are seem to be lost: of contexts that no thread uses any more. */
#define LOST_NS (1000 * MS)
/* The least that tells what moving costs; what took four times as long as usual does not. */
#define MEASURED (32ull << 20)
#define TIMES_USUAL 4

/* What is known of a site besides what policy/predict/migration_benefit.h knows. */
struct site {
	uint64_t not_before_ns, stay_ns;
	bool moves; /* what it needs was brought the last time */
};

struct state {
	struct spill_access_history order;
	struct spill_migration_benefit reuse;
	struct site sites[SPILL_BENEFIT_SITES];
	/*
	 * What the device has to do, by the times that such uses took: until then with what had been submitted when the clock was read
	 * last, and so long for what was since.
	 */
	uint64_t busy_until_ns, read_ns, since_ns;
	uint64_t behind_ns; /* so long after what was measured last had been submitted it was not done yet */
	uint64_t probed_ns; /* when a use was timed just for that */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_USES */
static struct state *state;
static _Atomic uint64_t times; /* that were told */

/* pre: locked. NULL: no memory for it */
static struct state *model(void)
{
	if (!state) {
		void *made =
		    mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		state = made == MAP_FAILED ? NULL : made;
	}
	return state;
}

/* The estimate takes all uses for one sequence, which streams are not: what was seen bounds it. pre: locked */
static void not_further(uint64_t behind_ns)
{
	uint64_t most_ns = spill_clock_ns() + behind_ns;
	if (state->busy_until_ns > most_ns)
		state->busy_until_ns = most_ns;
	if (state->since_ns > behind_ns)
		state->since_ns = behind_ns;
}

/* A time that finds the model in use is forgotten: there will be others. */
static void measured(const struct spill_stopwatch_use *use, uint64_t ns, uint64_t behind_ns)
{
	atomic_fetch_add(&times, 1);
	if (pthread_mutex_trylock(&lock))
		return;
	if (state) {
		state->behind_ns = behind_ns;
		if (behind_ns)
			not_further(behind_ns);
		spill_benefit_add_use(&state->reuse, use->site, use->on_host, ns);
		for (unsigned i = 0; i < use->count; i++)
			spill_benefit_add_chunk_use(&state->reuse, use->site, use->keys[i], use->on_host, ns);
	}
	pthread_mutex_unlock(&lock);
}

/* What a MiB of what it has on host costs it in place, by some of its chunks. pre: locked */
static uint64_t excess_of(const struct spill_launch_access *use, uint16_t site)
{
	unsigned count = spill_launch_access_host_keys(use);
	uint64_t sum = 0;
	for (unsigned i = 0; i < count; i++)
		sum += spill_benefit_chunk_excess(&state->reuse, site, use->host_keys[i]);
	return count ? sum / count : 0;
}

static uint64_t later(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

/* How long the device still needs, as far as that is known. pre: locked */
static uint64_t busy(uint64_t now)
{
	state->busy_until_ns = later(later(state->busy_until_ns, state->read_ns) + state->since_ns, now);
	state->read_ns = now;
	state->since_ns = 0;
	return later(state->busy_until_ns - now, state->behind_ns);
}

/* So that it is known how far behind the device is. pre: locked */
static bool is_probe(uint64_t now)
{
	uint64_t ago_ns = now - state->probed_ns;
	bool is = ago_ns >= PROBE_NS && (ago_ns >= LOST_NS || !spill_stopwatch_any());
	if (is)
		state->probed_ns = now;
	return is;
}

/* Some of its chunks on host are not known well enough. pre: locked */
static bool is_of_unknown(const struct spill_launch_access *use, uint16_t site)
{
	bool timed = false;
	for (unsigned i = 0; i < spill_launch_access_host_keys(use); i++)
		timed |= spill_site_chunk_cost_wants_sample(&state->reuse.pairs, site, use->host_keys[i]);
	return timed;
}

/* Of one that has something on host. pre: locked */
static void advise(struct spill_advice *advice, const struct spill_launch_access *use, bool always)
{
	const struct site *site = &state->sites[advice->site];
	uint64_t now = spill_clock_ns(), excess_ns = excess_of(use, advice->site);
	advice->busy_ns = busy(now);
	/* What is dear by itself is not left alone because others of its site were. */
	advice->bring =
	    always || now >= site->not_before_ns || spill_benefit_pays(&state->reuse, excess_ns, site->moves);
	advice->timed = !always && (is_of_unknown(use, advice->site) || is_probe(now));
	state->since_ns += spill_benefit_expected(&state->reuse, advice->site, use->host_bytes, excess_ns);
}

/* pre: locked */
static struct spill_advice learn(const struct spill_launch_access *use, bool always)
{
	struct spill_advice advice = {.site = spill_benefit_site(&state->reuse, use->site)};
	spill_access_history_launch(&state->order, use->keys, use->count, advice.site);
	if (use->once)
		return advice;
	if (use->on_host)
		advise(&advice, use, always);
	else
		state->since_ns += spill_benefit_expected(&state->reuse, advice.site, 0, 0);
	/* Each time: it counts. */
	advice.timed |= !always && spill_benefit_wants_sample(&state->reuse, advice.site, use->host_bytes);
	return advice;
}

struct spill_advice spill_access_model_learn(const struct spill_launch_access *use)
{
	struct spill_advice advice = {0};
	bool always = spill_process_policy()->movable_follow == SPILL_SWITCH_ON;
	if (!always)
		spill_stopwatch_collect(measured);
	if (pthread_mutex_trylock(&lock))
		return advice;
	if (model())
		advice = learn(use, always);
	pthread_mutex_unlock(&lock);
	return advice;
}

/* When it is looked again whether it pays. pre: locked */
static void keep_verdict(struct site *site, bool pays)
{
	uint64_t longer = site->stay_ns ? 2 * site->stay_ns : STAY_NS;
	site->moves = pays;
	site->stay_ns = pays ? 0 : longer < STAY_MOST_NS ? longer : STAY_MOST_NS;
	site->not_before_ns = pays ? 0 : spill_clock_ns() + site->stay_ns;
}

bool spill_access_model_choose(struct spill_exchange_choice *window, uint16_t site, uint64_t *cost_ns)
{
	pthread_mutex_lock(&lock);
	struct site *mine = &state->sites[site];
	bool comes = spill_exchange_choose(window, &state->order, &state->reuse, site, mine->moves);
	keep_verdict(mine, window->pays);
	*cost_ns = spill_benefit_copy_cost(&state->reuse);
	pthread_mutex_unlock(&lock);
	return comes;
}

uint64_t spill_access_model_hear(void)
{
	spill_stopwatch_collect(measured);
	return atomic_load(&times);
}

void spill_access_model_idle(void)
{
	pthread_mutex_lock(&lock);
	if (state)
		state->busy_until_ns = state->since_ns = state->behind_ns = 0;
	pthread_mutex_unlock(&lock);
}

void spill_access_model_moved(uint64_t bytes, uint64_t ns)
{
	if (bytes < MEASURED || ns > TIMES_USUAL * (bytes >> 20) * SPILL_BENEFIT_COPY_NS_PER_MIB)
		return;
	pthread_mutex_lock(&lock);
	spill_benefit_add_copy(&state->reuse, bytes, ns);
	pthread_mutex_unlock(&lock);
}

void spill_access_model_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	/* Not unmapped: a signal handler that forks may have interrupted who uses it. */
	if (state)
		memset(state, 0, sizeof(*state));
}
