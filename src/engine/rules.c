#include "rules.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "account.h"
#include "caller.h"
#include "engine.h"
#include "growth_state.h"
#include "minmax.h"
#include "seqlock.h"

/* -- call sites ---------------------------------------------------------------------------------------------- */

#define SITES 1024

/* One that cannot be read is one that nobody knows. */
static struct site {
	spill_seqlock version;
	_Atomic unsigned unloads; /* spill_unloads() at that time: another library may stand there since */
	_Atomic(const void *) address;
	_Atomic(const char *) api; /* static storage: by its address */
	_Atomic uint64_t mask;
} sites[SITES];

static struct site *site_of(const void *address, const char *api)
{
	return &sites[((uintptr_t)address ^ (uintptr_t)api) * 0x9e3779b97f4a7c15ull >> 54];
}
_Static_assert(SITES == 1 << (64 - 54), "the shift above keeps 10 bits");

static bool known(struct site *site, const void *address, const char *api, unsigned unloads, uint64_t *mask)
{
	uint32_t version = spill_seq_read_begin(&site->version);
	bool same = spill_seq_get(site->address) == address && spill_seq_get(site->api) == api &&
	            spill_seq_get(site->unloads) == unloads;
	*mask = spill_seq_get(site->mask);
	return same && spill_seq_read_end(&site->version, version);
}

static void keep(struct site *site, const void *address, const char *api, unsigned unloads, uint64_t mask)
{
	if (!spill_seq_write_begin(&site->version))
		return;
	spill_seq_set(site->address, address);
	spill_seq_set(site->api, api);
	spill_seq_set(site->unloads, unloads);
	spill_seq_set(site->mask, mask);
	spill_seq_write_end(&site->version);
}

/* Not inlined: a path is room on the program's stack. */
static __attribute__((noinline)) uint64_t find(const struct spill_rules *rules, const void *address,
                                               const char *api)
{
	struct spill_loaded_object caller;
	if (!spill_loaded_object_of(address, &caller))
		caller.path[0] = '\0';
	else if (caller.main_program) {
		ssize_t length = readlink("/proc/self/exe", caller.path, sizeof(caller.path) - 1);
		caller.path[length < 0 ? 0 : length] = '\0';
	}
	return spill_rules_of(rules, api, caller.path);
}

static uint64_t mask_of(const struct spill_rules *rules, const struct spill_request *request)
{
	uint64_t mask;
	if (!rules->by_site)
		return spill_rules_all(rules);
	const void *address = spill_engine_site(request);
	const char *api = spill_engine_api(request);
	struct site *site = site_of(address, api);
	unsigned unloads = spill_unloads(); /* before the search: what is found may be gone behind it */
	if (known(site, address, api, unloads, &mask))
		return mask;
	mask = find(rules, address, api);
	keep(site, address, api, unloads, mask);
	return mask;
}

void spill_rules_find(struct spill_request *request)
{
	const struct spill_policy *policy = spill_process_policy();
	struct spill_ask ask = {
	    .bytes = request->bytes, .device = request->device, .rules = mask_of(policy->rules, request)};
	request->asks_growth = ask.rules & policy->rules->by_growth;
	ask.grows = request->asks_growth && spill_growth_state_asked(request);
	request->applied = spill_rule_find(policy, &ask);
}

void spill_rules_reset(void)
{
	memset(sites, 0, sizeof(sites));
}

/* -- caps ---------------------------------------------------------------------------------------------------- */

static bool capped(const struct spill_request *request)
{
	return request->applied && (request->applied->set & SPILL_RULE_HAS_CAP);
}

/* pre: it has a rule */
static unsigned rule_of(const struct spill_request *request)
{
	return spill_rule_index(spill_process_policy(), request->applied);
}

uint64_t spill_rules_held(const struct spill_request *request)
{
	return capped(request) ? spill_account_rule_held(rule_of(request)) : 0;
}

bool spill_rules_charge_cap(struct spill_request *request, const struct spill_ask *ask,
                            struct spill_view *view)
{
	if (!capped(request))
		return true;
	if (!spill_account_rule_charge(rule_of(request), &view->rule_used, ask->bytes))
		return false;
	request->charged_rule = ask->bytes;
	return true;
}

uint64_t spill_rules_reserve(struct spill_request *request, uint64_t bytes)
{
	if (!capped(request))
		return SPILL_UNLIMITED;
	uint64_t held = spill_account_rule_held(rule_of(request)), room;
	do {
		room = spill_rule_room(request->applied, held);
		room = spill_min(bytes, room);
	} while (!spill_account_rule_charge(rule_of(request), &held, room));
	request->charged_rule = room;
	return room;
}

void spill_rules_hand_over(struct spill_request *request, struct spill_allocation *allocation)
{
	uint64_t on_device = allocation->held.device;
	allocation->rule = rule_of(request);
	allocation->charged_rule = spill_min(request->charged_rule, on_device);
	request->charged_rule -= allocation->charged_rule;
}

void spill_rules_give_back(struct spill_request *request)
{
	spill_account_rule_return(rule_of(request), request->charged_rule);
	request->charged_rule = 0;
}
