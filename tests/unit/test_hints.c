/*
 * The memory that a launch, copy or set is told to use (hints.h), by stubs on a driver
 * of our own. Each case runs in a child of its own.
 */
#include "hints.h"
#include "param_extent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "childtest.h"
#include "chunk_map.h"
#include "layouts.h"
#include "parameter_driver.h"
#include "process.h"
#include "work.h"

#define BASE (3ull << 40)
#define CHUNK (4 * SPILL_CHUNK_MAP_UNIT)
#define KEY(chunk) ((uint32_t)((BASE + (chunk)*CHUNK) / SPILL_CHUNK_MAP_UNIT))

/* -- what is told ----------------------------------------------------------------------------------------- */

static struct spill_launch_access told;
static unsigned times, afters;

static void *before(const struct spill_launch_access *use)
{
	CHECK(use->count && use->count <= SPILL_LAUNCH_ACCESS_KEYS && use->site);
	CHECK(!spill_gate_self || !atomic_load(&spill_gate_self->inside));
	CHECK(!spill_thread.depth);
	memcpy(&told, use, sizeof(told));
	times++;
	return &told;
}

static void after(void *stopwatch)
{
	CHECK(stopwatch == &told && times == afters + 1);
	CHECK(!atomic_load(&spill_gate_self->inside));
	afters++;
}

__attribute__((constructor)) static void replace(void)
{
	static const struct spill_launch_calls calls_of_test = {before, after};
	spill_launch_access_use(&calls_of_test);
}

/* One allocation of `count` chunks from the chunk `first` on; those of `hosts` are on host. */
static void allocation(unsigned first, unsigned count, unsigned hosts)
{
	for (unsigned i = first; i < first + count; i++)
		CHECK(spill_chunk_map_set(BASE + i * CHUNK, CHUNK, i < 32 && hosts >> i & 1,
		                          i + 1 < first + count));
}

/* The ranges are in the chunks that were told, and each of these is in a range. */
static void check_ranges(void)
{
	unsigned in_ranges = 0, in_chunks = 0;
	for (unsigned i = 0; i < told.range_count; i++) {
		const struct spill_access_range *range = &told.ranges[i];
		CHECK(range->units);
		for (uint32_t unit = range->first; unit < range->first + range->units; unit++)
			in_ranges |= 1u << ((unit - KEY(0)) / 4);
	}
	for (unsigned i = 0; i < told.count; i++)
		in_chunks |= 1u << ((told.keys[i] - KEY(0)) / 4);
	CHECK(in_ranges == in_chunks);
}

/* Tells the hint; the keys that were told, a bit a chunk, in any order; each once. */
static unsigned tell(const struct spill_hint *hint)
{
	unsigned keys = 0, host = 0;
	times = 0;
	errno = ERANGE;
	void *stopwatch = spill_hint(hint);
	CHECK(errno == ERANGE && spill_thread.depth == 0 && !stopwatch == !times);
	if (!times)
		return 0;
	for (unsigned i = 0; i < told.count; i++) {
		struct spill_chunk_map_entry granule;
		unsigned bit = 1u << ((told.keys[i] - KEY(0)) / 4);
		CHECK(told.keys[i] >= KEY(0) && (told.keys[i] - KEY(0)) % 4 == 0 && !(keys & bit));
		CHECK(spill_chunk_map_of((uint64_t)told.keys[i] << SPILL_CHUNK_MAP_UNIT_SHIFT, &granule));
		keys |= bit;
		host += granule.on_host;
	}
	CHECK(told.bytes == told.count * CHUNK && told.on_host == host && told.host_bytes == host * CHUNK);
	check_ranges();
	return keys;
}

/* The n-th range that was told. */
static bool is_range(unsigned n, uint64_t va, uint32_t units)
{
	return n < told.range_count && told.ranges[n].first == va >> SPILL_CHUNK_MAP_UNIT_SHIFT &&
	       told.ranges[n].units == units;
}

