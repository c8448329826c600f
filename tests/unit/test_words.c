/* Each word leads back to its enumerator, and no other text does. */
#include "unit.h"

#include "words.h"

TEST(steps)
{
	static const struct {
		const char *name;
		enum spill_place place;
	} steps[] = {{"trim", SPILL_PLACE_DEVICE},
	             {"demote", SPILL_PLACE_DEVICE},
	             {"split", SPILL_PLACE_SPLIT},
	             {"managed", SPILL_PLACE_MANAGED},
	             {"host", SPILL_PLACE_HOST}};

	assert_int_equal(sizeof(steps) / sizeof(steps[0]), SPILL_STEPS);
	for (enum spill_step step = SPILL_STEP_TRIM; step < SPILL_STEPS; step++) {
		assert_string_equal(spill_step_name(step), steps[step].name);
		assert_int_equal(spill_step_of(steps[step].name), step);
		assert_int_equal(spill_step_place(step), steps[step].place);
		if (steps[step].place != SPILL_PLACE_DEVICE)
			assert_int_equal(spill_step_to(steps[step].place), step);
	}
	assert_int_equal(spill_step_of("device"), SPILL_STEPS);
	assert_int_equal(spill_step_of(""), SPILL_STEPS);
	assert_int_equal(spill_step_of(NULL), SPILL_STEPS);
}

TEST(what_refused)
{
	assert_null(spill_refused_by_name(SPILL_REFUSED_BY_NONE));
	for (enum spill_refused_by by = SPILL_REFUSED_BY_DEVICE_LIMIT; by < SPILL_REFUSED_BY_OTHER; by++)
		assert_int_equal(spill_refused_by_of(spill_refused_by_name(by)), by);
	assert_string_equal(spill_refused_by_name(SPILL_REFUSED_BY_RULE_CAP), "rule.cap");
	assert_int_equal(spill_refused_by_of("CUDA_ERROR_OUT_OF_MEMORY"), SPILL_REFUSED_BY_OTHER);
	assert_int_equal(spill_refused_by_of(""), SPILL_REFUSED_BY_OTHER);
	assert_int_equal(spill_refused_by_of(NULL), SPILL_REFUSED_BY_OTHER);
}

TEST(reasons_for_people)
{
	assert_string_equal(spill_reason_words("fits"), "because it fitted");
	assert_string_equal(spill_reason_words("limit"), "because of device.limit or a rule's cap");
	assert_string_equal(spill_reason_words("exchange"), "for newer memory");
	assert_string_equal(spill_reason_words("use"), "for memory that was used next");
	for (unsigned reason = 0; reason < SPILL_REASONS_COUNT; reason++) {
		const char *name = spill_reason_name((enum spill_reason)reason);

		assert_string_not_equal(spill_reason_words(name), name);
	}
	/* A word of a later version says itself. */
	assert_string_equal(spill_reason_words("weather"), "weather");
	assert_null(spill_reason_words(NULL));
}

TEST(memory_and_moves)
{
	assert_string_equal(spill_memory_name(SPILL_MEMORY_AUTO), "auto");
	assert_string_equal(spill_memory_name(SPILL_MEMORY_DISCRETE), "discrete");
	assert_string_equal(spill_memory_name(SPILL_MEMORY_INTEGRATED), "integrated");
	assert_string_equal(spill_memory_name(SPILL_MEMORY_COHERENT), "coherent");
	assert_string_equal(spill_move_name(SPILL_MOVE_DEMOTE), "demote");
	assert_string_equal(spill_move_name(SPILL_MOVE_PROMOTE), "promote");
}
