/*
 * A flight step by step: which memory each chunk comes into, in which order calls are made, and what a refused call leaves
 * behind. test_flight.c has flights with real bytes.
 */
#define SETUP setup
#include "unit.h"

#include "flight_calls.h"

/* -- the way of a flight ------------------------------------------------------------------------ */

/* The one that comes follows into the memory that the other one leaves, on the same stream. */
TEST(two_chunks_change_places)
{
	leaves(0);
	comes_in(1);
	assert_string_equal(begin(true),
	                    "stage:1 view:10 view:100 view:11 close:1 unmap:0 unmap:1 flight:1 open:0 "
	                    "copy0:10001>100001:5 copy0:10020>100020:6 copy0:11001>10001:5 "
	                    "copy0:11020>10020:6 record:0 record:1");
	assert_true(touches(0) && touches(1) && !touches(2));
	assert_string_equal(
	    land(2), "wait:0 wait:1 done0:100 done1:10 map1:10 note0:0 note1:11 moved0:0 moved1:11 end:2");
	assert_true(of->chunks[0].on_host && of->chunks[0].away && of->chunks[0].handle == 100);
	assert_true(!of->chunks[1].on_host && !of->chunks[1].away && of->chunks[1].handle == 10);
	assert_true(touches(0) && !touches(1));
	assert_string_equal(end_all(), "map0:100 flight:0");
	assert_false(of->chunks[0].away || touches(0));
	/* No entry is left over, and none half written. */
	assert_string_equal(end_all(), "flight:0");
	assert_false(touches(0));
}

/* Pairs take turns on the streams. Chunks without a partner have the stream of their way. */
TEST(streams)
{
	leaves(0);
	leaves(1);
	leaves(2);
	of->chunks[2].bytes = 2 * UNIT; /* nobody fits into it */
	comes_in(3);
	comes_in(4);
	comes_in(5);
	assert_string_equal(
	    strstr(begin(true), "copy"),
	    "copy0:10001>100001:5 copy0:10020>100020:6 copy0:13001>10001:5 copy0:13020>10020:6 "
	    "copy1:11001>101001:5 copy1:11020>101020:6 copy1:14001>11001:5 copy1:14020>11020:6 "
	    "copy0:12001>102001:5 copy0:12020>102020:6 copy1:15001>305001:5 copy1:15020>305020:6 "
	    "record:0 record:1");
}

/* A spare is better than what another chunk leaves, and that is better than new memory. All are of its size. */
TEST(memory_for_those_that_come)
{
	leaves(0);
	comes_in(1);
	comes_in(2);
	comes_in(3);
	of->chunks[0].bytes = of->chunks[2].bytes = 2 * UNIT;
	world.spare_bytes = UNIT;
	assert_string_equal(
	    begin(true), "stage:1 view:10 view:100 view:11 view:70 view:12 make3:303 view:13 view:303 "
	                 "close:1 unmap:0 unmap:1 unmap:2 unmap:3 flight:1 open:0 "
	                 "copy0:10001>100001:5 copy0:10020>100020:6 copy0:12001>10001:5 copy0:12020>10020:6 "
	                 "copy1:11001>70001:5 copy1:11020>70020:6 copy1:13001>303001:5 copy1:13020>303020:6 "
	                 "record:0 record:1");
	assert_string_equal(strstr(land(4), "note"), "note0:0 note1:11 note2:12 note3:13 "
	                                             "moved0:0 moved1:11 moved2:12 moved3:13 end:4");
}

/* A chunk that comes leaves no memory for others. Nor does one of an earlier flight. */
TEST(memory_that_nobody_leaves)
{
	leaves(0);
	begin(true);
	assert_string_equal(land(1), "wait:0 wait:1 done0:100 note0:10 moved0:0 end:1");
	world.spare_bytes = UNIT;
	world.no_room = true;
	comes_in(1);
	comes_in(2);
	assert_string_equal(begin(true), "stage:0 view:11 view:70 close:1 unmap:1 flight:1 open:0 "
	                                 "copy1:11001>70001:5 copy1:11020>70020:6 record:0 record:1");
	land(1);
	world.no_room = false;
	comes_in(2);
	assert_string_equal(strstr(begin(true), "make"),
	                    "make2:302 view:12 view:302 close:1 unmap:2 flight:1 open:0 "
	                    "copy1:12001>302001:5 copy1:12020>302020:6 record:0 record:1");
}

/* Half of the places are for those that leave, so that others can come. */
TEST(places)
{
	world.quiet = true;
	for (unsigned i = 0; i < SPILL_FLIGHT_CHUNKS / 2 + 1; i++) {
		leaves(i);
		comes_in(SPILL_FLIGHT_CHUNKS + i);
	}
	begin(true);
	assert_int_equal(world.returned, 1);
	assert_int_equal(world.makes, 0);
	for (unsigned i = 0; i < SPILL_FLIGHT_CHUNKS; i++)
		assert_true(of->chunks[i % 2 * SPILL_FLIGHT_CHUNKS + i / 2].unmapped);
	land(SPILL_FLIGHT_CHUNKS);
	assert_false(of->chunks[SPILL_FLIGHT_CHUNKS / 2].on_host);
	assert_true(of->chunks[SPILL_FLIGHT_CHUNKS * 3 / 2].on_host);
}