static unsigned grid = 1; /* another one is another site */

static unsigned launch(uintptr_t function, void **params, void **extra)
{
	return tell(&(struct spill_hint){.function = (void *)function,
	                                 .size = {grid, 2, 3, 4, 5, 6},
	                                 .stream = &told,
	                                 .params = params,
	                                 .extra = extra});
}

/* -- parameters ------------------------------------------------------------------------------------------- */

CHILD_TEST(pointers_of_both_kinds_of_function)
{
	uint64_t one = BASE, two = BASE + 2 * CHUNK + 8;
	int number = 7;
	allocation(0, 1, 0);
	allocation(1, 1, 0);
	allocation(2, 1, 4);
	for (unsigned function = 2; function <= 3; function++) {
		memcpy(sizes[function], (size_t[]){8, 4, 8}, 3 * sizeof(size_t));
		CHECK(launch(function, (void *[]){&one, &number, &two}, NULL) == 5);
		CHECK(told.on_host == 1 && !told.once && told.stream == &told && !told.per_thread);
	}
}

/* Words of a struct by value, wherever the struct is; not half a word at its end, nor what lies across two. */
CHILD_TEST(words_of_a_struct)
{
	char memory[48] = {0};
	uint64_t pointers[] = {1, BASE, 1, BASE + CHUNK, BASE + 2 * CHUNK};
	allocation(0, 1, 0);
	allocation(1, 1, 0);
	allocation(2, 1, 0);
	sizes[2][0] = 36;
	memcpy(memory + 3, pointers, sizeof(pointers));
	CHECK(launch(2, (void *[]){memory + 3}, NULL) == 3);
	memcpy(memory, pointers, sizeof(pointers));
	CHECK(launch(2, (void *[]){memory + 4}, NULL) == 0);
}

/* What is smaller than a pointer is not read, and nothing behind the last parameter. */
CHILD_TEST(nothing_but_parameters_is_read)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED && mprotect(page + 4096, 4096, PROT_NONE) == 0);
	uint64_t pointer = BASE;
	void **params = (void **)(page + 4096) - 3;
	allocation(0, 1, 0);
	memcpy(sizes[2], (size_t[]){4, 12, 1}, 3 * sizeof(size_t));
	memcpy(page + 4096 - 12, &pointer, sizeof(pointer));
	params[0] = (void *)1;
	params[2] = (void *)1;
	char value[12];
	memcpy(value, &pointer, sizeof(pointer));
	params[1] = value;
	CHECK(launch(2, params, NULL) == 1);
	params[1] = NULL;
	CHECK(launch(2, params, NULL) == 0);
	sizes[4][0] = 12; /* the words are whole: the last 4 bytes are not read beyond */
	char *last = page + 4096 - 12;
	memcpy(last, &pointer, sizeof(pointer));
	CHECK(launch(4, (void *[]){last}, NULL) == 1);
}

CHILD_TEST(one_buffer_of_parameters)
{
	uint64_t buffer[] = {5, BASE, BASE + CHUNK};
	size_t bytes = 2 * sizeof(uint64_t) + 7;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
	                 CU_LAUNCH_PARAM_END};
	allocation(0, 1, 1);
	allocation(1, 1, 0);
	lacks_kernels = lacks_functions = true; /* nobody needs to be asked */
	CHECK(launch(2, NULL, extra) == 1);
	CHECK(launch(2, (void *[]){buffer}, extra) == 0); /* the driver refuses that */
	CHECK(launch(2, NULL, extra + 2) == 0);           /* no size */
	bytes = 1 << 20;
	CHECK(launch(2, NULL, extra) == 0);
	bytes = sizeof(buffer);
	CHECK(launch(2, NULL, extra) == 3);
	void *other[] = {(void *)77,
	                 &bytes,
	                 CU_LAUNCH_PARAM_BUFFER_SIZE,
	                 &bytes,
	                 CU_LAUNCH_PARAM_BUFFER_POINTER,
	                 buffer,
	                 CU_LAUNCH_PARAM_END};
	CHECK(launch(2, NULL, other + 2) == 3 && launch(2, NULL, other) == 0);
}

