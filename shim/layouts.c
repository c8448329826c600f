#include "layouts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda_work.h"
#include "real.h"
#include "process.h"

#define SLOTS 8192
#define PROBES 16
/* Limit per process: a replaced layout is never freed, because a thread may be reading it. */
#define MOST_LAYOUTS 65536
/* Most parameter bytes of a launch (CUDA Programming Guide, "Function Parameters"). */
#define MOST_BYTES 32764

typedef CUresult info_fn(const void *function, size_t index, size_t *offset, size_t *size);

static _Atomic(struct spill_layout *) slots[SLOTS];
static _Atomic uint64_t generation;
static _Atomic uint64_t layouts_made; /* with those that were one too many */

void spill_layouts_forget(void)
{
	atomic_fetch_add(&generation, 1);
}

static info_fn *param_info_of(bool of_kernel)
{
	static _Atomic(void *) known[2];
	return (info_fn *)spill_real_once(&known[of_kernel], SPILL_CUDA_DRIVER,
	                                  of_kernel ? "cuKernelGetParamInfo" : "cuFuncGetParamInfo");
}

/* Returns the driver's error. Behind the last parameter the driver answers INVALID_VALUE. */
static CUresult read_sizes(info_fn *function_info, const void *function, uint16_t *sizes, uint32_t *count)
{
	size_t offset, size;
	for (*count = 0; *count < SPILL_LAYOUT_PARAMETERS; sizes[(*count)++] = (uint16_t)size) {
		CUresult result = function_info(function, *count, &offset, &size);
		if (result == CUDA_ERROR_INVALID_VALUE)
			return CUDA_SUCCESS;
		if (result)
			return result;
		if (size > MOST_BYTES)
			return CUDA_ERROR_UNKNOWN;
	}
	return CUDA_ERROR_UNKNOWN;
}

/* The driver refuses a handle of the other kind with INVALID_HANDLE (measured, H200, CUDA 13.0). */
bool spill_layout_sizes(const void *function, uint16_t sizes[SPILL_LAYOUT_PARAMETERS], uint32_t *count)
{
	CUresult result = CUDA_ERROR_INVALID_HANDLE;
	info_fn *of_kernel = param_info_of(true), *of_function = param_info_of(false);
	if (of_kernel)
		result = read_sizes(of_kernel, function, sizes, count);
	if (result == CUDA_ERROR_INVALID_HANDLE && of_function)
		result = read_sizes(of_function, function, sizes, count);
	return !result;
}

static bool read_parts(const void *function, struct spill_layout_part *parts, uint32_t *count)
{
	uint16_t sizes[SPILL_LAYOUT_PARAMETERS];
	uint32_t parameters;
	if (!spill_layout_sizes(function, sizes, &parameters))
		return false;
	*count = 0;
	for (uint32_t i = 0; i < parameters; i++)
		if (sizes[i] >= 8)
			parts[(*count)++] =
			    (struct spill_layout_part){.index = (uint16_t)i, .words = sizes[i] / 8};
	return true;
}

static size_t start_slot(const void *function)
{
	return ((uintptr_t)function >> 3) * 0x9e3779b97f4a7c15ull >> 51;
}

static bool is_current(const struct spill_layout *layout, uint64_t now)
{
	return atomic_load_explicit(&layout->generation, memory_order_acquire) == now;
}

/* Takes the function's own slot, a free one, or one with an outdated layout. */
static bool take_slot(struct spill_layout *fresh, uint64_t now)
{
	size_t start = start_slot(fresh->function);
	for (size_t probe = 0; probe < PROBES; probe++) {
		_Atomic(struct spill_layout *) *slot = &slots[(start + probe) % SLOTS];
		struct spill_layout *there = atomic_load_explicit(slot, memory_order_acquire);
		fresh->older = there;
		if ((!there || there->function == fresh->function || !is_current(there, now)) &&
		    atomic_compare_exchange_strong(slot, &there, fresh))
			return true;
	}
	return false;
}

static const struct spill_layout *store_layout(const void *function, const struct spill_layout_part *parts,
                                               uint32_t count, uint64_t now)
{
	size_t bytes = count * sizeof(*parts);
	struct spill_layout *fresh = malloc(sizeof(*fresh) + bytes);
	if (!fresh || atomic_fetch_add_explicit(&layouts_made, 1, memory_order_relaxed) >= MOST_LAYOUTS) {
		free(fresh);
		return NULL;
	}
	fresh->function = function;
	fresh->count = count;
	atomic_init(&fresh->generation, now);
	memcpy(fresh->parts, parts, bytes);
	if (take_slot(fresh, now))
		return fresh;
	free(fresh);
	atomic_fetch_sub_explicit(&layouts_made, 1, memory_order_relaxed);
	return NULL;
}

/* `outdated`: the layout from before an unload. Mostly the function is the same. */
static const struct spill_layout *refresh_layout(const void *function, struct spill_layout *outdated,
                                                 uint64_t now)
{
	struct spill_layout_part parts[SPILL_LAYOUT_PARAMETERS];
	uint32_t count;
	if (!read_parts(function, parts, &count))
		return NULL;
	if (!outdated || outdated->count != count ||
	    memcmp(outdated->parts, parts, count * sizeof(*parts)) != 0)
		return store_layout(function, parts, count, now);
	atomic_store_explicit(&outdated->generation, now, memory_order_release);
	return outdated;
}

const struct spill_layout *spill_layout_of(const void *function)
{
	uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
	size_t start = start_slot(function);
	struct spill_layout *outdated = NULL;
	for (size_t i = 0; i < PROBES; i++) {
		struct spill_layout *there =
		    atomic_load_explicit(&slots[(start + i) % SLOTS], memory_order_acquire);
		if (!there)
			break;
		if (there->function != function)
			continue;
		if (is_current(there, now))
			return there;
		outdated = there;
	}
	int error = errno;
	spill_thread.depth++; /* hooks that the driver calls from here see a call of our own */
	const struct spill_layout *layout = refresh_layout(function, outdated, now);
	if (spill_thread.depth) /* a child forked inside has depth 0 */
		spill_thread.depth--;
	errno = error;
	return layout;
}
