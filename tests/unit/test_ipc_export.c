/*
 * The exporter's handles, and what its thread answers and closes. test_ipc_export_thread.c has the thread's begin and end,
 * test_ipc.c both sides together.
 */
#define SETUP setup
#include "unit.h"

#include "exporter_world.h"

/* -- exports ----------------------------------------------------------------------------------- */

TEST(a_handle_of_the_first_export)
{
	assert_true(export_it(&first.chunked));
	assert_string_equal(what_was_said(), REGISTERED);
	assert_true(spill_ipc_is(&handle));
	assert_int_equal(handle.bytes, 2 * UNIT - 100);
	for (size_t i = 0; i < SPILL_FD_PASS_NAME; i++)
		assert_int_equal(handle.name[i], 1);
	uint64_t number = handle.number;
	assert_true(spill_ipc_is_own(&handle));
	handle.name[15]++;
	assert_false(spill_ipc_is_own(&handle));
	/* Again, and of other memory. */
	assert_true(export_it(&first.chunked));
	assert_string_equal(what_was_said(), "");
	assert_int_equal(handle.number, number);
	assert_true(export_it(&second.chunked));
	assert_int_equal(handle.number, number + 1);
	assert_string_equal(what_was_said(),
	                    "retain:11 descriptor:11 close:620 retain:12 descriptor:12 close:620");
	spill_ipc_exported_ends(&first.chunked);
	assert_string_equal(what_was_said(), "release:1 release:2");
	spill_ipc_exported_ends(&first.chunked); /* which is exported no more */
	assert_string_equal(what_was_said(), "");
	spill_ipc_exported_ends(&second.chunked);
	assert_string_equal(what_was_said(), "release:11 release:12");
}

/* What is refused gives back each handle that was taken, and works later. */
TEST(each_refusal_of_the_vendor)
{
	static const char *const cases[][2] = {
	    {"retain:1", "retain:1"},
	    {"descriptor:1", "retain:1 descriptor:1 release:1"},
	    {"retain:2", "retain:1 descriptor:1 close:620 retain:2 release:1"},
	    {"descriptor:2", "retain:1 descriptor:1 close:620 retain:2 descriptor:2 release:1 release:2"},
	};
	export_it(&second.chunked);
	what_was_said();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refused = cases[i][0];
		assert_false(export_it(&first.chunked));
		assert_string_equal(what_was_said(), cases[i][1]);
		assert_null(first.chunked.exported);
	}
	first.chunked.chunks[1].unmapped = true;
	assert_false(export_it(&first.chunked));
	assert_string_equal(what_was_said(), "retain:1 descriptor:1 close:620 release:1");
	first.chunked.chunks[1].unmapped = false;
	refused = NULL;
	fake_libc_fail(FAKE_malloc, 1, 1, ENOMEM);
	char room[SPILL_IPC_HANDLE_BYTES];
	bool made = spill_ipc_export(&first.chunked.base, UNIT, room);
	fake_libc_fail(FAKE_malloc, 0, 0, 0);
	assert_false(made);
	assert_string_equal(what_was_said(), "");
	assert_true(export_it(&first.chunked));
	spill_ipc_exported_ends(&first.chunked);
	spill_ipc_exported_ends(&second.chunked);
}

/* Nothing is started for memory that cannot be handed on. */
TEST(memory_that_is_not_exported)
{
	static const struct spill_vendor_physical without = {.retain = vendor_retain};
	static const struct spill_backend other = {.physical = &without};
	char room[SPILL_IPC_HANDLE_BYTES];
	assert_false(spill_ipc_export(NULL, UNIT, room));
	first.chunked.set = true;
	assert_false(export_it(&first.chunked));
	first.chunked.set = false;
	first.chunked.base.backend = &other;
	assert_false(export_it(&first.chunked));
	assert_string_equal(what_was_said(), "");
	assert_null(serving);
}

static void export_first(void)
{
	char room[SPILL_IPC_HANDLE_BYTES];
	assert_true(spill_ipc_export(&first.chunked.base, UNIT, room));
}

/* Another thread exports the same memory meanwhile. */
TEST(the_one_who_is_first_gives_the_number)
{
	export_it(&second.chunked);
	uint64_t number = handle.number;
	what_was_said();
	world.on_descriptor = export_first;
	assert_true(export_it(&first.chunked));
	assert_int_equal(handle.number, number + 1);
	assert_string_equal(what_was_said(),
	                    "retain:1 descriptor:1 " EXPORTED
	                    " close:620 retain:2 descriptor:2 close:620 release:1 release:2");
	spill_ipc_exported_ends(&first.chunked);
	assert_string_equal(what_was_said(), "release:1 release:2");
	spill_ipc_exported_ends(&second.chunked);
}

