/*
 * Memory of allocation nodes. A graph owns addresses from the time the node is added. A launch or
 * an upload puts blocks of 32 MiB of the device behind them. Blocks stay until a trim, or until
 * another graph or a plain allocation needs them and no launch can use them. All under
 * sim_memory_lock.
 *
 * A launch that runs out of memory loses the memory that it got so far: no trim and no end of the
 * graph brings it back. Driver 580.159 on an H200 does the same.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "core_internal.h"

#define PIECE ((uint64_t)32 << 20)
#define ALIGNMENT ((uint64_t)512)

struct graph_block {
	struct graph_block *next; /* of all graphs */
	struct graph_memory *memory;
	struct range *range;
	uint64_t filled;
	unsigned busy, open; /* launches and ordered frees under way; live allocations */
	bool backed;
	size_t pieces;
	struct sim_physical *piece[];
};

struct graph_memory {
	unsigned references, execs;
	struct graph_allocation *allocations; /* newest first */
};

static struct graph_block *blocks;

static struct pile {
	struct sim_physical **piece;
	size_t count, capacity;
} spare[SIM_DEVICES], lost[SIM_DEVICES];
static struct sim_graph_memory about[SIM_DEVICES];

/* -- pieces ------------------------------------------------------------------------------------ */

static bool pile_add(struct pile *pile, struct sim_physical *piece)
{
	if (pile->count == pile->capacity) {
		size_t capacity = pile->capacity ? 2 * pile->capacity : 64;
		struct sim_physical **larger = realloc(pile->piece, capacity * sizeof(struct sim_physical *));

		if (!larger)
			return false;
		pile->piece = larger;
		pile->capacity = capacity;
	}
	pile->piece[pile->count++] = piece;
	return true;
}

static void count_bytes(int device, uint64_t used, uint64_t reserved)
{
	struct sim_graph_memory *a = &about[device];

	a->used += used;
	a->reserved += reserved;
	a->used_high = a->used > a->used_high ? a->used : a->used_high;
	a->reserved_high = a->reserved > a->reserved_high ? a->reserved : a->reserved_high;
}

static void drop_piece(int device, struct sim_physical *piece)
{
	about[device].used -= PIECE;
	about[device].reserved -= PIECE;
	piece->references--;
	physical_drop(piece);
}

/* Memory behind the block becomes spare. */
static void unback_block(struct graph_block *block)
{
	struct range *range = block->range;

	if (!block->backed)
		return;
	for (int device = 0; device < sim_config()->devices; device++)
		if (range->reach & 1u << device)
			va_hide(va_alias(range->address, device), range->bytes);
	for (size_t i = 0; i < block->pieces; i++)
		if (!pile_add(&spare[range->device], block->piece[i]))
			drop_piece(range->device, block->piece[i]);
	block->backed = false;
}

static struct graph_block *find_idle_block(int device)
{
	struct graph_block *block = blocks;

	while (block && !(block->backed && !block->busy && !block->open && block->range->device == device))
		block = block->next;
	return block;
}

bool graph_memory_trim(int device)
{
	struct graph_block *block;

	while ((block = find_idle_block(device)))
		unback_block(block);
	bool any = spare[device].count;
	while (spare[device].count)
		drop_piece(device, spare[device].piece[--spare[device].count]);
	return any;
}

/* *fresh: bytes new to graphs, which count only if the whole block gets memory. */
static enum sim_status take_piece(int device, struct sim_physical **out, uint64_t *fresh)
{
	struct graph_block *block = spare[device].count ? NULL : find_idle_block(device);

	if (block)
		unback_block(block);
	if (spare[device].count) {
		*out = spare[device].piece[--spare[device].count];
		return SIM_OK;
	}
	enum sim_status status = physical_new(SIM_ON_DEVICE, device, PIECE, true, out);
	if (!status) {
		count_bytes(device, 0, PIECE);
		*fresh += PIECE;
	}
	return status;
}

/* pre: the block is busy, so no other thread takes its memory. */
static enum sim_status back_block(struct graph_block *block)
{
	struct range *range = block->range;
	enum sim_status status = SIM_OK;
	uint64_t fresh = 0;
	size_t got = 0;

	if (block->backed)
		return SIM_OK;
	while (got < block->pieces && !(status = take_piece(range->device, &block->piece[got], &fresh)))
		got++;
	for (int device = 0; device < sim_config()->devices && !status; device++)
		for (size_t i = 0; range->reach & 1u << device && i < got && !status; i++)
			if (!va_show(va_alias(range->address + i * PIECE, device), block->piece[i], 0, PIECE,
			             PROT_READ | PROT_WRITE))
				status = SIM_NO_HOST_MEMORY;
	block->backed = !status;
	if (!status)
		count_bytes(range->device, fresh, 0);
	else
		about[range->device].used -= got * PIECE - fresh;
	for (size_t i = 0; i < got && status; i++)
		(void)!pile_add(&lost[range->device], block->piece[i]);
	return status;
}

