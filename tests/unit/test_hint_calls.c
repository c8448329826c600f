/*
 * What a hint calls, in which order, and what it hands over (hints.h). All that it calls is replaced, and tells its name. The chunk
 * map is a table of this test's.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "audit.h"
#include "capture.h"
#include "chunk_map.h"
#include "graph_access.h"
#include "hash.h"
#include "hints.h"
#include "layouts.h"
#include "overlap.h"
#include "param_extent.h"
#include "said.h"
#include "scratch.h"

#define UNIT SPILL_CHUNK_MAP_UNIT
#define BASE (3ull << 40)
#define AT(unit) (BASE + (unit)*UNIT)
#define KEY(unit) ((uint32_t)(AT(unit) / UNIT))

/* -- the chunk map ---------------------------------------------------------------------------------------- */

static spill_chunk_map_word leaf[SPILL_CHUNK_MAP_LEAF_ENTRIES];
_Atomic(spill_chunk_map_word *) spill_chunk_map_leaves[SPILL_CHUNK_MAP_LEAVES] = {
    [(BASE >> SPILL_CHUNK_MAP_UNIT_SHIFT) >> SPILL_CHUNK_MAP_LEAF_BITS] = leaf};

static void set_unit(unsigned unit, struct spill_chunk_map_entry entry)
{
	union {
		struct spill_chunk_map_entry entry;
		uint64_t word;
	} both = {entry};
	both.entry.present = 1;
	leaf[unit] = both.word;
}

/* An allocation of chunks of a unit each. */
static void allocation(unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++)
		set_unit(i, (struct spill_chunk_map_entry){
		                .key = KEY(i), .count = 1, .more = i + 1 < first + count});
}

void spill_chunk_map_begins(uint64_t address)
{
	say("begins", address - BASE);
}

/* -- what else is replaced -------------------------------------------------------------------------------- */

static bool captures, without_room, audits, overlaps;
static void (*in_look)(void);
static _Alignas(16) unsigned char room[SPILL_SCRATCH];
static uint32_t content; /* of the room before */
static struct spill_launch_access told;
static int stopwatch, audited;
static const struct spill_graph_access *known; /* of a graph */
static uint64_t extent;                        /* of each parameter before */

bool spill_capture_any(void)
{
	return captures;
}

void *spill_scratch_take(void)
{
	say("take", 1);
	for (size_t i = 0; i < sizeof(room); i += sizeof(content))
		memcpy(room + i, &content, sizeof(content));
	return without_room ? NULL : room;
}

void spill_scratch_give_back(void *given)
{
	assert_ptr_equal(given, without_room ? NULL : room);
	say("give", given != NULL);
}

static void note_told(const char *word, const struct spill_launch_access *access)
{
	told = *access;
	say(word, access->count);
}

bool spill_audit_wanted(void)
{
	return audits;
}

void *spill_audit_before(const struct spill_launch_access *access)
{
	note_told("audit", access);
	return &audited;
}

bool spill_overlap_wanted(void)
{
	return overlaps;
}

bool spill_overlap_look(const struct spill_launch_access *access)
{
	note_told("look", access);
	if (!in_look)
		return false;
	in_look();
	return true;
}

void spill_overlap_names_nothing(const struct spill_launch_access *access)
{
	note_told("nothing", access);
}

void *spill_before_launch(const struct spill_launch_access *access)
{
	note_told("before", access);
	return &stopwatch;
}

bool spill_graph_access_look(const void *exec, spill_graph_access_fn *visit, void *closure)
{
	say("graph", (uintptr_t)exec);
	if (known)
		visit(closure, known);
	return known;
}

uint64_t spill_param_extent(uint64_t site, uint32_t slot, uint64_t bytes)
{
	assert_true(site != 0);
	say("slot", slot);
	return extent > bytes ? extent : bytes;
}

/* A function with one parameter of so many words; 0: nobody knows. What is behind in memory is no parameter of it. */
static uint16_t words;

const struct spill_layout *spill_layout_of(const void *function)
{
	static _Alignas(struct spill_layout) char
	    memory[sizeof(struct spill_layout) + 2 * sizeof(struct spill_layout_part)];
	struct spill_layout *layout = (struct spill_layout *)(void *)memory;
	layout->count = 1;
	layout->parts[0].words = words;
	layout->parts[1].words = 2;
	return words ? layout : NULL;
}

/* -- hints ------------------------------------------------------------------------------------------------ */

