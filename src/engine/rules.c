#include "rules.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "account.h"
#include "caller.h"
#include "engine.h"
#include "minmax.h"
#include "process.h"
#include "seqlock.h"

/* -- growing pools ----------------------------------------------------------------------------- */

static pthread_mutex_t growth_lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_RULES */
static struct spill_growth growth;

/* Would the request, if served, continue a run of ever larger requests? Changes nothing. */
static bool growth_asked(const struct spill_request *request)
{
	const void *site = spill_engine_site(request);
	pthread_mutex_lock(&growth_lock);
	bool grows = site && spill_growth_would(&growth, (uintptr_t)site, request->device, request->bytes);
	pthread_mutex_unlock(&growth_lock);
	return grows;
}

struct spill_growth_answer spill_growth_state_served(struct spill_request *request)
{
	const void *site = spill_engine_site(request);
	if (request->admission.growth.run || !site)
		return request->admission.growth;
	pthread_mutex_lock(&growth_lock);
	request->admission.growth =
	    spill_growth_request(&growth, (uintptr_t)site, request->device, request->bytes);
	pthread_mutex_unlock(&growth_lock);
	return request->admission.growth;
}

/* The child has no GPU, and none of its parent's pools. */
static void forget_parent(void)
{
	growth = (struct spill_growth){0};
}

const struct spill_fork_lock spill_growth_state_fork_lock = {&growth_lock, forget_parent};

/* -- call sites -------------------------------------------------------------------------------- */

#define SITES 1024

/* The rules that each call site can have. A row that is being written counts as unknown. */
static struct site {
	spill_seqlock version;
	/* spill_unloads() then: another library may have this address now */
	_Atomic unsigned unloads;
	_Atomic(const void *) address;
	_Atomic(const char *) api; /* static storage, compared by address */
	_Atomic uint64_t mask;
} sites[SITES];

static struct site *site_of(const void *address, const char *api)
{
	return &sites[((uintptr_t)address ^ (uintptr_t)api) * 0x9e3779b97f4a7c15ull >> 54];
}
_Static_assert(SITES == 1 << (64 - 54), "the shift above keeps 10 bits");

static bool look_up_site(struct site *site, const void *address, const char *api, unsigned unloads,
                         uint64_t *mask)
{
	uint32_t version = spill_seq_read_begin(&site->version);
	bool same = spill_seq_get(site->address) == address && spill_seq_get(site->api) == api &&
	            spill_seq_get(site->unloads) == unloads;
	*mask = spill_seq_get(site->mask);
	return same && spill_seq_read_end(&site->version, version);
}

static void keep_site(struct site *site, const void *address, const char *api, unsigned unloads,
                      uint64_t mask)
{
	if (!spill_seq_write_begin(&site->version))
		return;
	spill_seq_set(site->address, address);
	spill_seq_set(site->api, api);
	spill_seq_set(site->unloads, unloads);
	spill_seq_set(site->mask, mask);
	spill_seq_write_end(&site->version);
}

/* Not inlined: a path takes much of the program's stack. */
static __attribute__((noinline)) uint64_t find_mask(const struct spill_rules *rules, const void *address,
                                                    const char *api)
{
	struct spill_loaded_object caller;
	if (!spill_loaded_object_of(address, &caller))
		caller.path[0] = '\0';
	else if (caller.main_program)
		spill_program_path(caller.path, sizeof(caller.path));
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
	/* before the search: the library may be unloaded after it */
	unsigned unloads = spill_unloads();
	if (look_up_site(site, address, api, unloads, &mask))
		return mask;
	mask = find_mask(rules, address, api);
	keep_site(site, address, api, unloads, mask);
	return mask;
}

void spill_rules_find(struct spill_request *request)
{
	const struct spill_policy *policy = spill_process_policy();
	struct spill_ask ask = {
	    .bytes = request->bytes, .device = request->device, .rules = mask_of(policy->rules, request)};
	request->admission.asks_growth = ask.rules & policy->rules->by_growth;
	ask.grows = request->admission.asks_growth && growth_asked(request);
	request->admission.applied = spill_rule_find(policy, &ask);
}

void spill_rules_reset(void)
{
	memset(sites, 0, sizeof(sites));
}

/* -- caps -------------------------------------------------------------------------------------- */

static bool has_cap(const struct spill_request *request)
{
	return request->admission.applied && (request->admission.applied->set & SPILL_RULE_HAS_CAP);
}

/* pre: the request has a rule */
static unsigned rule_of(const struct spill_request *request)
{
	return spill_rule_index(spill_process_policy(), request->admission.applied);
}

uint64_t spill_rules_held(const struct spill_request *request)
{
	return has_cap(request) ? spill_account_rule_held(rule_of(request)) : 0;
}

bool spill_rules_charge_cap(struct spill_request *request, const struct spill_ask *ask,
                            struct spill_view *view)
{
	if (!has_cap(request))
		return true;
	if (!spill_account_rule_charge(rule_of(request), &view->rule_used, ask->bytes))
		return false;
	request->admission.charged_rule = ask->bytes;
	return true;
}

uint64_t spill_rules_reserve(struct spill_request *request, uint64_t bytes)
{
	if (!has_cap(request))
		return SPILL_UNLIMITED;
	uint64_t held = spill_account_rule_held(rule_of(request)), room;
	do {
		room = spill_rule_room(request->admission.applied, held);
		room = spill_min(bytes, room);
	} while (!spill_account_rule_charge(rule_of(request), &held, room));
	request->admission.charged_rule = room;
	return room;
}

void spill_rules_hand_over(struct spill_request *request, struct spill_allocation *allocation)
{
	uint64_t on_device = allocation->held.device;
	allocation->rule = rule_of(request);
	allocation->charged_rule = spill_min(request->admission.charged_rule, on_device);
	request->admission.charged_rule -= allocation->charged_rule;
}

void spill_rules_give_back(struct spill_request *request)
{
	spill_account_rule_return(rule_of(request), request->admission.charged_rule);
	request->admission.charged_rule = 0;
}
