#include "reserve.h"

#include <stdatomic.h>

#include "minmax.h"
#include "decide.h"
#include "process.h"

static struct {
	_Atomic bool begun, left_out;
	_Atomic uint64_t grown; /* the most that a load of a module needed; 0: none */
} reserves[SPILL_DEVICES];

static _Atomic bool any_begun;

static bool is_known(int device)
{
	return device >= 0 && device < SPILL_DEVICES;
}

uint64_t spill_reserve_size(int device)
{
	uint64_t size = spill_policy_device_reserve(spill_process_policy(), device);
	if (!size || !is_known(device))
		return size;
	if (atomic_load_explicit(&reserves[device].left_out, memory_order_relaxed))
		return 0;
	return spill_max(size, atomic_load_explicit(&reserves[device].grown, memory_order_relaxed));
}

void spill_reserve_leave_out(int device)
{
	if (is_known(device))
		atomic_store(&reserves[device].left_out, true);
}

bool spill_reserve_grow(int device, uint64_t bytes)
{
	if (!is_known(device) || bytes <= spill_reserve_size(device) || !spill_reserve_size(device))
		return false;
	uint64_t grown = atomic_load(&reserves[device].grown);
	while (bytes > grown && !atomic_compare_exchange_weak(&reserves[device].grown, &grown, bytes)) {
	}
	return bytes > grown;
}

bool spill_reserve_begin(int device)
{
	if (!is_known(device) || atomic_load_explicit(&reserves[device].begun, memory_order_relaxed) ||
	    !spill_reserve_size(device))
		return false;
	atomic_store(&reserves[device].begun, true);
	atomic_store(&any_begun, true);
	return true;
}

bool spill_reserve_is_kept(int device)
{
	return spill_reserve_has_begun() && is_known(device) &&
	       atomic_load_explicit(&reserves[device].begun, memory_order_relaxed);
}

bool spill_reserve_has_begun(void)
{
	return atomic_load_explicit(&any_begun, memory_order_relaxed);
}

void spill_reserve_reset(void)
{
	for (unsigned i = 0; i < SPILL_DEVICES; i++) {
		reserves[i].begun = reserves[i].left_out = false;
		reserves[i].grown = 0;
	}
	any_begun = false;
}