CHILD_TEST(configured_launches)
{
	uint64_t one = BASE;
	CUlaunchConfig config = {1, 2, 3, 4, 5, 6, .hStream = (CUstream)9};
	struct spill_hint hint = {.function = (void *)2, .configured = true, .params = (void *[]){&one}};
	allocation(0, 1, 0);
	sizes[2][0] = 8;
	CHECK(tell(&hint) == 0);
	hint.config = &config;
	CHECK(tell(&hint) == 1 && told.stream == (void *)9);
	uint64_t site = told.site;
	CHECK(launch(2, (void *[]){&one}, NULL) == 1 && told.site == site);
	config.blockDimZ = 7;
	CHECK(tell(&hint) == 1 && told.site != site);
	config.gridDimY = 0; /* refused before anybody looks at parameters */
	CHECK(tell(&hint) == 0);
}

/* What nobody knows is said so. */
CHILD_TEST(parameters_that_nobody_knows)
{
	uint64_t one = BASE;
	allocation(0, 1, 0);
	sizes[3][0] = 8;
	CHECK(launch(3, (void *[]){&one}, NULL) == 1 && !told.unknown);
	CHECK(launch(3, NULL, NULL) == 0);
	always = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK(launch(5, (void *[]){&one}, NULL) == 0);
}

/* The handle has fewer parameters now: one more would be read from behind the array. */
CHILD_TEST(parameters_of_what_was_unloaded)
{
	uint64_t one = BASE;
	void *params[] = {&one, (void *)1};
	allocation(0, 1, 0);
	memcpy(sizes[2], (size_t[]){4, 4, 8}, 3 * sizeof(size_t));
	CHECK(launch(2, (void *[]){(void *)1, (void *)1, &one}, NULL) == 1);
	memcpy(sizes[2], (size_t[]){8, 0}, 2 * sizeof(size_t));
	spill_layouts_forget();
	CHECK(launch(2, params, NULL) == 1);
}

/* -- extents ---------------------------------------------------------------------------------------------- */

static unsigned uses_again(uint64_t pointer)
{
	sizes[2][0] = 8;
	return launch(2, (void *[]){&pointer}, NULL);
}

/* By a launch that was not seen before, so nothing is known of how far it reaches. */
static unsigned uses(uint64_t pointer)
{
	grid++;
	return uses_again(pointer);
}

CHILD_TEST(from_a_pointer_to_the_end_of_the_allocation)
{
	allocation(0, 30, 0);
	allocation(30, 2, 0);
	CHECK(uses(BASE - 1) == 0 && uses(BASE + 32 * CHUNK) == 0 && uses(0) == 0);
	CHECK(uses(BASE + 2 * CHUNK + 5) && told.count == 28);
	CHECK(uses(BASE) == 007); /* something begins in the third: it is of both */
	CHECK(uses(BASE + 30 * CHUNK) && told.count == 2);
}

CHILD_TEST(to_where_something_else_begins)
{
	allocation(0, 32, 0);
	CHECK(uses(BASE) && told.count == 32);
	CHECK(uses(BASE + 3 * CHUNK) && told.count == 29);
	CHECK(uses(BASE) == 007); /* at the first byte: not of both */
	/* Two in one chunk: the first of them ends there. */
	CHECK(uses(BASE + SPILL_CHUNK_MAP_UNIT) == 007);
	CHECK(uses(BASE) == 001);
	CHECK(uses(BASE + SPILL_CHUNK_MAP_UNIT + 4096) == 007);
	spill_chunk_map_clear(BASE + 4 * CHUNK, CHUNK);
	CHECK(uses(BASE + 3 * CHUNK) == 010);
}

