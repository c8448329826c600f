/*
 * What all requests for memory share: refusals that are kept, entries of the ledger and what follows them, and the accounts of
 * memory that is only counted. All that admit_record.c calls of the engine and below is replaced.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "account.h"
#include "admit.h"
#include "contexts.h"
#include "demote.h"
#include "device_memory.h"
#include "gate.h"
#include "memory_limit.h"
#include "note.h"
#include "place.h"
#include "process.h"
#include "registry.h"
#include "reserve_keeper.h"
#include "rules.h"
#include "said.h"

enum { DEVICE = 2, OUT_OF_MEMORY = 2, PTR = 77, BYTES = 100, CHARGED = 30 };

static struct spill_policy policy;
static struct spill_placement placement;
static bool no_entry, begins, has_current, no_placement, no_hand_out;
static const char *make_error;
static struct spill_allocation added;
static int context;

static const char *error_name(int error)
{
	return error == OUT_OF_MEMORY ? "out of memory" : "?";
}

static bool current(int *device, void **its_context)
{
	*device = DEVICE;
	*its_context = &context;
	return has_current;
}

static const struct spill_vendor_devices devices = {.current = current};
static const struct spill_backend backend = {
    .devices = &devices, .error_name = error_name, .out_of_memory = OUT_OF_MEMORY};
static const struct spill_backend *found;

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	return found;
}

void spill_contexts_made(const struct spill_backend *vendor, int device, void *its_context)
{
	assert_ptr_equal(its_context, &context);
	say("context", (uint64_t)device);
}

const char *spill_engine_requester(const struct spill_request *request)
{
	return "requester";
}

const char *spill_engine_api(const struct spill_request *request)
{
	return "api";
}

const char *spill_engine_caller(const struct spill_request *request)
{
	return "caller";
}

const void *spill_engine_site(const struct spill_request *request)
{
	return &devices;
}

void spill_engine_memory_call(const struct spill_backend *vendor)
{
	say("memory call", 0);
}

void spill_rules_hand_over(struct spill_request *request, struct spill_allocation *allocation)
{
	allocation->charged_rule = request->admission.charged_rule - 1;
	request->admission.charged_rule = 1;
}

void spill_rules_give_back(struct spill_request *request)
{
	say("rule returned", request->admission.charged_rule);
}

void spill_request_choose_line(const struct spill_request *request, struct spill_allocation *allocation,
                               enum spill_reason reason)
{
	say("line", reason);
}

bool spill_ledger_add(struct spill_allocation *allocation)
{
	added = *allocation;
	say("ledger", allocation->ptr);
	return !no_entry;
}

void spill_note(const char *code, const char *text)
{
	say(code, 0);
}

bool spill_reserve_begin(int device)
{
	say("reserve", (uint64_t)device);
	return begins;
}

void spill_gate_want_maintenance(void)
{
	say("maintenance", 0);
}

void spill_request_log_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                             enum spill_reason reason)
{
	say("log", reason);
}

uint64_t spill_device_limit(const struct spill_backend *vendor, int device)
{
	return 1000 + (uint64_t)device;
}

void spill_account_device_add(int device, uint64_t bytes)
{
	assert_int_equal(device, DEVICE);
	say("device", bytes);
}

void spill_account_device_return(int device, uint64_t bytes)
{
	assert_int_equal(device, DEVICE);
	say("device returned", bytes);
}

void spill_device_memory_unserved(int device, uint64_t bytes)
{
	assert_int_equal(device, DEVICE);
	say("unserved", bytes);
}

void spill_account_host_add(uint64_t bytes)
{
	say("host", bytes);
}

void spill_account_host_return(uint64_t bytes)
{
	say("host returned", bytes);
}

void spill_demote_foresee(const struct spill_backend *vendor, int device)
{
	say("foresee", (uint64_t)device);
}

uint64_t spill_log_start_us(void)
{
	return 5;
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	no_entry = begins = no_placement = no_hand_out = false;
	has_current = true;
	found = &backend;
	what_was_said();
	return 0;
}

static struct spill_request request_of(uint64_t bytes)
{
	return (struct spill_request){.bytes = bytes, .device = DEVICE, .context = &context};
}

/* -- refusals ---------------------------------------------------------------------------------------------- */

