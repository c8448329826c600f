/*
 * Plain device memory and arrays: what a request weighs, what the program gets, and from when on its chunks may move. The
 * functions of this kind of memory are called as admit.c calls them. All that they call is replaced.
 */
#define SETUP setup
#include "unit.h"

#include "account.h"
#include "blocks.h"
#include "admit.h"
#include "chunked.h"
#include "exporting.h"
#include "gate.h"
#include "movable.h"
#include "peer.h"
#include "place.h"
#include "promote.h"
#include "registry.h"
#include "rule.h"
#include "rules.h"
#include "movable_wish.h"
#include "said.h"

enum { DEVICE = 2, PTR = 4096, PITCH = 64 };

static const struct spill_alloc_kind_ops *kind;
static int context;
static bool has_current, no_entry, no_placement;
static bool has_chunks;
static struct spill_allocation added;
static struct spill_chunked chunked;
static enum spill_reason reason_of_entry;
static enum spill_substitute substitute;

static bool current(int *device, void **its_context)
{
	*device = DEVICE;
	*its_context = &context;
	return has_current;
}

/* A row of one byte has no pitch that is known; and a wide one has a small one, as no vendor would say. */
static uint64_t pitch(uint64_t width)
{
	return width == 1 ? 0 : PITCH;
}

static uint64_t footprint(uint64_t bytes)
{
	return bytes + 7;
}

static const struct spill_vendor_devices devices = {.current = current};
static const struct spill_vendor_memory memory = {.pitch = pitch, .footprint = footprint};
static struct spill_backend backend = {.devices = &devices, .memory = &memory};

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	return &backend;
}

bool spill_admit(struct spill_request *request, const struct spill_alloc_kind_ops *ops)
{
	kind = ops;
	return true;
}

struct spill_allocation spill_admit_describe(const struct spill_request *request,
                                             const struct spill_backend *vendor, uint64_t ptr)
{
	return (struct spill_allocation){.backend = vendor, .ptr = ptr, .bytes = request->bytes};
}

bool spill_admit_record(struct spill_request *request, struct spill_allocation *allocation,
                        enum spill_reason reason)
{
	allocation->seq = 33;
	added = *allocation;
	reason_of_entry = reason;
	say("entry", allocation->ptr);
	return !no_entry;
}

void spill_account_device_return(int device, uint64_t bytes)
{
	assert_int_equal(device, DEVICE);
	say("returned", bytes);
}

static void release(struct spill_placement *placement, bool context_ended)
{
	assert_false(context_ended);
	say("release", placement == &chunked.base);
}

static const struct spill_place_ops movable_ops = {.place = SPILL_PLACE_MOVABLE, .release = release};
const struct spill_place_ops spill_place_movable = {.place = SPILL_PLACE_MOVABLE, .release = release};

const struct spill_place_ops *spill_place_of(enum spill_place place)
{
	assert_int_equal(place, SPILL_PLACE_HOST);
	return &movable_ops;
}

struct spill_placement *spill_place_make(const struct spill_place_ops *ops,
                                         const struct spill_place_request *want, const char **error)
{
	assert_ptr_equal(ops, &movable_ops);
	*error = no_placement ? "none" : NULL;
	return no_placement ? NULL : &chunked.base;
}

struct spill_chunked *spill_chunked_of(struct spill_placement *placement)
{
	return has_chunks ? &chunked : NULL;
}

void spill_chunked_enlist(struct spill_chunked *enlisted)
{
	assert_ptr_equal(enlisted, &chunked);
	say("enlist", enlisted->owed);
}

void spill_blocks_follow(struct spill_chunked *chunk)
{
	assert_ptr_equal(chunk, &chunked);
	say("blocks", 0);
}

struct spill_growth_answer spill_growth_state_served(struct spill_request *request)
{
	return (struct spill_growth_answer){.run = 44, .grows = true};
}

void spill_gate_want_maintenance(void)
{
	say("maintenance", 0);
}

void spill_promote_wanted(void)
{
	say("promote", 0);
}

void spill_peer_placed(const struct spill_placement *placement)
{
	say("peers", 0);
}

struct spill_place_request spill_admit_place_request(const struct spill_request *request,
                                                     const struct spill_backend *vendor, uint64_t device_room)
{
	assert_true(device_room == SPILL_UNLIMITED);
	return (struct spill_place_request){.bytes = request->bytes};
}

