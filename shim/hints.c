#include "hints.h"

#include <string.h>

#include "audit.h"
#include "descriptors.h"
#include "capture.h"
#include "chunk_map.h"
#include "graph_access.h"
#include "hash.h"
#include "overlap.h"
#include "params.h"
#include "param_extent.h"
#include "scratch.h"

/* An allocation, or the rest of one, up to this size counts as one buffer. */
#define WHOLE_BYTES (128ull << 20)

/* Parameters whose likely extent is kept. */
#define LIKELY_EXTENTS 16

/* The access of one call while its hint is read. */
struct scan {
	struct spill_launch_access use;
	uint64_t seen[16]; /* Bloom filter of the keys */
	/* Words read so far. A parameter has the same number in each launch of a site. */
	uint32_t words;
	/* Earlier launches reached up to `end`, beyond `last`, the sure part's last chunk. */
	struct {
		struct spill_chunk_map_entry last;
		uint64_t end;
		struct spill_access_range *range; /* gets longer; NULL: there is none */
	} likely[LIKELY_EXTENTS];
	unsigned likely_count;
};

/* The range is [its begin, end). */
static void end_range(struct spill_access_range *range, uint64_t end)
{
	if (range)
		range->units = (uint32_t)((end - 1) >> SPILL_CHUNK_MAP_UNIT_SHIFT) - range->first + 1;
}

/*
 * Notes a parameter's buffer in [va, end). NULL: the list is full, or it is a graph, which names the same memory
 * in many nodes, so that its chunks count.
 */
static struct spill_access_range *note_buffer(struct scan *scan, uint64_t va, uint64_t end)
{
	struct spill_launch_access *use = &scan->use;
	if (use->graph || use->range_count == SPILL_LAUNCH_ACCESS_RANGES)
		return NULL;
	struct spill_access_range *range = &use->ranges[use->range_count++];
	range->first = (uint32_t)(va >> SPILL_CHUNK_MAP_UNIT_SHIFT);
	end_range(range, end);
	return range;
}

/* Notes a chunk of a graph. */
static void note_chunk(struct scan *scan, const struct spill_chunk_map_entry *granule)
{
	struct spill_launch_access *use = &scan->use;
	struct spill_access_range *last = use->range_count ? &use->ranges[use->range_count - 1] : NULL;
	if (!use->graph)
		return;
	if (last && last->first + last->units == granule->key)
		last->units += granule->count;
	else if (use->range_count < SPILL_LAUNCH_ACCESS_RANGES)
		use->ranges[use->range_count++] = (struct spill_access_range){granule->key, granule->count};
}

/* False: the list of keys is full. */
static bool add_chunk(struct scan *scan, const struct spill_chunk_map_entry *granule)
{
	struct spill_launch_access *use = &scan->use;
	unsigned bit = spill_hash_key(granule->key, 10); /* of 1,024 */
	uint64_t mask = 1ull << (bit % 64);
	if (scan->seen[bit / 64] & mask)
		for (unsigned i = 0; i < use->count; i++)
			if (use->keys[i] == granule->key)
				return true;
	if (use->count == SPILL_LAUNCH_ACCESS_KEYS)
		return false;
	scan->seen[bit / 64] |= mask;
	use->keys[use->count++] = granule->key;
	note_chunk(scan, granule);
	uint64_t bytes = (uint64_t)granule->count << SPILL_CHUNK_MAP_UNIT_SHIFT;
	use->bytes += bytes;
	if (granule->on_host) {
		if (use->on_host < SPILL_LAUNCH_ACCESS_HOST_KEYS)
			use->host_keys[use->on_host] = granule->key;
		use->on_host++;
		use->host_bytes += bytes;
	}
	return true;
}

static uint64_t chunk_end(const struct spill_chunk_map_entry *granule)
{
	return (uint64_t)(granule->key + granule->count) << SPILL_CHUNK_MAP_UNIT_SHIFT;
}

/* Steps to the next chunk of the same allocation. False: there is none, and the chunk is as it was. */
static bool step_to_next_chunk(struct spill_chunk_map_entry *granule)
{
	struct spill_chunk_map_entry found;
	uint64_t next = chunk_end(granule);
	if (!granule->more || !spill_chunk_map_of(next, &found) ||
	    found.key != next >> SPILL_CHUNK_MAP_UNIT_SHIFT)
		return false;
	*granule = found;
	return true;
}

static struct spill_chunk_map_entry first_granule_of(const struct spill_chunk_map_entry *granule)
{
	struct spill_chunk_map_entry first;
	return spill_chunk_map_of((uint64_t)granule->key << SPILL_CHUNK_MAP_UNIT_SHIFT, &first) ? first
	                                                                                        : *granule;
}