/* What allocators cut anew all the time: begins of before say nothing. */
CHILD_TEST(what_is_left_of_an_allocation_is_one_thing)
{
	allocation(0, 18, 0);
	CHECK(uses(BASE + 16 * CHUNK) && told.count == 2);
	CHECK(uses(BASE + 10 * CHUNK) && told.count == 8);
	CHECK(uses(BASE + 2 * CHUNK) && told.count == 16);
	CHECK(uses(BASE + 1 * CHUNK) &&
	      told.count == 1); /* 128 MiB and one chunk more: the next begin counts */
	CHECK(uses(BASE) && told.count == 1);
}

/* Of a buffer that is known, as of PyTorch's blocks, launches use the whole, unless it is large. */
CHILD_TEST(a_part_of_a_known_buffer)
{
	allocation(0, 18, 0);
	spill_chunk_map_buffer(BASE, 14 * CHUNK);
	spill_chunk_map_buffer(BASE + 14 * CHUNK, 4 * CHUNK);
	CHECK(uses(BASE + 3 * CHUNK) && told.count == 11);
	CHECK(uses(BASE + 16 * CHUNK + 512) && told.count == 2);
	CHECK(uses(BASE) && told.count == 14);
	CHECK(uses(BASE + 14 * CHUNK) && told.count == 4);
	spill_chunk_map_buffer(BASE, 18 * CHUNK);
	CHECK(uses(BASE + 3 * CHUNK) && told.count == 15); /* less than 128 MiB */
	CHECK(uses(BASE + 2 * CHUNK) && told.count == 16);
	CHECK(uses(BASE) && told.count == 2);
	CHECK(uses(BASE + CHUNK) && told.count == 1);
}

/* Where memory moves beside kernels, a launch names all that it can reach. */
CHILD_TEST(nothing_is_left_out_of_a_known_buffer)
{
	static struct spill_policy policy;
	spill_policy_default(&policy);
	policy.movable_follow = SPILL_FOLLOW_OVERLAP;
	spill_process_use_policy(&policy);
	allocation(0, 18, 0);
	spill_chunk_map_buffer(BASE, 18 * CHUNK);
	CHECK(uses(BASE + CHUNK) && told.count == 17);
	CHECK(uses(BASE) && told.count == 18);
}

/* What begins in between was laid there meanwhile: the same kernel on the same grid goes on using as much. */
CHILD_TEST(a_parameter_reaches_as_far_as_lately)
{
	uint64_t both[2] = {BASE, BASE + 9 * CHUNK};
	allocation(0, 30, 0);
	CHECK(uses(BASE + 8 * CHUNK) && told.count == 22);
	CHECK(uses(BASE) && told.count == 8);
	CHECK(uses(BASE + 2 * CHUNK) && told.count == 6);
	grid--; /* as the one before the last */
	CHECK(uses_again(BASE) && told.count == 8 && told.sure == 2);
	CHECK(uses_again(BASE + CHUNK) && told.count == 8);
	CHECK(uses_again(BASE + 25 * CHUNK) && told.count == 5); /* no further than the allocation */
	/* Of each parameter apart, and of each site. */
	grid += 10;
	CHECK(uses(BASE) && told.count == 1);
	sizes[3][0] = 16;
	CHECK(launch(3, (void *[]){both}, NULL) && told.count == 1 + 16);
	both[1] = BASE;
	CHECK(launch(3, (void *[]){both}, NULL) && told.count == 16);
	both[0] = BASE + 9 * CHUNK;
	both[1] = BASE + 24 * CHUNK;
	CHECK(launch(3, (void *[]){both}, NULL) && told.count == 15 + 6 && told.sure == 15 + 6);
}