/* It is listed already. */
TEST(a_chunk_that_is_away_comes_back)
{
	leaves(0);
	begin(true);
	land(1);
	world.spare_bytes = UNIT;
	comes_in(0);
	assert_string_equal(begin(true), "stage:0 view:70 close:1 flight:1 open:0 "
	                                 "copy1:100001>70001:5 copy1:100020>70020:6 record:0 record:1");
	assert_string_equal(land(1), "wait:0 wait:1 done0:70 map0:70 flight:0 note0:100 moved0:100 end:1");
	assert_string_equal(end_all(), "flight:0");
}

TEST(an_arrival)
{
	leaves(0);
	begin(true);
	assert_false(spill_flight_has_arrived());
	assert_string_equal(what_was_said(), "ask:0");
	world.arrived[0] = true;
	assert_false(spill_flight_has_arrived());
	assert_string_equal(what_was_said(), "ask:0 ask:1");
	world.arrived[1] = true;
	assert_true(spill_flight_has_arrived());
	assert_string_equal(what_was_said(), "ask:0 ask:1");
}

/* Without events the end is not known before the landing, which asks the context. */
TEST(copies_without_events)
{
	world.no_event[0] = world.no_event[1] = true;
	leaves(0);
	begin(true);
	assert_true(spill_flight_has_arrived());
	assert_string_equal(what_was_said(), "");
	assert_string_equal(land(1), "wait:-1 wait:-1 done0:100 note0:10 moved0:0 end:1");
}

/* -- refusals ----------------------------------------------------------------------------------- */

/* Host memory of the chunks that were to leave goes back. */
TEST(no_flight_at_all)
{
	bool *const reasons[] = {&world.no_context, &world.no_copier, &world.no_lists};
	for (unsigned i = 0; i < 3; i++) {
		setup(NULL);
		*reasons[i] = true;
		leaves(0);
		leaves(2);
		comes_in(1);
		assert_string_equal(begin(false), "stage:2 return0:100 return2:102 end:0");
		assert_int_equal(world.why.start_us, 77);
	}
}

/* Copies need both, so a chunk without one of them stays. */
TEST(no_views)
{
	leaves(0);
	world.no_view = 10;
	assert_string_equal(begin(false), "stage:1 view:10 return0:100 end:0");
	leaves(0);
	world.no_view = 100;
	assert_string_equal(begin(false), "stage:1 view:10 view:100 return0:100 end:0");
	comes_in(1);
	world.no_view = 301;
	assert_string_equal(begin(false), "stage:0 make1:301 view:11 view:301 return1:301 end:0");
}

/* Memory that another chunk leaves is that one's until then. So it does not go back, and the next chunk gets it. */
TEST(no_view_of_one_that_follows)
{
	leaves(0);
	comes_in(1);
	comes_in(2);
	world.no_view = 11;
	assert_string_equal(
	    begin(true), "stage:1 view:10 view:100 view:11 view:12 close:1 unmap:0 unmap:2 flight:1 open:0 "
	                 "copy0:10001>100001:5 copy0:10020>100020:6 copy0:12001>10001:5 "
	                 "copy0:12020>10020:6 record:0 record:1");
}

TEST(no_memory_for_the_list_of_moves)
{
	leaves(0);
	leaves(1);
	leaves(2);
	begin(true);
	world.adds_left = 1;
	assert_string_equal(strstr(land(1), "moved"), "moved0:0 return1:0 return2:0 end:1");
}

TEST(the_gate_does_not_close)
{
	leaves(0);
	comes_in(1);
	world.stays_open = true;
	assert_string_equal(strstr(begin(false), "close"), "close:0 stayed0:100 stayed1:0 end:2");
	setup(NULL);
	leaves(0);
	comes_in(1);
	world.captures = true;
	assert_string_equal(strstr(begin(false), "close"), "close:1 open:0 stayed0:100 stayed1:0 end:2");
	assert_false(of->chunks[0].unmapped || of->chunks[1].unmapped);
}

/* It is not copied, nor is the one that would follow it. */
TEST(work_uses_one)
{
	leaves(0);
	comes_in(1);
	world.used = 0;
	assert_string_equal(strstr(begin(true), "close"),
	                    "close:1 unmap:1 flight:1 open:0 record:0 record:1");
	assert_string_equal(land(2), "wait:0 wait:1 map0:10 stayed0:100 stayed1:0 end:2");
}

