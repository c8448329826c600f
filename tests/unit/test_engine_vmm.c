/*
 * Physical memory that the program creates: when the vendor is asked, what is made in its place, and what is recorded. The
 * functions of this kind of memory are called as admit.c calls them. All that they call is replaced.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "account.h"
#include "admit.h"
#include "chunk_set.h"
#include "exporting.h"
#include "memory_limit.h"
#include "movable.h"
#include "place.h"
#include "process.h"
#include "registry.h"
#include "reserve_keeper.h"
#include "movable_wish.h"
#include "said.h"
#include "vmm.h"

enum { DEVICE = 2, PTR = 4096, UNIT = 100, GRANULE = 50 };

static struct spill_policy policy;
static const struct spill_rules no_rules;
static const struct spill_alloc_kind_ops *kind;
static struct spill_physical physical; /* what the program describes */
static struct spill_chunked set;
static struct spill_vmm_memory table, added;
static struct spill_vmm_memory *before; /* that the value of a new handle meant, as nobody saw its end */
static struct spill_allocation entry;
static enum spill_reason reason_of_entry;
static int context, described;
static bool no_table, no_entry, is_set, kept_reserve, keeps, no_granule;
static uint64_t unit, limit, out;
static const char *make_error;
static struct spill_place_request asked; /* of a place */

static bool current(int *device, void **its_context)
{
	*device = 7; /* not that of the memory */
	*its_context = &context;
	return true;
}

static void describe(const void *properties, struct spill_physical *found)
{
	assert_ptr_equal(properties, &described);
	*found = physical;
}

static int granularity(int device, bool on_host, uint64_t *bytes)
{
	assert_int_equal(device, DEVICE);
	assert_false(on_host);
	*bytes = GRANULE;
	return no_granule;
}

static const struct spill_vendor_moves moves;
static const struct spill_vendor_devices devices = {.current = current};
static const struct spill_vendor_physical physical_ops = {.describe = describe, .granularity = granularity};
static struct spill_backend backend;
static const struct spill_backend *found_backend;

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	return found_backend;
}

bool spill_admit(struct spill_request *request, const struct spill_alloc_kind_ops *ops)
{
	kind = ops;
	return true;
}

struct spill_allocation spill_admit_describe(const struct spill_request *request,
                                             const struct spill_backend *vendor, uint64_t ptr)
{
	return (struct spill_allocation){.backend = vendor,
	                                 .ptr = ptr,
	                                 .bytes = request->bytes,
	                                 .device = request->device,
	                                 .site = &described,
	                                 .api = "api",
	                                 .caller = "caller"};
}

bool spill_admit_record(struct spill_request *request, struct spill_allocation *allocation,
                        enum spill_reason reason)
{
	allocation->seq = 33;
	entry = *allocation;
	reason_of_entry = reason;
	say("entry", allocation->ptr);
	return !no_entry;
}

struct spill_vmm_memory *spill_vmm_add(const struct spill_vmm_memory *memory, struct spill_vmm_memory **ended)
{
	added = table = *memory;
	say("table", memory->handle);
	*ended = before;
	return no_table ? NULL : &table;
}

struct spill_vmm_memory *spill_vmm_releasing(uint64_t handle)
{
	assert_int_equal(handle, added.handle);
	return &table;
}

struct spill_vmm_memory *spill_vmm_released(struct spill_vmm_memory *memory, bool done)
{
	assert_ptr_equal(memory, &table);
	say("out of the table", done);
	return memory;
}

void spill_engine_finish_ended(struct spill_request *request, struct spill_vmm_memory *ended)
{
	if (ended)
		say("ended", ended == &table);
}

void spill_account_device_return(int device, uint64_t bytes)
{
	assert_int_equal(device, DEVICE);
	say("returned", bytes);
}

void spill_account_physical_add(uint64_t bytes)
{
	say("host", bytes);
}

void spill_account_physical_return(uint64_t bytes)
{
	say("host returned", bytes);
}

bool spill_admit_count_begin(struct spill_request *request, const struct spill_backend *vendor, bool is_valid)
{
	say("count", is_valid);
	return true;
}

bool spill_reserve_is_kept(int device)
{
	return kept_reserve;
}

uint64_t spill_device_limit(const struct spill_backend *vendor, int device)
{
	return limit;
}

uint64_t spill_chunked_granularity(const struct spill_backend *vendor, int device)
{
	return unit;
}

