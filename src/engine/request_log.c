/*
 * Reports of decisions: one log line for each, and one loud line on stderr at the first spill. A
 * program that becomes slow without a word is worse than one that fails.
 */
#include <string.h>

#include "account.h"
#include "admit.h"
#include "device_memory.h"
#include "live_page.h"
#include "metrics.h"
#include "stderr.h"
#include "postmortem.h"
#include "reserve_keeper.h"
#include "rules.h"
#include "scratch.h"
#include "text.h"

#define LINE SPILL_LOG_LINE
_Static_assert(LINE >= SPILL_STDERR_BLOCK && LINE <= SPILL_SCRATCH,
               "a scratch buffer holds a line, and a line holds a block");

static void add_loud_reason(struct spill_text *text, const struct spill_request *request,
                            enum spill_reason reason)
{
	if (reason == SPILL_REASON_RULE || request->admission.capped) {
		spill_text_add(text, " (rule ");
	} else {
		spill_loud_line_device(text, request->device, request->admission.over_limit);
		spill_text_add(text, ", rule ");
	}
	spill_text_add(text, request->admission.decision.rule);
	if (request->admission.capped)
		spill_text_add(text, " at its cap");
}

/* Nothing if the placement found room on the device after all. */
static void write_loud_line(const struct spill_request *request, const struct spill_allocation *allocation,
                            enum spill_reason reason)
{
	char line[1024];
	struct spill_text text;
	uint64_t away = spill_ledger_away(allocation);
	if (!away || !spill_loud_line_begin(&text, line, sizeof(line), away, allocation->bytes,
	                                    spill_ledger_away_now()))
		return;
	spill_text_add(&text,
	               allocation->held.managed ? " placed in managed memory" : " placed in host memory");
	add_loud_reason(&text, request, reason);
	spill_loud_line_end(&text, line);
}

/* In an enum spill_place: mode=spill would refuse; it would not spill. */
#define WOULD_REFUSE SPILL_PLACES
#define WOULD_NOT_SPILL SPILL_PLACE_DEVICE

/* mode=observe: the place with mode=spill, by the rule or as the first step off the device. */
static enum spill_place would_place(const struct spill_request *request, const struct spill_backend *backend)
{
	const struct spill_decision *decision = &request->admission.decision;
	if (!spill_process_observes())
		return WOULD_NOT_SPILL;
	if (decision->would == SPILL_VERDICT_PLACE)
		return decision->place;
	if (decision->would == SPILL_VERDICT_REFUSE)
		return WOULD_REFUSE;
	if (!request->admission.attempts)
		return WOULD_NOT_SPILL;
	const struct spill_ask ask = {.bytes = request->bytes, .device = request->device};
	const struct spill_full_view view = {
	    .capabilities = backend->devices->capabilities(request->device),
	    .capped = request->admission.capped,
	    .supposed = true,
	};
	struct spill_fallback fallback =
	    spill_decide_full(spill_process_policy(), request->admission.applied, &ask, &view);
	for (unsigned i = 0; i < fallback.count; i++)
		if (spill_step_place(fallback.step[i]) != SPILL_PLACE_DEVICE)
			return spill_step_place(fallback.step[i]);
	return WOULD_REFUSE;
}

/* For the log; NULL: as without spill. */
static const char *would_name(enum spill_place would)
{
	if (would == WOULD_NOT_SPILL)
		return NULL;
	return would == WOULD_REFUSE ? "refuse" : spill_place_name(would);
}

/* For the live page, which has no room for allocations that do not spill. */
static void publish_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                          enum spill_reason reason, enum spill_place would)
{
	uint64_t away = spill_ledger_away(allocation);
	if (!away && would == WOULD_NOT_SPILL)
		return;
	const struct spill_live_page_text text = {
	    .what = away                    ? "spill"
	            : would == WOULD_REFUSE ? "would refuse"
	                                    : "would spill",
	    .place = away ? spill_place_name(allocation->place) : would_name(would),
	    .reason = spill_reason_name(reason),
	    .rule = request->admission.decision.rule,
	    .api = allocation->api,
	    .caller = spill_who_asked(allocation->caller, allocation->requester),
	};
	spill_live_page_decided(allocation->device, away ? away : allocation->bytes, &text);
}

