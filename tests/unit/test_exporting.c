/* Which requests stay plain because their memory is exported: the list of libraries, and what is learned of refusals. */
#define SETUP begin
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "engine.h"
#include "fake_objects.h"
#include "hazards.h"
#include "allocators.h"
#include "exporting.h"
#include "process.h"
#include "note.h"

#define MIB ((uint64_t)1 << 20)

static struct spill_policy policy;
static unsigned notes;
static char note[512];

/* The library of all callers. NULL: they are generated code. */
static void use_caller(const char *path)
{
	USE_FAKE_OBJECTS({0, 0, ""}, {0, path ? SIZE_MAX : 0, path ? path : ""});
}

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
	assert_string_equal(code, "movable");
	snprintf(note, sizeof(note), "%s", text);
	notes++;
}

static int begin(void **state)
{
	policy = (struct spill_policy){.movable_enable = SPILL_SWITCH_AUTO};
	use_caller("/usr/lib/libplain.so");
	notes = 0;
	spill_process_use_policy(&policy);
	return 0;
}

/* Each test has call sites of its own: nothing that was learned is forgotten. */
static bool asked_by(uintptr_t site, uint64_t bytes, enum spill_switch chunks)
{
	struct spill_request request = {
	    .caller = (const void *)site, .bytes = bytes, .admission.decision.chunks = chunks};
	return spill_exporting_stays_plain(&request);
}

static bool asked(uintptr_t site, uint64_t bytes)
{
	return asked_by(site, bytes, SPILL_SWITCH_AUTO);
}

TEST(libraries_by_name)
{
	static const char *const exporters[] = {"/x/nvidia/nccl/lib/libnccl.so.2", "libnvshmem_host.so.3",
	                                        "/usr/lib/ucx/libuct_cuda.so.0", "/opt/mvapich2/libmpi.so.12",
	                                        "libwholegraph.so"};
	static const char *const others[] = {"",
	                                     "/usr/lib/libcuda.so.1",
	                                     "libnccl-net.so",
	                                     "/opt/libnccl.so.2/other.so",
	                                     "libmpi_cxx.so.40",
	                                     "libc10_cuda.so",
	                                     "libuct.so.0"};
	for (unsigned i = 0; i < sizeof(exporters) / sizeof(exporters[0]); i++)
		assert_non_null(spill_exporter_find(exporters[i]));
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (spill_exporter_find(others[i]))
			fail_msg("%s", others[i]);
}

/* Whose callers the log names. Each by the name of its file, without the folder. */
TEST(allocators_by_name)
{
	static const struct {
		const char *name;
		enum spill_requester_kind first;
	} cases[] = {
	    {"libc10_cuda.so", SPILL_REQUESTER_FUNCTION}, {"libc10_hip.so", SPILL_REQUESTER_FUNCTION},
	    {"librmm.so.1", SPILL_REQUESTER_FUNCTION},    {"libggml.so", SPILL_REQUESTER_CODE},
	    {"libggml-cuda.so.0", SPILL_REQUESTER_CODE},  {"libc10.so", SPILL_REQUESTER_NONE},
	    {"libcudart.so.13", SPILL_REQUESTER_NONE},    {"", SPILL_REQUESTER_NONE}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(spill_allocator_find(cases[i].name), cases[i].first);
}

TEST(libraries_that_keep_what_they_could_export)
{
	assert_true(spill_exporter_keeps("/x/jax_plugins/xla_cuda13/xla_cuda_plugin.so"));
	assert_false(spill_exporter_keeps("/x/libtorch_cuda.so"));
	assert_false(spill_exporter_keeps(""));
}

static bool keeps(uintptr_t site)
{
	return spill_exporting_keeps(&(struct spill_request){.caller = (const void *)site});
}

TEST(callers_that_keep_what_they_could_export)
{
	assert_false(keeps(0x7000));
	use_caller("/x/jax_plugins/xla_cuda13/xla_cuda_plugin.so");
	assert_true(keeps(0x7000));
	assert_false(keeps(0));
	use_caller(NULL);
	assert_false(keeps(0x7000));
}

TEST(a_library_of_the_list_is_plain)
{
	assert_false(asked(0x1000, 8 * MIB));
	use_caller(NULL);
	assert_false(asked(0x1100, 8 * MIB));
	assert_int_equal(notes, 0);
	use_caller("/usr/lib/libnccl.so.2");
	assert_true(asked(0x1100, 8 * MIB)); /* code that no library held is looked up again */
	assert_non_null(strstr(note, "libnccl.so.2"));
	assert_true(asked(0x1100, 8 * MIB));
	assert_int_equal(notes, 1);
	assert_false(asked(0, 8 * MIB));
}

/* Memory in stream order asks for each tensor, and a look-up walks all loaded objects. */
TEST(a_call_site_is_looked_up_once)
{
	use_caller("/usr/lib/libtorch.so");
	assert_false(asked(0x5000, 8 * MIB));
	unsigned looks = fake_object_looks;
	for (int i = 0; i < 100; i++)
		assert_false(asked(0x5000, 8 * MIB));
	assert_int_equal(fake_object_looks, looks);
	assert_false(asked(0x5100, 8 * MIB));
	assert_true(fake_object_looks > looks);
}

TEST(the_user_overrules_the_list)
{
	use_caller("/usr/lib/libnccl.so.2");
	assert_false(asked_by(0x1000, 8 * MIB, SPILL_SWITCH_ON));
	policy.movable_enable = SPILL_SWITCH_ON;
	assert_false(asked(0x1000, 8 * MIB));
}

TEST(a_call_site_and_a_size_are_learned)
{
	spill_exporting_learn((const void *)0x2000, 9 * MIB);
	assert_true(asked(0x2000, 8 * MIB));
	assert_true(asked(0x2000, 16 * MIB - 1));
	assert_false(asked(0x2000, 8 * MIB - 1));
	assert_false(asked(0x2000, 16 * MIB));
	assert_false(asked(0x2001, 8 * MIB));
	policy.movable_enable = SPILL_SWITCH_ON;
	assert_true(asked(0x2000, 8 * MIB));
	assert_false(asked_by(0x2000, 8 * MIB, SPILL_SWITCH_ON));
	assert_int_equal(notes, 0);
}

TEST(the_extremes_are_kept_apart)
{
	uintptr_t high = ((uintptr_t)1 << 57) - 1;
	spill_exporting_learn(NULL, 8 * MIB);
	spill_exporting_learn((const void *)0x3000, 0);
	assert_false(asked(0x3000, 1));
	spill_exporting_learn((const void *)high, UINT64_MAX);
	assert_true(asked(high, UINT64_MAX));
	assert_false(asked(high, 1));
	assert_false(asked(high - 1, UINT64_MAX));
}

/*
 * Last: whatever comes after is not learned. It has 64 places, of which the two tests before have taken one each, and
 * what has no call site or no bytes none.
 */
TEST(a_full_table_keeps_what_it_has)
{
	for (uintptr_t site = 0x4000; site < 0x4100; site++) {
		spill_exporting_learn((const void *)site, MIB);
		spill_exporting_learn((const void *)site, MIB);
	}
	for (uintptr_t site = 0x4000; site < 0x4100; site++)
		assert_int_equal(asked(site, MIB), site < 0x4000 + 62);
	assert_true(asked(0x2000, 8 * MIB));
}