/* True if another buffer begins behind `address` in the same chunk. */
static bool ends_within(uint64_t address, const struct spill_chunk_map_entry *granule)
{
	struct spill_chunk_map_entry granule_at;
	if (!first_granule_of(granule).inside)
		return false;
	for (address += SPILL_CHUNK_MAP_UNIT; address < chunk_end(granule); address += SPILL_CHUNK_MAP_UNIT)
		if (spill_chunk_map_of(address, &granule_at) && granule_at.begun)
			return true;
	return false;
}

/* True if the allocation ends within WHOLE_BYTES. The rest of it then counts as one buffer. */
static bool is_near_end(struct spill_chunk_map_entry granule)
{
	uint64_t most = ((uint64_t)granule.key << SPILL_CHUNK_MAP_UNIT_SHIFT) + WHOLE_BYTES;
	while (granule.more && chunk_end(&granule) < most && step_to_next_chunk(&granule))
		;
	return !granule.more;
}

/*
 * Where the next buffer begins, or the allocation ends. Allocators divide a segment anew all the
 * time (PyTorch's have up to some 64 MiB), so old begins in a small segment mean nothing. Those of
 * our own segments are exact.
 */
static uint64_t extent_end(uint64_t address, struct spill_chunk_map_entry granule)
{
	bool whole = !granule.exact && is_near_end(granule);
	uint64_t end = chunk_end(&granule);
	if (!whole && ends_within(address & ~(SPILL_CHUNK_MAP_UNIT - 1), &granule))
		return end;
	while (step_to_next_chunk(&granule) && (whole || !granule.begun)) {
		end = chunk_end(&granule);
		if (!whole && granule.inside)
			break;
	}
	return end;
}

/*
 * True: a launch's pointer counts as the begin of a buffer, as long as none is known there. A buffer of an allocator
 * that is known is a tensor, and a pointer into it belongs to a part of it, which other launches use as a whole. Only of
 * a large one each part counts. Where memory moves beside kernels, none does: a launch must name all that it can reach.
 */
static bool is_begin(uint64_t address, const struct spill_chunk_map_entry *granule, uint64_t end)
{
	if (granule->exact && (end - address < WHOLE_BYTES || spill_overlap_wanted() || spill_audit_wanted()))
		return false;
	/* A second begin in the first granule is recorded each time. */
	return !granule->begun ||
	       (address >> SPILL_CHUNK_MAP_UNIT_SHIFT == granule->key && address % SPILL_CHUNK_MAP_UNIT);
}

/* Adds chunks up to `end`; `granule` becomes the last. False: the list is full. */
static bool add_until(struct scan *scan, struct spill_chunk_map_entry *granule, uint64_t end)
{
	while (chunk_end(granule) < end && step_to_next_chunk(granule))
		if (!add_chunk(scan, granule))
			return false;
	return true;
}

/*
 * If the word points into a chunk, adds the buffer from there on. Remembers for later how far the
 * same parameter reached in earlier launches (param_extent.h).
 */
static void add_extent(void *closure, uint64_t word)
{
	struct scan *scan = closure;
	uint32_t slot = scan->words++;
	struct spill_chunk_map_entry granule;
	if (!spill_chunk_map_of(word, &granule))
		return;
	uint64_t begin = word & ~(SPILL_CHUNK_MAP_UNIT - 1);
	uint64_t seen = granule.more ? extent_end(word, granule) : chunk_end(&granule);
	if (is_begin(word, &granule, seen))
		spill_chunk_map_begins(word);
	struct spill_access_range *range = note_buffer(scan, word, chunk_end(&granule));
	if (!add_chunk(scan, &granule) || !granule.more)
		return;
	uint64_t end = begin + spill_param_extent(scan->use.site, slot, seen - begin);
	end_range(range, seen);
	if (!add_until(scan, &granule, seen))
		return;
	if (seen < end && granule.more && scan->likely_count < LIKELY_EXTENTS) {
		scan->likely[scan->likely_count].last = granule;
		scan->likely[scan->likely_count].range = range;
		scan->likely[scan->likely_count++].end = end;
	}
}

/* Sure chunks come first, so this runs last. */
static void add_likely(struct scan *scan)
{
	scan->use.sure = scan->use.count;
	for (unsigned i = 0; i < scan->likely_count; i++) {
		struct spill_chunk_map_entry granule = scan->likely[i].last;
		uint64_t end = scan->likely[i].end;
		if (!add_until(scan, &granule, end))
			return;
		end_range(scan->likely[i].range, end < chunk_end(&granule) ? end : chunk_end(&granule));
	}
}

static void add_range(struct scan *scan, uint64_t va, uint64_t bytes)
{
	struct spill_chunk_map_entry granule;
	uint64_t end = va + bytes;
	if (end <= va || !spill_chunk_map_of(va, &granule))
		return;
	struct spill_access_range *range = note_buffer(scan, va, chunk_end(&granule));
	if (add_chunk(scan, &granule))
		add_until(scan, &granule, end);
	end_range(range, end < chunk_end(&granule) ? end : chunk_end(&granule));
}