/* Each parameter reaches as far as it did, not only the first that is cut short. */
CHILD_TEST(each_parameter_reaches_as_far_as_lately)
{
	uint64_t both[2] = {BASE, BASE + 8 * CHUNK};
	allocation(0, 32, 0);
	sizes[3][0] = 16;
	CHECK(uses(BASE + 14 * CHUNK) && uses(BASE + 6 * CHUNK));
	CHECK(launch(3, (void *[]){both}, NULL) == 0x3f3f && told.sure == 12);
	uint32_t usual = grid;
	CHECK(uses(BASE + 11 * CHUNK) && uses(BASE + 3 * CHUNK));
	grid = usual;
	CHECK(launch(3, (void *[]){both}, NULL) == 0x3f3f && told.sure == 6);
}

/* No more than 16 of them; of a few nothing is known, as others have their places in the table. */
CHILD_TEST(no_more_reach_further_than_there_is_room_for)
{
	uint64_t pointers[30];
	unsigned further = 0;
	allocation(0, 32, 0);
	for (unsigned i = 0; i < 30; i++)
		pointers[i] = BASE;
	sizes[3][0] = sizeof(pointers);
	CHECK(launch(3, (void *[]){pointers}, NULL) == UINT32_MAX && told.sure == 32);
	uint32_t usual = grid;
	CHECK(uses(BASE + 2 * CHUNK));
	grid = usual;
	CHECK(launch(3, (void *[]){pointers}, NULL) == UINT32_MAX && told.sure == 2);
	for (unsigned i = 0; i < 30; i++) {
		CHECK(is_range(i, BASE, 128) || is_range(i, BASE, 8));
		further += is_range(i, BASE, 128);
	}
	CHECK(further == 16);
}

/* The first launches of all know of no begins yet, and are taken to reach to the end: not for ever. */
CHILD_TEST(what_reached_too_far_is_forgotten)
{
	allocation(0, 32, 0);
	CHECK(uses(BASE) && told.count == 32);
	for (unsigned i = 1; i < 8; i++)
		CHECK(uses_again(BASE + 2 * CHUNK * i) && told.count == 32 - 2 * i);
	for (unsigned i = 0; i < 2 * SPILL_PARAM_EXTENTS; i++)
		CHECK(uses_again(BASE + 2 * CHUNK * (i % 7)) && told.count >= 2);
	CHECK(uses_again(BASE + 4 * CHUNK) && told.count == 2);
}

/* Launches that are too slow access more than begins tell. So their extents grow, and shrink again if that is no help. */
CHILD_TEST(extents_that_are_too_short_become_longer)
{
	allocation(0, 32, 0);
	for (unsigned i = 1; i < 32; i++)
		uses(BASE + i * CHUNK);
	CHECK(uses(BASE) && told.count == 1);
	for (unsigned doubling = 1; doubling <= 3; doubling++) {
		for (unsigned i = 0; i < SPILL_PARAM_EXTENT_SLOW; i++)
			CHECK(spill_param_extent_too_short(told.site));
		CHECK(uses_again(BASE) && told.count == 1u << doubling && told.sure == 1);
	}
	uint64_t site = told.site;
	CHECK(uses(BASE) && told.count == 1); /* another site is as before */
	grid--;
	unsigned slow = 0;
	while (spill_param_extent_too_short(site) && slow < 1000)
		slow++;
	CHECK(slow > SPILL_PARAM_EXTENT_SLOW && slow < 1000);
	CHECK(uses_again(BASE) && told.count == 1);
	CHECK(!spill_param_extent_too_short(site) && uses_again(BASE) && told.count == 1);
}

