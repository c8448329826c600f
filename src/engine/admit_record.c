/*
 * What all requests for memory share: the record of refusals, and entries of the ledger.
 *
 * Managed and pinned memory that the program itself asked for comes here directly. The ledger has
 * it, and the policy does not change it. Pinned memory counts toward host.limit and host.reserve,
 * because it is lost for spilled data.
 */
#include "admit.h"

#include <string.h>

#include "account.h"
#include "contexts.h"
#include "demote.h"
#include "device_memory.h"
#include "gate.h"
#include "note.h"
#include "reserve_keeper.h"
#include "rules.h"

void spill_admit_tried(struct spill_request *request, const char *step, const char *error)
{
	struct spill_admission *admission = &request->admission;
	if (admission->attempts < SPILL_ATTEMPTS)
		admission->tried[admission->attempts++] = (struct spill_attempt){step, error};
}

void spill_admit_refused_by(struct spill_request *request, enum spill_refused_by refused_by)
{
	request->admission.refused_by = refused_by;
	request->admission.refused_word = spill_refused_by_name(refused_by);
}

void spill_admit_refused(struct spill_request *request, const char *error)
{
	request->admission.refused_by = spill_refused_by_of(error);
	request->admission.refused_word = error;
}

struct spill_allocation spill_admit_describe(const struct spill_request *request,
                                             const struct spill_backend *backend, uint64_t ptr)
{
	return (struct spill_allocation){
	    .backend = backend,
	    .ptr = ptr,
	    .bytes = request->bytes,
	    .device = request->device,
	    .context = request->context,
	    .api = spill_engine_api(request),
	    .caller = spill_engine_caller(request),
	    .site = spill_engine_site(request),
	};
}

bool spill_admit_record(struct spill_request *request, struct spill_allocation *allocation,
                        enum spill_reason reason)
{
	spill_contexts_made(allocation->backend, request->device, request->context);
	if (allocation->placement || request->admission.attempts)
		allocation->requester = spill_engine_requester(request);
	spill_rules_take_over(request, allocation);
	spill_request_choose_line(request, allocation, reason);
	if (!spill_ledger_add(allocation)) {
		request->admission.charged_rule += allocation->charged_rule;
		spill_rules_return(request);
		spill_note("ledger", "no memory for bookkeeping: an allocation is not accounted");
		return false;
	}
	/* A place that a rule chose does not mean that the device is full. */
	if (!request->admission.at_once && spill_ledger_is_spill(allocation))
		if (spill_reserve_begin(request->device))
			spill_gate_want_maintenance();
	spill_request_log_alloc(request, allocation, reason);
	return true;
}

struct spill_place_request spill_admit_place_request(const struct spill_request *request,
                                                     const struct spill_backend *backend,
                                                     uint64_t device_room)
{
	const struct spill_policy *policy = spill_process_policy();
	return (struct spill_place_request){
	    .backend = backend,
	    .policy = policy,
	    .device = request->device,
	    .context = request->context,
	    .bytes = request->bytes,
	    .device_room = device_room,
	    .device_limit = spill_device_limit(backend, request->device),
	    .advice = spill_rule_advice(policy, request->admission.applied),
	};
}

enum spill_substitute spill_admit_substitute(struct spill_request *request, const struct spill_place_ops *ops,
                                             const struct spill_place_request *wanted,
                                             bool (*hand_out)(struct spill_request *request,
                                                              struct spill_placement *placement,
                                                              enum spill_reason reason, const char **error),
                                             const char **error)
{
	const struct spill_admission *admission = &request->admission;
	const struct spill_backend *backend = wanted->backend;
	spill_account_device_return(request->device, admission->charged);
	spill_device_memory_unserved(request->device, 0);
	struct spill_placement *placement = ops->make(wanted, error);
	if (placement && hand_out(request, placement, SPILL_REASON_FITS, error)) {
		spill_demote_foresee(backend, request->device);
		return SPILL_SUBSTITUTE_SERVED;
	}
	if (!placement && spill_refused_by_of(*error) == SPILL_REFUSED_BY_DEVICE_LIMIT)
		return SPILL_SUBSTITUTE_LIMIT;
	if (!placement && strcmp(*error, backend->error_name(backend->out_of_memory)) == 0)
		return SPILL_SUBSTITUTE_FULL;
	spill_account_device_add(request->device, admission->charged);
	return SPILL_SUBSTITUTE_NONE;
}

/* -- memory that is only counted --------------------------------------------------------------- */

bool spill_admit_count_begin(struct spill_request *request, const struct spill_backend *backend,
                             bool is_valid)
{
	request->pass = !is_valid;
	if (is_valid)
		spill_engine_memory_call(backend);
	request->start_us = spill_log_start_us();
	return true;
}

void spill_admit_count(struct spill_request *request, struct spill_allocation *allocation,
                       enum spill_place place)
{
	allocation->place = place;
	if (place == SPILL_PLACE_MANAGED)
		allocation->held.managed = request->bytes;
	else
		allocation->held.host = allocation->charged_host = request->bytes;
	spill_account_host_add(allocation->charged_host);
	if (!spill_admit_record(request, allocation, SPILL_REASON_ASKED))
		spill_account_host_return(allocation->charged_host);
}

static bool prepare_counted(struct spill_request *request, const struct spill_backend *backend)
{
	bool has_memory = request->op == SPILL_OP_REGISTER ? request->ptr != 0 : request->out != NULL;
	return backend && has_memory && request->bytes &&
	       backend->devices->current(&request->device, &request->context);
}

bool spill_engine_account(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step++ == 0)
		return spill_admit_count_begin(request, backend, prepare_counted(request, backend));
	if (request->result == 0) {
		bool managed = request->op == SPILL_OP_ALLOC_MANAGED;
		uint64_t ptr = request->op == SPILL_OP_REGISTER ? request->ptr : *spill_engine_out(request);
		struct spill_allocation allocation = spill_admit_describe(request, backend, ptr);
		spill_admit_count(request, &allocation, managed ? SPILL_PLACE_MANAGED : SPILL_PLACE_HOST);
	}
	return false;
}
