#include "account.h"

#include <stdatomic.h>

#include "policy.h"

static _Atomic uint64_t device_held[SPILL_DEVICES];
static _Atomic uint64_t host_held;

static _Atomic uint64_t *row(int device)
{
	return &device_held[device >= 0 && device < SPILL_DEVICES ? device : SPILL_DEVICES - 1];
}

bool spill_account_device_charge(int device, uint64_t *held, uint64_t bytes)
{
	return atomic_compare_exchange_strong(row(device), held, *held + bytes);
}

void spill_account_device_add(int device, uint64_t bytes)
{
	atomic_fetch_add(row(device), bytes);
}

void spill_account_device_return(int device, uint64_t bytes)
{
	atomic_fetch_sub(row(device), bytes);
}

uint64_t spill_account_device_held(int device)
{
	return atomic_load(row(device));
}

bool spill_account_host_charge(uint64_t *held, uint64_t bytes)
{
	return atomic_compare_exchange_strong(&host_held, held, *held + bytes);
}

void spill_account_host_add(uint64_t bytes)
{
	atomic_fetch_add(&host_held, bytes);
}

void spill_account_host_return(uint64_t bytes)
{
	atomic_fetch_sub(&host_held, bytes);
}

uint64_t spill_account_host_held(void)
{
	return atomic_load(&host_held);
}

void spill_account_reset(void)
{
	for (int device = 0; device < SPILL_DEVICES; device++)
		atomic_store(&device_held[device], 0);
	atomic_store(&host_held, 0);
}