TEST(a_mapping_that_does_not_end)
{
	leaves(0);
	world.no_unmap = true;
	assert_string_equal(strstr(begin(true), "close"),
	                    "close:1 unmap:0 flight:1 open:0 record:0 record:1");
	assert_string_equal(land(1), "wait:0 wait:1 map0:10 flight:0 stayed0:100 end:1");
}

/* A chunk whose copy is refused stays, and so does the one that would follow it. */
TEST(refused_copies)
{
	leaves(0);
	comes_in(1);
	world.copies_left = 1;
	assert_string_equal(strstr(begin(true), "copy"), "copy0:10001>100001:5 record:0 record:1");
	assert_string_equal(land(2), "wait:0 wait:1 map0:10 stayed0:100 stayed1:0 end:2");
	/* If only the second one is refused, the memory of the first one is nobody's. */
	leaves(0);
	comes_in(1);
	world.copies_left = 3;
	begin(true);
	assert_string_equal(land(2), "wait:0 wait:1 done0:100 note0:10 moved0:0 stayed1:0 end:2");
}

/* All stay where they are. */
TEST(a_dead_context)
{
	leaves(0);
	comes_in(1);
	begin(true);
	world.broken = true;
	world.error = 7;
	assert_string_equal(land(2), "wait:0 error:7 map0:10 stayed0:100 stayed1:0 end:2");
	assert_non_null(strstr(world.note, "failed: SEVEN. With"));
	assert_true(!of->chunks[0].on_host && of->chunks[1].on_host);
	/* It was only slow. */
	world.note[0] = '\0';
	world.error = 0;
	leaves(0);
	begin(true);
	land(1);
	assert_string_equal(world.note, "");
}

/* -- the list of what is not mapped ------------------------------------------------------------- */

/* In any order. Reaches end where others begin. */
TEST(chunks_are_found_in_the_list)
{
	static const unsigned hidden[] = {5, 3, 9, 1, 4};
	for (unsigned i = 0; i < 5; i++)
		hide(hidden[i]);
	assert_string_equal(what_was_said(), "unmap:5 unmap:3 unmap:9 unmap:1 unmap:4");
	assert_true(of->chunks[3].away);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(touches(i), i == 1 || (i >= 3 && i <= 5) || i == 9);
	const uint32_t keys[] = {FIRST_KEY + 2, FIRST_KEY + 4, FIRST_KEY + 9};
	spill_flight_map(keys, 2);
	assert_string_equal(what_was_said(), "map4:14");
	assert_false(of->chunks[4].away);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(touches(i), i == 1 || i == 3 || i == 5 || i == 9);
	assert_true(spill_flight_touches(keys, 3));
	assert_false(spill_flight_touches(keys, 2));
	assert_string_equal(end_all(), "map1:11 map3:13 map5:15 map9:19 flight:0");
}

/* Where only the allocation is known, each of its chunks reaches over all of it. */
TEST(chunks_with_equal_reaches)
{
	of->exact_begins = false;
	hide(1);
	hide(2);
	what_was_said();
	assert_true(touches(7) && !touches(MANY));
	const uint32_t key = FIRST_KEY + 7;
	spill_flight_map(&key, 1);
	assert_string_equal(what_was_said(), "map2:12 map1:11 flight:0");
	assert_false(touches(7));
}

/* When the driver has refused one, it has ended: no time is spent on the others. */
TEST(mappings_that_are_refused)
{
	hide(0);
	hide(1);
	hide(2);
	what_was_said();
	world.no_map = true;
	assert_string_equal(end_all(), "map0:10 try1:11 try2:12 flight:0");
	assert_false(of->chunks[1].away || touches(1));
}

TEST(the_list_is_full)
{
	world.quiet = true;
	for (unsigned i = 0; i < MOST; i++)
		hide(MOST - 1 - i);
	assert_true(touches(0) && touches(MOST - 1));
	world.quiet = false;
	hide(MOST);
	assert_string_equal(what_was_said(), "");
	assert_false(of->chunks[MOST].away || of->chunks[MOST].unmapped);
	leaves(MOST + 1);
	assert_string_equal(strstr(begin(true), "close"), "close:1 flight:1 open:0 record:0 record:1");
	world.quiet = true;
	spill_flight_end();
	assert_false(touches(0));
}

TEST(a_mapping_that_stays_is_not_hidden)
{
	world.no_unmap = true;
	hide(0);
	assert_string_equal(what_was_said(), "unmap:0");
	assert_false(of->chunks[0].away);
	assert_string_equal(end_all(), "map0:10 flight:0");
}

TEST(memory_that_others_use_does_not_fly)
{
	assert_true(spill_flight_takes(&vendor, of, 0));
	world.peers = 1;
	assert_false(spill_flight_takes(&vendor, of, 0));
}

TEST(a_child_has_no_flight)
{
	hide(2);
	leaves(0);
	begin(true);
	spill_flight_reset();
	assert_false(spill_flight_is_up());
	assert_false(touches(0) || touches(2));
	assert_string_equal(end_all(), "flight:0");
}