TEST(so_many_steps_are_kept)
{
	struct spill_request request = request_of(BYTES);
	const char *last = "last";
	for (unsigned i = 0; i < SPILL_ATTEMPTS + 2; i++)
		spill_admit_tried(&request, i == SPILL_ATTEMPTS - 1 ? last : "step", i ? "later" : "first");
	assert_int_equal(request.admission.attempts, SPILL_ATTEMPTS);
	assert_string_equal(request.admission.tried[0].error, "first");
	assert_ptr_equal(request.admission.tried[SPILL_ATTEMPTS - 1].place, last);
}

TEST(the_last_refusal_is_kept)
{
	struct spill_request request = request_of(BYTES);
	spill_admit_refused_by(&request, SPILL_REFUSED_BY_HOST_LIMIT);
	assert_int_equal(request.admission.refused_by, SPILL_REFUSED_BY_HOST_LIMIT);
	assert_string_equal(request.admission.refused_word, "host.limit");
	spill_admit_refused(&request, "device.limit");
	assert_int_equal(request.admission.refused_by, SPILL_REFUSED_BY_DEVICE_LIMIT);
	assert_string_equal(request.admission.refused_word, "device.limit");
}

/* -- entries ----------------------------------------------------------------------------------------------- */

/* `host`: bytes of a placement that are there. */
static bool record(struct spill_request *request, bool placed, uint64_t host)
{
	struct spill_allocation allocation = spill_admit_describe(request, &backend, PTR);
	allocation.placement = placed ? &placement : NULL;
	allocation.held.host = host;
	return spill_admit_record(request, &allocation, SPILL_REASON_LIMIT);
}

TEST(an_entry_has_the_members_of_the_request)
{
	struct spill_request request = request_of(BYTES);
	assert_true(record(&request, false, 0));
	assert_true(added.backend == &backend && added.ptr == PTR && added.bytes == BYTES &&
	            added.device == DEVICE);
	assert_true(added.context == &context && added.site == &devices);
	assert_string_equal(added.api, "api");
	assert_string_equal(added.caller, "caller");
	assert_null(added.requester);
	assert_string_equal(what_was_said(), "context:2 line:2 ledger:77 log:2");
}

TEST(an_entry_takes_over_the_charge_of_a_rule)
{
	struct spill_request request = request_of(BYTES);
	request.admission.charged_rule = 9;
	assert_true(record(&request, false, 0));
	assert_int_equal(added.charged_rule, 8);
	assert_int_equal(request.admission.charged_rule, 1);
}

/* Whoever asked is looked for where that matters: memory that is ours, or that had to wait for room. */
TEST(who_asked_for_it)
{
	for (unsigned i = 0; i < 4; i++) {
		struct spill_request request = request_of(BYTES);
		request.admission.attempts = i / 2;
		record(&request, i % 2, 0);
		assert_int_equal(added.requester != NULL, i != 0);
	}
}

/* The reserve begins with the first spill that no rule chose. */
TEST(a_spill_begins_the_reserve)
{
	struct spill_request request = request_of(BYTES);
	record(&request, true, 1);
	assert_string_equal(what_was_said(), "context:2 line:2 ledger:77 reserve:2 log:2");
	begins = true;
	record(&request, true, 1);
	assert_string_equal(what_was_said(), "context:2 line:2 ledger:77 reserve:2 maintenance:0 log:2");
	record(&request, true, 0);
	assert_string_equal(what_was_said(), "context:2 line:2 ledger:77 log:2");
	request.admission.at_once = true;
	record(&request, true, 1);
	assert_string_equal(what_was_said(), "context:2 line:2 ledger:77 log:2");
}

/* Without an entry the rule has back what the entry would have taken over, and what it left. */
TEST(no_memory_for_an_entry)
{
	struct spill_request request = request_of(BYTES);
	request.admission.charged_rule = 9;
	no_entry = true;
	assert_false(record(&request, true, 1));
	assert_string_equal(what_was_said(), "context:2 line:2 ledger:77 rule returned:9 ledger:0");
}

/* -- in another way than the plain call ---------------------------------------------------------------------- */

TEST(what_a_place_is_asked_for)
{
	struct spill_request request = request_of(BYTES);
	const struct spill_place_request wanted = spill_admit_place_request(&request, &backend, 55);
	assert_true(wanted.backend == &backend && wanted.policy == &policy && wanted.device == DEVICE);
	assert_true(wanted.context == &context && wanted.bytes == BYTES && wanted.device_room == 55);
	assert_int_equal(wanted.device_limit, 1000 + DEVICE);
}

static struct spill_placement *make(const struct spill_place_request *want, const char **error)
{
	say("make", 0);
	*error = make_error;
	return make_error ? NULL : &placement;
}

