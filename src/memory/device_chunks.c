#include "device_chunks.h"

#include "account.h"
#include "place.h"
#include "charge.h"

bool spill_device_chunk_get(const struct spill_backend *backend, int device, uint64_t bytes, uint64_t *handle)
{
	uint64_t made;
	if (!spill_device_charge_all(device, spill_device_limit(backend, device), bytes))
		return false;
	if (backend->physical->create(device, false, bytes, &made)) {
		spill_account_device_return(device, bytes);
		return false;
	}
	*handle = made;
	return true;
}

void spill_device_chunk_put(const struct spill_backend *backend, int device, uint64_t bytes, uint64_t handle)
{
	backend->physical->release(handle);
	spill_account_device_return(device, bytes);
}
