/* Decides a request, in the order of admit.c and fallback_chain.c. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "shared_chunks.h"
#include "cli.h"

static const struct spill_policy *policy_of(const struct cli_model *model)
{
	return model->setting->policy;
}

static const struct cli_card *card_of(const struct cli_model *model, int device)
{
	return &model->setting->cards[device];
}

/* The bytes that count toward limits (backend_cuda.c, backend_hip.c, engine_vmm.c). */
static uint64_t weight_of(const struct cli_model *model, const struct cli_ask *asked)
{
	return asked->memory == CLI_MEMORY_PHYSICAL
	           ? asked->bytes
	           : model->setting->backend->memory->footprint(asked->bytes);
}

static bool placeable(const struct cli_model_request *request)
{
	return request->asked->memory != CLI_MEMORY_ARRAY;
}

static struct spill_view view_of(const struct cli_model_request *request)
{
	const struct cli_model *model = request->model;

	return (struct spill_view){
	    .device_used = cli_model_held(model, request->ask.device),
	    .device_limit = card_of(model, request->ask.device)->limit,
	    .rule_used =
	        request->rule ? model->rule_used[spill_rule_index(policy_of(model), request->rule)] : 0,
	};
}

static struct spill_decision decide(const struct cli_model_request *request)
{
	struct spill_view view = view_of(request);

	return spill_decide(policy_of(request->model), request->rule, &request->ask, &view);
}

/* -- a full device ---------------------------------------------------------------------------- */

static bool admit(struct cli_model_request *request);

static unsigned operation_of(const struct cli_ask *asked)
{
	switch ((enum cli_memory)asked->memory) {
	case CLI_MEMORY_ORDERED:
		return SPILL_RETRY_STREAM_ORDERED;
	case CLI_MEMORY_PHYSICAL:
		return SPILL_RETRY_PHYSICAL;
	default:
		return SPILL_RETRY_PLAIN;
	}
}

static bool demote_others(struct cli_model_request *request)
{
	const struct spill_ask *ask = &request->ask;
	uint64_t bytes = ask->weight > ask->bytes ? ask->weight : ask->bytes;
	struct spill_decision decision;

	if (!cli_model_demote(request->model, ask->device, bytes, request->over_limit ? "limit" : "oom"))
		return false;
	decision = decide(request);
	return decision.verdict == SPILL_VERDICT_DRIVER && !cli_model_serve(request, decision.chunks);
}

static bool try_step(struct cli_model_request *request, enum spill_step step)
{
	const char *refused;

	switch (step) {
	case SPILL_STEP_TRIM: /* unused memory is not in the log */
		return false;
	case SPILL_STEP_DEMOTE:
		return demote_others(request);
	default:
		refused =
		    placeable(request)
		        ? cli_model_place(request, step, cli_model_room(request->model, request->ask.device))
		        : "this kind of memory cannot be elsewhere";
		if (refused && placeable(request))
			request->answer.refused_by = refused;
		return !refused;
	}
}

/* The failure surfaces. The program frees caches, which the log does not show, and asks again. */
static bool surface_oom(struct cli_model_request *request)
{
	request->model->honest++;
	request->model->devices[request->ask.device].begun = true;
	request->answer.surfaced = true;
	request->repeats = true;
	return admit(request);
}

static bool handle_full(struct cli_model_request *request, bool capped)
{
	const struct cli_model *model = request->model;
	const struct cli_site *site = &model->setting->sites[request->asked->site];
	struct spill_full_view view = {
	    .capabilities = card_of(model, request->ask.device)->capabilities,
	    .capped = capped,
	    .asks_again = site->asks_again & operation_of(request->asked),
	    .repeats = request->repeats,
	};
	struct spill_fallback fallback;

	request->ask.placeable = placeable(request);
	fallback = spill_decide_full(policy_of(model), request->rule, &request->ask, &view);
	if (fallback.refused_by)
		request->answer.refused_by = spill_refused_by_name(fallback.refused_by);
	for (unsigned i = 0; i < fallback.count; i++) {
		if (fallback.surfaces && fallback.step[i] != SPILL_STEP_TRIM)
			return surface_oom(request);
		if (try_step(request, fallback.step[i]))
			return true;
	}
	return false;
}

/* -- a new request ---------------------------------------------------------------------------- */

