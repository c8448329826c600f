/* The steps of a fallback: which follow each other, by what each of them answers. All that they call is replaced. */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "demote.h"
#include "fallback_chain.h"
#include "gate.h"
#include "promote.h"
#include "reserve.h"
#include "retry_state.h"
#include "rules.h"
#include "said.h"
#include "shared_chunks.h"
#include "trim.h"

enum { DEVICE = 2, BYTES = 90, WEIGHT = 100, RESERVE = 7, ROOM = 33 };

/* What the replaced functions answer. Lists: a letter for each time, y for yes. */
static const char *fits, *demotes, *places;
static const char *demote_error, *place_error;
static bool trims, trims_host, begins_reserve;
static uint64_t freed, cap, reserve;

static struct spill_request request;
static struct spill_place_request place_request;
static struct spill_refusal refusal = {.asked = 12};

static bool next(const char **list)
{
	return **list && *(*list)++ == 'y';
}

static bool place(struct spill_request *of, enum spill_step step, const struct spill_place_request *wanted,
                  const char **error)
{
	bool is = next(&places);
	say(spill_step_name(step), wanted->device_room);
	*error = is ? NULL : place_error;
	return is;
}

static const struct spill_alloc_kind_ops kind = {.place = place}, whole = {.place = place, .whole = true},
                                         unplaceable;

/* -- in place of the others ------------------------------------------------------------------------------ */

bool spill_admit_decide(struct spill_request *of)
{
	bool is = next(&fits);
	say("decide", is);
	return is;
}

struct spill_place_request spill_admit_place_request(const struct spill_request *of,
                                                     const struct spill_backend *backend,
                                                     uint64_t device_room)
{
	return (struct spill_place_request){.bytes = of->bytes, .device_room = device_room};
}

void spill_admit_refused(struct spill_request *of, const char *error)
{
	of->admission.refused_word = error;
}

void spill_admit_refused_by(struct spill_request *of, enum spill_refused_by by)
{
	of->admission.refused_by = by;
	of->admission.refused_word = spill_refused_by_name(by);
}

void spill_admit_tried(struct spill_request *of, const char *step, const char *error)
{
	char text[100];
	snprintf(text, sizeof(text), "%s(%s)", step, error);
	say(text, 0);
}

bool spill_demote(struct spill_demotion *demotion)
{
	bool is = next(&demotes);
	assert_int_equal(demotion->device, DEVICE);
	say("demote", demotion->bytes);
	demotion->error = is ? NULL : demote_error;
	demotion->freed = freed;
	return is;
}

const char *spill_engine_api(const struct spill_request *of)
{
	return "api";
}

const char *spill_engine_caller(const struct spill_request *of)
{
	return "caller";
}

const struct spill_refusal *spill_host_refusal(void)
{
	return &refusal;
}

uint64_t spill_promote_room(const struct spill_backend *backend, int device)
{
	return ROOM;
}

bool spill_reserve_begin(int device)
{
	return begins_reserve;
}

uint64_t spill_reserve_size(int device)
{
	return reserve;
}

void spill_retry_state_surfaced(const struct spill_request *of)
{
	say("surfaced", 0);
}

void spill_rules_give_back(struct spill_request *of)
{
	say("give", of->admission.charged_rule);
	of->admission.charged_rule = 0;
}

uint64_t spill_rules_reserve(struct spill_request *of, uint64_t bytes)
{
	of->admission.charged_rule = 1;
	return cap < bytes ? cap : SPILL_UNLIMITED;
}

bool spill_trim(const struct spill_backend *backend, int device, uint64_t bytes, bool urgent)
{
	assert_true(device == DEVICE && !urgent);
	say("trim", bytes);
	return trims;
}

bool spill_trim_host(const struct spill_backend *backend, int device, void *context, uint64_t bytes)
{
	assert_int_equal(device, DEVICE);
	say("host", bytes);
	return trims_host;
}

