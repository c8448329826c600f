/*
 * The way of a request for memory through admit.c: which steps follow each other, by what the policy, the driver and the
 * fallback say. The kind of memory is of this test, and all that admit.c calls is replaced, but the policy's functions.
 */
#define SETUP setup
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "account.h"
#include "admit.h"
#include "capture.h"
#include "deferred.h"
#include "device_memory.h"
#include "engine.h"
#include "fake_clock.h"
#include "fallback_chain.h"
#include "memory_limit.h"
#include "minmax.h"
#include "process.h"
#include "registry.h"
#include "reserve_keeper.h"
#include "retry_state.h"
#include "rules.h"
#include "said.h"
#include "vendor_pool.h"

enum { DEVICE = 2, BYTES = 90, WEIGHT = 100, OUT_OF_MEMORY = 2, RAISED = 3, NOW = 1000 };

static struct spill_policy policy;
static const struct spill_rules some_rules;
static int last_error;

/* What the replaced functions answer. Lists: the next answer each time. */
static const char *verdicts;    /* D: driver. F: full, by the limit. C: by a cap. P: a place. R: refuse */
static const char *outcomes;    /* S: served. A: again. R: refused */
static const char *substitutes; /* N: none. S: served. L: the limit refused. F: the driver did */
static bool no_prepare, captures, in_capture, settled, not_accepted, falls_short, kept, at_risk, at_once,
    allows, placed, repeats, surfaces;
static bool captures_at_first_chain; /* a stream begins to capture then */
static uint64_t growth_bytes, limit, held;
static uint64_t device_free = 33;
static uint64_t unserved; /* what the thread has charged, and the driver not served */

static char next(const char **list)
{
	return **list ? *(*list)++ : '?';
}

static int cancel_state(void)
{
	int state, unused;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_setcancelstate(state, &unused);
	return state;
}

/* -- the kind of memory ------------------------------------------------------------------------------------------- */

static bool prepare(struct spill_request *request, const struct spill_backend *backend)
{
	request->admission.weight = WEIGHT;
	return !no_prepare;
}

static bool charge(struct spill_request *request, struct spill_ask *ask, const struct spill_backend *backend)
{
	static const enum spill_verdict known[] = {['D'] = SPILL_VERDICT_DRIVER,
	                                           ['F'] = SPILL_VERDICT_FULL,
	                                           ['C'] = SPILL_VERDICT_FULL,
	                                           ['P'] = SPILL_VERDICT_PLACE,
	                                           ['R'] = SPILL_VERDICT_REFUSE};
	char verdict = next(&verdicts);
	assert_true(ask->bytes == BYTES && ask->weight == WEIGHT && ask->device == DEVICE);
	assert_true(strchr("DFCPR", verdict));
	say("decide", (uint64_t)ask->placeable + 2 * ask->place_failed);
	request->admission.decision = (struct spill_decision){
	    .would = known[(unsigned char)verdict],
	    .refused_by = verdict == 'C' ? SPILL_REFUSED_BY_RULE_CAP : SPILL_REFUSED_BY_DEVICE_LIMIT};
	request->admission.charged = verdict == 'D' ? WEIGHT : 0;
	return verdict == 'D';
}

static void retract(struct spill_request *request, const struct spill_backend *backend)
{
	say("retract", request->admission.charged);
}

static enum spill_substitute substitute(struct spill_request *request, const struct spill_backend *backend,
                                        const char **error)
{
	char answer = next(&substitutes);
	*error = "no room";
	say("substitute", 0);
	assert_int_equal(unserved, request->admission.charged);
	return answer == 'S'   ? SPILL_SUBSTITUTE_SERVED
	       : answer == 'L' ? SPILL_SUBSTITUTE_LIMIT
	       : answer == 'F' ? SPILL_SUBSTITUTE_FULL
	                       : SPILL_SUBSTITUTE_NONE;
}

static uint64_t growth(struct spill_request *request, const struct spill_backend *backend)
{
	say("growth", 0);
	return growth_bytes;
}

static bool accept(struct spill_request *request, const struct spill_backend *backend)
{
	request->admission.short_of_reserve = falls_short;
	return !not_accepted;
}

static void served(struct spill_request *request, const struct spill_backend *backend)
{
	say("served", request->admission.charged);
}