struct spill_chunked *spill_chunked_of(struct spill_placement *placement)
{
	return placement && is_set ? &set : NULL;
}

bool spill_exporting_keeps(const struct spill_request *request)
{
	return keeps;
}

struct spill_place_request spill_admit_place_request(const struct spill_request *request,
                                                     const struct spill_backend *vendor, uint64_t device_room)
{
	assert_true(device_room == SPILL_UNLIMITED);
	return (struct spill_place_request){.backend = vendor, .bytes = request->bytes};
}

static struct spill_placement *make(const char *what, const struct spill_place_request *want,
                                    const char **error)
{
	asked = *want;
	say(what, want->bytes);
	*error = make_error;
	return make_error ? NULL : &set.base;
}

static struct spill_placement *make_set(const struct spill_place_request *want, const char **error)
{
	return make("set", want, error);
}

static struct spill_placement *make_handle(const struct spill_place_request *want, const char **error)
{
	return make("handle", want, error);
}

static void release(struct spill_placement *placement, bool context_ended)
{
	assert_false(context_ended);
	say("release", placement == &set.base);
}

const struct spill_place_ops spill_place_split_set = {SPILL_PLACE_SPLIT, make_set, release};
const struct spill_place_ops spill_place_movable_set = {SPILL_PLACE_MOVABLE, make_set, release};
const struct spill_place_ops spill_place_handle = {SPILL_PLACE_HOST, make_handle, release};

enum spill_substitute spill_admit_substitute(struct spill_request *request, const struct spill_place_ops *ops,
                                             const struct spill_place_request *want,
                                             bool (*give)(struct spill_request *request,
                                                          struct spill_placement *placement,
                                                          enum spill_reason reason, const char **error),
                                             const char **error)
{
	assert_ptr_equal(ops, &spill_place_movable_set);
	asked = *want;
	assert_non_null(give);
	return SPILL_SUBSTITUTE_SERVED;
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	backend = (struct spill_backend){.devices = &devices, .physical = &physical_ops, .moves = &moves};
	found_backend = &backend;
	physical =
	    (struct spill_physical){.where = SPILL_LOCATION_DEVICE, .device = DEVICE, .asked = "as asked"};
	no_table = no_entry = is_set = kept_reserve = keeps = plain = captures = no_granule = false;
	wanted = true;
	unit = UNIT;
	limit = SPILL_UNLIMITED;
	make_error = NULL;
	before = NULL;
	out = 5;
	set = (struct spill_chunked){.base = {.ops = &spill_place_handle, .backend = &backend, .ptr = PTR},
	                             .name = 8192,
	                             .properties = &described,
	                             .range = 1000,
	                             .stays_from = UINT64_MAX};
	spill_engine_create(&(struct spill_request){0});
	what_was_said();
	return 0;
}

static struct spill_request request_of(uint64_t bytes)
{
	return (struct spill_request){
	    .out = &out, .properties = &described, .bytes = bytes, .device = DEVICE};
}

/* -- what the vendor is asked ------------------------------------------------------------------------------------ */

static bool prepares(struct spill_request request)
{
	bool good = kind->prepare(&request, &backend);
	if (good) {
		assert_true(request.device == DEVICE && request.context == &context);
		assert_int_equal(request.admission.weight, request.bytes);
	}
	return good;
}

TEST(requests_that_are_whole)
{
	assert_true(prepares(request_of(10)));
	assert_false(prepares(request_of(0)));
	struct spill_request request = request_of(10);
	request.out = NULL;
	assert_false(prepares(request));
	request = request_of(10);
	request.properties = NULL;
	assert_false(prepares(request));
	physical.where = SPILL_LOCATION_NONE;
	assert_false(prepares(request_of(10)));
	physical.where = SPILL_LOCATION_DEVICE;
	backend.physical = NULL;
	assert_false(prepares(request_of(10)));
}

/* A wrong size is the vendor's to refuse, where something else could refuse first. */
TEST(sizes_that_are_wrong)
{
	for (unsigned i = 0; i < 4; i++) {
		policy.rules = i == 1 ? (struct spill_rules *)&no_rules : NULL;
		kept_reserve = i == 2;
		limit = i == 3 ? 1000 : SPILL_UNLIMITED;
		assert_int_equal(prepares(request_of(GRANULE + 1)), i == 0);
		assert_true(prepares(request_of(2 * GRANULE)));
		no_granule = true;
		assert_int_equal(prepares(request_of(2 * GRANULE)), i == 0);
		no_granule = false;
	}
}

