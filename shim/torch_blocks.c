/*
 * Which blocks PyTorch's native allocator has handed out (blocks.h). Its libraries call this function of libc10.so for
 * each block that the program gets or gives back, since PyTorch 1.12, to let a profiler know. The program's calls come
 * here first, because libspill is preloaded, and go on to PyTorch's own. Another version of PyTorch whose function has other
 * parameters has another symbol, and then nothing is known.
 *
 * The name is that of the Itanium C++ ABI for
 * c10::reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, c10::Device) (c10/core/Allocator.h).
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "blocks.h"
#include "hooks.h"
#include "loaded_objects.h"
#include "process.h"
#include "unpark.h"

#define EXPORTED __attribute__((visibility("default")))
#define SYMBOL "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define CUDA 1 /* c10::DeviceType */

/* c10::Device */
struct device {
	int8_t type, index;
};

typedef void report_fn(void *ptr, int64_t bytes, size_t allocated, size_t reserved, struct device device);
EXPORTED report_fn _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE;
/* The same address, also where another preload stands before this one. */
extern report_fn own_report
    __attribute__((alias("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"), visibility("hidden")));

/* PyTorch is never unloaded. */
static report_fn *real_report(void)
{
	static _Atomic(void *) known;
	void *found = atomic_load_explicit(&known, memory_order_relaxed);
	if (!found) {
		found = spill_loaded_objects_function(SYMBOL, (const void *)own_report);
		atomic_store_explicit(&known, found, memory_order_relaxed);
	}
	return (report_fn *)found;
}

/* A block that is not accounted for would be lost by a move. So none is left out: not even below a call of ours. */
static void note_block(uint64_t ptr, int64_t bytes)
{
	if (bytes < 0)
		spill_blocks_given(ptr, -(uint64_t)bytes);
	else if (bytes)
		spill_blocks_taken(ptr, (uint64_t)bytes, spill_unpark);
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *ptr, int64_t bytes, size_t allocated,
                                                           size_t reserved, struct device device)
{
	report_fn *real = real_report();
	if (device.type == CUDA && spill_blocks_any()) {
		int error = errno, cancel = spill_ours_begin();
		note_block((uintptr_t)ptr, bytes);
		spill_ours_end(cancel);
		errno = error;
	}
	if (real)
		real(ptr, bytes, allocated, reserved, device);
}
