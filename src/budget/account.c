#include "account.h"

#include <stdatomic.h>

#include "policy.h"
#include "rule.h"

static _Atomic uint64_t device_held[SPILL_DEVICES];
static _Atomic uint64_t rule_held[SPILL_RULES];
static _Atomic uint64_t host_held, physical_held;
static void (*_Atomic host_changed)(void);

static _Atomic uint64_t *device_row(int device)
{
	return &device_held[device >= 0 && device < SPILL_DEVICES ? device : SPILL_DEVICES - 1];
}

bool spill_account_device_charge(int device, uint64_t *held, uint64_t bytes)
{
	return atomic_compare_exchange_strong(device_row(device), held, *held + bytes);
}

void spill_account_device_add(int device, uint64_t bytes)
{
	atomic_fetch_add(device_row(device), bytes);
}

void spill_account_device_return(int device, uint64_t bytes)
{
	atomic_fetch_sub(device_row(device), bytes);
}

uint64_t spill_account_device_held(int device)
{
	return atomic_load(device_row(device));
}

uint64_t spill_account_rule_held(unsigned rule)
{
	return atomic_load(&rule_held[rule]);
}

bool spill_account_rule_charge(unsigned rule, uint64_t *held, uint64_t bytes)
{
	return atomic_compare_exchange_strong(&rule_held[rule], held, *held + bytes);
}

void spill_account_rule_return(unsigned rule, uint64_t bytes)
{
	atomic_fetch_sub(&rule_held[rule], bytes);
}

static void notify_host_change(void)
{
	void (*changed)(void) = atomic_load(&host_changed);
	if (changed)
		changed();
}

void spill_account_host_observe(void (*changed)(void))
{
	atomic_store(&host_changed, changed);
}

bool spill_account_host_charge(uint64_t *held, uint64_t bytes)
{
	return atomic_compare_exchange_strong(&host_held, held, *held + bytes);
}

void spill_account_host_add(uint64_t bytes)
{
	atomic_fetch_add(&host_held, bytes);
	notify_host_change();
}

void spill_account_host_return(uint64_t bytes)
{
	atomic_fetch_sub(&host_held, bytes);
	notify_host_change();
}

uint64_t spill_account_host_held(void)
{
	return atomic_load(&host_held);
}

uint64_t spill_account_physical_held(void)
{
	return atomic_load(&physical_held);
}

void spill_account_physical_charged(uint64_t bytes)
{
	atomic_fetch_add(&physical_held, bytes);
}

void spill_account_physical_add(uint64_t bytes)
{
	spill_account_physical_charged(bytes);
	spill_account_host_add(bytes);
}

void spill_account_physical_return(uint64_t bytes)
{
	atomic_fetch_sub(&physical_held, bytes);
	spill_account_host_return(bytes);
}

void spill_account_reset(void)
{
	for (int device = 0; device < SPILL_DEVICES; device++)
		atomic_store(&device_held[device], 0);
	for (unsigned rule = 0; rule < SPILL_RULES; rule++)
		atomic_store(&rule_held[rule], 0);
	atomic_store(&host_held, 0);
	atomic_store(&physical_held, 0);
}