TEST(what_the_vendor_serves)
{
	struct spill_request request = request_of(10);
	request.admission.charged = 17;
	kind->served(&request, &backend);
	assert_string_equal(what_was_said(), "table:5 entry:5");
	assert_true(entry.place == SPILL_PLACE_DEVICE && entry.charged == 17 && entry.held.device == 10 &&
	            entry.handle);
	assert_int_equal(reason_of_entry, SPILL_REASON_FITS);
	assert_true(added.handle == 5 && added.device == DEVICE && added.bytes == 10 &&
	            added.site == &described);
	assert_true(!added.spilled && !added.set && !added.exportable);
	assert_string_equal((const char *)added.asked, "as asked");
	assert_int_equal(table.seq, 33);
	before = &(struct spill_vmm_memory){.handle = 5};
	kind->served(&request, &backend);
	assert_string_equal(what_was_said(), "table:5 ended:0 entry:5");
	before = NULL;
	no_entry = true;
	kind->served(&request, &backend);
	assert_string_equal(what_was_said(), "table:5 entry:5 out of the table:1 ended:1 returned:17");
	no_table = true;
	kind->served(&request, &backend);
	assert_string_equal(what_was_said(), "table:5 returned:17");
}

/* -- what is made in its place --------------------------------------------------------------------------------------- */

static const char *last_error;

static bool places(enum spill_step step, struct spill_request request)
{
	const struct spill_place_request place_request = {.backend = &backend, .bytes = request.bytes};
	last_error = NULL;
	return kind->place(&request, step, &place_request, &last_error);
}

TEST(a_handle_of_the_host)
{
	assert_true(places(SPILL_STEP_HOST, request_of(UNIT)));
	assert_string_equal(what_was_said(), "handle:100 table:4096 entry:4096");
	assert_int_equal(out, PTR);
	assert_true(entry.place == SPILL_PLACE_HOST && entry.placement == &set.base && entry.ptr == PTR);
	assert_int_equal(reason_of_entry, SPILL_REASON_OOM);
	assert_true(added.spilled && !added.set && !added.exportable);
	assert_string_equal((const char *)added.asked, "as asked");
	assert_false(asked.exportable);
	physical.exportable = true;
	assert_true(places(SPILL_STEP_HOST, request_of(UNIT)));
	assert_true(asked.exportable && !asked.properties);
}

TEST(steps_that_place_none)
{
	assert_false(places(SPILL_STEP_MANAGED, request_of(UNIT)));
	assert_string_equal(last_error, "not for physical memory");
	physical.device_only = true;
	assert_false(places(SPILL_STEP_HOST, request_of(UNIT)));
	assert_string_equal(last_error, "its use is for the device only");
	assert_string_equal(what_was_said(), "");
	physical.device_only = false;
	make_error = "none";
	assert_false(places(SPILL_STEP_HOST, request_of(UNIT)));
	assert_string_equal(last_error, "none");
	assert_string_equal(what_was_said(), "handle:100");
	make_error = NULL;
	no_entry = true;
	assert_false(places(SPILL_STEP_HOST, request_of(UNIT)));
	assert_string_equal(last_error, "no memory for bookkeeping");
	assert_string_equal(what_was_said(),
	                    "handle:100 table:4096 entry:4096 out of the table:1 ended:1 release:1");
	assert_int_equal(out, 5);
}

/* A set is known by its name. What is on the host is owed the device, but for what a rule's cap keeps there. */
TEST(a_chunk_set)
{
	const struct spill_rule hot = {.set = SPILL_RULE_HAS_PRIORITY, .priority = SPILL_PRIORITY_HOT},
	                        capped = {.set = SPILL_RULE_HAS_CAP, .cap = 300};
	struct spill_request request = request_of(UNIT);
	is_set = true;
	request.admission.applied = &hot;
	set.base.held = (struct spill_bytes){.device = 300, .host = 700};
	assert_true(places(SPILL_STEP_SPLIT, request));
	assert_string_equal(what_was_said(), "set:100 table:8192 entry:8192");
	assert_int_equal(out, 8192);
	assert_true(added.set == &set.base && added.exportable);
	assert_true(!set.properties && set.seq == 33 && set.owed && set.stays_from == UINT64_MAX);
	assert_int_equal(set.priority, SPILL_PRIORITY_HOT);
	assert_string_equal(set.api, "api");
	assert_string_equal(set.caller, "caller");
	request.admission.applied = &capped;
	assert_true(places(SPILL_STEP_SPLIT, request));
	assert_true(!set.owed && set.stays_from == 300 && !added.exportable);
}