/* Needs no line with log.level = spills: memory of the vendor, or chunks on the device. */
static bool is_routine(const struct spill_allocation *allocation)
{
	return !allocation->placement ||
	       (allocation->place == SPILL_PLACE_MOVABLE && !spill_ledger_is_spill(allocation));
}

static bool needs_line(const struct spill_allocation *allocation)
{
	return spill_process_policy()->log_level != SPILL_LOG_SPILLS || !is_routine(allocation);
}

/* Smaller memory is summed: a program may have thousands, and none matters alone. */
#define SUMMED_BELOW ((uint64_t)1 << 20)

/*
 * Small and stream-ordered memory of the vendor that fits is summed by call site, because a line
 * costs more than the allocation. Memory that spills, moves or had to wait for room has lines.
 */
static bool is_summed(const struct spill_request *request, const struct spill_allocation *allocation,
                      enum spill_reason reason)
{
	return reason == SPILL_REASON_FITS && allocation->place == SPILL_PLACE_DEVICE &&
	       !allocation->placement && !request->admission.attempts &&
	       (allocation->ordered || allocation->bytes < SUMMED_BELOW) && spill_log_active() &&
	       spill_process_policy()->log_level == SPILL_LOG_ALL &&
	       would_place(request, allocation->backend) == WOULD_NOT_SPILL;
}

void spill_request_choose_line(const struct spill_request *request, struct spill_allocation *allocation,
                               enum spill_reason reason)
{
	if (is_summed(request, allocation, reason))
		allocation->sum_rule = request->admission.decision.rule;
}

/* Activity of the program, with or without a line of its own. */
static void write_due_lines(const struct spill_request *request)
{
	spill_metrics_look();
	if (!spill_log_active())
		return;
	spill_ledger_write_due_sums(request->start_us);
	spill_log_activity(request->start_us);
}

/* The driver's figures matter if the request did not simply fit. */
static struct spill_seen seen_by(const struct spill_request *request,
                                 const struct spill_allocation *allocation)
{
	if (!request->admission.attempts && !spill_ledger_is_spill(allocation))
		return (struct spill_seen){0};
	return spill_device_seen(allocation->device);
}

static void log_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                      enum spill_reason reason, enum spill_place would)
{
	char *line = spill_scratch_take();
	struct spill_record_alloc record = {
	    .time_us = spill_log_now_us(),
	    .seq = allocation->seq,
	    .order = allocation->order,
	    .level = allocation->level,
	    .tid = spill_log_tid(),
	    .device = allocation->device,
	    .api = allocation->api,
	    .caller = allocation->caller,
	    .requester = allocation->requester,
	    .bytes = allocation->bytes,
	    .ptr = allocation->ptr,
	    .place = allocation->place,
	    .held = allocation->held,
	    .reason = spill_reason_name(reason),
	    .rule = request->admission.decision.rule,
	    .would = would_name(would),
	    .attempts = request->admission.attempts,
	    .seen = seen_by(request, allocation),
	};
	record.took_us = record.time_us - request->start_us;
	memcpy(record.tried, request->admission.tried, sizeof(record.tried));
	size_t length = line ? spill_record_alloc(&record, line, LINE) : 0;
	/* If the program is killed, the line that tells what was done to make room explains most. */
	bool waits = is_routine(allocation) && !record.attempts;
	spill_ledger_offer(line, length, waits ? SPILL_LOG_SOON : SPILL_LOG_NOW,
	                   spill_ledger_is_spill(allocation) ? SPILL_DROP_SPILL : SPILL_DROP_ALLOC,
	                   &allocation->held);
	spill_scratch_give_back(line);
}

void spill_request_log_alloc(const struct spill_request *request, const struct spill_allocation *allocation,
                             enum spill_reason reason)
{
	write_due_lines(request);
	if (allocation->sum || allocation->part)
		return;
	enum spill_place would = would_place(request, allocation->backend);
	if (spill_log_active() && needs_line(allocation))
		log_alloc(request, allocation, reason, would);
	publish_alloc(request, allocation, reason, would);
	if (spill_ledger_is_spill(allocation))
		spill_postmortem_count(reason, spill_ledger_away(allocation));
	if (allocation->placement)
		write_loud_line(request, allocation, reason);
}

