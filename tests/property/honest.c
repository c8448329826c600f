/* Whose failure surfaces: the library's memory of a thread's failures, and the history that it is compared with. */
#include "property.h"

static struct spill_failure as_failure(const struct request *request)
{
	const struct event *event = request->event;

	return (struct spill_failure){
	    .bytes = event->bytes,
	    .time_us = request->model->time_us,
	    .caller = event->caller,
	    .device = event->device,
	    .operation = event->operation,
	};
}

bool model_repeats(const struct request *request)
{
	const struct model *model = request->model;
	const struct event *event = request->event;
	uint64_t window = model->of->policy.honest_window_us;
	struct spill_failure now = as_failure(request);
	bool is = false;

	for (unsigned i = 0; i < SPILL_FAILURES; i++)
		is |= spill_failure_repeats(&model->pending[event->thread][i], &now, window);
	must(model->of,
	     is == expected_repeat(&model->surfaced[event->thread][expected_kind(event)], event,
	                           model->time_us, window),
	     "a repeat that is none, or none that is one");
	return is;
}

bool model_says(const struct spill_rule *rule, unsigned key)
{
	return rule && rule->set & key;
}

void model_surface(struct request *request, const struct spill_full_view *view)
{
	struct model *model = request->model;
	const struct event *event = request->event;
	struct spill_failure now = as_failure(request);
	bool by_rule = model_says(request->rule, SPILL_RULE_HAS_HONEST);
	bool asked = by_rule ? request->rule->honest
	                     : view->asks_again || model->of->policy.honest_first == SPILL_HONEST_ON;

	must(model->of, asked, "a failure surfaces to who does not ask again");
	must(model->of, by_rule || !view->capped, "a failure surfaces where nothing but a cap is passed");
	must(model->of, !event->fixed, "a failure surfaces first for what cannot be elsewhere");
	must(model->of, !view->any_capture, "a failure surfaces while something captures");
	must(model->of, !view->repeats, "a failure surfaces that repeats one that did");
	*spill_failure_slot(model->pending[event->thread], &now) = now;
	expected_surfaced(model->surfaced[event->thread], event, model->time_us);
	request->surfaced = true;
	model_seen[SEEN_SURFACED]++;
}

void model_succeeded(const struct request *request)
{
	struct model *model = request->model;
	const struct event *event = request->event;
	uint64_t window = model->of->policy.honest_window_us;
	struct spill_failure now = as_failure(request);

	if (model_repeats(request) && event->operation != SPILL_RETRY_PHYSICAL)
		model->surfaced[event->thread][expected_kind(event)].is = false;
	for (unsigned i = 0; i < SPILL_FAILURES; i++)
		spill_failure_served(&model->pending[event->thread][i], &now, window);
}

void model_mapped(struct model *model, const struct event *event)
{
	for (unsigned i = 0; i < SPILL_FAILURES; i++)
		spill_failure_mapped(&model->pending[event->thread][i], event->caller);
	expected_mapped(model->surfaced[event->thread], event->caller);
}