/* Places memory where a rule says. Unsplit memory that fits stays on the device. */
static bool place_by_rule(struct cli_model_request *request, enum spill_place place)
{
	uint64_t room = cli_model_room(request->model, request->ask.device);
	bool whole =
	    request->asked->memory != CLI_MEMORY_PLAIN || request->ask.bytes <= SPILL_SHARED_CHUNKS_LARGEST;
	bool made;

	request->at_once = true;
	made = !(place == SPILL_PLACE_SPLIT && whole && request->ask.bytes <= room) &&
	       !cli_model_place(request, spill_step_to(place), room);
	request->at_once = false;
	return made;
}

static bool ask_driver(struct cli_model_request *request, enum spill_switch chunks)
{
	const char *refused = cli_model_serve(request, chunks);

	if (!refused)
		return true;
	request->over_limit = spill_refused_by_of(refused) == SPILL_REFUSED_BY_DEVICE_LIMIT;
	request->answer.refused_by = refused;
	return handle_full(request, false);
}

static bool admit(struct cli_model_request *request)
{
	struct spill_decision decision = decide(request);

	switch (decision.verdict) {
	case SPILL_VERDICT_DRIVER:
		return ask_driver(request, decision.chunks);
	case SPILL_VERDICT_PLACE:
		if (place_by_rule(request, decision.place))
			return true;
		request->ask.place_failed = true;
		return admit(request);
	case SPILL_VERDICT_FULL:
		request->over_limit = true;
		request->answer.refused_by = spill_refused_by_name(decision.refused_by);
		return handle_full(request, decision.refused_by == SPILL_REFUSED_BY_RULE_CAP);
	case SPILL_VERDICT_REFUSE:
		request->answer.refused_by = spill_refused_by_name(decision.refused_by);
		return false;
	}
	return false;
}

/* Finds the rule. Returns true if growth was asked about. */
static bool find_rule(struct cli_model_request *request)
{
	const struct spill_policy *policy = policy_of(request->model);
	const struct cli_ask *asked = request->asked;
	const struct cli_site *site = &request->model->setting->sites[asked->site];
	bool grows;

	if (!policy->rules)
		return false;
	request->ask.rules = site->rules;
	grows = site->rules & policy->rules->by_growth;
	request->ask.grows =
	    grows && site->known &&
	    spill_growth_would(&request->model->growth, asked->site + 1, asked->device, asked->bytes);
	request->rule = spill_rule_find(policy, &request->ask);
	request->ask.placeable = placeable(request);
	return grows;
}

/* Records a served request in its run of growing requests. */
static void record_growth(struct cli_model_request *request, bool asks_growth)
{
	struct cli_model *model = request->model;
	const struct cli_ask *asked = request->asked;
	struct spill_growth_answer growth = {0};

	if ((asks_growth || request->slot->chunked) && model->setting->sites[asked->site].known)
		growth = spill_growth_request(&model->growth, asked->site + 1, asked->device, asked->bytes);
	if (request->slot->chunked) {
		request->slot->run = growth.run;
		request->slot->priority = (uint8_t)spill_rule_priority(request->rule);
		cli_model_enlist(model, request->slot, growth.grows);
	}
}

/* Keeps memory where the program asked for it. */
static void keep_as_asked(struct cli_model *model, const struct cli_ask *asked, struct cli_model_slot *slot)
{
	if (asked->memory == CLI_MEMORY_MANAGED) {
		slot->held.managed = asked->bytes;
		slot->place = SPILL_PLACE_MANAGED;
	} else {
		slot->held.host = slot->charged_host = asked->bytes;
		slot->place = SPILL_PLACE_HOST;
		model->host += asked->bytes;
	}
}

static struct cli_answer allocate(struct cli_model *model, const struct cli_ask *asked)
{
	struct cli_model_slot *slot = &model->slots[asked->slot];
	struct cli_model_request request = {
	    .model = model,
	    .asked = asked,
	    .slot = slot,
	    .ask = {.bytes = asked->bytes, .weight = weight_of(model, asked), .device = asked->device},
	};
	bool asks_growth;

