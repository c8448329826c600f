/*
 * What is said about decisions: a log line each, and one loud line at the first spill, because slowness that
 * nobody announced is worse than a failure (pitfall 15).
 */
#include <stdatomic.h>
#include <string.h>

#include "config.h"
#include "engine.h"
#include "text.h"

#define LINE 8192

static void loud(const struct spill_request *request, const struct spill_allocation *allocation)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	enum spill_log_stderr how = spill_runtime_policy()->log_stderr;
	if (!spill_ledger_is_spill(allocation))
		return; /* found room on the device after all */
	if (how == SPILL_STDERR_OFF || (atomic_flag_test_and_set(&said) && how == SPILL_STDERR_FIRST))
		return;
	char program[256], line[1024];
	struct spill_text text = spill_text_begin(line, sizeof(line));
	spill_config_program(program, sizeof(program));
	spill_text_add(&text, program);
	spill_text_add(&text, ": ");
	spill_text_size(&text, allocation->held.host + allocation->held.managed);
	spill_text_add(&text, " of ");
	spill_text_size(&text, allocation->bytes);
	spill_text_add(&text,
	               allocation->held.managed ? " placed in managed memory" : " placed in host memory");
	spill_text_add(&text, " (device ");
	spill_text_number(&text, (uint64_t)allocation->device);
	spill_text_add(&text, request->over_limit ? " at its limit, rule " : " full, rule ");
	spill_text_add(&text, request->rule);
	spill_text_add(&text, "); expect lower speed");
	if (spill_log_path()[0]) {
		spill_text_add(&text, "; log ");
		spill_text_add(&text, spill_log_path());
	}
	spill_stderr_line(line);
}

/* In observe mode: the first place that would have been tried instead of the device. */
static const char *would(const struct spill_request *request, const struct spill_backend *backend)
{
	enum spill_step chain[SPILL_STEPS];
	if (!spill_runtime_observes() || !request->attempts)
		return NULL;
	unsigned count =
	    spill_policy_chain(spill_runtime_policy(), backend->capabilities(request->device), chain);
	for (unsigned i = 0; i < count; i++)
		if (chain[i] != SPILL_STEP_TRIM)
			return spill_step_name(chain[i]);
	return "refuse";
}

void spill_report_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                        const char *reason)
{
	if (spill_log_active() &&
	    (spill_runtime_policy()->log_level == SPILL_LOG_ALL || allocation->placement)) {
		char line[LINE];
		struct spill_record_alloc record = {
		    .time_us = spill_log_now_us(),
		    .seq = allocation->seq,
		    .order = allocation->order,
		    .tid = spill_log_tid(),
		    .device = allocation->device,
		    .api = allocation->api,
		    .caller = allocation->caller,
		    .bytes = allocation->bytes,
		    .ptr = allocation->ptr,
		    .place = allocation->place,
		    .held = allocation->held,
		    .reason = reason,
		    .rule = request->rule,
		    .would = would(request, allocation->backend),
		    .attempts = request->attempts,
		};
		record.took_us = record.time_us - request->start_us;
		memcpy(record.tried, request->tried, sizeof(record.tried));
		size_t length = spill_record_alloc(&record, line, sizeof(line));
		spill_log_write(line, length, allocation->placement ? SPILL_LOG_NOW : SPILL_LOG_SOON);
	}
	if (allocation->placement)
		loud(request, allocation);
}

void spill_report_free(const struct spill_request *request, const struct spill_allocation *allocation,
                       const char *reason)
{
	if (!spill_log_active() ||
	    (spill_runtime_policy()->log_level != SPILL_LOG_ALL && !allocation->placement))
		return;
	char line[LINE];
	struct spill_record_free record = {
	    .time_us = spill_log_now_us(),
	    .seq = allocation->seq,
	    .order = allocation->order,
	    .tid = spill_log_tid(),
	    .device = allocation->device,
	    .api = spill_engine_api(request),
	    .caller = spill_engine_caller(request),
	    .ptr = allocation->ptr,
	    .bytes = allocation->bytes,
	    .place = allocation->place,
	    .reason = reason,
	};
	record.took_us = record.time_us - request->start_us;
	size_t length = spill_record_free(&record, line, sizeof(line));
	spill_log_write(line, length, SPILL_LOG_SOON);
}

void spill_report_oom(const struct spill_request *request, const struct spill_backend *backend, uint64_t free,
                      uint64_t total)
{
	if (!spill_log_active())
		return;
	char line[LINE];
	struct spill_totals totals;
	spill_ledger_totals(&totals);
	struct spill_record_oom record = {
	    .time_us = spill_log_now_us(),
	    .tid = spill_log_tid(),
	    .device = request->device,
	    .api = spill_engine_api(request),
	    .caller = spill_engine_caller(request),
	    .bytes = request->bytes,
	    .free = free,
	    .total = total,
	    .live = totals.live,
	    .rule = request->rule,
	    .refused_by = request->refused_by,
	    .would = would(request, backend),
	    .attempts = request->attempts,
	};
	memcpy(record.tried, request->tried, sizeof(record.tried));
	record.holders = spill_ledger_largest(record.top);
	size_t length = spill_record_oom(&record, line, sizeof(line));
	spill_log_write(line, length, SPILL_LOG_NOW);
}