static bool (*hand_out)(struct spill_request *request, struct spill_placement *placement,
                        enum spill_reason reason, const char **error);

enum spill_substitute spill_admit_substitute(struct spill_request *request, const struct spill_place_ops *ops,
                                             const struct spill_place_request *want,
                                             bool (*give)(struct spill_request *request,
                                                          struct spill_placement *placement,
                                                          enum spill_reason reason, const char **error),
                                             const char **error)
{
	assert_ptr_equal(ops, &spill_place_movable);
	hand_out = give;
	return substitute;
}

static uint64_t out;

static int setup(void **state)
{
	has_current = wanted = true;
	no_entry = no_placement = captures = plain = has_chunks = false;
	backend.clears_pointer = false;
	substitute = SPILL_SUBSTITUTE_SERVED;
	chunked = (struct spill_chunked){.base = {.ops = &movable_ops, .backend = &backend, .ptr = PTR},
	                                 .range = 1000,
	                                 .stays_from = UINT64_MAX};
	out = 5;
	what_was_said();
	spill_engine_alloc(&(struct spill_request){0});
	return 0;
}

/* -- what is asked for ------------------------------------------------------------------------------------------- */

/* Its bytes; 0: the vendor is to answer. */
static uint64_t prepared(struct spill_request request)
{
	if (!kind->prepare(&request, &backend))
		return 0;
	assert_int_equal(request.device, DEVICE);
	assert_ptr_equal(request.context, &context);
	assert_int_equal(request.admission.weight, request.bytes + 7);
	return request.bytes;
}

TEST(bytes_that_are_asked_for)
{
	assert_int_equal(prepared((struct spill_request){.out = &out, .bytes = 10}), 10);
	assert_int_equal(prepared((struct spill_request){.out = &out}), 0);
	assert_int_equal(prepared((struct spill_request){.bytes = 10}), 0);
	has_current = false;
	assert_int_equal(prepared((struct spill_request){.out = &out, .bytes = 10}), 0);
}

static uint64_t rows(uint64_t width, uint64_t height, uint64_t depth)
{
	static size_t out_pitch;
	return prepared(
	    (struct spill_request){.out = &out, .pitched = {&out_pitch, NULL, NULL, width, height, depth}});
}

TEST(rows_that_are_asked_for)
{
	assert_int_equal(rows(10, 3, 2), 6 * PITCH);
	assert_int_equal(rows(PITCH, 3, 1), 3 * PITCH);
	assert_int_equal(rows(PITCH + 1, 3, 1), 0);
	assert_int_equal(rows(1, 3, 1), 0);
	assert_int_equal(rows(10, 0, 1), 0);
	assert_int_equal(rows(10, UINT64_MAX / PITCH + 1, 1), 0);
	assert_int_equal(rows(10, UINT64_MAX / PITCH, 2), 0);
}

TEST(what_the_vendor_serves)
{
	struct spill_request request = {.out = &out, .bytes = 10, .device = DEVICE, .admission.charged = 17};
	kind->served(&request, &backend);
	assert_true(added.ptr == 5 && added.place == SPILL_PLACE_DEVICE && added.charged == 17 &&
	            added.held.device == 10);
	assert_int_equal(reason_of_entry, SPILL_REASON_FITS);
	assert_string_equal(what_was_said(), "entry:5");
	no_entry = request.admission.over_limit = true;
	kind->served(&request, &backend);
	assert_int_equal(reason_of_entry, SPILL_REASON_LIMIT);
	assert_string_equal(what_was_said(), "entry:5 returned:17");
}

/* -- what libspill makes ------------------------------------------------------------------------------------------ */

static const char *last_error;

static bool placed(struct spill_request request)
{
	last_error = NULL;
	request.out = &out;
	return kind->place(&request, SPILL_STEP_HOST, &(struct spill_place_request){0}, &last_error);
}

TEST(memory_without_chunks)
{
	assert_true(placed((struct spill_request){.bytes = 10}));
	assert_int_equal(out, PTR);
	assert_true(added.ptr == PTR && added.place == SPILL_PLACE_MOVABLE &&
	            added.placement == &chunked.base);
	assert_int_equal(reason_of_entry, SPILL_REASON_OOM);
	assert_string_equal(what_was_said(), "entry:4096 peers:0");
	assert_true(placed((struct spill_request){.admission.at_once = true}));
	assert_int_equal(reason_of_entry, SPILL_REASON_RULE);
}

