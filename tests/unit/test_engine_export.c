/*
 * Memory that is exported, or prepared for that: what is pinned before the vendor is asked, and what follows its refusal. All
 * that engine_export.c calls is replaced.
 */
#include "unit.h"

#include <unistd.h>

#include "abi/cuda.h"
#include "chunk_set.h"
#include "engine.h"
#include "exporting.h"
#include "ipc.h"
#include "note.h"
#include "process.h"
#include "said.h"
#include "unpark.h"
#include "vmm.h"

enum { REFUSED = 1, OTHER_ERROR = 801 };

static const struct spill_vendor_vmm harmless, harmful = {.export_harms = true};
static struct spill_backend backend = {.invalid_value = REFUSED};
static struct spill_placement placement;
static int out, value;

enum { PTR = 1 << 20, HANDLE = 42, BYTES = 1000 };
/* What there is at the pointer or behind the handle, and what the call is like. */
enum {
	PLACED = 1,  /* an allocation of libspill's */
	MAPPED = 2,  /* memory that the program mapped, and that is not on the device */
	SPILLED = 4, /* the handle's memory is not on the device */
	SERVES = 8,  /* libspill has handles for it */
	LACKS = 16,  /* but no memory for one */
	ORDERED = 32,
	MANAGED = 64,
	HARMS = 128,  /* the vendor's export of mapped memory */
	NO_OUT = 256, /* the program's pointer for the answer is NULL */
	OWN_HANDLE = 512,
	NO_REAL = 1024, /* behind it is more than one chunk */
	NO_VMM = 2048,
};

static const struct export_case {
	const char *what;
	enum spill_op op;
	unsigned mode, there;
	enum spill_place place;
	uint64_t bytes; /* of a range */
	int vendor;     /* its answer */
	int result;
	const char *calls;
} cases[] = {
#define EXPORT SPILL_OP_EXPORT
#define SET SPILL_OP_ATTR_SET, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
#define LEGACY EXPORT, 1
#define HOST SPILL_PLACE_HOST
#define SPLIT SPILL_PLACE_SPLIT
#define MOVABLE SPILL_PLACE_MOVABLE
    {"plain memory", LEGACY, 0, HOST, 0, 0, 0, "vendor:1"},
    {"plain memory that is refused", LEGACY, 0, HOST, 0, REFUSED, REFUSED, "vendor:1"},
    {"a good export", LEGACY, PLACED, MOVABLE, 0, 0, 0, "pin:1 vendor:1"},
    {"mapped memory", EXPORT, 0, MAPPED, HOST, 0, 0, 0, "pin:1 vendor:1"},
    {"a set of several chunks", EXPORT, 0, NO_REAL | SPILLED, HOST, 0, 0, 0, ""},

    {"a handle of ours", LEGACY, PLACED | SERVES, MOVABLE, 0, REFUSED, 0,
     "pin:1 vendor:1 export:1000 note own handle:0"},
    {"no memory for one", LEGACY, PLACED | SERVES | LACKS, MOVABLE, 0, REFUSED, REFUSED,
     "pin:1 vendor:1 export:1000 learn:1000 note chunks:0"},
    {"memory without handles", LEGACY, PLACED, MOVABLE, 0, REFUSED, REFUSED,
     "pin:1 vendor:1 learn:1000 note chunks:0"},
    {"another kind of export", EXPORT, 0, PLACED | SERVES, MOVABLE, 0, REFUSED, REFUSED,
     "pin:1 vendor:1 learn:1000 note chunks:0"},
    {"another error", LEGACY, PLACED | SERVES, MOVABLE, 0, OTHER_ERROR, OTHER_ERROR, "pin:1 vendor:1"},
    {"nowhere to answer", LEGACY, PLACED | SERVES | NO_OUT, MOVABLE, 0, REFUSED, REFUSED, "pin:1 vendor:1"},
    {"split memory", LEGACY, PLACED, SPLIT, 0, REFUSED, REFUSED, "pin:1 vendor:1 learn:1000 note placed:0"},
    {"memory of the host", LEGACY, PLACED, HOST, 0, REFUSED, REFUSED, "pin:1 vendor:1 note placed:0"},

    {"whole pages", EXPORT, 0, PLACED, HOST, 1 << 20, REFUSED, REFUSED, "pin:1 vendor:1 note placed:0"},
    {"no whole pages", EXPORT, 0, PLACED, HOST, (1 << 20) + 1, REFUSED, REFUSED, "pin:1 vendor:1"},

    {"an attribute", SET, PLACED | SERVES, MOVABLE, 0, 0, 0, "pin:1 vendor:1"},
    {"an attribute of chunks", SET, PLACED | SERVES, MOVABLE, 0, OTHER_ERROR, OTHER_ERROR,
     "pin:1 vendor:1 learn:1000 note chunks:0"},
    {"an attribute of split memory", SET, PLACED, SPLIT, 0, OTHER_ERROR, OTHER_ERROR,
     "pin:1 vendor:1 learn:1000 note placed:0"},
    {"another attribute", SPILL_OP_ATTR_SET, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS + 1, PLACED, MOVABLE, 0,
     REFUSED, REFUSED, "pin:1 vendor:1"},
    {"an attribute without a value", SET, PLACED | NO_OUT, MOVABLE, 0, REFUSED, REFUSED, "pin:1 vendor:1"},

    {"the handle of spilled memory", EXPORT, 0, SPILLED, HOST, 0, REFUSED, REFUSED, "vendor:1 note placed:0"},
    {"the handle of other memory", EXPORT, 0, 0, HOST, 0, REFUSED, REFUSED, "vendor:1"},
    {"the handle of a set", EXPORT, 0, SPILLED | OWN_HANDLE, HOST, 0, REFUSED, REFUSED, "vendor:1"},

    {"managed memory of a pool", LEGACY, PLACED | ORDERED | MANAGED, HOST, 0, 0, REFUSED, "note placed:0"},
    {"the same, with an attribute", SET, PLACED | ORDERED | MANAGED, HOST, 0, 0, 0, "pin:1 vendor:1"},
    {"managed memory", LEGACY, PLACED | MANAGED, HOST, 0, 0, 0, "pin:1 vendor:1"},
    {"other memory of a pool", LEGACY, PLACED | ORDERED, HOST, 0, 0, 0, "pin:1 vendor:1"},
    {"split memory that harms", LEGACY, PLACED | HARMS, SPLIT, 0, 0, REFUSED, "learn:1000 note placed:0"},
    {"mapped memory in it", LEGACY, PLACED | HARMS | MAPPED, SPLIT, 0, 0, REFUSED,
     "pin:1 learn:1000 note placed:0"},
    {"other memory where that harms", LEGACY, PLACED | HARMS, HOST, 0, 0, 0, "pin:1 vendor:1"},
    {"split memory without mappings", LEGACY, PLACED | NO_VMM, SPLIT, 0, 0, 0, "pin:1 vendor:1"},
};