CHILD_TEST(each_key_once_and_not_too_many)
{
	uint64_t pointers[] = {BASE, BASE + CHUNK, BASE + 8, BASE, BASE + 2 * CHUNK - 8};
	allocation(0, 2, 0);
	sizes[2][0] = sizeof(pointers);
	CHECK(launch(2, (void *[]){pointers}, NULL) == 3 && told.count == 2);
	for (unsigned i = 0; i < SPILL_LAUNCH_ACCESS_KEYS + 10; i++)
		CHECK(spill_chunk_map_set(BASE + i * CHUNK, CHUNK, false, true));
	times = 0;
	spill_hint(&(struct spill_hint){.ranges = {{BASE, (SPILL_LAUNCH_ACCESS_KEYS + 10) * CHUNK}}});
	CHECK(times == 1 && told.count == SPILL_LAUNCH_ACCESS_KEYS &&
	      told.bytes == SPILL_LAUNCH_ACCESS_KEYS * CHUNK);
	for (unsigned i = 0; i < SPILL_LAUNCH_ACCESS_KEYS; i++)
		CHECK(told.keys[i] == KEY(i));
}

/* Units, not chunks, and in the order of the parameters; a buffer twice if two parameters name it. */
CHILD_TEST(the_range_of_each_parameter)
{
	const uint64_t unit = SPILL_CHUNK_MAP_UNIT;
	uint64_t pointers[] = {BASE + 8 * CHUNK + unit, 0, BASE + 2 * CHUNK + 3 * unit - 8,
	                       BASE + 8 * CHUNK + unit};
	allocation(0, 10, 0);
	allocation(10, 1, 0);
	sizes[2][0] = sizeof(pointers);
	CHECK(launch(2, (void *[]){pointers}, NULL) && told.range_count == 3);
	CHECK(is_range(0, BASE + 8 * CHUNK + unit, 7) && is_range(2, BASE + 8 * CHUNK + unit, 7));
	CHECK(is_range(1, BASE + 2 * CHUNK + 2 * unit, 30));
	/* A chunk alone, from there on. The function has one parameter from now on. */
	spill_layouts_forget();
	CHECK(uses(BASE + 10 * CHUNK + 3 * unit) && told.range_count == 1);
	CHECK(is_range(0, BASE + 10 * CHUNK + 3 * unit, 1));
	/* A copy: the bytes that it names, in the units that it touches. */
	CHECK(tell(&(struct spill_hint){.ranges = {{BASE + unit - 1, 2}}}) && is_range(0, BASE, 2));
}

/* As far as lately, and no further than the allocation. */
CHILD_TEST(a_range_reaches_as_far_as_lately)
{
	allocation(0, 30, 0);
	CHECK(uses(BASE + 8 * CHUNK) && is_range(0, BASE + 8 * CHUNK, 88));
	CHECK(uses(BASE) && is_range(0, BASE, 32));
	CHECK(uses(BASE + 2 * CHUNK) && is_range(0, BASE + 2 * CHUNK, 24));
	grid--; /* as the one before the last */
	CHECK(uses_again(BASE) && told.sure == 2 && is_range(0, BASE, 32));
	CHECK(uses_again(BASE + 25 * CHUNK) && is_range(0, BASE + 25 * CHUNK, 20));
}

/* More parameters than there is room for. */
CHILD_TEST(not_too_many_ranges)
{
	static uint64_t pointers[SPILL_LAUNCH_ACCESS_RANGES + 10];
	allocation(0, 2, 0);
	for (unsigned i = 0; i < SPILL_LAUNCH_ACCESS_RANGES + 10; i++)
		pointers[i] = BASE;
	sizes[2][0] = sizeof(pointers);
	CHECK(launch(2, (void *[]){pointers}, NULL) == 3 && told.range_count == SPILL_LAUNCH_ACCESS_RANGES);
	CHECK(is_range(SPILL_LAUNCH_ACCESS_RANGES - 1, BASE, 8));
}