static bool place(struct spill_request *request, enum spill_step step,
                  const struct spill_place_request *place_request, const char **error)
{
	return false; /* the chain is replaced */
}

static void refused(struct spill_request *request)
{
	say("refused", 0);
}

/* -- the vendor ------------------------------------------------------------------------------------------------------ */

static unsigned capabilities(int device)
{
	return ~0u;
}

static const char *error_name(int error)
{
	return error == OUT_OF_MEMORY ? "out of memory" : "other";
}

static int peek(void)
{
	return last_error;
}

static void forget(void)
{
	say("forget", 0);
}

static int raise_out_of_memory(void)
{
	return RAISED;
}

static const struct spill_vendor_last_error errors = {peek, forget, raise_out_of_memory};
static const struct spill_vendor_devices devices = {.capabilities = capabilities};
static struct spill_backend backend;
static const struct spill_backend *found;
static struct spill_alloc_kind_ops kind;

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	return found;
}

/* -- what the engine does besides ------------------------------------------------------------------------------------- */

void spill_engine_memory_call(const struct spill_backend *vendor)
{
	say("call", 0);
}

bool spill_engine_pass(struct spill_request *request)
{
	say("pass", request->pass);
	return true;
}

const char *spill_engine_api(const struct spill_request *request)
{
	return "api";
}

const void *spill_engine_site(const struct spill_request *request)
{
	return &kind;
}

bool spill_engine_in_capture(const struct spill_request *request)
{
	return in_capture;
}

bool spill_capture_any(void)
{
	return captures;
}

uint64_t spill_log_start_us(void)
{
	return 8;
}

void spill_deferred_poll(const struct spill_backend *vendor, bool may_wait)
{
	say("poll", may_wait);
}

void spill_vendor_pool_settle_graphs(const struct spill_backend *vendor, int device)
{
	say("graphs", (uint64_t)device);
}

bool spill_vendor_pool_settle_device(const struct spill_backend *vendor, int device)
{
	say("settle", (uint64_t)device);
	return settled;
}

void spill_ledger_count_oom(int device)
{
	say("oom", (uint64_t)device);
}

void spill_request_log_oom(const struct spill_request *request, const struct spill_backend *vendor,
                           uint64_t free, uint64_t total)
{
	assert_true(free == device_free && total == 44);
	say(request->admission.refused_word, request->admission.attempts);
}

uint64_t spill_device_limit(const struct spill_backend *vendor, int device)
{
	return limit;
}

int spill_device_memory(const struct spill_backend *vendor, int device, uint64_t *free, uint64_t *total)
{
	*free = device_free;
	*total = 44;
	return 0;
}

void spill_device_memory_unserved(int device, uint64_t bytes)
{
	assert_int_equal(device, DEVICE);
	unserved = bytes;
}

uint64_t spill_account_device_held(int device)
{
	return held;
}

bool spill_account_device_charge(int device, uint64_t *seen, uint64_t bytes)
{
	bool good = *seen == held;
	say("charge", bytes);
	*seen = held;
	return good;
}

void spill_account_device_return(int device, uint64_t bytes)
{
	say("returned", bytes);
}

/* -- refusals (admit_record.c) ------------------------------------------------------------------------------------------ */

void spill_admit_tried(struct spill_request *request, const char *step, const char *error)
{
	assert_string_equal(step, "device");
	request->admission.attempts++;
	say("tried", 0);
}

void spill_admit_refused_by(struct spill_request *request, enum spill_refused_by refused_by)
{
	request->admission.refused_word = spill_refused_by_name(refused_by);
}

void spill_admit_refused(struct spill_request *request, const char *error)
{
	request->admission.refused_word = error;
}

struct spill_place_request spill_admit_place_request(const struct spill_request *request,
                                                     const struct spill_backend *vendor, uint64_t device_room)
{
	assert_int_equal(device_room, 0);
	return (struct spill_place_request){.device_limit = SPILL_UNLIMITED};
}

/* -- rules, retries, the reserve ------------------------------------------------------------------------------------------ */

void spill_rules_find(struct spill_request *request)
{
	say("rules", 0);
}

uint64_t spill_rules_held(const struct spill_request *request)
{
	return 0;
}

bool spill_rules_charge_cap(struct spill_request *request, const struct spill_ask *ask,
                            struct spill_view *view)
{
	return true;
}

