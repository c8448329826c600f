#include "hints.h"

#include <string.h>

#include "capture.h"
#include "granules.h"
#include "layouts.h"

/* A larger buffer of parameters is none (layouts.c). */
#define MOST_BYTES 32768

/* An allocation, or what is left of one, that is taken for one thing. */
#define WHOLE (128ull << 20)

/* A use that is being made. */
struct scan {
	struct spill_use use;
	uint64_t seen[16]; /* bits by a hash of the keys: whose bit is not set is new */
};

/* False: there is no room for another key. */
static bool add(struct scan *scan, const struct spill_granule *granule)
{
	struct spill_use *use = &scan->use;
	unsigned bit = granule->key * 0x9e3779b1u >> 22; /* of 1,024 */
	uint64_t mask = 1ull << (bit % 64);
	if (scan->seen[bit / 64] & mask)
		for (unsigned i = 0; i < use->count; i++)
			if (use->keys[i] == granule->key)
				return true;
	if (use->count == SPILL_USE_KEYS)
		return false;
	scan->seen[bit / 64] |= mask;
	use->keys[use->count++] = granule->key;
	uint64_t bytes = (uint64_t)granule->count << SPILL_GRANULE_SHIFT;
	use->bytes += bytes;
	if (granule->on_host) {
		use->on_host++;
		use->host_bytes += bytes;
	}
	return true;
}

static uint64_t behind(const struct spill_granule *granule)
{
	return (uint64_t)(granule->key + granule->count) << SPILL_GRANULE_SHIFT;
}

/* The chunk behind it, of the same allocation. */
static bool next_of(struct spill_granule *granule)
{
	uint64_t next = behind(granule);
	return granule->more && spill_granule_of(next, granule) &&
	       granule->key == next >> SPILL_GRANULE_SHIFT;
}

static struct spill_granule first_of(const struct spill_granule *granule)
{
	struct spill_granule first;
	return spill_granule_of((uint64_t)granule->key << SPILL_GRANULE_SHIFT, &first) ? first : *granule;
}

/* Something else begins further on in the chunk: what begins at `address` ends there. */
static bool ends_within(uint64_t address, const struct spill_granule *granule)
{
	struct spill_granule at;
	if (!first_of(granule).inside)
		return false;
	for (address += SPILL_GRANULE; address < behind(granule); address += SPILL_GRANULE)
		if (spill_granule_of(address, &at) && at.begun)
			return true;
	return false;
}

/* The allocation ends soon behind the chunk: what is left of it is taken for one thing, whatever began in it before. */
static bool is_near_end(struct spill_granule granule)
{
	uint64_t most = ((uint64_t)granule.key << SPILL_GRANULE_SHIFT) + WHOLE;
	while (granule.more && behind(&granule) < most && next_of(&granule))
		;
	return !granule.more;
}

/*
 * If the word is an address of ours: from its chunk to where something else begins. Of what allocators cut anew all the time (a
 * segment of PyTorch is of up to some 64 MiB) old begins say nothing: it goes to the end.
 */
static void add_extent(struct scan *scan, uint64_t word)
{
	struct spill_granule granule;
	if (!spill_granule_of(word, &granule))
		return;
	/* Mostly that is known; a begin behind the first byte of the first granule is told again and again. */
	if (!granule.begun || (word >> SPILL_GRANULE_SHIFT == granule.key && word % SPILL_GRANULE))
		spill_granule_begins(word);
	if (!add(scan, &granule) || !granule.more)
		return;
	bool whole = is_near_end(granule);
	if (!whole && ends_within(word & ~(SPILL_GRANULE - 1), &granule))
		return;
	while (next_of(&granule) && (whole || !granule.begun))
		if (!add(scan, &granule) || (!whole && granule.inside))
			return;
}

static void add_range(struct scan *scan, uint64_t va, uint64_t bytes)
{
	struct spill_granule granule;
	uint64_t end = va + bytes;
	bool there = bytes && end > va && spill_granule_of(va, &granule);
	while (there && add(scan, &granule) && behind(&granule) < end)
		there = next_of(&granule);
}

/* Nothing is said about the alignment of what the program hands over. */
static void add_words(struct scan *scan, const void *at, size_t words)
{
	uint64_t word;
	for (size_t i = 0; i < words; i++) {
		memcpy(&word, (const char *)at + i * sizeof(word), sizeof(word));
		add_extent(scan, word);
	}
}

/* All parameters in one buffer (CUDA Driver API, cuLaunchKernel). */
static void add_buffer(struct scan *scan, void **extra)
{
	const void *buffer = NULL;
	const size_t *bytes = NULL;
	for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			bytes = extra[1];
		else
			return; /* whatever that is */
	}
	if (buffer && bytes && *bytes <= MOST_BYTES)
		add_words(scan, buffer, *bytes / sizeof(uint64_t));
}

static void add_params(struct scan *scan, const void *function, void **params)
{
	const struct spill_layout *layout = spill_layout_of(function);
	for (uint32_t i = 0; layout && i < layout->count; i++) {
		const void *value = params[layout->parts[i].index];
		if (value)
			add_words(scan, value, layout->parts[i].words);
	}
}

/* Of the grid and the block, by what launches them; never 0. */
static uint64_t site_of(const void *function, const unsigned size[6])
{
	uint64_t hash = (uintptr_t)function;
	for (unsigned i = 0; i < 3; i++) {
		hash = (hash ^ ((uint64_t)size[i] << 32 | size[i + 3])) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash ? hash : 1;
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
	if (hint->params && hint->extra)
		return;
	scan->use.site = site_of(hint->function, size);
	if (hint->extra)
		add_buffer(scan, hint->extra);
	else if (hint->params)
		add_params(scan, hint->function, hint->params);
}

void *spill_hint(const struct spill_hint *hint)
{
	struct scan scan;
	if (spill_capture_any()) /* nothing moves then, and the driver is asked nothing */
		return NULL;
	memset(&scan.use, 0, offsetof(struct spill_use, keys));
	memset(scan.seen, 0, sizeof(scan.seen));
	scan.use.per_thread = hint->per_thread;
	if (hint->function) {
		scan_launch(&scan, hint);
	} else {
		scan.use.site = 1;
		scan.use.stream = hint->stream;
		scan.use.once = true;
		for (unsigned i = 0; i < 2; i++)
			add_range(&scan, hint->ranges[i].va, hint->ranges[i].bytes);
	}
	return scan.use.count ? spill_follow_before(&scan.use) : NULL;
}