static const struct export_case *now;

static bool is(unsigned what)
{
	return now->there & what;
}

/* -- in place of what engine_export.c calls -------------------------------------------------------------- */

bool spill_ledger_placed(uint64_t ptr, struct spill_allocation *copy)
{
	assert_int_equal(ptr, PTR);
	*copy = (struct spill_allocation){
	    .backend = &backend,
	    .ptr = PTR,
	    .bytes = BYTES,
	    .caller = "somebody",
	    .site = &out,
	    .place = now->place,
	    .ordered = is(ORDERED),
	    .held.managed = is(MANAGED) ? BYTES : 0,
	    .placement = &placement,
	};
	return is(PLACED);
}

bool spill_vmm_spilled_at(uint64_t va, struct spill_vmm_range *range)
{
	return is(MAPPED);
}

bool spill_vmm_spilled(uint64_t handle, void *asked)
{
	assert_null(asked);
	return is(SPILLED);
}

void spill_unpark_pin_at(uint64_t ptr)
{
	say("pin", ptr == PTR);
}

bool spill_engine_use_real_handle(struct spill_request *request)
{
	return !is(NO_REAL);
}

const char *spill_engine_api(const struct spill_request *request)
{
	return "cuCall";
}

bool spill_ipc_serves(const struct spill_allocation *allocation)
{
	return is(SERVES);
}

bool spill_ipc_export(struct spill_placement *given, uint64_t bytes, void *handle)
{
	assert_ptr_equal(given, &placement);
	assert_ptr_equal(handle, &out);
	assert_int_equal(spill_thread.depth, 1);
	say("export", bytes);
	return !is(LACKS);
}

void spill_exporting_learn(const void *site, uint64_t bytes)
{
	assert_ptr_equal(site, &out);
	say("learn", bytes);
}

void spill_note(const char *code, const char *text)
{
	bool chunks = strstr(text, "the driver refused cuCall for memory that somebody asked for") == text;
	assert_string_equal(code, "export");
	say(chunks                              ? "note chunks"
	    : strstr(text, "hands it to other") ? "note own handle"
	                                        : "note placed",
	    0);
}

/* -- cases ----------------------------------------------------------------------------------------------- */

static void run_case(void)
{
	bool by_handle = !(now->there & (PLACED | MAPPED)) && now->op == EXPORT && !now->mode;
	struct spill_request request = {
	    .op = now->op,
	    .mode = now->mode,
	    .ptr = by_handle ? 0 : PTR,
	    .handle = !by_handle       ? 0
	              : is(OWN_HANDLE) ? SPILL_CHUNK_SET_TAG | HANDLE
	                               : HANDLE,
	    .bytes = now->bytes,
	    .out = is(NO_OUT) ? NULL : &out,
	    .properties = is(NO_OUT) ? NULL : &value,
	};
	backend.vmm = is(NO_VMM) ? NULL : is(HARMS) ? &harmful : &harmless;
	what_was_said();
	if (spill_engine_export(&request)) {
		say("vendor", 1);
		request.result = now->vendor;
		assert_false(spill_engine_export(&request));
	}
	const char *calls = what_was_said();
	if (strcmp(calls, now->calls) || request.result != now->result)
		fail_msg("%s: %d, %s", now->what, request.result, calls);
	assert_int_equal(spill_thread.depth, 0);
}

TEST(exports)
{
	assert_int_equal(PTR % sysconf(_SC_PAGESIZE), 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		now = &cases[i];
		run_case();
	}
}