void spill_rules_give_back(struct spill_request *request)
{
	say("rule returned", request->admission.charged_rule);
	request->admission.charged_rule = 0;
}

struct spill_growth_answer spill_growth_state_served(struct spill_request *request)
{
	say("run", 0);
	return (struct spill_growth_answer){0};
}

void spill_retry_state_view(const struct spill_request *request, struct spill_full_view *view)
{
	view->repeats = repeats;
	say("full", (uint64_t)view->capped + 2 * view->capturing + 4 * view->any_capture);
}

void spill_retry_state_succeeded(const struct spill_request *request)
{
	say("succeeded", request->admission.repeats);
}

bool spill_reserve_is_kept(int device)
{
	return kept;
}

bool spill_reserve_is_at_risk(const struct spill_backend *vendor, int device, uint64_t now_ns)
{
	assert_int_equal(now_ns, NOW);
	return at_risk;
}

bool spill_reserve_allows_at_once(int device, uint64_t bytes, uint64_t now_ns)
{
	say("at once", bytes);
	return at_once;
}

bool spill_reserve_allows(const struct spill_backend *vendor, int device, const struct spill_taking *taking,
                          const char *api, const void *caller)
{
	say("allows", taking->bytes);
	assert_int_equal(unserved, WEIGHT);
	assert_true(taking->least == spill_min(taking->bytes, (uint64_t)BYTES));
	return allows;
}

void spill_reserve_answered(int device, uint64_t bytes)
{
	say("answered", bytes);
}

void spill_reserve_taken(int device, uint64_t bytes)
{
	say("taken", bytes);
}

void spill_reserve_keep(const struct spill_backend *vendor, int device, uint64_t now_ns, const char *api,
                        const void *caller)
{
	assert_ptr_equal(caller, &kind);
	say("keep", now_ns);
}

uint64_t spill_reserve_size(int device)
{
	return 0;
}

/* -- the fallback ----------------------------------------------------------------------------------------------------------- */

enum spill_outcome spill_fallback_chain_place(struct spill_request *request,
                                              struct spill_place_request *place_request)
{
	char outcome = next(&outcomes);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE);
	assert_int_equal(place_request->device_room, device_free);
	device_free--; /* the steps take some */
	assert_int_equal(unserved, 0);
	assert_true(request->admission.full);
	request->admission.fallback.surfaces = surfaces;
	say("chain", 0);
	in_capture |= captures_at_first_chain;
	if (outcome == 'A')
		request->admission.charged = WEIGHT;
	return outcome == 'S' ? SPILL_SERVED : outcome == 'A' ? SPILL_AGAIN : SPILL_REFUSED;
}

bool spill_fallback_chain_at_once(struct spill_request *request)
{
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE);
	say("place", 0);
	return placed;
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	fake_clock_use(NOW);
	backend = (struct spill_backend){
	    .devices = &devices, .error_name = error_name, .out_of_memory = OUT_OF_MEMORY};
	found = &backend;
	kind = (struct spill_alloc_kind_ops){.prepare = prepare, .charge = charge, .served = served};
	last_error = 0;
	verdicts = outcomes = substitutes = "";
	no_prepare = captures = in_capture = settled = not_accepted = falls_short = kept = at_risk = at_once =
	    placed = repeats = surfaces = false;
	captures_at_first_chain = false;
	allows = true;
	growth_bytes = held = 0;
	limit = SPILL_UNLIMITED;
	what_was_said();
	return 0;
}

/* A whole request. `driver`: its answers, one digit each. */
static const char *run(struct spill_request *request, const char *driver)
{
	unsigned asked = 0;
	request->bytes = BYTES;
	request->device = DEVICE;
	while (spill_admit(request, &kind)) {
		if (request->pass)
			return what_was_said();
		say("driver", ++asked);
		assert_int_equal(unserved, 0);
		assert_true(*driver);
		request->result = *driver++ - '0';
	}
	assert_false(*driver);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	return what_was_said();
}

#define BEGINS "call:0 poll:0 decide:0 "
#define ENDS " succeeded:0 taken:100 keep:"

