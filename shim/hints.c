#include "hints.h"

#include <string.h>

#include "boxes.h"
#include "capture.h"
#include "chunk_map.h"
#include "graph_access.h"
#include "params.h"
#include "param_extent.h"

/* An allocation, or what is left of one, that is taken for one thing. */
#define WHOLE (128ull << 20)

/* Parameters of which it is remembered that they reach further. */
#define PERHAPS 16

/* A use that is being made. */
struct scan {
	struct spill_launch_access use;
	uint64_t seen[16]; /* bits by a hash of the keys: whose bit is not set is new */
	uint32_t
	    words; /* that were looked at so far: one of the same parameter has the same number in each launch of a site */
	/* Behind what they are sure to use, what they reached lately. */
	struct {
		struct spill_chunk_map_entry last;
		uint64_t end;
	} perhaps[PERHAPS];
	unsigned perhaps_count;
};

/* False: there is no room for another key. */
static bool add(struct scan *scan, const struct spill_chunk_map_entry *granule)
{
	struct spill_launch_access *use = &scan->use;
	unsigned bit = granule->key * 0x9e3779b1u >> 22; /* of 1,024 */
	uint64_t mask = 1ull << (bit % 64);
	if (scan->seen[bit / 64] & mask)
		for (unsigned i = 0; i < use->count; i++)
			if (use->keys[i] == granule->key)
				return true;
	if (use->count == SPILL_LAUNCH_ACCESS_KEYS)
		return false;
	scan->seen[bit / 64] |= mask;
	use->keys[use->count++] = granule->key;
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

static uint64_t behind(const struct spill_chunk_map_entry *granule)
{
	return (uint64_t)(granule->key + granule->count) << SPILL_CHUNK_MAP_UNIT_SHIFT;
}

/* The chunk behind it, of the same allocation. */
static bool next_of(struct spill_chunk_map_entry *granule)
{
	uint64_t next = behind(granule);
	return granule->more && spill_chunk_map_of(next, granule) &&
	       granule->key == next >> SPILL_CHUNK_MAP_UNIT_SHIFT;
}

static struct spill_chunk_map_entry first_of(const struct spill_chunk_map_entry *granule)
{
	struct spill_chunk_map_entry first;
	return spill_chunk_map_of((uint64_t)granule->key << SPILL_CHUNK_MAP_UNIT_SHIFT, &first) ? first
	                                                                                        : *granule;
}

/* Something else begins further on in the chunk: what begins at `address` ends there. */
static bool ends_within(uint64_t address, const struct spill_chunk_map_entry *granule)
{
	struct spill_chunk_map_entry at;
	if (!first_of(granule).inside)
		return false;
	for (address += SPILL_CHUNK_MAP_UNIT; address < behind(granule); address += SPILL_CHUNK_MAP_UNIT)
		if (spill_chunk_map_of(address, &at) && at.begun)
			return true;
	return false;
}

/* The allocation ends soon behind the chunk: what is left of it is taken for one thing, whatever began in it before. */
static bool is_near_end(struct spill_chunk_map_entry granule)
{
	uint64_t most = ((uint64_t)granule.key << SPILL_CHUNK_MAP_UNIT_SHIFT) + WHOLE;
	while (granule.more && behind(&granule) < most && next_of(&granule))
		;
	return !granule.more;
}

/*
 * Where something else begins behind the address, or its allocation ends. Of what allocators cut anew all the time (a segment of
 * PyTorch is of up to some 64 MiB) old begins say nothing: it goes to the end.
 */
static uint64_t seen_end(uint64_t address, struct spill_chunk_map_entry granule)
{
	bool whole = is_near_end(granule);
	uint64_t end = behind(&granule);
	if (!whole && ends_within(address & ~(SPILL_CHUNK_MAP_UNIT - 1), &granule))
		return end;
	while (next_of(&granule) && (whole || !granule.begun)) {
		end = behind(&granule);
		if (!whole && granule.inside)
			break;
	}
	return end;
}

/* The chunks behind that one up to `end`; it becomes the last of them. False: there is no room for another key. */
static bool add_until(struct scan *scan, struct spill_chunk_map_entry *granule, uint64_t end)
{
	while (behind(granule) < end && next_of(granule))
		if (!add(scan, granule))
			return false;
	return true;
}

/* If the word is an address of ours: from its chunk to where something else begins, and perhaps as far as it reached lately (param_extent.h). */
static void add_extent(void *closure, uint64_t word)
{
	struct scan *scan = closure;
	uint32_t slot = scan->words++;
	struct spill_chunk_map_entry granule;
	if (!spill_chunk_map_of(word, &granule))
		return;
	/* Mostly that is known; a begin behind the first byte of the first granule is told again and again. */
	if (!granule.begun ||
	    (word >> SPILL_CHUNK_MAP_UNIT_SHIFT == granule.key && word % SPILL_CHUNK_MAP_UNIT))
		spill_chunk_map_begins(word);
	if (!add(scan, &granule) || !granule.more)
		return;
	uint64_t begin = word & ~(SPILL_CHUNK_MAP_UNIT - 1);
	uint64_t seen = seen_end(word, granule);
	uint64_t end = begin + spill_param_extent(scan->use.site, slot, seen - begin);
	if (!add_until(scan, &granule, seen))
		return;
	if (seen < end && granule.more && scan->perhaps_count < PERHAPS) {
		scan->perhaps[scan->perhaps_count].last = granule;
		scan->perhaps[scan->perhaps_count++].end = end;
	}
}

/* Once all that is sure is known. */
static void add_perhaps(struct scan *scan)
{
	scan->use.sure = scan->use.count;
	for (unsigned i = 0; i < scan->perhaps_count; i++) {
		struct spill_chunk_map_entry granule = scan->perhaps[i].last;
		if (!add_until(scan, &granule, scan->perhaps[i].end))
			return;
	}
}

static void add_range(struct scan *scan, uint64_t va, uint64_t bytes)
{
	struct spill_chunk_map_entry granule;
	uint64_t end = va + bytes;
	if (bytes && end > va && spill_chunk_map_of(va, &granule) && add(scan, &granule))
		add_until(scan, &granule, end);
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
	/* What the driver refuses without a look at the parameters. */
	for (unsigned i = 0; i < 6; i++)
		if (!size[i])
			return;
	scan->use.site = spill_params_site(hint->function, size);
	spill_params_words(hint->function, hint->params, hint->extra, add_extent, scan);
}

/* Looked up where it is by now. */
static void add_graph(void *closure, const struct spill_graph_uses *uses)
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

void *spill_hint(const struct spill_hint *hint)
{
	struct scan scan;
	if (spill_capture_any()) /* nothing moves then, and the driver is asked nothing */
		return NULL;
	memset(&scan.use, 0, offsetof(struct spill_launch_access, keys));
	memset(scan.seen, 0, sizeof(scan.seen));
	scan.words = scan.perhaps_count = 0;
	scan.use.per_thread = hint->per_thread;
	if (hint->function) {
		scan_launch(&scan, hint);
	} else if (hint->graph) {
		scan.use.stream = hint->stream;
		/* Graphs of the same kernels are one site, but a word of one is not that of another (param_extent.h). */
		scan.words = (uint32_t)((uintptr_t)hint->graph >> 4) * SPILL_GRAPH_RANGES;
		spill_graph_access_look(hint->graph, add_graph, &scan);
	} else {
		scan.use.site = 1;
		scan.use.stream = hint->stream;
		scan.use.once = true;
		scan_copies(&scan, hint);
	}
	add_perhaps(&scan);
	return scan.use.count ? spill_follow_before(&scan.use) : NULL;
}