	*slot = (struct cli_model_slot){.live = true,
	                                .device = asked->device,
	                                .rule = -1,
	                                .allocation = asked->allocation,
	                                .bytes = asked->bytes,
	                                .stays_from = UINT64_MAX};
	if (asked->memory >= CLI_MEMORY_MANAGED) {
		keep_as_asked(model, asked, slot);
		return (struct cli_answer){
		    .served = true, .place = slot->place, .held = slot->held, .reason = "asked"};
	}
	asks_growth = find_rule(&request);
	request.answer.rule = request.rule ? request.rule->name : "default";
	request.answer.served = admit(&request);
	if (request.answer.served) {
		bool spilled = slot->held.host + slot->held.managed && strcmp(request.answer.reason, "rule");

		request.answer.place = slot->place;
		request.answer.held = slot->held;
		record_growth(&request, asks_growth);
		model->spills += spilled;
		model->devices[asked->device].begun |= spilled;
	} else {
		slot->live = false;
		model->refused++;
	}
	return request.answer;
}

/* Nothing is decided on a device that the setting does not know, nor for no bytes: a log can have both. */
static bool is_decided(const struct cli_model *model, const struct cli_ask *ask)
{
	return ask->bytes && ask->device >= 0 && ask->device < SPILL_DEVICES &&
	       card_of(model, ask->device)->total;
}

struct cli_answer cli_model_take(struct cli_model *model, const struct cli_ask *ask)
{
	struct cli_model_slot *slot = &model->slots[ask->slot];
	struct cli_answer answer = {0};

	model->now_us = ask->time_us;
	if (slot->live) /* freed, or replaced: a damaged log may lack the free */
		cli_model_release(model, slot);
	if (ask->kind == CLI_ASK_FREE)
		return answer;
	if (!is_decided(model, ask) && ask->memory < CLI_MEMORY_MANAGED)
		return (struct cli_answer){
		    .served = true, .reason = "fits", .rule = "default", .held = {.device = ask->bytes}};
	if (model->movable_count)
		cli_model_promote(model);
	model->host_refuses = ask->kind == CLI_ASK_REFUSED_BY_HOST && model->setting->host == SPILL_UNLIMITED;
	answer = allocate(model, ask);
	model->host_refuses = false;
	if (ask->memory < CLI_MEMORY_MANAGED &&
	    model->devices[ask->device].peak < cli_model_held(model, ask->device))
		model->devices[ask->device].peak = cli_model_held(model, ask->device);
	if (model->host_peak < model->host)
		model->host_peak = model->host;
	if (ask->kind != CLI_ASK_ALLOC && slot->live)
		cli_model_release(model, slot);
	return answer;
}

void cli_model_settle(struct cli_model *model, const struct cli_ask *ask)
{
	if (ask->kind != CLI_ASK_FREE && ask->memory < CLI_MEMORY_MANAGED && is_decided(model, ask))
		cli_model_keep_reserve(model, ask->device, weight_of(model, ask));
}

void cli_model_begin(struct cli_model *model, const struct cli_model_setting *setting, size_t slots)
{
	*model = (struct cli_model){.setting = setting, .slot_count = slots};
	model->slots = cli_realloc(NULL, slots + 1, sizeof(*model->slots));
	model->movable = cli_realloc(NULL, slots + 1, sizeof(*model->movable));
	model->victims = cli_realloc(NULL, slots + 1, sizeof(*model->victims));
	memset(model->slots, 0, (slots + 1) * sizeof(*model->slots));
}

void cli_model_reset(struct cli_model *model)
{
	struct cli_model fresh = {.setting = model->setting,
	                          .slots = model->slots,
	                          .slot_count = model->slot_count,
	                          .movable = model->movable,
	                          .victims = model->victims};

	for (unsigned device = 0; device < SPILL_DEVICES; device++) {
		cli_shared_reset(&model->devices[device].blocks);
		fresh.devices[device].blocks = model->devices[device].blocks;
		for (unsigned place = 0; place < SPILL_PLACES; place++) {
			cli_shared_reset(&model->devices[device].pools[place]);
			fresh.devices[device].pools[place] = model->devices[device].pools[place];
		}
	}
	*model = fresh;
	memset(model->slots, 0, (model->slot_count + 1) * sizeof(*model->slots));
}

void cli_model_free(struct cli_model *model)
{
	for (unsigned device = 0; device < SPILL_DEVICES; device++) {
		free(model->devices[device].blocks.left);
		for (unsigned place = 0; place < SPILL_PLACES; place++)
			free(model->devices[device].pools[place].left);
	}
	free(model->slots);
	free(model->movable);
	free(model->victims);
	*model = (struct cli_model){0};
}