/* A request, with what is set up before it. */
#define RUN(driver_answers, its_result, calls) \
	do { \
		struct spill_request of_run = {0}; \
		assert_string_equal(run(&of_run, driver_answers), calls); \
		assert_int_equal(of_run.result, its_result); \
	} while (0)

/* -- what fits ---------------------------------------------------------------------------------------------------------------- */

TEST(a_request_that_is_not_whole_is_passed_on)
{
	no_prepare = true;
	RUN("", 0, "pass:1");
	no_prepare = false;
	found = NULL;
	RUN("", 0, "pass:1");
}

TEST(what_fits)
{
	verdicts = "D";
	RUN("0", 0, BEGINS "driver:1 answered:0 served:100" ENDS "1000");
	/* With a limit, and with rules. */
	verdicts = "DD";
	limit = 1 << 20;
	RUN("0", 0, "call:0 poll:0 graphs:2 decide:0 driver:1 answered:0 served:100" ENDS "1000");
	limit = SPILL_UNLIMITED;
	policy.rules = (struct spill_rules *)&some_rules;
	RUN("0", 0, "call:0 poll:0 rules:0 decide:0 driver:1 answered:0 served:100" ENDS "1000");
	/* Memory that can be placed, and that is looked at for growth; not in a capture. */
	kind.place = place;
	verdicts = "DD";
	struct spill_request request = {.admission = {.asks_growth = true, .charged_rule = 5}};
	assert_string_equal(run(&request, "0"),
	                    "call:0 poll:0 rules:0 decide:1 driver:1 answered:0 served:100 succeeded:0 "
	                    "rule returned:5 run:0 taken:100 keep:1000");
	assert_int_equal(request.start_us, 8);
	in_capture = true;
	RUN("0", 0, "call:0 poll:0 rules:0 decide:0 driver:1 answered:0 served:100" ENDS "1000");
}

/* Where the vendor keeps a last error, a success leaves that of the program. */
TEST(the_last_error)
{
	backend.last_error = &errors;
	verdicts = "DD";
	RUN("0", 0, BEGINS "driver:1 answered:0 served:100 succeeded:0 forget:0 taken:100 keep:1000");
	last_error = 5;
	RUN("0", 0, BEGINS "driver:1 answered:0 served:100" ENDS "1000");
}

TEST(another_error_of_the_driver)
{
	verdicts = "DD";
	RUN("7", 7, BEGINS "driver:1 answered:0 returned:100");
	kind.retract = retract;
	struct spill_request request = {.admission.charged_rule = 5};
	assert_string_equal(run(&request, "7"), BEGINS "driver:1 answered:0 retract:100 rule returned:5");
	assert_int_equal(request.admission.charged, 0);
}

/* -- a full device ------------------------------------------------------------------------------------------------------------ */

TEST(a_full_driver)
{
	verdicts = "DDD";
	outcomes = "SAR";
	RUN("2", 0, BEGINS "driver:1 answered:0 returned:100 tried:0 full:0 chain:0" ENDS "0");
	RUN("20", 0,
	    BEGINS
	    "driver:1 answered:0 returned:100 tried:0 full:0 chain:0 driver:2 answered:0 served:100" ENDS
	    "1000");
	RUN("2", OUT_OF_MEMORY,
	    BEGINS "driver:1 answered:0 returned:100 tried:0 full:0 chain:0 oom:2 driver:1");
	/* What a refusal leaves, if the driver did not say so last. */
	kind.refused = refused;
	backend.last_error = &errors;
	verdicts = "DF";
	outcomes = "RR";
	RUN("2", RAISED, BEGINS "driver:1 answered:0 returned:100 tried:0 full:0 chain:0 oom:2 driver:1");
	RUN("", RAISED, BEGINS "settle:2 tried:0 full:0 chain:0 oom:2 device.limit:1 refused:0");
}

TEST(captures_are_told_to_the_policy)
{
	verdicts = "DDD";
	outcomes = "SSR";
	captures = true;
	RUN("2", 0, BEGINS "driver:1 answered:0 returned:100 tried:0 full:4 chain:0" ENDS "0");
	in_capture = true;
	RUN("2", 0, BEGINS "driver:1 answered:0 returned:100 tried:0 full:6 chain:0" ENDS "0");
	RUN("2", OUT_OF_MEMORY,
	    BEGINS "driver:1 answered:0 returned:100 tried:0 full:6 chain:0 oom:2 stream capture:1");
}

