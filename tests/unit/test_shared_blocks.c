/* Which block of a replay serves a small request. */
#define SETUP begin
#include "unit.h"

#include "shared_blocks.h"

#define USABLE 100
#define LOOKS 256 /* of shared_blocks.c */

static struct cli_shared shared;

static int begin(void **state)
{
	cli_shared_reset(&shared);
	return 0;
}

/* Takes so much of the block that serves it, which is returned. */
static size_t take(uint64_t bytes)
{
	size_t block = cli_shared_find(&shared, bytes);
	cli_shared_take(&shared, block, bytes, USABLE);
	return block;
}

TEST(the_first_block_with_room_serves)
{
	assert_int_equal(take(60), 0);
	assert_int_equal(take(60), 1);
	assert_int_equal(take(40), 0);
	assert_int_equal(take(41), 2);
	assert_int_equal(take(40), 1);
	assert_int_equal(shared.made, 3);
	cli_shared_give(&shared, 0, 60, USABLE, 1);
	assert_int_equal(take(60), 0);
}

/* With odd rests in blocks a search would otherwise never end: what is further on is not found. */
TEST(a_search_ends_after_256_blocks)
{
	for (unsigned i = 0; i < LOOKS + 1; i++)
		assert_int_equal(take(60), i);
	cli_shared_give(&shared, LOOKS - 1, 60, USABLE, 1);
	assert_int_equal(take(60), LOOKS - 1);
	cli_shared_give(&shared, LOOKS, 60, USABLE, 1);
	assert_int_equal(take(60), LOOKS + 1);
	/* Full blocks at the begin are passed over. */
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(take(40), i);
	assert_int_equal(take(60), LOOKS);
}

TEST(a_block_without_use_ends_unless_it_is_kept)
{
	take(60);
	take(60);
	cli_shared_give(&shared, 0, 60, USABLE, 1);
	assert_int_equal(shared.empty, 1);
	cli_shared_give(&shared, 1, 60, USABLE, 1);
	assert_int_equal(shared.made, 1);
	assert_false(cli_shared_is_made(&shared, 1));
	assert_true(cli_shared_is_made(&shared, 0));
	assert_int_equal(take(60), 0);
	assert_int_equal(shared.empty, 0);
	assert_int_equal(take(60), 1); /* is made anew */
	assert_int_equal(shared.made, 2);
}
