#include "uses.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "runtime.h"
#include "stopwatch.h"

#define MS 1000000ull

/* What did not pay is looked at again after this, and then twice that … */
#define STAY_NS (10 * MS)
#define STAY_MOST_NS (1000 * MS)
/* The least that tells what moving costs; what took four times as long as usual does not. */
#define MEASURED (32ull << 20)
#define TIMES_USUAL 4

/* What is known of a site besides what policy/reuse.h knows. */
struct site {
	uint64_t not_before_ns, stay_ns;
	bool moves; /* what it needs was brought the last time */
};

struct state {
	struct spill_order order;
	struct spill_reuse reuse;
	struct site sites[SPILL_REUSE_SITES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_USES */
static struct state *state;

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

/* A time that finds the model in use is forgotten: there will be others. */
static void measured(uint16_t site, uint64_t on_host, uint64_t ns)
{
	if (pthread_mutex_trylock(&lock))
		return;
	if (state) {
		spill_reuse_measured(&state->reuse, site, on_host, ns);
		/* What turns out to be dear is not left alone for as long as was thought. */
		if (on_host &&
		    spill_reuse_pays(&state->reuse, spill_reuse_excess(&state->reuse, site), false))
			state->sites[site].not_before_ns = state->sites[site].stay_ns = 0;
	}
	pthread_mutex_unlock(&lock);
}

struct spill_advice spill_uses_learn(const struct spill_use *use)
{
	struct spill_advice advice = {0};
	bool always = spill_runtime_policy()->movable_follow == SPILL_SWITCH_ON;
	if (!always)
		spill_stopwatch_collect(measured);
	if (pthread_mutex_trylock(&lock))
		return advice;
	if (model()) {
		advice.site = spill_reuse_site(&state->reuse, use->site);
		for (unsigned i = 0; i < use->count; i++)
			spill_order_use(&state->order, use->keys[i], advice.site);
		advice.bring = use->on_host && !use->once &&
		               (always || spill_clock_ns() >= state->sites[advice.site].not_before_ns);
		advice.timed = !always && !use->once &&
		               spill_reuse_is_wanted(&state->reuse, advice.site, use->host_bytes);
	}
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

bool spill_uses_choose(struct spill_window *window, uint16_t site, uint64_t *cost_ns)
{
	pthread_mutex_lock(&lock);
	struct site *mine = &state->sites[site];
	bool comes = spill_window_choose(window, &state->order, &state->reuse, site, mine->moves);
	keep_verdict(mine, window->pays);
	*cost_ns = spill_reuse_cost(&state->reuse);
	pthread_mutex_unlock(&lock);
	return comes;
}

void spill_uses_moved(uint64_t bytes, uint64_t ns)
{
	if (bytes < MEASURED || ns > TIMES_USUAL * (bytes >> 20) * SPILL_REUSE_COPY_NS_PER_MIB)
		return;
	pthread_mutex_lock(&lock);
	spill_reuse_copied(&state->reuse, bytes, ns);
	pthread_mutex_unlock(&lock);
}

void spill_uses_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	/* Not unmapped: a signal handler that forks may have interrupted who uses it. */
	if (state)
		memset(state, 0, sizeof(*state));
}