/* Pools may have given back unused memory. In a capture they are not asked. */
TEST(a_limit_or_a_cap)
{
	verdicts = "FFDFFCF";
	outcomes = "SSSS";
	RUN("", 0, BEGINS "settle:2 tried:0 full:0 chain:0" ENDS "0");
	settled = true;
	RUN("0", 0, BEGINS "settle:2 decide:0 driver:1 answered:0 served:100" ENDS "1000");
	RUN("", 0, BEGINS "settle:2 decide:0 tried:0 full:0 chain:0" ENDS "0");
	settled = false;
	RUN("", 0, BEGINS "settle:2 tried:0 full:1 chain:0" ENDS "0");
	captures = true;
	struct spill_request request = {0};
	assert_string_equal(run(&request, ""), BEGINS "tried:0 full:4 chain:0" ENDS "0");
	assert_true(request.admission.over_limit && !request.admission.capped);
	/* While observing, the driver is asked all the same. */
	policy.mode = SPILL_MODE_OBSERVE;
	verdicts = "F";
	RUN("0", 0, BEGINS "tried:0 driver:1 answered:0 served:0" ENDS "0");
}

TEST(the_limit_by_the_account)
{
	kind.charge = NULL;
	limit = 150;
	held = 50;
	RUN("0", 0, "call:0 poll:0 graphs:2 charge:100 driver:1 answered:0 served:100" ENDS "1000");
	held = 51;
	outcomes = "S";
	RUN("", 0, "call:0 poll:0 graphs:2 settle:2 tried:0 full:0 chain:0" ENDS "0");
}

/* -- rules ---------------------------------------------------------------------------------------------------------------------- */

TEST(a_rule_places)
{
	verdicts = "PPDP";
	placed = true;
	RUN("", 0, BEGINS "place:0" ENDS "0");
	placed = false; /* the place is not available: the policy is asked again */
	RUN("0", 0, BEGINS "place:0 decide:2 driver:1 answered:0 served:100" ENDS "1000");
	policy.mode = SPILL_MODE_OBSERVE;
	RUN("0", 0, BEGINS "driver:1 answered:0 served:0" ENDS "0");
}

TEST(a_rule_refuses)
{
	verdicts = "RR";
	RUN("", OUT_OF_MEMORY, BEGINS "oom:2 device.limit:0");
	policy.mode = SPILL_MODE_OBSERVE;
	RUN("0", 0, BEGINS "driver:1 answered:0 served:0" ENDS "0");
}

/* -- the reserve -------------------------------------------------------------------------------------------------------------------- */

TEST(the_reserve_allows_it)
{
	kept = true;
	verdicts = "DDDDD";
	RUN("0", 0, BEGINS "at once:100 allows:100 driver:1 answered:100 served:100" ENDS "1000");
	at_once = true;
	RUN("0", 0, BEGINS "at once:100 driver:1 answered:100 served:100" ENDS "1000");
	kind.growth = growth;
	RUN("0", 0, BEGINS "at once:200 driver:1 answered:200 served:100" ENDS "1000");
	at_once = false;
	growth_bytes = 64;
	RUN("0", 0, BEGINS "at once:200 growth:0 allows:64 driver:1 answered:64 served:100" ENDS "1000");
	growth_bytes = 0;
	RUN("0", 0, BEGINS "at once:200 growth:0 driver:1 answered:0 served:100" ENDS "1000");
	/* At risk it is kept, too. A capture forbids the calls for it. */
	kind.growth = NULL;
	kept = false;
	at_risk = true;
	verdicts = "DD";
	RUN("0", 0, BEGINS "at once:100 allows:100 driver:1 answered:100 served:100" ENDS "1000");
	in_capture = true;
	RUN("0", 0, BEGINS "driver:1 answered:0 served:100" ENDS "1000");
}