/* Whether a set is made in place of a handle, and in place of the vendor's memory. */
TEST(requests_for_a_chunk_set)
{
	static const struct {
		const char *what;
		uint64_t bytes, unit;
		bool exportable, keeps, device_only, unwanted, plain, still, made, properties;
	} requests[] = {
	    {"whole units", .bytes = 3 * UNIT, .unit = UNIT, .made = true},
	    {"a part of one", .bytes = 3 * UNIT + 1, .unit = UNIT},
	    {"no units", .bytes = 3 * UNIT},
	    {"no moves", .bytes = UNIT, .unit = UNIT, .still = true},
	    {"not wanted", .bytes = UNIT, .unit = UNIT, .unwanted = true},
	    {"it stays plain", .bytes = UNIT, .unit = UNIT, .plain = true},
	    {"for the device only", .bytes = UNIT, .unit = UNIT, .device_only = true},
	    {"exportable", .bytes = UNIT, .unit = UNIT, .exportable = true, .made = true, .properties = true},
	    {"that is not exported", .bytes = UNIT, .unit = UNIT, .exportable = true, .keeps = true,
	     .made = true},
	    {"just not too large", .bytes = SPILL_CHUNK_SET_EXPORTABLE, .unit = 1, .exportable = true,
	     .made = true, .properties = true},
	    {"too large", .bytes = SPILL_CHUNK_SET_EXPORTABLE + 1, .unit = 1, .exportable = true},
	    {"large, and not exported", .bytes = SPILL_CHUNK_SET_EXPORTABLE + 1, .unit = 1,
	     .exportable = true, .keeps = true, .made = true},
	};
	for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		struct spill_request request = request_of(requests[i].bytes);
		const char *error = NULL;
		physical.exportable = requests[i].exportable;
		physical.device_only = requests[i].device_only;
		keeps = requests[i].keeps;
		plain = requests[i].plain;
		wanted = !requests[i].unwanted;
		unit = requests[i].unit;
		backend.moves = requests[i].still ? NULL : &moves;
		asked.properties = NULL;
		if ((kind->substitute(&request, &backend, &error) == SPILL_SUBSTITUTE_SERVED) !=
		        requests[i].made ||
		    (requests[i].made && (asked.properties == &described) != requests[i].properties))
			fail_msg("%s", requests[i].what);
		what_was_said();
		if (!physical.device_only && places(SPILL_STEP_SPLIT, request))
			assert_int_equal(strncmp(what_was_said(), "set", 3) == 0, requests[i].made);
	}
}

TEST(no_set_in_a_capture_or_of_an_unknown_kind)
{
	struct spill_request request = request_of(UNIT);
	const char *error = NULL;
	captures = true;
	assert_int_equal(kind->substitute(&request, &backend, &error), SPILL_SUBSTITUTE_NONE);
	captures = false;
	request.properties = NULL;
	assert_int_equal(kind->substitute(&request, &backend, &error), SPILL_SUBSTITUTE_NONE);
}

/* -- host memory that the program wants ------------------------------------------------------------------------------- */

TEST(host_memory_is_counted)
{
	physical.where = SPILL_LOCATION_HOST;
	for (unsigned i = 0; i < 3; i++) {
		struct spill_request request = request_of(10);
		request.device = -1;
		no_entry = i == 1;
		assert_true(spill_engine_create(&request));
		assert_string_equal(what_was_said(), "count:1");
		request.result = i == 2;
		assert_false(spill_engine_create(&request));
		assert_string_equal(
		    what_was_said(),
		    i == 0   ? "host:10 table:5 entry:5"
		    : i == 1 ? "host:10 table:5 entry:5 out of the table:1 ended:1 host returned:10"
		             : "");
		assert_int_equal(request.device, i == 2 ? -1 : DEVICE);
	}
	assert_true(entry.place == SPILL_PLACE_HOST && entry.held.host == 10 && entry.charged_host == 10);
	assert_int_equal(reason_of_entry, SPILL_REASON_ASKED);
	/* A call that is not whole is admitted as any other, and passed on there. */
	struct spill_request request = request_of(0);
	kind = NULL;
	spill_engine_create(&request);
	assert_non_null(kind);
	found_backend = NULL;
	request = request_of(10);
	kind = NULL;
	spill_engine_create(&request);
	assert_non_null(kind);
}
