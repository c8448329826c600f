/* The engine, as far as decisions go: what it asks and in which order is that of admit.c and fallback_chain.c. */
#include <string.h>

#include "property.h"

uint64_t model_seen[SEEN];

enum answer { SERVED, IS_FULL, IS_CAPPED, IS_REFUSED, IS_PLACED };

void model_begin(struct model *model, const struct property_case *of, bool plain)
{
	*model = (struct model){.of = of, .plain = plain, .time_us = 1000000};
}

/* The driver, the limit and the cap would all have it. In numbers that cannot wrap. */
static bool has_room(const struct request *request)
{
	const struct model *model = request->model;
	const struct event *event = request->event;
	__extension__ typedef unsigned __int128 wide;
	wide held = (wide)model->device_held[event->device] + event->weight;
	wide used = (wide)model_rule_used(model, request->rule) + event->bytes;
	uint64_t limit = model_limit(model, event->device);
	bool capped =
	    request->rule && request->rule->set & SPILL_RULE_HAS_CAP && request->rule->cap != UINT64_MAX;

	return event->weight <= model_free(model, event->device) &&
	       (limit == SPILL_UNLIMITED || held <= limit) && (!capped || used <= request->rule->cap);
}

static bool driver(struct request *request, bool movable)
{
	const struct event *event = request->event;

	if (event->weight > model_free(request->model, event->device))
		return false;
	model_keep(request->model, (struct held){
	                               .device = event->device,
	                               .weight = event->weight,
	                               .charged = event->bytes,
	                               .rule = request->rule ? (int)spill_rule_index(
	                                                           &request->model->of->policy, request->rule)
	                                                     : -1,
	                               .movable = movable,
	                           });
	return true;
}

static enum answer decide(struct request *request)
{
	const struct model *model = request->model;
	int device = request->event->device;
	struct spill_view view = {
	    .device_used = model->device_held[device],
	    .device_limit = model_limit(model, device),
	    .rule_used = model_rule_used(model, request->rule),
	};
	struct spill_decision decision = ask_decision(model->of, request->rule, &request->ask, &view);
	bool movable = decision.chunks != SPILL_SWITCH_OFF && !request->event->fixed &&
	               model->of->capabilities[device] & SPILL_CAN_MOVE &&
	               model->of->policy.movable_enable != SPILL_SWITCH_OFF;

	switch (decision.verdict) {
	case SPILL_VERDICT_DRIVER:
		return driver(request, movable) ? SERVED : IS_FULL;
	case SPILL_VERDICT_PLACE:
		return model_place(request->model, decision.place, request->event, request->rule)
		           ? IS_PLACED
		           : IS_REFUSED;
	case SPILL_VERDICT_FULL:
		return decision.refused_by == SPILL_REFUSED_BY_RULE_CAP ? IS_CAPPED : IS_FULL;
	default:
		return IS_REFUSED;
	}
}

/* -- when it is full -------------------------------------------------------------------------------------- */

static bool take(struct request *request, enum spill_step step, bool capped)
{
	struct model *model = request->model;
	int device = request->event->device;

	request->steps++;
	must(model->of, !request->capturing, "a step is taken while its stream captures");
	if (step != SPILL_STEP_TRIM)
		must(model->of, !has_room(request), "a step other than trim where the device has room");
	if (model_says(request->rule, SPILL_RULE_HAS_OVER))
		must(model->of,
		     step == SPILL_STEP_TRIM ||
		         (int)request->rule->over - SPILL_RULE_SPLIT == (int)step - SPILL_STEP_SPLIT,
		     "a step of the chain where a rule says another");
	must(model->of, !capped || (step != SPILL_STEP_TRIM && step != SPILL_STEP_DEMOTE),
	     "others make way for a cap");
	switch (step) {
	case SPILL_STEP_TRIM:
		model_trim(model, device);
		model_seen[SEEN_TRIMMED]++;
		return decide(request) == SERVED;
	case SPILL_STEP_DEMOTE:
		model_demote(model, device, request->event->weight);
		model_seen[SEEN_DEMOTED]++;
		return decide(request) == SERVED;
	default:
		if (request->event->fixed ||
		    !model_place(model, spill_step_place(step), request->event, request->rule))
			return false;
		model_seen[step == SPILL_STEP_SPLIT     ? SEEN_SPLIT
		           : step == SPILL_STEP_MANAGED ? SEEN_MANAGED
		                                        : SEEN_HOST]++;
		return true;
	}
}