/* -- the steps ------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	fits = demotes = places = "";
	demote_error = place_error = "no";
	trims = trims_host = begins_reserve = false;
	freed = 0;
	cap = SPILL_UNLIMITED;
	reserve = RESERVE;
	request = (struct spill_request){.device = DEVICE, .bytes = BYTES};
	request.admission.kind = &kind;
	request.admission.weight = WEIGHT;
	place_request = (struct spill_place_request){.bytes = BYTES, .device_room = 50};
	atomic_store(&spill_gate_state, 0);
	what_was_said();
	return 0;
}

static enum spill_outcome take(unsigned count, enum spill_step first, enum spill_step second)
{
	request.admission.fallback.count = count;
	request.admission.fallback.step[0] = first;
	request.admission.fallback.step[1] = second;
	return spill_fallback_chain_place(&request, &place_request);
}

#define SAYS(text) assert_string_equal(what_was_said(), text)

TEST(what_was_given_back_must_be_enough)
{
	assert_int_equal(take(1, SPILL_STEP_TRIM, 0), SPILL_REFUSED);
	SAYS("trim:90 trim(nothing to give back):0");
	fits = "y"; /* nobody asks */
	request.admission.steps_taken = 0;
	assert_int_equal(take(1, SPILL_STEP_TRIM, 0), SPILL_REFUSED);
	SAYS("trim:90 trim(nothing to give back):0");
	trims = true;
	fits = "";
	request.admission.steps_taken = 0;
	assert_int_equal(take(1, SPILL_STEP_TRIM, 0), SPILL_REFUSED);
	SAYS("trim:90 decide:0 trim(nothing to give back):0");
	fits = "y";
	request.admission.steps_taken = 0;
	request.admission.over_limit = true;
	assert_int_equal(take(1, SPILL_STEP_TRIM, 0), SPILL_AGAIN);
	assert_false(request.admission.over_limit);
	SAYS("trim:90 decide:1");
}

TEST(the_reserve_is_given_back_for_as_well)
{
	request.admission.short_of_reserve = true;
	take(1, SPILL_STEP_TRIM, 0);
	SAYS("trim:97 trim(nothing to give back):0");
	reserve = UINT64_MAX;
	request.admission.steps_taken = 0;
	take(1, SPILL_STEP_TRIM, 0);
	SAYS("trim:-1 trim(nothing to give back):0");
}

TEST(a_failure_surfaces_in_place_of_the_other_steps)
{
	request.admission.fallback.surfaces = true;
	assert_int_equal(take(2, SPILL_STEP_DEMOTE, SPILL_STEP_HOST), SPILL_REFUSED);
	SAYS("surfaced:0 demote(oom.honest_first):0");
	assert_int_equal(request.admission.refused_by, SPILL_REFUSED_BY_HONEST_FIRST);
	assert_int_equal(atomic_load(&spill_gate_state) & SPILL_GATE_MAINTENANCE, 0);
	begins_reserve = true;
	request.admission.steps_taken = 0;
	take(2, SPILL_STEP_DEMOTE, SPILL_STEP_HOST);
	assert_true(atomic_load(&spill_gate_state) & SPILL_GATE_MAINTENANCE);
}

TEST(a_repeat_is_told_once)
{
	request.admission.repeats = true;
	take(2, SPILL_STEP_SPLIT, SPILL_STEP_HOST);
	SAYS("honest_first(surfaced before):0 split:50 give:1 split(no):0 host:50 give:1 host(no):0");
	assert_int_equal(request.admission.refusal.asked, 12);
}

/* Other threads may take the room first: three times. */
TEST(room_is_made_again)
{
	demotes = fits = "yyyyyy";
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(take(1, SPILL_STEP_DEMOTE, 0), SPILL_AGAIN);
	SAYS("demote:100 decide:1 demote:100 decide:1 demote:100 decide:1");
	assert_int_equal(take(1, SPILL_STEP_DEMOTE, 0), SPILL_REFUSED);
	SAYS("");
}