TEST(what_can_be_exported)
{
	const struct spill_vendor_physical without = {.retain = vendor_retain};
	const struct spill_backend nothing = {0}, other = {.physical = &without};
	const struct spill_allocation good = {.backend = &vendor,
	                                      .device = DEVICE,
	                                      .place = SPILL_PLACE_MOVABLE,
	                                      .bytes = SPILL_SHARED_CHUNKS_LARGEST + 1};
	struct spill_allocation allocation = good;
	assert_true(spill_ipc_serves(&allocation));
	allocation.place = SPILL_PLACE_SPLIT;
	allocation.held.host = 1;
	assert_true(spill_ipc_serves(&allocation));
	refused = "host";
	assert_false(spill_ipc_serves(&allocation));
	allocation.held.host = 0;
	assert_true(spill_ipc_serves(&allocation));
	refused = "device";
	assert_false(spill_ipc_serves(&allocation));
	refused = NULL;
	allocation = good;
	allocation.place = SPILL_PLACE_HOST;
	assert_false(spill_ipc_serves(&allocation));
	allocation = good;
	allocation.ordered = true;
	assert_false(spill_ipc_serves(&allocation));
	allocation = good;
	allocation.handle = true;
	assert_false(spill_ipc_serves(&allocation));
	allocation = good;
	allocation.bytes--;
	assert_false(spill_ipc_serves(&allocation));
	allocation = good;
	allocation.backend = &nothing;
	assert_false(spill_ipc_serves(&allocation));
	allocation.backend = &other;
	assert_false(spill_ipc_serves(&allocation));
}

/* -- answers ----------------------------------------------------------------------------------- */

TEST(a_chunk_is_handed_over)
{
	export_it(&second.chunked);
	world.question.number = handle.number;
	world.question.index = 1;
	world.questions = 1;
	serve(1);
	assert_string_equal(what_was_said(),
	                    "spill-ipc:0 receive:1 descriptor:12 send:620 close:620 receive:0 "
	                    "close:610 error:9 detach:0");
	assert_int_equal(world.answer.count, CHUNKS);
	assert_int_equal(world.answer.bytes, UNIT / 2);
}

TEST(memory_that_there_is_not)
{
	assert_true(export_it(&first.chunked));
	const struct spill_ipc_question good = {handle.number, 0};
	const struct {
		struct spill_ipc_question question;
		const char *refused, *said;
	} cases[] = {
	    {{good.number + 1, 0}, NULL, "send:-1"},
	    {{good.number, CHUNKS}, NULL, "send:-1"},
	    {{good.number, UINT64_MAX}, NULL, "send:-1"},
	    {good, "descriptor:1", "descriptor:1 send:-1"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char expected[200];
		world.question = cases[i].question;
		refused = cases[i].refused;
		world.questions = 1;
		world.accept_error = EBADF;
		world.answer.count = 5;
		serve(1);
		snprintf(expected, sizeof(expected), "receive:1 %s receive:0 close:610", cases[i].said);
		assert_non_null(strstr(what_was_said(), expected));
		assert_int_equal(world.answer.count, 0);
		assert_int_equal(world.answer.bytes, 0);
	}
}

static void free_first(void)
{
	spill_ipc_exported_ends(&first.chunked);
	say("freed", 0);
}

/* The answer is still given, and its handles live as long. */
TEST(memory_that_is_freed_meanwhile)
{
	assert_true(export_it(&first.chunked));
	world.question.number = handle.number;
	world.questions = 2;
	world.on_descriptor = free_first;
	serve(1);
	assert_string_equal(what_was_said(),
	                    "spill-ipc:0 receive:2 descriptor:1 freed:0 release:1 release:2 send:620 "
	                    "close:620 receive:1 send:-1 receive:0 close:610 error:9 detach:0");
}

/* A program has closed its standard input, or an importer sends a descriptor that nobody asked for. */
TEST(any_descriptor_can_be_zero)
{
	assert_true(export_it(&first.chunked));
	world.question.number = handle.number;
	world.questions = 1;
	world.part = 0;
	world.unwanted = UNWANTED;
	serve(1);
	assert_string_equal(what_was_said(),
	                    "spill-ipc:0 receive:1 close:630 descriptor:1 send:0 close:0 receive:0 "
	                    "close:610 error:9 detach:0");
	world.connection = world.unwanted = 0;
	world.part = PART;
	world.questions = 1;
	serve(1);
	assert_string_equal(what_was_said(),
	                    "spill-ipc:0 receive:1 close:0 descriptor:1 send:620 close:620 receive:0 "
	                    "close:0 error:9");
}
