#include "rest.h"

#include <stdatomic.h>
#include <stdint.h>

#include "access_model.h"
#include "chunked.h"
#include "clock.h"
#include "learning_rest.h"

static _Atomic bool resting;
static _Atomic uint64_t host_bytes; /* when the rest began */
static _Atomic uint64_t until_ns;   /* of the rest */

/* Threads come here at once now and then. Who holds it has the rest. */
static atomic_flag held = ATOMIC_FLAG_INIT;
static struct spill_learning_rest rest;
static struct spill_access_activity watched; /* when the last watch began */
static uint64_t watch_ns, rest_ns;           /* when it began, and the rest */

bool spill_rest_on(void)
{
	return atomic_load_explicit(&resting, memory_order_relaxed);
}

void spill_rest_moved(void)
{
	if (spill_rest_on() && spill_chunked_on_host() != atomic_load(&host_bytes))
		atomic_store(&until_ns, 0);
}

static void begin_rest(uint64_t now, uint64_t ns)
{
	rest_ns = now;
	atomic_store(&host_bytes, spill_chunked_on_host());
	atomic_store(&until_ns, now + ns);
	atomic_store(&resting, true);
	spill_chunked_tell();
}

static void end_rest(uint64_t now)
{
	spill_access_model_rested(&watched, rest_ns - watch_ns, now - rest_ns);
	spill_learning_rest_ended(&rest, now, watched.sums);
	watch_ns = now;
	atomic_store(&resting, false);
	spill_chunked_tell();
}

static void look(uint64_t now)
{
	struct spill_access_activity activity;
	if (!spill_access_model_activity(&activity))
		return;
	uint64_t ns = spill_learning_rest_due(&rest, now, activity.sums, activity.disturbed);
	if (rest.quiet_ns == now) {
		watched = activity;
		watch_ns = now;
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