TEST(no_memory_and_no_entry)
{
	no_placement = true;
	assert_false(placed((struct spill_request){0}));
	assert_string_equal(last_error, "none");
	assert_string_equal(what_was_said(), "");
	no_placement = false;
	no_entry = true;
	assert_false(placed((struct spill_request){0}));
	assert_string_equal(last_error, "no memory for bookkeeping");
	assert_string_equal(what_was_said(), "entry:4096 release:1");
	assert_int_equal(out, 5);
}

/* Rows have the pitch of the vendor's own. */
TEST(rows_that_are_placed)
{
	size_t out_pitch = 0, width = 0, height = 0;
	assert_true(placed((struct spill_request){.pitched = {&out_pitch, &width, &height, 10, 3, 1}}));
	assert_true(out_pitch == PITCH && width == 10 && height == 3);
	out_pitch = 0;
	assert_true(placed((struct spill_request){.pitched = {&out_pitch, NULL, NULL, 10, 3, 1}}));
	assert_int_equal(out_pitch, PITCH);
}

/* What is on the host is owed the device, but for what a rule's cap keeps there. */
TEST(chunks_move_from_then_on)
{
	const struct spill_rule hot = {.set = SPILL_RULE_HAS_PRIORITY, .priority = SPILL_PRIORITY_HOT},
	                        capped = {.set = SPILL_RULE_HAS_CAP, .cap = 300};
	has_chunks = true;
	assert_true(placed((struct spill_request){0}));
	assert_true(chunked.seq == 33 && chunked.run == 44 && chunked.grows && !chunked.owed);
	assert_int_equal(chunked.priority, SPILL_PRIORITY_NORMAL);
	assert_string_equal(what_was_said(), "entry:4096 peers:0 enlist:0 blocks:0 maintenance:0");
	chunked.base.held = (struct spill_bytes){.device = 300, .host = 700};
	assert_true(placed((struct spill_request){.admission.applied = &hot}));
	assert_true(chunked.owed && chunked.stays_from == UINT64_MAX);
	assert_int_equal(chunked.priority, SPILL_PRIORITY_HOT);
	assert_string_equal(what_was_said(), "entry:4096 peers:0 enlist:1 blocks:0 maintenance:0 promote:0");
	assert_true(placed((struct spill_request){.admission.applied = &capped}));
	assert_true(!chunked.owed && chunked.stays_from == 300);
	assert_string_equal(what_was_said(), "entry:4096 peers:0 enlist:0 blocks:0 maintenance:0");
}

/* -- in place of the plain call ---------------------------------------------------------------------------------- */

static enum spill_substitute substituted(void)
{
	struct spill_request request = {.out = &out, .bytes = 10};
	const char *error = NULL;
	hand_out = NULL;
	return kind->substitute(&request, &backend, &error);
}

TEST(chunks_in_place_of_the_plain_call)
{
	assert_int_equal(substituted(), SPILL_SUBSTITUTE_SERVED);
	assert_non_null(hand_out);
	bool *const reasons[] = {&captures, &plain, &wanted};
	for (unsigned i = 0; i < 3; i++) {
		*reasons[i] = !*reasons[i];
		assert_int_equal(substituted(), SPILL_SUBSTITUTE_NONE);
		assert_null(hand_out);
		*reasons[i] = !*reasons[i];
	}
}

/* An array has a layout of the vendor's. */
TEST(arrays_are_the_vendors)
{
	spill_engine_array(&(struct spill_request){0});
	assert_true(kind->prepare && kind->served);
	assert_true(!kind->substitute && !kind->place && !kind->refused);
}

TEST(what_a_refusal_leaves)
{
	size_t out_pitch = 0;
	struct spill_request request = {.out = &out};
	kind->refused(&request);
	assert_int_equal(out, 5);
	backend.clears_pointer = true;
	kind->refused(&request);
	assert_int_equal(out, 0);
	request.pitched.out_pitch = &out_pitch;
	request.pitched.width = 10;
	kind->refused(&request);
	assert_int_equal(out_pitch, PITCH);
}