static int setup(void **state)
{
	captures = without_room = audits = overlaps = false;
	in_look = NULL;
	known = NULL;
	extent = 0;
	words = 1;
	content = 0x5a5a5a5a;
	memset(leaf, 0, sizeof(leaf));
	return 0;
}

static void *tell(const struct spill_hint *hint)
{
	what_was_said();
	return spill_hint(hint);
}

static void *copy(unsigned unit)
{
	return tell(&(struct spill_hint){.ranges = {{AT(unit), 1}}, .stream = &audited});
}

static void *launch(uint64_t *values)
{
	return tell(&(struct spill_hint){
	    .function = &leaf, .size = {1, 1, 1, 1, 1, 1}, .params = (void *[]){values}, .stream = &content});
}

TEST(nothing_is_read_in_a_capture)
{
	allocation(0, 1);
	captures = audits = overlaps = true;
	assert_null(copy(0));
	assert_string_equal(what_was_said(), "");
}

TEST(nothing_is_read_without_room)
{
	allocation(0, 1);
	without_room = audits = overlaps = true;
	assert_null(copy(0));
	assert_string_equal(what_was_said(), "take:1");
}

TEST(an_access_is_told_before_the_launch)
{
	allocation(0, 1);
	assert_ptr_equal(copy(0), &stopwatch);
	assert_string_equal(what_was_said(), "take:1 before:1 give:1");
	assert_true(told.keys[0] == KEY(0) && told.sure == 1 && told.bytes == UNIT);
	assert_true(told.stream == &audited && told.once && !told.unknown && !told.graph && !told.function);
	assert_null(copy(1)); /* which has no chunk */
	assert_string_equal(what_was_said(), "take:1 give:1");
}

/* In place of all else, also for a launch that names no chunk. */
TEST(an_audit_comes_in_place_of_all_else)
{
	allocation(0, 1);
	audits = overlaps = true;
	assert_ptr_equal(copy(0), &audited);
	assert_string_equal(what_was_said(), "take:1 audit:1 give:1");
	assert_ptr_equal(copy(1), &audited);
	assert_string_equal(what_was_said(), "take:1 audit:0 give:1");
}

static void move_to_device(void)
{
	allocation(0, 1);
}

TEST(what_flies_lands_before_the_access_is_told)
{
	set_unit(0, (struct spill_chunk_map_entry){.key = KEY(0), .count = 1, .on_host = 1});
	overlaps = true;
	assert_ptr_equal(copy(0), &stopwatch);
	assert_string_equal(what_was_said(), "take:1 look:1 before:1 give:1");
	assert_true(told.on_host == 1 && told.host_bytes == UNIT);
	/* Memory has moved, so it is read again. */
	in_look = move_to_device;
	assert_ptr_equal(copy(0), &stopwatch);
	assert_string_equal(what_was_said(), "take:1 look:1 before:1 give:1");
	assert_true(told.count == 1 && told.bytes == UNIT && !told.on_host && !told.host_bytes);
	assert_int_equal(told.range_count, 1);
}

TEST(a_launch_without_a_chunk_is_told_where_memory_flies)
{
	overlaps = true;
	assert_null(copy(0));
	assert_string_equal(what_was_said(), "take:1 look:0 nothing:0 give:1");
}

/* -- what is told ----------------------------------------------------------------------------------------- */

TEST(a_launch_is_told_by_its_function_and_stream)
{
	allocation(0, 1);
	launch(&(uint64_t){AT(0)});
	assert_true(told.function == &leaf && told.stream == &content && told.site && !told.once);
	assert_false(told.unknown);
	words = 0;
	overlaps = true;
	launch(&(uint64_t){AT(0)});
	assert_string_equal(what_was_said(), "take:1 look:0 nothing:0 give:1");
	assert_true(told.unknown);
}

/* As what follows the layout in memory would have it. */
TEST(no_parameter_is_read_behind_the_last)
{
	allocation(0, 1);
	allocation(2, 1);
	launch((uint64_t[]){AT(0), AT(2)});
	assert_true(told.count == 1 && told.keys[0] == KEY(0));
}

static bool is_known_launch(void **params, void **extra)
{
	tell(&(struct spill_hint){
	    .function = &leaf, .size = {1, 1, 1, 1, 1, 1}, .params = params, .extra = extra});
	return !told.unknown;
}

