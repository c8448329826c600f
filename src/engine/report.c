/*
 * What is said about decisions: a log line each, and one loud line at the first spill or demotion, because slowness
 * that nobody announced is worse than a failure (pitfall 15).
 */
#include <stdatomic.h>
#include <string.h>

#include "account.h"
#include "charge.h"
#include "live_page.h"
#include "engine.h"
#include "loud_line.h"
#include "postmortem.h"
#include "reserve_keeper.h"
#include "rules.h"
#include "scratch.h"
#include "text.h"

#define LINE SPILL_LOG_LINE
_Static_assert(LINE >= SPILL_STDERR_BLOCK && LINE <= SPILL_SCRATCH, "room of a block, and room for it");

static void loud_why(struct spill_text *text, const struct spill_request *request, const char *reason)
{
	bool by_rule = strcmp(reason, "rule") == 0 || request->capped;
	if (by_rule)
		spill_text_add(text, " (rule ");
	else
		spill_loud_line_device(text, request->device, request->over_limit);
	if (!by_rule)
		spill_text_add(text, ", rule ");
	spill_text_add(text, request->decision.rule);
	if (request->capped)
		spill_text_add(text, " at its cap");
}

static void loud(const struct spill_request *request, const struct spill_allocation *allocation,
                 const char *reason)
{
	char line[1024];
	struct spill_text text;
	uint64_t away = spill_ledger_away(allocation);
	if (!away) /* found room on the device after all */
		return;
	if (!spill_loud_line_begin(&text, line, sizeof(line), away, allocation->bytes))
		return;
	spill_text_add(&text,
	               allocation->held.managed ? " placed in managed memory" : " placed in host memory");
	loud_why(&text, request, reason);
	spill_loud_line_end(&text, line);
}

/* In observe mode: where it would have been instead of the device, by its rule or as the first place that is tried. */
static const char *would(const struct spill_request *request, const struct spill_backend *backend)
{
	const struct spill_decision *decision = &request->decision;
	if (!spill_process_observes())
		return NULL;
	if (decision->would == SPILL_VERDICT_PLACE)
		return spill_place_name(decision->place);
	if (decision->would == SPILL_VERDICT_REFUSE)
		return "refuse";
	if (!request->attempts)
		return NULL;
	const struct spill_ask ask = {.bytes = request->bytes, .device = request->device};
	const struct spill_full_view view = {
	    .capabilities = backend->devices->capabilities(request->device),
	    .capped = request->capped,
	    .supposed = true,
	};
	struct spill_fallback remedy =
	    spill_decide_full(spill_process_policy(), request->applied, &ask, &view);
	for (unsigned i = 0; i < remedy.count; i++)
		if (spill_step_place(remedy.step[i]) != SPILL_PLACE_DEVICE)
			return spill_step_name(remedy.step[i]);
	return "refuse";
}

/* For who looks on from outside: what is routine would hide what is not. */
static void decided_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                          const char *reason, const char *would)
{
	uint64_t away = spill_ledger_away(allocation);
	if (!away && !would)
		return;
	const struct spill_live_page_text text = {
	    .what = away                      ? "spill"
	            : strcmp(would, "refuse") ? "would spill"
	                                      : "would refuse",
	    .place = away ? spill_place_name(allocation->place) : would,
	    .reason = reason,
	    .rule = request->decision.rule,
	    .api = allocation->api,
	    .caller = allocation->caller,
	};
	spill_live_page_decided(allocation->device, away ? away : allocation->bytes, &text);
}

/* Of no interest to who wants to know of spills: as the vendor would have it, or able to move and all on the device. */
static bool routine(const struct spill_allocation *allocation)
{
	return !allocation->placement ||
	       (allocation->place == SPILL_PLACE_MOVABLE && !spill_ledger_is_spill(allocation));
}

static void log_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                      const char *reason, const char *instead)
{
	char *line = spill_scratch_take();
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
	    .rule = request->decision.rule,
	    .would = instead,
	    .attempts = request->attempts,
	};
	record.took_us = record.time_us - request->start_us;
	memcpy(record.tried, request->tried, sizeof(record.tried));
	size_t length = line ? spill_record_alloc(&record, line, LINE) : 0;
	spill_ledger_offer(line, length, routine(allocation) ? SPILL_LOG_SOON : SPILL_LOG_NOW,
	                   spill_ledger_is_spill(allocation) ? SPILL_DROP_SPILL : SPILL_DROP_ALLOC,
	                   &allocation->held);
	spill_scratch_give_back(line);
}

