/* What the model has of a device and of a host: places, and the sums that may never be exceeded. */
#include "property.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t model_free(const struct model *model, int device)
{
	return model->of->capacity[device] - model->neighbours[device] - model->device_held[device];
}

uint64_t model_limit(const struct model *model, int device)
{
	return spill_policy_device_limit(&model->of->policy, device, model->of->capacity[device]);
}

uint64_t model_rule_used(const struct model *model, const struct spill_rule *rule)
{
	return rule ? model->rule_used[spill_rule_index(&model->of->policy, rule)] : 0;
}

void model_keep(struct model *model, struct held held)
{
	must(model->of, model->count < LIVE, "the model has too little room for what is alive");
	model->device_held[held.device] += held.weight;
	model->host_held += held.host;
	if (held.rule >= 0)
		model->rule_used[held.rule] += held.charged;
	model->live[model->count++] = held;
}

void model_release(struct model *model, unsigned at)
{
	struct held held = model->live[at];

	model->device_held[held.device] -= held.weight;
	model->host_held -= held.host;
	if (held.rule >= 0)
		model->rule_used[held.rule] -= held.charged;
	model->live[at] = model->live[--model->count];
}

static uint64_t host_room(const struct model *model)
{
	struct spill_host_view view = {
	    .limit = model->of->host_limit,
	    .held = model->host_held,
	    .available = model->of->host_available - model->host_held,
	};

	return spill_policy_host_room(&model->of->policy, &view);
}

/* Of `bytes`, those that the place puts on the device where there is room for `room`. */
static uint64_t on_device(const struct model *model, enum spill_place place, uint64_t bytes, uint64_t room,
                          const struct spill_rule *rule)
{
	struct spill_managed_advice advice = spill_rule_advice(&model->of->policy, rule);

	if (place == SPILL_PLACE_SPLIT)
		return least(bytes, room);
	if (place == SPILL_PLACE_MANAGED && bytes <= room &&
	    bytes < spill_amount_resolve(advice.prefetch_below, 0, 0))
		return bytes;
	return 0;
}

bool model_place(struct model *model, enum spill_place place, const struct event *event,
                 const struct spill_rule *rule)
{
	const struct spill_policy *policy = &model->of->policy;
	int device = event->device;
	uint64_t room =
	    spill_policy_device_room(spill_policy_device_reserve(policy, device), model_free(model, device),
	                             model->device_held[device], model_limit(model, device));
	uint64_t part = on_device(model, place, event->bytes,
	                          least(room, spill_rule_room(rule, model_rule_used(model, rule))), rule);
	uint64_t host = place == SPILL_PLACE_SPLIT ? event->bytes - part : event->bytes;

	must(model->of, !model->capturing[event->thread], "something is placed while its stream captures");
	if (!(model->of->capabilities[device] & 1u << place) || host > host_room(model))
		return false;
	model_keep(model, (struct held){
	                      .device = device,
	                      .weight = part,
	                      .charged = part,
	                      .host = host,
	                      .rule = rule ? (int)spill_rule_index(policy, rule) : -1,
	                  });
	must(model->of, part == 0 || model_free(model, device) >= spill_policy_device_reserve(policy, device),
	     "a placement takes of the reserve");
	return true;
}

void model_trim(struct model *model, int device)
{
	for (unsigned i = model->count; i-- > 0;) {
		if (model->live[i].idle && model->live[i].device == device)
			model_release(model, i);
	}
}

static bool has_room(const struct model *model, int device, uint64_t bytes)
{
	uint64_t limit = model_limit(model, device), held = model->device_held[device];

	return bytes <= model_free(model, device) && (limit == SPILL_UNLIMITED || bytes <= limit - held);
}

void model_demote(struct model *model, int device, uint64_t bytes)
{
	for (unsigned i = 0; i < model->count && !has_room(model, device, bytes); i++) {
		struct held *held = &model->live[i];

		if (!held->movable || held->device != device || held->weight > host_room(model))
			continue;
		model->device_held[device] -= held->weight;
		model->host_held += held->weight;
		held->host += held->weight;
		held->weight = 0;
		held->movable = false;
	}
}

void model_sums(const struct model *model)
{
	const struct property_case *of = model->of;
	uint64_t reserve = spill_amount_resolve(of->policy.host_reserve, 0, 0);

	for (int device = 0; device < DEVICES; device++) {
		must(of, model->device_held[device] <= of->capacity[device] - model->neighbours[device],
		     "more on a device than it has");
		must(of, model->device_held[device] <= model_limit(model, device),
		     "more on a device than device.limit");
	}
	for (unsigned i = 0; of->policy.rules && i < of->rules.count; i++) {
		if (of->rules.rule[i].set & SPILL_RULE_HAS_CAP)
			must(of, model->rule_used[i] <= of->rules.rule[i].cap,
			     "a rule holds more than its cap");
	}
	must(of, model->host_held <= of->host_limit, "more on the host than host.limit");
	must(of, model->host_held == 0 || model->host_held + reserve <= of->host_available,
	     "more on the host than host.reserve leaves");
}