void spill_request_log_free(const struct spill_request *request, const struct spill_allocation *allocation,
                            enum spill_reason reason)
{
	write_due_lines(request);
	if (!spill_log_active() || allocation->sum || allocation->part || !needs_line(allocation))
		return;
	char *line = spill_scratch_take();
	struct spill_record_free record = {
	    .time_us = spill_log_now_us(),
	    .seq = allocation->seq,
	    .order = allocation->order,
	    .level = allocation->level,
	    .tid = spill_log_tid(),
	    .device = allocation->device,
	    .api = spill_engine_api(request),
	    .caller = spill_engine_site(request) ? spill_engine_caller(request) : NULL, /* our maintenance */
	    .ptr = allocation->ptr,
	    .bytes = allocation->bytes,
	    .place = allocation->place,
	    .reason = spill_reason_name(reason),
	};
	record.took_us = record.time_us - request->start_us;
	size_t length = line ? spill_record_free(&record, line, LINE) : 0;
	spill_ledger_offer(line, length, SPILL_LOG_SOON, SPILL_DROP_FREE, &allocation->held);
	spill_scratch_give_back(line);
}

/* The figures of the refusal, if it has some. */
static struct spill_refusal refusal_figures(const struct spill_request *request,
                                            const struct spill_backend *backend, uint64_t free)
{
	const struct spill_admission *admission = &request->admission;
	struct spill_refusal figures = {.asked = spill_admit_weight(request), .room = free};
	switch (admission->refused_by) {
	case SPILL_REFUSED_BY_HOST_LIMIT:
	case SPILL_REFUSED_BY_HOST_RESERVE:
		return admission->refusal;
	case SPILL_REFUSED_BY_DEVICE_LIMIT:
		figures.limit = spill_device_limit(backend, request->device);
		figures.held = spill_account_device_held(request->device);
		return figures;
	case SPILL_REFUSED_BY_DEVICE_RESERVE:
		figures.limit = spill_reserve_size(request->device);
		figures.held = free;
		return figures;
	case SPILL_REFUSED_BY_RULE_CAP:
		figures.limit = admission->applied->cap;
		figures.held = spill_rules_held(request);
		figures.asked = request->bytes;
		return figures;
	default:
		return (struct spill_refusal){0};
	}
}

/*
 * Writes the oom line. Names have any length: entries are left out until the line fits, holders
 * first, the smallest first. `record` stays as it is.
 */
static size_t write_oom_line(struct spill_record_oom *record, char line[LINE])
{
	const unsigned holders = record->holders, callers = record->callers;
	size_t length = spill_record_oom(record, line, LINE);
	while (!length && (record->holders || record->callers)) {
		unsigned *left = record->holders ? &record->holders : &record->callers;
		--*left;
		length = spill_record_oom(record, line, LINE);
	}
	record->holders = holders;
	record->callers = callers;
	return length;
}

void spill_request_log_oom(const struct spill_request *request, const struct spill_backend *backend,
                           uint64_t free, uint64_t total)
{
	spill_ledger_write_sums(); /* its figures follow from the lines before it */
	struct spill_record_oom record = {
	    .time_us = spill_log_now_us(),
	    .tid = spill_log_tid(),
	    .device = request->device,
	    .api = spill_engine_api(request),
	    .caller = spill_engine_caller(request),
	    .requester = spill_engine_requester(request),
	    .bytes = request->bytes,
	    .free = free,
	    .total = total,
	    .ours = spill_account_device_held(request->device),
	    .rule = request->admission.decision.rule,
	    .refused_by = request->admission.refused_word,
	    .refusal = refusal_figures(request, backend, free),
	    .would = would_name(would_place(request, backend)),
	    .attempts = request->admission.attempts,
	};
	const struct spill_live_page_text text = {
	    .what = "oom",
	    .reason = record.refused_by,
	    .rule = record.rule,
	    .api = record.api,
	    .caller = spill_who_asked(record.caller, record.requester),
	};
	spill_live_page_decided(record.device, record.bytes, &text);
	spill_metrics_look();
	bool told = spill_postmortem_due(request->admission.refused_by);
	if (!told && !spill_log_active())
		return;
	memcpy(record.tried, request->admission.tried, sizeof(record.tried));
	spill_ledger_holders(&record);
	char *line = spill_scratch_take();
	if (spill_log_active())
		spill_log_write(line, line ? write_oom_line(&record, line) : 0, SPILL_LOG_NOW);
	if (told && line)
		spill_postmortem_tell(&record, line);
	spill_scratch_give_back(line);
}
