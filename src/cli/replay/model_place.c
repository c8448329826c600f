/* Models the memory that the driver and the places take (src/memory/). */
#include <string.h>

#include "minmax.h"
#include "model.h"
#include "shared_chunks.h"

/* The begin of a shared chunk holds no block. */
#define POOL_CHUNK (SPILL_SHARED_CHUNKS_CHUNK - SPILL_SHARED_CHUNKS_ALIGNMENT)

/* -- accounts --------------------------------------------------------------------------------- */

uint64_t cli_model_held(const struct cli_model *model, int device)
{
	return model->devices[device].whole + model->devices[device].small;
}

uint64_t cli_model_free_on(const struct cli_model *model, int device)
{
	const struct cli_card *card = &model->setting->cards[device];
	const struct cli_model_device *state = &model->devices[device];
	uint64_t used = state->whole - state->managed + state->resident + state->blocks.made * CLI_GRANULE;
	uint64_t room = card->total - spill_min(card->total, card->other);

	return room - spill_min(room, used);
}

uint64_t cli_model_room(const struct cli_model *model, int device)
{
	return spill_policy_device_room(cli_model_reserve(model, device), cli_model_free_on(model, device),
	                                cli_model_held(model, device), model->setting->cards[device].limit);
}

/* pre: there is room */
static void charge_device(struct cli_model *model, struct cli_model_slot *slot, uint64_t bytes, bool small)
{
	struct cli_model_device *device = &model->devices[slot->device];

	*(small ? &device->small : &device->whole) += bytes;
	slot->charged += bytes;
	slot->small = small ? bytes : 0;
}

static void trim_host(struct cli_model *model)
{
	for (unsigned device = 0; device < SPILL_DEVICES; device++) {
		for (unsigned place = 0; place < SPILL_PLACES; place++)
			model->host -= SPILL_SHARED_CHUNKS_CHUNK *
			               cli_shared_trim(&model->devices[device].pools[place], POOL_CHUNK);
	}
}

/* Managed memory counts in full: available memory shows it only once it is touched. */
static const char *host_refusal(const struct cli_model *model, uint64_t bytes)
{
	const struct spill_policy *policy = model->setting->policy;
	uint64_t start = model->setting->host;
	struct spill_host_view view = {
	    .limit = SPILL_UNLIMITED,
	    .held = model->host,
	    .available = start == SPILL_UNLIMITED ? start : start - spill_min(start, model->host),
	};

	if (start != SPILL_UNLIMITED || policy->host_limit.kind == SPILL_AMOUNT_BYTES)
		view.limit = spill_amount_resolve(policy->host_limit, start, SPILL_UNLIMITED);
	if (model->host_refuses)
		return "host.limit";
	if (bytes <= spill_policy_host_room(policy, &view))
		return NULL;
	return view.held + bytes > view.limit ? "host.limit" : "host.reserve";
}

const char *cli_model_charge_host(struct cli_model *model, uint64_t bytes)
{
	const char *refused = host_refusal(model, bytes);

	if (refused) {
		trim_host(model);
		refused = host_refusal(model, bytes);
	}
	model->host += refused ? 0 : bytes;
	return refused;
}

static unsigned rule_of(const struct cli_model_request *request)
{
	return spill_rule_index(request->model->setting->policy, request->rule);
}

static bool is_capped(const struct cli_model_request *request)
{
	return request->rule && request->rule->set & SPILL_RULE_HAS_CAP;
}

/* Charges the requested bytes on the device to the cap of the rule. */
static void charge_rule(struct cli_model_request *request, uint64_t bytes)
{
	struct cli_model_slot *slot = request->slot;

	if (!is_capped(request))
		return;
	slot->rule = (int16_t)rule_of(request);
	slot->charged_rule = spill_min(bytes, slot->held.device);
	request->model->rule_used[slot->rule] += slot->charged_rule;
}

/* -- the device ------------------------------------------------------------------------------- */

static bool is_filled(const struct cli_model_request *request)
{
	const struct cli_model *model = request->model;
	const struct spill_policy *policy = model->setting->policy;
	int device = request->ask.device;
	const struct cli_card *card = &model->setting->cards[device];
	uint64_t own = cli_model_held(model, device);
	struct spill_usage_estimate look = {.seen = true,
	                                    .total = card->total,
	                                    .used = card->total - cli_model_free_on(model, device),
	                                    .own = own,
	                                    .at_us = model->now_us};

	if (card->limit != SPILL_UNLIMITED &&
	    own + request->ask.weight > spill_amount_resolve(policy->movable_above, card->limit, 0))
		return true;
	return spill_usage_estimate(&look, (uint32_t)policy->movable_above.value, own, request->ask.bytes,
	                            model->now_us) == SPILL_USAGE_ABOVE;
}