TEST(room_that_is_not_enough_is_for_later_steps)
{
	request.admission.weight = 0;
	assert_int_equal(take(1, SPILL_STEP_DEMOTE, 0), SPILL_REFUSED);
	SAYS("demote:90 demote(no):0");
	assert_int_equal(place_request.device_room, 50);
	freed = 1;
	demote_error = NULL;
	demotes = "y"; /* but the limit has no room */
	places = "y";
	request.admission.steps_taken = 0;
	assert_int_equal(take(2, SPILL_STEP_DEMOTE, SPILL_STEP_SPLIT), SPILL_SERVED);
	SAYS("demote:90 decide:0 demote(device.limit):0 split:33 give:1");
}

TEST(memory_of_the_host_is_given_up)
{
	static const enum spill_refused_by of_host[] = {
	    SPILL_REFUSED_BY_HOST_LIMIT, SPILL_REFUSED_BY_HOST_RESERVE, SPILL_REFUSED_BY_HOST_PRESSURE};
	for (unsigned i = 0; i < sizeof(of_host) / sizeof(of_host[0]); i++) {
		setup(NULL);
		trims_host = true;
		demote_error = place_error = spill_refused_by_name(of_host[i]);
		demotes = places = "ny";
		fits = "y";
		assert_int_equal(take(2, SPILL_STEP_DEMOTE, SPILL_STEP_HOST), SPILL_AGAIN);
		SAYS("demote:100 host:100 demote:100 decide:1");
		request.admission.steps_taken = 1;
		assert_int_equal(take(2, SPILL_STEP_DEMOTE, SPILL_STEP_HOST), SPILL_SERVED);
		SAYS("host:50 host:90 host:50 give:1");
		trims_host = false;
		request.admission.steps_taken = 0;
		assert_int_equal(take(2, SPILL_STEP_DEMOTE, SPILL_STEP_HOST), SPILL_REFUSED);
		assert_null(strstr(what_was_said(), "decide"));
	}
}

TEST(a_cap_leaves_less_of_the_device)
{
	cap = 20;
	places = "yyy";
	take(1, SPILL_STEP_SPLIT, 0);
	SAYS("split:20 give:1");
	place_request.bytes = 10;
	request.admission.steps_taken = 0;
	take(1, SPILL_STEP_SPLIT, 0);
	SAYS("split:50 give:1");
	request.admission.steps_taken = 0;
	place_request.bytes = BYTES;
	take(1, SPILL_STEP_HOST, 0); /* takes nothing of the device */
	SAYS("host:50 give:1");
}

TEST(what_cannot_be_placed)
{
	request.admission.kind = &unplaceable;
	assert_int_equal(take(1, SPILL_STEP_HOST, 0), SPILL_REFUSED);
	assert_string_equal(strchr(what_was_said(), '('), "(this kind of memory cannot be elsewhere):0");
}

/* A rule's split of what fits is none. */
TEST(at_once_by_a_rule)
{
	request.bytes = SPILL_SHARED_CHUNKS_LARGEST;
	places = "yyyyyy";
	request.admission.decision.place = SPILL_PLACE_SPLIT;
	assert_true(spill_fallback_chain_at_once(&request));
	assert_false(request.admission.at_once);
	SAYS("split:33 give:1");
	request.bytes = ROOM;
	assert_false(spill_fallback_chain_at_once(&request));
	SAYS("split(small enough for the device):0");
	request.bytes++;
	assert_true(spill_fallback_chain_at_once(&request));
	what_was_said();
	request.bytes = ROOM;
	request.admission.kind = &whole;
	assert_false(spill_fallback_chain_at_once(&request));
	what_was_said();
	request.admission.decision.place = SPILL_PLACE_HOST;
	assert_true(spill_fallback_chain_at_once(&request));
	SAYS("host:33 give:1");
	places = "";
	assert_false(spill_fallback_chain_at_once(&request));
	SAYS("host:33 give:1 host(no):0");
}