/* -- allocations ------------------------------------------------------------------------------- */

struct graph_memory *graph_memory_new(void)
{
	struct graph_memory *memory = calloc(1, sizeof(*memory));

	if (memory)
		memory->references = 1;
	return memory;
}

/* pre: the lock is held. */
static void put_memory(struct graph_memory *memory)
{
	if (--memory->references)
		return;
	for (struct graph_block **link = &blocks; *link;) {
		struct graph_block *block = *link;

		if (block->memory != memory) {
			link = &block->next;
			continue;
		}
		*link = block->next;
		unback_block(block);
		va_give(block->range);
		free(block);
	}
	for (struct graph_allocation *one = memory->allocations, *next; one; one = next) {
		next = one->next;
		free(one);
	}
	free(memory);
}

void graph_memory_get(struct graph_memory *memory)
{
	pthread_mutex_lock(&sim_memory_lock);
	memory->references++;
	pthread_mutex_unlock(&sim_memory_lock);
}

void graph_memory_put(struct graph_memory *memory)
{
	pthread_mutex_lock(&sim_memory_lock);
	put_memory(memory);
	pthread_mutex_unlock(&sim_memory_lock);
}

bool graph_memory_exec(struct graph_memory *memory, int change)
{
	pthread_mutex_lock(&sim_memory_lock);
	bool good = change < 0 || memory->execs == 0;
	if (good)
		memory->execs += (unsigned)change;
	pthread_mutex_unlock(&sim_memory_lock);
	return good;
}

static struct graph_block *block_new(struct graph_memory *memory, int device, unsigned devices,
                                     uint64_t bytes)
{
	size_t pieces = (bytes + PIECE - 1) / PIECE;
	struct graph_block *block = calloc(1, sizeof(*block) + pieces * sizeof(*block->piece));
	struct range *range = block ? va_take(SIM_DEVICE, pieces * PIECE, SIM_GRANULE, 0) : NULL;

	if (!range) {
		free(block);
		return NULL;
	}
	range->graph = block;
	range->device = device;
	range->reach = devices | 1u << device;
	*block = (struct graph_block){.next = blocks, .memory = memory, .range = range, .pieces = pieces};
	blocks = block;
	return block;
}

/* Finds a place in a block of the graph that has room, or in a new one. */
static struct graph_block *find_block_with_room(struct graph_memory *memory, int device, unsigned devices,
                                                uint64_t bytes)
{
	struct graph_block *block = blocks;

	while (block && !(block->memory == memory && block->range->device == device &&
	                  block->range->reach == (devices | 1u << device) &&
	                  block->range->bytes - block->filled >= bytes))
		block = block->next;
	return block ? block : block_new(memory, device, devices, bytes);
}

enum sim_status graph_memory_add(struct graph_memory *memory, int device, unsigned devices, uint64_t bytes,
                                 struct graph_allocation *reuse, struct graph_allocation **out)
{
	uint64_t whole = round_up(bytes, ALIGNMENT);
	struct graph_allocation *one = calloc(1, sizeof(*one));

	if (!one || bytes > UINT64_MAX / 4) {
		free(one);
		return SIM_NO_HOST_MEMORY;
	}
	pthread_mutex_lock(&sim_memory_lock);
	struct graph_block *block =
	    reuse ? reuse->block : find_block_with_room(memory, device, devices, whole);
	if (block) {
		*one = (struct graph_allocation){.next = memory->allocations,
		                                 .memory = memory,
		                                 .block = block,
		                                 .address = reuse ? reuse->address
		                                                  : block->range->address + block->filled,
		                                 .bytes = bytes,
		                                 .device = device,
		                                 .devices = devices,
		                                 .id = sim_next_id()};
		memory->allocations = one;
		if (reuse)
			reuse->replaced = true;
		else
			block->filled += whole;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	if (!block)
		free(one);
	else
		*out = one;
	return block ? SIM_OK : SIM_NO_HOST_MEMORY;
}

struct graph_allocation *graph_memory_find(uint64_t address)
{
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = va_range(address);
	struct graph_allocation *one = range && range->graph ? range->graph->memory->allocations : NULL;
	while (one && one->address != address)
		one = one->next;
	pthread_mutex_unlock(&sim_memory_lock);
	return one;
}

bool graph_memory_contains(uint64_t address, uint64_t bytes)
{
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = va_range(address);
	bool inside = range && range->graph && bytes <= range->bytes &&
	              address - range->address <= range->bytes - bytes;
	pthread_mutex_unlock(&sim_memory_lock);
	return inside;
}

static struct graph_allocation *open_at(const struct graph_block *block, uint64_t address)
{
	struct graph_allocation *one = block->memory->allocations;