bool cli_model_may_move(const struct cli_model *model, int device)
{
	const struct spill_policy *policy = model->setting->policy;
	unsigned capabilities = model->setting->cards[device].capabilities;

	return policy->mode == SPILL_MODE_SPILL && capabilities & SPILL_CAN_MOVE &&
	       policy->movable_enable != SPILL_SWITCH_OFF && spill_policy_demotes(policy) &&
	       spill_policy_gains_by_moving(policy, capabilities) &&
	       (policy->movable_enable == SPILL_SWITCH_ON || model->setting->device_count <= 1);
}

/* Decides like movable.c and exporting.c. A log does not tell which exports were refused. */
static bool is_movable(const struct cli_model_request *request, enum spill_switch chunks)
{
	const struct cli_model_setting *setting = request->model->setting;
	const struct spill_policy *policy = setting->policy;

	if (chunks == SPILL_SWITCH_OFF || request->asked->memory != CLI_MEMORY_PLAIN ||
	    request->ask.bytes < policy->movable_min.value ||
	    !cli_model_may_move(request->model, request->ask.device))
		return false;
	return chunks == SPILL_SWITCH_ON || policy->movable_enable == SPILL_SWITCH_ON ||
	       (is_filled(request) && !setting->sites[request->asked->site].exports);
}

static void make_chunked(struct cli_model_request *request, uint64_t on_device)
{
	struct cli_model_slot *slot = request->slot;

	slot->chunked = true;
	slot->range = spill_round_up(slot->bytes, CLI_GRANULE);
	slot->chunk = spill_policy_chunk(request->model->setting->policy, slot->bytes, CLI_GRANULE);
	slot->first = slot->held.device = on_device;
	slot->held.host = slot->range - on_device;
	if (spill_rule_room(request->rule, 0) != SPILL_UNLIMITED)
		slot->stays_from = on_device;
}

/* The driver evicts managed memory by itself. */
static bool evict_managed(struct cli_model *model, int device, uint64_t bytes)
{
	uint64_t free = cli_model_free_on(model, device), missing = bytes > free ? bytes - free : 0;

	/* Evicts all of it even if that is not enough (seen on the simulator). */
	if (missing > model->devices[device].resident) {
		model->devices[device].resident = 0;
		return false;
	}
	model->devices[device].resident -= missing;
	return true;
}

const char *cli_model_serve(struct cli_model_request *request, enum spill_switch chunks)
{
	struct cli_model *model = request->model;
	int device = request->ask.device;
	const struct cli_card *card = &model->setting->cards[device];
	struct cli_model_device *state = &model->devices[device];
	bool movable = is_movable(request, chunks);
	bool small = !movable && request->ask.weight < CLI_GRANULE;
	uint64_t weight = movable ? spill_round_up(request->ask.bytes, CLI_GRANULE) : request->ask.weight;
	uint64_t held = cli_model_held(model, device);
	size_t block = small ? cli_shared_find(&state->blocks, weight) : 0;
	uint64_t needed = small ? (cli_shared_is_made(&state->blocks, block) ? 0 : CLI_GRANULE) : weight;

	if (movable && card->limit != SPILL_UNLIMITED && (held > card->limit || weight > card->limit - held))
		return "device.limit";
	if (!movable && !cli_model_leaves_reserve(model, device, weight))
		return "device.reserve";
	if (!evict_managed(model, device, needed))
		return "driver";
	request->slot->place = movable ? SPILL_PLACE_MOVABLE : SPILL_PLACE_DEVICE;
	request->slot->held.device = request->ask.bytes;
	if (movable)
		make_chunked(request, weight);
	if (small) {
		cli_shared_take(&state->blocks, block, weight, CLI_GRANULE);
		request->slot->list_index = (uint32_t)block;
	}
	charge_device(model, request->slot, weight, small);
	charge_rule(request, request->ask.bytes);
	request->answer.reason = "fits";
	return NULL;
}

/* -- elsewhere -------------------------------------------------------------------------------- */

/* Takes a block of a shared chunk; adds a chunk if all are full. */
static const char *place_pooled(struct cli_model_request *request, enum spill_place place)
{
	struct cli_model *model = request->model;
	struct cli_model_slot *slot = request->slot;
	struct cli_shared *pool = &model->devices[slot->device].pools[place];
	uint64_t block = spill_round_up(slot->bytes, SPILL_SHARED_CHUNKS_ALIGNMENT);
	size_t at = cli_shared_find(pool, block);
	const char *refused =
	    cli_shared_is_made(pool, at) ? NULL : cli_model_charge_host(model, SPILL_SHARED_CHUNKS_CHUNK);

	if (refused)
		return refused;
	cli_shared_take(pool, at, block, POOL_CHUNK);
	slot->list_index = (uint32_t)at;
	slot->pooled = true;
	*(place == SPILL_PLACE_MANAGED ? &slot->held.managed : &slot->held.host) = block;
	return NULL;
}

static void release_pooled(struct cli_model *model, const struct cli_model_slot *slot)
{
	struct cli_shared *pool = &model->devices[slot->device].pools[slot->place];
	size_t made = pool->made;

	cli_shared_give(pool, slot->list_index, slot->held.host + slot->held.managed, POOL_CHUNK, 1);
	model->host -= (made - pool->made) * SPILL_SHARED_CHUNKS_CHUNK;
}