static bool hand_out(struct spill_request *request, struct spill_placement *made, enum spill_reason reason,
                     const char **error)
{
	assert_ptr_equal(made, &placement);
	assert_int_equal(reason, SPILL_REASON_FITS);
	say("hand out", 0);
	*error = no_hand_out ? "no memory for bookkeeping" : NULL;
	return !no_hand_out;
}

/* The charge is returned first. It is back where the plain call follows. */
static const struct {
	const char *error;
	bool no_hand_out;
	enum spill_substitute answer;
	const char *calls;
} substitutes[] = {
    {NULL, false, SPILL_SUBSTITUTE_SERVED, "device returned:30 unserved:0 make:0 hand out:0 foresee:2"},
    {NULL, true, SPILL_SUBSTITUTE_NONE, "device returned:30 unserved:0 make:0 hand out:0 device:30"},
    {"device.limit", false, SPILL_SUBSTITUTE_LIMIT, "device returned:30 unserved:0 make:0"},
    {"out of memory", false, SPILL_SUBSTITUTE_FULL, "device returned:30 unserved:0 make:0"},
    {"host.limit", false, SPILL_SUBSTITUTE_NONE, "device returned:30 unserved:0 make:0 device:30"},
};

TEST(memory_in_another_way)
{
	static const struct spill_place_ops ops = {.make = make};
	const struct spill_place_request wanted = {.backend = &backend};
	for (unsigned i = 0; i < sizeof(substitutes) / sizeof(substitutes[0]); i++) {
		struct spill_request request = request_of(BYTES);
		const char *error = NULL;
		request.admission.charged = CHARGED;
		make_error = substitutes[i].error;
		no_hand_out = substitutes[i].no_hand_out;
		assert_int_equal(spill_admit_substitute(&request, &ops, &wanted, hand_out, &error),
		                 substitutes[i].answer);
		assert_string_equal(what_was_said(), substitutes[i].calls);
	}
}

/* -- memory that is only counted ------------------------------------------------------------------------------- */

static uint64_t out_ptr;

/* NULL: the call is passed on. */
static const char *count(struct spill_request request, int result)
{
	assert_true(spill_engine_account(&request));
	assert_int_equal(request.start_us, 5);
	if (request.pass)
		return NULL;
	request.result = result;
	assert_false(spill_engine_account(&request));
	return what_was_said();
}

TEST(pinned_and_managed_memory_is_counted)
{
	out_ptr = PTR;
	struct spill_request pinned = {.op = SPILL_OP_ALLOC_HOST, .bytes = BYTES, .out = &out_ptr},
	                     managed = {.op = SPILL_OP_ALLOC_MANAGED, .bytes = BYTES, .out = &out_ptr},
	                     registered = {.op = SPILL_OP_REGISTER, .bytes = BYTES, .ptr = 66};
	assert_string_equal(count(pinned, 0), "memory call:0 host:100 context:2 line:4 ledger:77 log:4");
	assert_true(added.place == SPILL_PLACE_HOST && added.held.host == BYTES &&
	            added.charged_host == BYTES);
	assert_string_equal(count(managed, 0), "memory call:0 host:0 context:2 line:4 ledger:77 log:4");
	assert_true(added.place == SPILL_PLACE_MANAGED && added.held.managed == BYTES && !added.held.host);
	assert_string_equal(count(registered, 0), "memory call:0 host:100 context:2 line:4 ledger:66 log:4");
	assert_string_equal(count(pinned, 1), "memory call:0");
	no_entry = true;
	assert_string_equal(count(pinned, 0),
	                    "memory call:0 host:100 context:2 line:4 ledger:77 ledger:0 host returned:100");
}

TEST(calls_that_are_wrong_are_passed_on)
{
	const struct spill_request nowhere = {.op = SPILL_OP_ALLOC_HOST, .bytes = BYTES},
	                           nothing = {.op = SPILL_OP_ALLOC_HOST, .out = &out_ptr},
	                           no_ptr = {.op = SPILL_OP_REGISTER, .bytes = BYTES, .out = &out_ptr},
	                           good = {.op = SPILL_OP_ALLOC_HOST, .bytes = BYTES, .out = &out_ptr};
	assert_null(count(nowhere, 0));
	assert_null(count(nothing, 0));
	assert_null(count(no_ptr, 0));
	has_current = false;
	assert_null(count(good, 0));
	has_current = true;
	found = NULL;
	assert_null(count(good, 0));
	assert_string_equal(what_was_said(), "");
}