	while (one && !(one->open && address >= one->address && address - one->address < one->bytes))
		one = one->next;
	return one;
}

bool graph_memory_at(const struct graph_block *block, uint64_t address, uint64_t *start, uint64_t *bytes,
                     uint64_t *id)
{
	const struct graph_allocation *one = open_at(block, address);

	if (!one)
		return false;
	*start = one->address;
	*bytes = one->bytes;
	*id = one->id;
	return true;
}

struct sim_context *graph_memory_context(const struct graph_block *block, uint64_t address)
{
	return open_at(block, address)->context;
}

/* -- launches ---------------------------------------------------------------------------------- */

static void end_allocation(struct graph_allocation *one)
{
	one->open = false;
	one->block->open--;
}

void graph_memory_free(const struct graph_block *block, uint64_t start)
{
	struct graph_allocation *one = open_at(block, start);

	end_allocation(one);
	put_memory(one->memory);
}

void graph_memory_freed(struct graph_allocation *one)
{
	pthread_mutex_lock(&sim_memory_lock);
	one->block->busy--;
	put_memory(one->memory);
	pthread_mutex_unlock(&sim_memory_lock);
}

static void freed_now(void *data)
{
	graph_memory_freed(*(struct graph_allocation **)data);
}

enum sim_status graph_memory_free_ordered(uint64_t address, struct sim_stream *stream)
{
	struct graph_allocation **data = malloc(sizeof(struct graph_allocation *));

	if (!data)
		return SIM_NO_HOST_MEMORY;
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = va_range(address);
	struct graph_allocation *one = range && range->graph ? open_at(range->graph, address) : NULL;
	bool found = one && one->address == address;
	if (found) {
		end_allocation(one); /* the reference of the live allocation is now the free's */
		one->block->busy++;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	if (!found) {
		free(data);
		return range && range->graph ? SIM_INVALID : SIM_NOT_FOUND;
	}
	*data = one;
	return stream_submit(stream, SIM_NODE_NONE, freed_now, data, false, true);
}

static void set_busy(struct graph_memory *memory, int change)
{
	for (struct graph_block *block = blocks; block; block = block->next)
		if (block->memory == memory)
			block->busy += (unsigned)change;
}

static enum sim_status back_all(struct graph_memory *memory)
{
	enum sim_status status = SIM_OK;

	set_busy(memory, 1);
	for (struct graph_block *block = blocks; block && !status; block = block->next)
		if (block->memory == memory)
			status = back_block(block);
	if (status)
		set_busy(memory, -1);
	return status;
}

/* True if a launch may begin: its allocations are not live, and the memory that it frees is. */
static enum sim_status check_launch(const struct graph_memory *memory, bool auto_free,
                                    struct graph_allocation *const *frees, size_t count)
{
	for (const struct graph_allocation *one = memory->allocations; one; one = one->next)
		if (one->open && !auto_free)
			return SIM_INVALID;
	for (size_t i = 0; i < count; i++)
		if (!frees[i]->open)
			return SIM_INVALID;
	return SIM_OK;
}

enum sim_status graph_memory_launch(struct graph_memory *memory, struct sim_context *context, bool auto_free,
                                    struct graph_allocation *const *frees, size_t count)
{
	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = check_launch(memory, auto_free, frees, count);
	if (!status)
		status = back_all(memory);
	for (struct graph_allocation *one = memory->allocations; one && !status; one = one->next) {
		if (one->freed_here || one->open)
			continue;
		one->open = true;
		one->context = context;
		one->block->open++;
		memory->references++;
	}
	for (size_t i = 0; i < count && !status; i++) {
		end_allocation(frees[i]);
		frees[i]->block->busy++;
	}
	if (!status)
		memory->references++;
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

void graph_memory_launched(struct graph_memory *memory)
{
	pthread_mutex_lock(&sim_memory_lock);
	set_busy(memory, -1);
	put_memory(memory);
	pthread_mutex_unlock(&sim_memory_lock);
}

enum sim_status graph_memory_upload(struct graph_memory *memory)
{
	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = back_all(memory);
	if (!status)
		set_busy(memory, -1);
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

/* -- totals of a device ------------------------------------------------------------------------ */

void sim_graph_memory(int device, struct sim_graph_memory *out)
{
	pthread_mutex_lock(&sim_memory_lock);
	*out = about[device];
	pthread_mutex_unlock(&sim_memory_lock);
}

void sim_graph_memory_reset_high(int device, bool used)
{
	pthread_mutex_lock(&sim_memory_lock);
	if (used)
		about[device].used_high = about[device].used;
	else
		about[device].reserved_high = about[device].reserved;
	pthread_mutex_unlock(&sim_memory_lock);
}

void sim_graph_trim(int device)
{
	pthread_mutex_lock(&sim_memory_lock);
	graph_memory_trim(device);
	pthread_mutex_unlock(&sim_memory_lock);
}
