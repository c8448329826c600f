#include "rest.h"

#include <stdatomic.h>
#include <stdint.h>

#include "access_model.h"
#include "chunked.h"
#include "clock.h"
#include "learning_rest.h"
#include "minmax.h"

static _Atomic bool resting;
static _Atomic uint64_t host_bytes; /* at the last look */
static _Atomic uint64_t until_ns;   /* of the rest */

/* Threads come here at once now and then. Who holds it has the rest. */
static atomic_flag held = ATOMIC_FLAG_INIT;
static struct spill_learning_rest rest;
static struct spill_access_activity watched; /* when the last watch began */
static uint64_t watched_since_ns, rests_since_ns;

bool spill_rest_on(void)
{
	return atomic_load_explicit(&resting, memory_order_relaxed);
}

void spill_rest_moved(void)
{
	if (!spill_rest_on() || spill_chunked_on_host() == atomic_load(&host_bytes))
		return;
	atomic_store(&until_ns, spill_min(spill_clock_ns(), atomic_load(&until_ns)));
}

/* Since the last call other memory is on the host. */
static bool has_moved(void)
{
	uint64_t bytes = spill_chunked_on_host();
	return atomic_exchange(&host_bytes, bytes) != bytes;
}

static void begin_rest(uint64_t now, uint64_t ns)
{
	rests_since_ns = now;
	atomic_store(&until_ns, now + ns);
	atomic_store(&resting, true);
	spill_chunked_tell();
}

/* It may end late: without launches, or with nothing on the host, there is no maintenance, and nothing is used in place. */
static void end_rest(uint64_t now)
{
	uint64_t end = spill_min(now, atomic_load(&until_ns));
	bool moved = has_moved();
	spill_access_model_rested(&watched, rests_since_ns - watched_since_ns,
	                          spill_minus(end, rests_since_ns));
	spill_learning_rest_ended(&rest, now, now - end, watched.sums, moved || watched.disturbed);
	watched_since_ns = now;
	atomic_store(&resting, false);
	spill_chunked_tell();
}

static void look(uint64_t now)
{
	struct spill_access_activity activity;
	if (!spill_access_model_activity(&activity))
		return;
	activity.disturbed |= has_moved();
	uint64_t ns = spill_learning_rest_due(&rest, now, activity.sums, activity.disturbed);
	if (rest.quiet_ns == now) { /* what was lost before says nothing of a rest */
		watched = activity;
		watched_since_ns = now;
	}
	if (ns)
		begin_rest(now, ns);
}

void spill_rest_maintain(void)
{
	if (atomic_flag_test_and_set(&held))
		return;
	uint64_t now = spill_clock_ns();
	if (!spill_rest_on())
		look(now);
	else if (now >= atomic_load(&until_ns))
		end_rest(now);
	atomic_flag_clear(&held);
}

void spill_rest_reset(void)
{
	atomic_store(&resting, false);
	rest = (struct spill_learning_rest){0};
	atomic_flag_clear(&held);
}