/* Nor are the chunks of a parameter looked for when there is room for no more of them. */
CHILD_TEST(no_extent_behind_the_last_chunk_that_is_told)
{
	const unsigned count = SPILL_LAUNCH_ACCESS_KEYS + 10;
	uint64_t pointers[] = {BASE, BASE + count * CHUNK};
	allocation(0, count, 0);
	allocation(count, 4, 0);
	sizes[2][0] = sizeof(pointers);
	spill_hint(&(struct spill_hint){
	    .function = (void *)2, .size = {1, 1, 1, 1, 1, 1}, .params = (void *[]){pointers}});
	CHECK(times == 1 && told.count == SPILL_LAUNCH_ACCESS_KEYS && told.range_count == 2);
	CHECK(is_range(1, pointers[1], 4));
	/* Nor how far it reached in the launch before. */
	uint64_t first = BASE;
	sizes[4][0] = 8;
	for (unsigned again = 0; again < 2; again++) {
		spill_hint(&(struct spill_hint){
		    .function = (void *)4, .size = {1, 1, 1, 1, 1, 1}, .params = (void *[]){&first}});
		CHECK(told.count == SPILL_LAUNCH_ACCESS_KEYS && told.range_count == 1);
		CHECK(is_range(0, BASE, again ? 8 : 4 * count));
		spill_chunk_map_begins(BASE + 2 * CHUNK);
	}
}

static unsigned range(uint64_t va, uint64_t bytes)
{
	return tell(&(struct spill_hint){.ranges = {{va, bytes}}, .stream = &times, .per_thread = true});
}

CHILD_TEST(copies_use_their_bytes_alone)
{
	allocation(0, 4, 3);
	CHECK(range(BASE, 1) == 1 && told.once && told.stream == &times && told.per_thread && told.site);
	CHECK(range(BASE, CHUNK) == 1 && range(BASE, CHUNK + 1) == 3 && range(BASE + CHUNK - 1, 2) == 3);
	CHECK(range(BASE + CHUNK, CHUNK) == 2 && range(BASE, 9 * CHUNK) == 017);
	CHECK(range(BASE, 0) == 0 && range(BASE - 8, 4) == 0 && range(BASE, UINT64_MAX) == 0);
	CHECK(uses(BASE) == 017); /* no copy begins anything */
	CHECK(tell(&(struct spill_hint){.ranges = {{BASE + 3 * CHUNK, 8}, {BASE + CHUNK, 8}}}) == 012);
}

/* From the first byte of the first row to the last of the last. */
CHILD_TEST(copies_of_rows_use_what_is_between)
{
	CUDA_MEMCPY2D flat = {.dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .dstDevice = BASE,
	                      .dstPitch = CHUNK,
	                      .srcMemoryType = CU_MEMORYTYPE_HOST,
	                      .srcHost = &times,
	                      .WidthInBytes = 8,
	                      .Height = 3};
	CUDA_MEMCPY3D deep = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
	                      .srcDevice = BASE,
	                      .srcZ = 1,
	                      .srcPitch = CHUNK,
	                      .srcHeight = 2,
	                      .dstMemoryType = CU_MEMORYTYPE_ARRAY,
	                      .WidthInBytes = 8,
	                      .Height = 1,
	                      .Depth = 2};
	CUDA_MEMCPY3D_PEER peer = {.dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                           .dstDevice = BASE + CHUNK,
	                           .srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                           .srcDevice = BASE + 4 * CHUNK,
	                           .WidthInBytes = 8,
	                           .Height = 1,
	                           .Depth = 1};
	allocation(0, 8, 2);
	CHECK(tell(&(struct spill_hint){.copy_2d = &flat, .stream = &flat}) == 7 && told.once);
	CHECK(told.stream == &flat && told.site == 1);
	CHECK(tell(&(struct spill_hint){.copy_3d = &deep}) == 0x1c);
	CHECK(tell(&(struct spill_hint){.copy_peer = &peer}) == 0x12);
	CHECK(tell(&(struct spill_hint){.set = {BASE + 5 * CHUNK, CHUNK, 4, 2}}) == 0x60 && told.once);
	CHECK(tell(&(struct spill_hint){.set = {BASE, CHUNK, 4, 0}}) == 0);
	CHECK(uses(BASE) == 0xff); /* nothing has begun */
}