/* A buffer is known if it has all that the driver wants of one. A launch without parameters is known. */
TEST(whether_all_that_a_launch_uses_is_known)
{
	static uint64_t buffer[32768 / 8];
	size_t bytes = sizeof(buffer), more = sizeof(buffer) + 1;
	overlaps = true;
	assert_true(is_known_launch(NULL, NULL));
	assert_true(is_known_launch((void *[]){buffer}, NULL));
	assert_true(is_known_launch(NULL, (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
	                                             CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, NULL}));
	assert_false(is_known_launch(NULL, (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
	                                              CU_LAUNCH_PARAM_BUFFER_SIZE, &more, NULL}));
	assert_false(is_known_launch(NULL, (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, NULL}));
	assert_false(is_known_launch(NULL, (void *[]){CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, NULL}));
	assert_false(is_known_launch(NULL, (void *[]){(void *)77, buffer, CU_LAUNCH_PARAM_BUFFER_POINTER,
	                                              buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, NULL}));
	assert_false(is_known_launch((void *[]){buffer}, (void *[]){NULL})); /* both */
}

/* Mostly it is known already. What begins behind the first byte of a chunk's first unit is recorded each time. */
TEST(a_begin_is_recorded_once)
{
	allocation(0, 1);
	set_unit(1, (struct spill_chunk_map_entry){.key = KEY(1), .count = 2, .begun = 1});
	set_unit(2, (struct spill_chunk_map_entry){.key = KEY(1), .count = 2, .begun = 1});
	launch(&(uint64_t){AT(0)});
	assert_string_equal(what_was_said(), "take:1 begins:0 before:1 give:1");
	launch(&(uint64_t){AT(1)});
	assert_string_equal(what_was_said(), "take:1 before:1 give:1");
	launch(&(uint64_t){AT(1) + 8});
	assert_string_equal(what_was_said(), "take:1 begins:2097160 before:1 give:1");
	launch(&(uint64_t){AT(2)});
	assert_string_equal(what_was_said(), "take:1 before:1 give:1");
	launch(&(uint64_t){AT(2) + 8});
	assert_string_equal(what_was_said(), "take:1 before:1 give:1");
}

/* A parameter has the same number in each launch, whether the ones before it are addresses or not. */
TEST(the_numbers_of_parameters)
{
	uint64_t values[] = {AT(0), 7, AT(4), AT(1)};
	allocation(0, 3);
	allocation(4, 2);
	words = 4;
	launch(values);
	assert_string_equal(
	    what_was_said(),
	    "take:1 begins:0 slot:0 begins:8388608 slot:2 begins:2097152 slot:3 before:5 give:1");
}

/* Two units whose keys have the same bit in the filter of those that were seen. */
static unsigned like_the_first(void)
{
	unsigned unit = 1;
	while (spill_hash_key(KEY(unit), 10) != spill_hash_key(KEY(0), 10))
		unit++;
	return unit;
}

/* The room has had others' keys before. */
TEST(each_chunk_is_told_whatever_the_room_had)
{
	unsigned other = like_the_first();
	allocation(0, 1);
	allocation(other, 1);
	content = KEY(other);
	words = 3;
	launch((uint64_t[]){AT(0), AT(other), AT(0)});
	assert_int_equal(told.count, 2);
	assert_true(told.keys[0] == KEY(0) && told.keys[1] == KEY(other));
}

TEST(the_first_chunks_on_the_host_are_told)
{
	const unsigned most = SPILL_LAUNCH_ACCESS_HOST_KEYS, all = most + 3;
	for (unsigned i = 0; i < all; i++)
		set_unit(i, (struct spill_chunk_map_entry){
		                .key = KEY(i), .count = 1, .on_host = 1, .more = i + 1 < all});
	tell(&(struct spill_hint){.ranges = {{AT(0), all * UNIT}}});
	assert_true(told.count == all && told.on_host == all && told.host_bytes == all * UNIT);
	for (unsigned i = 0; i < most; i++)
		assert_int_equal(told.host_keys[i], KEY(i));
	assert_int_equal(told.range_count, 1);
}

