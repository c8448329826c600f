#include "growth.h"

/* Requests that make a run. */
#define RECORDS 3
#define RISES 6

/* The call site's row, or the one that makes way for it. */
static struct spill_growth_site *find(struct spill_growth *growth, uint64_t address, int device)
{
	struct spill_growth_site *oldest = &growth->sites[0];

	for (unsigned i = 0; i < SPILL_GROWTH_SITES; i++) {
		struct spill_growth_site *site = &growth->sites[i];

		if (site->address == address && site->device == device)
			return site;
		if (site->heard < oldest->heard)
			oldest = site;
	}
	*oldest = (struct spill_growth_site){.address = address, .device = device};
	return oldest;
}

static bool continues(const struct spill_growth_site *site, uint64_t bytes)
{
	/* Half of it and not twice the last, which could overflow. */
	return site->length && bytes > site->last && bytes - bytes / 2 <= site->last;
}

struct spill_growth_answer spill_growth_request(struct spill_growth *growth, uint64_t address, int device,
                                                uint64_t bytes)
{
	struct spill_growth_site *site = find(growth, address, device);

	if (continues(site, bytes)) {
		site->length++;
	} else {
		site->run = ++growth->runs;
		site->length = 1;
		site->record = bytes > site->largest;
	}
	site->last = bytes;
	if (site->largest < bytes)
		site->largest = bytes;
	site->heard = ++growth->requests;
	return (struct spill_growth_answer){
	    .run = site->run,
	    .grows = site->length >= (site->record ? RECORDS : RISES),
	};
}