static void scan_launch(struct scan *scan, const struct spill_hint *hint)
{
	const CUlaunchConfig *config = hint->config;
	unsigned size[6];
	memcpy(size, hint->size, sizeof(size));
	scan->use.stream = hint->stream;
	if (hint->configured) {
		if (!config)
			return;
		memcpy(size,
		       (const unsigned[]){config->gridDimX, config->gridDimY, config->gridDimZ,
		                          config->blockDimX, config->blockDimY, config->blockDimZ},
		       sizeof(size));
		scan->use.stream = config->hStream;
	}
	/* The driver refuses these launches before it reads the parameters. */
	for (unsigned i = 0; i < 6; i++)
		if (!size[i])
			return;
	scan->use.site = spill_params_site(hint->function, size);
	scan->use.function = hint->function;
	scan->use.unknown = !spill_params_words(hint->function, hint->params, hint->extra, add_extent, scan);
}

/* Looks up each address now, because memory moves between launches. */
static void add_graph(void *closure, const struct spill_graph_access *uses)
{
	struct scan *scan = closure;
	scan->use.site = uses->site;
	scan->use.once = uses->once;
	for (uint32_t i = 0; i < uses->count && scan->use.count < SPILL_LAUNCH_ACCESS_KEYS; i++) {
		const struct spill_graph_range *range = &uses->ranges[i];
		if (range->bytes)
			add_range(scan, range->va, range->bytes);
		else
			add_extent(scan, range->va);
	}
}

static void add_boxes(struct scan *scan, struct spill_boxes boxes)
{
	add_range(scan, boxes.to.va, boxes.to.bytes);
	add_range(scan, boxes.from.va, boxes.from.bytes);
}

static void scan_copies(struct scan *scan, const struct spill_hint *hint)
{
	const bool batch = hint->to && hint->from && hint->sizes;
	for (unsigned i = 0; i < 2; i++)
		add_range(scan, hint->ranges[i].va, hint->ranges[i].bytes);
	if (hint->copy_2d)
		add_boxes(scan, spill_boxes_2d(hint->copy_2d));
	if (hint->copy_3d)
		add_boxes(scan, spill_boxes_3d(hint->copy_3d));
	if (hint->copy_peer)
		add_boxes(scan, spill_boxes_peer(hint->copy_peer));
	for (size_t i = 0; hint->copies_3d && i < hint->count && scan->use.count < SPILL_LAUNCH_ACCESS_KEYS;
	     i++)
		add_boxes(scan, spill_boxes_of_batch(&hint->copies_3d[i]));
	for (size_t i = 0; batch && i < hint->count && scan->use.count < SPILL_LAUNCH_ACCESS_KEYS; i++) {
		add_range(scan, hint->to[i], hint->sizes[i]);
		add_range(scan, hint->from[i], hint->sizes[i]);
	}
	if (hint->set.bytes) {
		struct spill_box box =
		    spill_box_set(hint->set.to, hint->set.pitch, hint->set.bytes, hint->set.height);
		add_range(scan, box.va, box.bytes);
	}
}

/* Reads the hint. `scan` is undefined before. */
static void read_hint(struct scan *scan, const struct spill_hint *hint)
{
	memset(&scan->use, 0, offsetof(struct spill_launch_access, keys));
	memset(scan->seen, 0, sizeof(scan->seen));
	scan->words = scan->likely_count = 0;
	scan->use.per_thread = hint->per_thread;
	if (hint->function) {
		scan_launch(scan, hint);
	} else if (hint->graph) {
		scan->use.stream = hint->stream;
		scan->use.graph = true;
		/* Graphs of the same kernels share a site, but not numbers of words. */
		scan->words = (uint32_t)((uintptr_t)hint->graph >> 4) * SPILL_GRAPH_RANGES;
		scan->use.unknown = true; /* some kinds of nodes are not read */
		spill_graph_access_look(hint->graph, add_graph, scan);
	} else {
		scan->use.site = 1;
		scan->use.stream = hint->stream;
		scan->use.once = true;
		scan_copies(scan, hint);
	}
	add_likely(scan);
}

_Static_assert(sizeof(struct scan) <= SPILL_SCRATCH, "it comes from spill_scratch_take");

void *spill_hint(const struct spill_hint *hint)
{
	if (spill_capture_any()) /* a capture forbids moves and driver calls */
		return NULL;
	struct scan *scan = spill_scratch_take();
	if (!scan)
		return NULL;
	read_hint(scan, hint);
	if (spill_audit_wanted()) {
		void *audited = spill_audit_before(&scan->use);
		spill_scratch_give_back(scan);
		return audited;
	}
	if (spill_overlap_wanted() && spill_overlap_look(&scan->use))
		read_hint(scan, hint);
	void *stopwatch = scan->use.count ? spill_before_launch(&scan->use) : NULL;
	if (!scan->use.count && spill_overlap_wanted())
		spill_overlap_names_nothing(&scan->use);
	spill_scratch_give_back(scan);
	return stopwatch;
}