TEST(the_reserve_does_not_allow_it)
{
	kept = true;
	allows = false;
	verdicts = "DD";
	outcomes = "SR";
	RUN("", 0, BEGINS "at once:100 allows:100 returned:100 tried:0 full:0 chain:0" ENDS "0");
	RUN("", OUT_OF_MEMORY,
	    BEGINS "at once:100 allows:100 returned:100 tried:0 full:0 chain:0 oom:2 device.reserve:1");
	/* On a device that has not spilled the driver is asked as the last resort, unless the failure is to surface. */
	kept = false;
	at_risk = true;
	verdicts = "DDDF";
	outcomes = "RRR";
	RUN("0", 0,
	    BEGINS "at once:100 allows:100 returned:100 tried:0 full:0 chain:0 decide:0 driver:1 answered:0 "
	           "served:100" ENDS "0");
	RUN("", OUT_OF_MEMORY,
	    BEGINS
	    "at once:100 allows:100 returned:100 tried:0 full:0 chain:0 decide:0 oom:2 device.reserve:1");
	surfaces = true;
	verdicts = "D";
	RUN("", OUT_OF_MEMORY,
	    BEGINS "at once:100 allows:100 returned:100 tried:0 full:0 chain:0 oom:2 device.reserve:1");
	/* While observing nothing is kept. */
	policy.mode = SPILL_MODE_OBSERVE;
	verdicts = "D";
	RUN("0", 0, BEGINS "driver:1 answered:0 served:100" ENDS "0");
}

/* What the driver served took more than was expected. */
TEST(an_answer_that_is_not_accepted)
{
	kind.accept = accept;
	verdicts = "DDD";
	RUN("0", 0, BEGINS "driver:1 answered:0 served:100" ENDS "1000");
	not_accepted = true;
	outcomes = "SS";
	struct spill_request request = {.admission.charged_rule = 5};
	assert_string_equal(run(&request, "0"),
	                    BEGINS "driver:1 answered:0 rule returned:5 tried:0 full:0 chain:0" ENDS "0");
	assert_string_equal(request.admission.refused_word, "device.limit");
	assert_true(request.admission.over_limit && !request.admission.capped);
	falls_short = true;
	struct spill_request other = {0};
	assert_string_equal(run(&other, "0"), BEGINS "driver:1 answered:0 tried:0 full:0 chain:0" ENDS "0");
	assert_string_equal(other.admission.refused_word, "device.reserve");
	assert_false(other.admission.over_limit);
}

/* -- in another way than the plain call ------------------------------------------------------------------------------------------------ */

TEST(memory_in_another_way)
{
	kind.substitute = substitute;
	verdicts = "DDDD";
	substitutes = "SNLF";
	outcomes = "RR";
	struct spill_request request = {.admission.charged_rule = 5};
	assert_string_equal(run(&request, ""),
	                    BEGINS "substitute:0 succeeded:0 rule returned:5 taken:100 keep:0");
	assert_int_equal(request.admission.charged, 0);
	RUN("0", 0, BEGINS "substitute:0 driver:1 answered:0 served:100" ENDS "1000");
	struct spill_request limited = {.admission.charged_rule = 5};
	assert_string_equal(run(&limited, ""), BEGINS
	                    "substitute:0 rule returned:5 tried:0 full:0 chain:0 oom:2 device.limit:1");
	assert_true(limited.admission.over_limit);
	struct spill_request full = {.admission.charged_rule = 5};
	assert_string_equal(run(&full, ""),
	                    BEGINS "substitute:0 rule returned:5 tried:0 full:0 chain:0 oom:2 driver:1");
	assert_false(full.admission.over_limit);
}

/* Does it repeat a failure that surfaced? That is asked at the first failure of a request. */
TEST(a_failure_that_repeats)
{
	static const struct {
		enum spill_honest_first honest;
		bool repeats, told;
	} failures[] = {
	    {SPILL_HONEST_ON, true, true}, {SPILL_HONEST_ON, false, false}, {SPILL_HONEST_OFF, true, false}};
	kind.place = place; /* it could be served otherwise */
	for (unsigned i = 0; i < 3; i++) {
		struct spill_request request = {0};
		policy.honest_first = failures[i].honest;
		repeats = failures[i].repeats;
		verdicts = "D";
		outcomes = "S";
		run(&request, "2");
		assert_int_equal(request.admission.repeats, failures[i].told);
	}
	/* A capture that begins meanwhile changes nothing of it. */
	struct spill_request request = {0};
	policy.honest_first = SPILL_HONEST_ON;
	repeats = captures_at_first_chain = true;
	verdicts = "D";
	outcomes = "AS";
	run(&request, "22");
	assert_true(request.admission.repeats);
}