void spill_report_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                        const char *reason)
{
	const char *instead = would(request, allocation->backend);
	if (spill_log_active() &&
	    (spill_process_policy()->log_level == SPILL_LOG_ALL || !routine(allocation)))
		log_alloc(request, allocation, reason, instead);
	decided_alloc(request, allocation, reason, instead);
	if (spill_ledger_is_spill(allocation))
		spill_postmortem_count(reason, spill_ledger_away(allocation));
	if (allocation->placement)
		loud(request, allocation, reason);
}

void spill_report_free(const struct spill_request *request, const struct spill_allocation *allocation,
                       const char *reason)
{
	if (!spill_log_active() ||
	    (spill_process_policy()->log_level != SPILL_LOG_ALL && routine(allocation)))
		return;
	char *line = spill_scratch_take();
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
	size_t length = line ? spill_record_free(&record, line, LINE) : 0;
	spill_ledger_offer(line, length, SPILL_LOG_SOON, SPILL_DROP_FREE, &allocation->held);
	spill_scratch_give_back(line);
}

/* Figures of what refused, where it has some. */
static struct spill_refusal refusal(const struct spill_request *request, const struct spill_backend *backend,
                                    uint64_t free)
{
	const char *by = request->refused_by ? request->refused_by : "";
	struct spill_refusal figures = {.asked = request->weight ? request->weight : request->bytes,
	                                .room = free};
	if (strcmp(by, "host.limit") == 0 || strcmp(by, "host.reserve") == 0)
		return request->refusal;
	if (strcmp(by, "device.limit") == 0) {
		figures.limit = spill_device_limit(backend, request->device);
		figures.held = spill_account_device_held(request->device);
		return figures;
	}
	if (strcmp(by, "device.reserve") == 0) {
		figures.limit = spill_reserve_size(request->device);
		figures.held = free;
		return figures;
	}
	if (strcmp(by, "rule.cap") == 0) {
		figures.limit = request->applied->cap;
		figures.held = spill_rules_held(request);
		figures.asked = request->bytes;
		return figures;
	}
	return (struct spill_refusal){0};
}

/* Names of any length, in a line of ours: what does not fit is left out, the least wanted first. `record` is as it was behind it. */
static size_t oom_line(struct spill_record_oom *record, char line[LINE])
{
	const unsigned holders = record->holders, callers = record->callers;
	size_t length = spill_record_oom(record, line, LINE);
	for (; !length && record->holders; record->holders--)
		length = spill_record_oom(record, line, LINE);
	for (; !length && record->callers; record->callers--)
		length = spill_record_oom(record, line, LINE);
	record->holders = holders;
	record->callers = callers;
	return length;
}

void spill_report_oom(const struct spill_request *request, const struct spill_backend *backend, uint64_t free,
                      uint64_t total)
{
	struct spill_record_oom record = {
	    .time_us = spill_log_now_us(),
	    .tid = spill_log_tid(),
	    .device = request->device,
	    .api = spill_engine_api(request),
	    .caller = spill_engine_caller(request),
	    .bytes = request->bytes,
	    .free = free,
	    .total = total,
	    .ours = spill_account_device_held(request->device),
	    .rule = request->decision.rule,
	    .refused_by = request->refused_by,
	    .refusal = refusal(request, backend, free),
	    .would = would(request, backend),
	    .attempts = request->attempts,
	};
	const struct spill_live_page_text text = {
	    .what = "oom",
	    .reason = record.refused_by,
	    .rule = record.rule,
	    .api = record.api,
	    .caller = record.caller,
	};
	spill_live_page_decided(record.device, record.bytes, &text);
	bool told = spill_postmortem_due(&record);
	if (!told && !spill_log_active())
		return;
	memcpy(record.tried, request->tried, sizeof(record.tried));
	spill_ledger_holders(&record);
	char *line = spill_scratch_take();
	if (spill_log_active())
		spill_log_write(line, line ? oom_line(&record, line) : 0, SPILL_LOG_NOW);
	if (told && line)
		spill_postmortem_tell(&record, line);
	spill_scratch_give_back(line);
}