static bool full(struct request *request, bool capped)
{
	struct model *model = request->model;
	const struct event *event = request->event;
	struct spill_full_view view = {
	    .capabilities = model->of->capabilities[event->device],
	    .capped = capped,
	    .capturing = request->capturing,
	    .asks_again = spill_retrier_find(callers[event->caller], event->operation) != NULL,
	    .repeats = model_repeats(request),
	};
	struct spill_fallback remedy;

	for (unsigned i = 0; i < THREADS; i++)
		view.any_capture |= model->capturing[i];
	remedy = ask_remedy(model->of, request->rule, &request->ask, &view);
	model_seen[SEEN_CAPPED] += capped;
	model_seen[SEEN_LIMIT] += !capped;
	model_seen[SEEN_REPEAT] += view.repeats;
	model_seen[SEEN_CAPTURED] += view.capturing;
	model_seen[SEEN_OVER] += request->rule && request->rule->set & SPILL_RULE_HAS_OVER;
	for (unsigned i = 0; i < remedy.count; i++) {
		if (remedy.surfaces && remedy.step[i] != SPILL_STEP_TRIM) {
			model_surface(request, &view);
			return false;
		}
		if (take(request, remedy.step[i], capped))
			return true;
	}
	return false;
}

/* -- a request -------------------------------------------------------------------------------------------- */

/* What a rule puts elsewhere however much room there is. */
static bool is_elsewhere(const struct spill_rule *rule)
{
	return rule && rule->set & SPILL_RULE_HAS_PLACE && rule->place >= SPILL_RULE_SPLIT;
}

static bool carry_out(struct request *request)
{
	enum answer answer = decide(request);

	if (answer == IS_REFUSED && is_elsewhere(request->rule) &&
	    request->rule->place != SPILL_RULE_REFUSE) {
		model_seen[SEEN_PLACE_FAILED]++;
		request->ask.place_failed = true;
		answer = decide(request);
		must(request->model->of, answer != IS_PLACED && answer != IS_REFUSED,
		     "a place is tried again");
	}
	model_seen[SEEN_DRIVER] += answer == SERVED;
	model_seen[SEEN_PLACED] += answer == IS_PLACED;
	model_seen[SEEN_REFUSED] += answer == IS_REFUSED;
	if (answer == SERVED || answer == IS_PLACED)
		return true;
	return answer != IS_REFUSED && full(request, answer == IS_CAPPED);
}

/* True if served. */
static bool allocate(struct model *model, const struct event *event, bool *surfaced)
{
	struct request request = {
	    .model = model, .event = event, .capturing = model->capturing[event->thread]};
	bool served;

	request.rule = ask_rule(model->of, event, &request.ask);
	request.ask.placeable = !event->fixed && !request.capturing;
	model_seen[SEEN_RULE] += request.rule != NULL;
	request.had_room = has_room(&request);
	served = carry_out(&request);
	if (request.had_room && !is_elsewhere(request.rule))
		must(model->of, served && request.steps == 0, "what fits is not simply made");
	if (request.rule && model_says(request.rule, SPILL_RULE_HAS_PLACE) &&
	    request.rule->place == SPILL_RULE_REFUSE)
		must(model->of, !served || model->of->policy.mode != SPILL_MODE_SPILL,
		     "what a rule refuses is served");
	if (served)
		model_succeeded(&request);
	model_seen[SEEN_OUT_OF_MEMORY] += !served;
	*surfaced = request.surfaced;
	return served;
}

static bool allocate_as_told(struct model *model, const struct event *event)
{
	bool surfaced, again;
	bool served = allocate(model, event, &surfaced);

	if (!surfaced || !event->asks_again)
		return served;
	model->time_us++;
	served = allocate(model, event, &again);
	must(model->of, !again || !model->of->policy.honest_window_us, "the repeat surfaces as well");
	return served;
}

bool model_event(struct model *model, const struct event *event)
{
	model->time_us++;
	switch (event->kind) {
	case ALLOC:
		if (!model->plain)
			return allocate_as_told(model, event);
		return driver(&(struct request){.model = model, .event = event}, false);
	case FREE:
		if (!model->count)
			return true;
		if (event->idle && !model->plain && model->of->policy.mode == SPILL_MODE_SPILL)
			model->live[event->amount % model->count].idle = true;
		else
			model_release(model, (unsigned)(event->amount % model->count));
		return true;
	case NEIGHBOUR:
		model->neighbours[event->device] =
		    event->amount % (model_free(model, event->device) + model->neighbours[event->device] + 1);
		return true;
	case CAPTURE_BEGIN:
	case CAPTURE_END:
		model->capturing[event->thread] = event->kind == CAPTURE_BEGIN;
		return true;
	case MAP:
		if (!model->plain)
			model_mapped(model, event);
		return true;
	case PASS_TIME:
		model->time_us += event->amount;
		return true;
	}
	return true;
}