/* A batch is read until no chunk more can be told. The other sides are no memory of ours. */
TEST(batches_end_with_the_last_chunk_that_is_told)
{
	const CUdeviceptr to[] = {AT(0), AT(2000)}, from[] = {8, 8};
	const size_t sizes[] = {SPILL_LAUNCH_ACCESS_KEYS * UNIT, 1};
	CUDA_MEMCPY3D_BATCH_OP copies[2];
	memset(copies, 0, sizeof(copies));
	for (unsigned i = 0; i < 2; i++) {
		copies[i].src.type = copies[i].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
		copies[i].src.op.ptr.ptr = from[i];
		copies[i].dst.op.ptr.ptr = to[i];
		copies[i].extent.width = sizes[i];
		copies[i].extent.height = copies[i].extent.depth = 1;
	}
	allocation(0, SPILL_LAUNCH_ACCESS_KEYS);
	allocation(2000, 1);
	tell(&(struct spill_hint){.to = to, .from = from, .sizes = sizes, .count = 2});
	assert_int_equal(told.count, SPILL_LAUNCH_ACCESS_KEYS);
	assert_int_equal(told.range_count, 1);
	tell(&(struct spill_hint){.copies_3d = copies, .count = 2});
	assert_int_equal(told.count, SPILL_LAUNCH_ACCESS_KEYS);
	assert_int_equal(told.range_count, 1);
}

/* -- graphs ----------------------------------------------------------------------------------------------- */

static void *launch_graph(uintptr_t exec)
{
	return tell(&(struct spill_hint){.graph = (CUgraphExec)exec, .stream = &extent});
}

/* Graphs of the same kernels have the same site, so each has numbers of its own. */
TEST(the_numbers_of_a_graphs_addresses)
{
	const struct spill_graph_range ranges[] = {{AT(0), 0}, {AT(4), UNIT}, {AT(2), 0}};
	allocation(0, 4);
	allocation(4, 1);
	known = &(struct spill_graph_access){.site = 7, .count = 3, .ranges = ranges};
	assert_ptr_equal(launch_graph(0x10), &stopwatch);
	assert_string_equal(what_was_said(),
	                    "take:1 graph:16 begins:0 slot:4096 begins:4194304 slot:4097 before:5 give:1");
	assert_true(told.site == 7 && told.graph && told.unknown && !told.once && told.stream == &extent);
	launch_graph(0x20);
	assert_string_equal(what_was_said(),
	                    "take:1 graph:32 begins:0 slot:8192 begins:4194304 slot:8193 before:5 give:1");
}

/* Nobody knows what it uses, so all may be. */
TEST(a_graph_that_nobody_knows)
{
	overlaps = true;
	assert_null(launch_graph(0x10));
	assert_string_equal(what_was_said(), "take:1 graph:16 look:0 nothing:0 give:1");
	assert_true(told.graph && told.unknown && told.stream == &extent);
}

/* The ranges that it has, and none when no chunk more can be told. */
TEST(a_graphs_ranges_to_the_last)
{
	const struct spill_graph_range ranges[] = {
	    {AT(0), SPILL_LAUNCH_ACCESS_KEYS * UNIT}, {AT(2000), 0}, {AT(2001), 0}};
	allocation(0, SPILL_LAUNCH_ACCESS_KEYS);
	allocation(2000, 1);
	allocation(2001, 1);
	known = &(struct spill_graph_access){.site = 7, .count = 2, .ranges = ranges};
	launch_graph(0x10);
	assert_string_equal(what_was_said(), "take:1 graph:16 before:1024 give:1");
	known = &(struct spill_graph_access){.site = 7, .count = 1, .ranges = ranges + 1};
	launch_graph(0x10);
	assert_string_equal(what_was_said(), "take:1 graph:16 begins:4194304000 before:1 give:1");
}

/* Neighbours are one range. Each second unit is none's neighbour. */
TEST(a_graph_has_no_more_ranges_than_there_is_room_for)
{
	static struct spill_graph_range ranges[SPILL_LAUNCH_ACCESS_RANGES + 10];
	for (unsigned i = 0; i < SPILL_LAUNCH_ACCESS_RANGES + 10; i++) {
		allocation(2 * i, 1);
		ranges[i] = (struct spill_graph_range){AT(2 * i), 1};
	}
	known = &(struct spill_graph_access){
	    .site = 7, .count = SPILL_LAUNCH_ACCESS_RANGES + 10, .ranges = ranges, .once = true};
	launch_graph(0x10);
	assert_int_equal(told.count, SPILL_LAUNCH_ACCESS_RANGES + 10);
	assert_int_equal(told.range_count, SPILL_LAUNCH_ACCESS_RANGES);
	assert_true(told.once);
	for (unsigned i = 0; i < SPILL_LAUNCH_ACCESS_RANGES; i++)
		assert_true(told.ranges[i].first == KEY(2 * i) && told.ranges[i].units == 1);
}