static const char *place_split(struct cli_model_request *request, uint64_t device_room)
{
	struct cli_model *model = request->model;
	struct cli_model_slot *slot = request->slot;
	uint64_t range = spill_round_up(slot->bytes, CLI_GRANULE),
	         on_device = spill_min(range, device_room) / CLI_GRANULE * CLI_GRANULE;
	const char *refused = range > on_device ? cli_model_charge_host(model, range - on_device) : NULL;

	if (refused)
		return refused;
	make_chunked(request, on_device);
	slot->charged_host = slot->held.host;
	charge_device(model, slot, on_device, false);
	return NULL;
}

static const char *place_managed(struct cli_model_request *request, uint64_t device_room)
{
	struct cli_model *model = request->model;
	struct cli_model_slot *slot = request->slot;
	struct spill_managed_advice advice = spill_rule_advice(model->setting->policy, request->rule);
	const char *refused = cli_model_charge_host(model, slot->bytes);

	if (refused)
		return refused;
	slot->held.managed = slot->charged_host = slot->bytes;
	if (request->asked->memory == CLI_MEMORY_PLAIN && slot->bytes <= device_room &&
	    slot->bytes < spill_amount_resolve(advice.prefetch_below, 0, 0)) {
		slot->held.device = slot->bytes;
		charge_device(model, slot, slot->bytes, false);
		model->devices[slot->device].managed += slot->bytes;
		model->devices[slot->device].resident += slot->bytes;
	}
	return NULL;
}

static const char *place_host(struct cli_model_request *request)
{
	struct cli_model_slot *slot = request->slot;
	const char *refused = cli_model_charge_host(request->model, slot->bytes);

	if (!refused)
		slot->held.host = slot->charged_host = slot->bytes;
	return refused;
}

static const char *place_at(struct cli_model_request *request, enum spill_place place, uint64_t device_room)
{
	if (request->asked->memory != CLI_MEMORY_PLAIN && place == SPILL_PLACE_SPLIT)
		device_room = 0;
	if (request->asked->memory != CLI_MEMORY_PHYSICAL &&
	    request->slot->bytes <= SPILL_SHARED_CHUNKS_LARGEST)
		return place_pooled(request, place);
	switch (place) {
	case SPILL_PLACE_SPLIT:
		return place_split(request, device_room);
	case SPILL_PLACE_MANAGED:
		return place_managed(request, device_room);
	default:
		return place_host(request);
	}
}

/* The part of the rule's cap that the request can use (fallback_chain.c). */
static uint64_t cap_share(const struct cli_model_request *request, enum spill_step step, uint64_t device_room)
{
	uint64_t used = is_capped(request) ? request->model->rule_used[rule_of(request)] : 0;
	uint64_t most = step == SPILL_STEP_HOST ? 0 : spill_min(request->slot->bytes, device_room);

	return spill_min(most, spill_rule_room(request->rule, used));
}

const char *cli_model_place(struct cli_model_request *request, enum spill_step step, uint64_t device_room)
{
	unsigned capabilities = request->model->setting->cards[request->ask.device].capabilities;
	enum spill_place place = spill_step_place(step);
	const char *refused;
	uint64_t share;

	if (request->asked->memory == CLI_MEMORY_PHYSICAL) {
		/* Every step gives a handle of host memory. */
		if (step == SPILL_STEP_MANAGED)
			return "not for physical memory";
		place = SPILL_PLACE_HOST;
		capabilities |= capabilities & SPILL_CAN_SPLIT ? SPILL_CAN_HOST : 0;
	}
	if (!(capabilities & 1u << place))
		return "not supported by the device";
	share = cap_share(request, step, device_room);
	if (share < spill_min(request->slot->bytes, device_room))
		device_room = share;
	refused = place_at(request, place, device_room);
	if (refused)
		return refused;
	request->slot->place = place;
	charge_rule(request, share);
	request->answer.reason = request->at_once ? "rule" : request->over_limit ? "limit" : "oom";
	return NULL;
}

void cli_model_release(struct cli_model *model, struct cli_model_slot *slot)
{
	if (slot->chunked)
		cli_model_delist(model, slot);
	if (slot->small)
		cli_shared_give(&model->devices[slot->device].blocks, slot->list_index, slot->small,
		                CLI_GRANULE, 0);
	if (slot->charged) {
		model->devices[slot->device].small -= slot->small;
		model->devices[slot->device].whole -= slot->charged - slot->small;
		model->devices[slot->device].changed = true;
	}
	if (slot->place == SPILL_PLACE_MANAGED && slot->held.device) {
		struct cli_model_device *device = &model->devices[slot->device];

		device->managed -= slot->held.device;
		device->resident -= spill_min(device->resident, slot->held.device);
	}
	if (slot->pooled)
		release_pooled(model, slot);
	model->host -= slot->charged_host;
	if (slot->rule >= 0)
		model->rule_used[slot->rule] -= slot->charged_rule;
	slot->live = false;
}
