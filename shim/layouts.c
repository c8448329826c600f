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
/* Made in the whole life of the process: those that are replaced stay, because somebody may be reading them. */
#define MOST_LAYOUTS 65536
/* A launch has at most 32,764 bytes of parameters (CUDA Programming Guide, "Function Parameters"). */
#define MOST_WORDS (32764 / 8)
#define MOST_PARAMETERS 512

typedef CUresult info_fn(const void *function, size_t index, size_t *offset, size_t *size);

static _Atomic(struct spill_layout *) slots[SLOTS];
static _Atomic uint64_t generation;
static _Atomic unsigned made;

void spill_layouts_forget(void)
{
	atomic_fetch_add(&generation, 1);
}

/* The driver's cuKernelGetParamInfo or cuFuncGetParamInfo; NULL where it has none. */
static info_fn *info(bool of_kernel)
{
	static _Atomic(void *) known[2];
	return (info_fn *)spill_real_once(&known[of_kernel], SPILL_CUDA_DRIVER,
	                                  of_kernel ? "cuKernelGetParamInfo" : "cuFuncGetParamInfo");
}

/* CUDA_SUCCESS with the parts, or the vendor's error. INVALID_VALUE is its answer behind the last parameter. */
static CUresult ask(info_fn *function_info, const void *function, struct spill_layout_part *parts,
                    uint32_t *count)
{
	size_t offset, size;
	*count = 0;
	for (size_t i = 0; i < MOST_PARAMETERS; i++) {
		CUresult result = function_info(function, i, &offset, &size);
		if (result == CUDA_ERROR_INVALID_VALUE)
			return CUDA_SUCCESS;
		if (result)
			return result;
		if (size / 8 > MOST_WORDS)
			return CUDA_ERROR_UNKNOWN;
		if (size >= 8)
			parts[(*count)++] =
			    (struct spill_layout_part){.index = (uint16_t)i, .words = (uint16_t)(size / 8)};
	}
	return CUDA_ERROR_UNKNOWN;
}

/* A handle of the other kind is refused with INVALID_HANDLE (measured, H200, CUDA 13.0). */
static CUresult ask_both(const void *function, struct spill_layout_part *parts, uint32_t *count)
{
	CUresult result = CUDA_ERROR_INVALID_HANDLE;
	info_fn *of_kernel = info(true), *of_function = info(false);
	if (of_kernel)
		result = ask(of_kernel, function, parts, count);
	if (result == CUDA_ERROR_INVALID_HANDLE && of_function)
		result = ask(of_function, function, parts, count);
	return result;
}

static size_t start_slot(const void *function)
{
	return ((uintptr_t)function >> 3) * 0x9e3779b97f4a7c15ull >> 51;
}

static bool holds(const struct spill_layout *layout, uint64_t now)
{
	return atomic_load_explicit(&layout->generation, memory_order_acquire) == now;
}

/* Into its own slot, a free one or one of a layout that was forgotten. */
static const struct spill_layout *keep(const void *function, const struct spill_layout_part *parts,
                                       uint32_t count, uint64_t now)
{
	size_t start = start_slot(function), bytes = count * sizeof(*parts);
	if (atomic_fetch_add_explicit(&made, 1, memory_order_relaxed) >= MOST_LAYOUTS) {
		atomic_fetch_sub_explicit(&made, 1, memory_order_relaxed);
		return NULL;
	}
	struct spill_layout *fresh = malloc(sizeof(*fresh) + bytes);
	if (!fresh) {
		atomic_fetch_sub_explicit(&made, 1, memory_order_relaxed);
		return NULL;
	}
	fresh->function = function;
	fresh->count = count;
	atomic_init(&fresh->generation, now);
	memcpy(fresh->parts, parts, bytes);
	for (size_t i = 0; i < PROBES; i++) {
		_Atomic(struct spill_layout *) *slot = &slots[(start + i) % SLOTS];
		struct spill_layout *there = atomic_load_explicit(slot, memory_order_acquire);
		fresh->older = there;
		if ((!there || there->function == function || !holds(there, now)) &&
		    atomic_compare_exchange_strong(slot, &there, fresh))
			return fresh;
	}
	free(fresh);
	atomic_fetch_sub_explicit(&made, 1, memory_order_relaxed);
	return NULL;
}

/* `old`: what was known of the handle before something was unloaded; mostly it is the same function still. */
static const struct spill_layout *learn(const void *function, struct spill_layout *old, uint64_t now)
{
	struct spill_layout_part parts[MOST_PARAMETERS];
	uint32_t count;
	CUresult result = ask_both(function, parts, &count);
	if (result)
		return NULL;
	if (!old || old->count != count || memcmp(old->parts, parts, count * sizeof(*parts)) != 0)
		return keep(function, parts, count, now);
	atomic_store_explicit(&old->generation, now, memory_order_release);
	return old;
}

const struct spill_layout *spill_layout_of(const void *function)
{
	uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
	size_t start = start_slot(function);
	struct spill_layout *old = NULL;
	for (size_t i = 0; i < PROBES; i++) {
		struct spill_layout *there =
		    atomic_load_explicit(&slots[(start + i) % SLOTS], memory_order_acquire);
		if (!there)
			break;
		if (there->function != function)
			continue;
		if (holds(there, now))
			return there;
		old = there;
	}
	int error = errno;
	spill_thread.depth++; /* what the driver calls below that is ours */
	const struct spill_layout *layout = learn(function, old, now);
	if (spill_thread.depth) /* a fork in there began at 0 */
		spill_thread.depth--;
	errno = error;
	return layout;
}
