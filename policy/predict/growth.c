#include "growth.h"

#include <stddef.h>

/* Requests that make a run long enough. */
#define RECORDS 3
#define RISES 6

static const struct spill_growth_site *find_site(const struct spill_growth *growth, uint64_t address,
                                                 int device)
{
	for (unsigned i = 0; i < SPILL_GROWTH_SITES; i++) {
		const struct spill_growth_site *site = &growth->sites[i];

		if (site->address == address && site->device == device)
			return site;
	}
	return NULL;
}

/* The call site's row, or a new one in place of the oldest. */
static struct spill_growth_site *find_or_replace_site(struct spill_growth *growth, uint64_t address,
                                                      int device)
{
	const struct spill_growth_site *mine = find_site(growth, address, device);
	struct spill_growth_site *oldest = &growth->sites[0];

	if (mine)
		return &growth->sites[mine - growth->sites];
	for (unsigned i = 0; i < SPILL_GROWTH_SITES; i++) {
		if (growth->sites[i].heard < oldest->heard)
			oldest = &growth->sites[i];
	}
	*oldest = (struct spill_growth_site){.address = address, .device = device};
	return oldest;
}

static bool continues_run(const struct spill_growth_site *site, uint64_t bytes)
{
	/* Half of `bytes`, because twice the last could overflow. */
	return site->length && bytes > site->last && bytes - bytes / 2 <= site->last;
}

/* Adds a request. True: it begins a new run. */
static bool add_request(struct spill_growth_site *site, uint64_t bytes)
{
	bool begins = !continues_run(site, bytes);

	if (begins) {
		site->length = 1;
		site->record = bytes > site->largest;
	} else {
		site->length++;
	}
	site->last = bytes;
	if (site->largest < bytes)
		site->largest = bytes;
	return begins;
}

static bool is_long_enough(const struct spill_growth_site *site)
{
	return site->length >= (site->record ? RECORDS : RISES);
}

bool spill_growth_would(const struct spill_growth *growth, uint64_t address, int device, uint64_t bytes)
{
	const struct spill_growth_site *site = find_site(growth, address, device);
	struct spill_growth_site next;

	if (!site)
		return false;
	next = *site;
	add_request(&next, bytes);
	return is_long_enough(&next);
}

struct spill_growth_answer spill_growth_request(struct spill_growth *growth, uint64_t address, int device,
                                                uint64_t bytes)
{
	struct spill_growth_site *site = find_or_replace_site(growth, address, device);

	if (add_request(site, bytes))
		site->run = ++growth->runs;
	site->heard = ++growth->requests;
	return (struct spill_growth_answer){.run = site->run, .grows = is_long_enough(site)};
}