CHILD_TEST(batches_use_what_each_copy_does)
{
	CUdeviceptr to[] = {BASE, BASE + 2 * CHUNK, BASE + 5 * CHUNK}, from[] = {8, BASE + 4 * CHUNK, 8};
	size_t sizes[] = {1, 1, 1};
	CUDA_MEMCPY3D_BATCH_OP copies[] = {
	    {.src = {CU_MEMCPY_OPERAND_TYPE_POINTER, {{.ptr = BASE}}},
	     .dst = {CU_MEMCPY_OPERAND_TYPE_POINTER, {{.ptr = BASE + 2 * CHUNK, .rowLength = CHUNK}}},
	     .extent = {8, 2, 1}},
	    {.src = {CU_MEMCPY_OPERAND_TYPE_POINTER, {{.ptr = BASE + 5 * CHUNK}}},
	     .dst = {.type = CU_MEMCPY_OPERAND_TYPE_ARRAY},
	     .extent = {8, 1, 1}},
	};
	allocation(0, 8, 2);
	CHECK(tell(&(struct spill_hint){.to = to, .from = from, .sizes = sizes, .count = 2}) == 0x15);
	CHECK(tell(&(struct spill_hint){.to = to, .from = NULL, .sizes = sizes, .count = 2}) == 0);
	CHECK(tell(&(struct spill_hint){.copies_3d = copies, .count = 2, .stream = to}) == 0xd && told.once);
	CHECK(tell(&(struct spill_hint){.copies_3d = NULL, .count = 2}) == 0);
	CHECK(tell(&(struct spill_hint){.copies_3d = copies, .count = 0}) == 0);
}

/* -- stubs ------------------------------------------------------------------------------------------------ */

static unsigned calls;
static bool off;

static CUresult real_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	CHECK(times == afters + (spill_launch_access_wanted && !spill_thread.depth && calls != 1));
	calls++;
	return CUDA_SUCCESS;
}

const struct spill_row spill_rows[SPILL_HOOKS] = {[SPILL_HOOK_cuMemcpyAsync] = {.symbol = "cuMemcpyAsync"}};
_Atomic uint64_t spill_row_hits[SPILL_HOOKS][SPILL_WAYS_COUNT];

bool spill_shim_ready(void)
{
	return !off;
}

void *spill_real(const struct spill_row *row, const void *caller)
{
	return (void *)real_copy;
}

SPILL_HINTED_STUB(static, copy, LINK, CUresult, cuMemcpyAsync,
                  (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
                  (to, from, bytes, stream), .ranges = {{to, bytes}, {from, bytes}}, .stream = stream)

CHILD_TEST(stubs_tell_around_the_call)
{
	allocation(0, 1, 0);
	spill_launch_access_wanted = true;
	CHECK(copy(BASE, 0, 8, NULL) == CUDA_SUCCESS && calls == 1 && times == 1 && afters == 1);
	spill_gate_enter(spill_gate_self); /* within another call */
	CHECK(copy(BASE, 0, 8, NULL) == CUDA_SUCCESS && calls == 2 && times == 1);
	spill_gate_leave(spill_gate_self);
	CHECK(copy(0, BASE, 8, NULL) == CUDA_SUCCESS && calls == 3 && times == 2 && afters == 2);
	spill_thread.depth = 1; /* our own */
	CHECK(copy(BASE, 0, 8, NULL) == CUDA_SUCCESS && calls == 4 && times == 2);
	spill_thread.depth = 0;
	spill_launch_access_wanted = false;
	CHECK(copy(BASE, 0, 8, NULL) == CUDA_SUCCESS && calls == 5 && times == 2 && afters == 2);
}

CHILD_TEST(who_is_off_tells_nothing)
{
	allocation(0, 1, 0);
	spill_launch_access_wanted = off = true;
	calls = 1;
	CHECK(copy(BASE, 0, 8, NULL) == CUDA_SUCCESS && times == 0 && calls == 2);
}

/* -- all -------------------------------------------------------------------------------------------------- */
