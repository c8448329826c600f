/*
 * The order of an exchange's moves. In the orders of these tests, capital letters are chunks that leave, and small
 * ones those that come: L has 4 bytes, O 3, M 2.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exchange_order.h"
#include "fake_libc.h"

enum { MOST = 64 };

static struct spill_chunked *segment;
static char letters[MOST + 1]; /* of each chunk */
static struct spill_exchange exchange;
static struct spill_spare spares[MOST];
static struct spill_move_batch order;

static uint64_t bytes_of(char letter)
{
	return strchr("Ll", letter) ? 4 : strchr("Oo", letter) ? 3 : 2;
}

static int setup(void **state)
{
	segment = calloc(1, sizeof(*segment) + MOST * sizeof(segment->chunks[0]));
	exchange = (struct spill_exchange){.spares = spares};
	order = (struct spill_move_batch){0};
	return !segment;
}

static void end_lists(void)
{
	spill_move_batch_end(&exchange.comes);
	spill_move_batch_end(&exchange.goes);
	spill_move_batch_end(&order);
	exchange.spare_count = 0;
	segment->count = 0;
}

static int teardown(void **state)
{
	end_lists();
	free(segment);
	return 0;
}

static bool comes(char letter)
{
	return letter >= 'a';
}

static void add_chunk(char letter)
{
	struct spill_move move = {.chunked = segment, .index = segment->count++};
	letters[move.index] = letter;
	segment->chunks[move.index] =
	    (struct spill_chunk){.bytes = bytes_of(letter), .on_host = comes(letter)};
	assert_true(spill_move_batch_add(comes(letter) ? &exchange.comes : &exchange.goes, &move));
}

/* An exchange of these chunks, where memory of the sizes of `kept` is there, and so many bytes are free. */
static void begin(const char *chunks, const char *kept, uint64_t room)
{
	end_lists();
	for (const char *letter = chunks; *letter; letter++)
		add_chunk(*letter);
	for (const char *letter = kept; *letter; letter++)
		spares[exchange.spare_count++].bytes = bytes_of(*letter);
	exchange.room = room;
}

static bool is_in(const struct spill_move_batch *batch, unsigned index)
{
	unsigned found = 0;
	for (unsigned i = 0; i < batch->count; i++)
		found += batch->moves[i].index == index;
	assert_in_range(found, 0, 1);
	return found;
}

/* Each chunk moves once. Chunks that come and have the same letter keep their order. */
static void order_is(const char *wanted)
{
	char seen[MOST + 1] = {0};
	unsigned last[128] = {0};
	assert_true(spill_exchange_make_order(&exchange, &order));
	assert_int_equal(order.count, segment->count);
	for (unsigned i = 0; i < order.count; i++) {
		unsigned index = order.moves[i].index;
		seen[i] = letters[index];
		assert_true(is_in(&order, index));
		assert_true(!comes(seen[i]) || index >= last[(unsigned char)seen[i]]);
		last[(unsigned char)seen[i]] = index;
	}
	assert_string_equal(seen, wanted);
}

/* -- live chunks -------------------------------------------------------------------------------- */

/* Each takes over what one has left two places ahead of it, so that no copy waits for another. */
TEST(chunks_of_one_size_take_turns)
{
	begin("LLLlll", "", 0);
	order_is("LLlLll");
	begin("LLLLl", "", 0);
	order_is("LLlLL");
	begin("Llll", "LL", 0);
	order_is("Llll");
}

TEST(ready_memory_needs_no_second_to_leave)
{
	begin("LLLlll", "L", 0);
	order_is("LlLlLl");
	begin("LLll", "M", 2);
	order_is("LLll");
}

/* None of its size leaves. */
TEST(memory_is_made_as_soon_as_there_is_enough)
{
	begin("LLLmm", "", 0);
	order_is("LLmLm");
	begin("MMMMMMll", "", 0);
	order_is("MMMlMMlM");
	begin("LLLooo", "", 0);
	order_is("LLoLoo");
	begin("LLLooo", "", 3);
	order_is("LoLoLo");
}

TEST(the_chunk_that_leaves_has_the_size_of_the_next_that_comes)
{
	begin("LLMm", "", 4);
	order_is("MLmL");
	begin("LOMmol", "", 0);
	order_is("MOmLol");
}

TEST(one_way_only)
{
	begin("LML", "", 0);
	order_is("LML");
	begin("mlm", "", 0);
	order_is("mlm");
	begin("", "L", 4);
	order_is("");
}

/* -- failures ----------------------------------------------------------------------------------- */

/* False: that call was not made. The lists keep all moves, because the caller returns their memory. */
static bool order_without(enum fake_libc_call call, unsigned which)
{
	begin("LLMlol", "L", 0);
	fake_libc_fail(call, which, 1, ENOMEM);
	bool made = spill_exchange_make_order(&exchange, &order);
	bool failed = fake_libc[call].calls >= which;
	fake_libc_reset();
	assert_true(made != failed);
	for (unsigned i = 0; i < segment->count; i++)
		assert_true(is_in(comes(letters[i]) ? &exchange.comes : &exchange.goes, i));
	return failed;
}

TEST(no_memory_for_the_order)
{
	assert_true(order_without(FAKE_calloc, 1));
	assert_false(order_without(FAKE_calloc, 2));
	assert_true(order_without(FAKE_realloc, 1));
	assert_false(order_without(FAKE_realloc, 2));
}
