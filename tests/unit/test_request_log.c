/*
 * What is told of a decision, and where: a line of the log, the loud line, the live page, sums. All that request_log.c calls is
 * replaced, so that each line is seen as a structure.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "account.h"
#include "admit.h"
#include "device_memory.h"
#include "live_page.h"
#include "log.h"
#include "memory_limit.h"
#include "metrics.h"
#include "postmortem.h"
#include "reserve.h"
#include "rules.h"
#include "said.h"
#include "scratch.h"
#include "stderr.h"

enum { DEVICE = 2, PTR = 4096, ASKED = 100, NOW = 500, BEGAN = 420 };

static struct spill_policy policy;
static bool with_log, no_room, loud, postmortem_due;
static struct spill_fallback fallback;
static struct spill_full_view view;
static char line[SPILL_LOG_LINE], loud_text[512];

static unsigned capabilities(int device)
{
	return (unsigned)device + 40;
}

static const struct spill_vendor_devices devices = {.capabilities = capabilities};
static const struct spill_backend backend = {.devices = &devices};

/* -- what is replaced ---------------------------------------------------------------------------------------------- */

bool spill_log_active(void)
{
	return with_log;
}

uint64_t spill_log_now_us(void)
{
	return NOW;
}

int spill_log_tid(void)
{
	return 11;
}

void spill_log_write(const char *text, size_t length, enum spill_log_when when)
{
	assert_ptr_equal(text, no_room ? NULL : line);
	say(when == SPILL_LOG_NOW ? "write now" : "write soon", length);
}

void spill_log_activity(uint64_t now_us)
{
	say("activity", now_us);
}

void *spill_scratch_take(void)
{
	return no_room ? NULL : line;
}

void spill_scratch_give_back(void *room)
{
	assert_ptr_equal(room, no_room ? NULL : line);
	if (said[0]) /* the frame of the tests looks for memory that was not given back, too */
		say("back", 0);
}

uint64_t spill_ledger_away_now(void)
{
	return 77;
}

bool spill_loud_line_begin(struct spill_text *text, char *buffer, size_t size, uint64_t part, uint64_t whole,
                           uint64_t away)
{
	assert_int_equal(whole, ASKED);
	assert_int_equal(away, 77);
	say("loud", part);
	*text = spill_text_begin(buffer, size);
	return loud;
}

void spill_loud_line_device(struct spill_text *text, int device, bool at_limit)
{
	assert_int_equal(device, DEVICE);
	spill_text_add(text, at_limit ? " (limit" : " (full");
}

void spill_loud_line_end(struct spill_text *text, const char *buffer)
{
	memcpy(loud_text, text->buffer, text->length);
	loud_text[text->length] = '\0';
}

struct spill_fallback spill_decide_full(const struct spill_policy *in_force, const struct spill_rule *rule,
                                        const struct spill_ask *ask, const struct spill_full_view *seen)
{
	assert_true(in_force == &policy && ask->bytes == ASKED && ask->device == DEVICE);
	view = *seen;
	return fallback;
}

void spill_live_page_decided(int device, uint64_t bytes, const struct spill_live_page_text *text)
{
	char words[256];
	assert_int_equal(device, DEVICE);
	snprintf(words, sizeof(words), "%s/%s/%s/%s/%s/%s", text->what, text->place ? text->place : "-",
	         text->reason ? text->reason : "-", text->rule, text->api, text->caller);
	say(words, bytes);
}

_Atomic int spill_metrics_state;

void spill_metrics_start(void)
{
	say("metrics", 0);
}

void spill_ledger_write_sums(void)
{
	say("sums", 0);
}

void spill_ledger_write_due_sums(uint64_t now_us)
{
	say("due sums", now_us);
}

struct spill_seen spill_device_seen(int device)
{
	assert_int_equal(device, DEVICE);
	return (struct spill_seen){.free = 5, .total = 6};
}

static struct spill_record_alloc alloc;
static struct spill_record_free freed;
static struct spill_record_oom oom;
static unsigned fitting; /* holders and callers that an oom line has room for */

size_t spill_record_alloc(const struct spill_record_alloc *record, char *buffer, size_t size)
{
	assert_int_equal(size, SPILL_LOG_LINE);
	alloc = *record;
	return 33;
}

size_t spill_record_free(const struct spill_record_free *record, char *buffer, size_t size)
{
	assert_int_equal(size, SPILL_LOG_LINE);
	freed = *record;
	return 44;
}

size_t spill_record_oom(const struct spill_record_oom *record, char *buffer, size_t size)
{
	assert_int_equal(size, SPILL_LOG_LINE);
	oom = *record;
	return record->holders + record->callers <= fitting ? 55 : 0;
}

void spill_ledger_offer(const char *text, size_t length, enum spill_log_when when, enum spill_drop kind,
                        const struct spill_bytes *bytes)
{
	static const char *const kinds[] = {
	    [SPILL_DROP_ALLOC] = "alloc", [SPILL_DROP_SPILL] = "spill", [SPILL_DROP_FREE] = "free"};
	char words[64];
	assert_ptr_equal(text, no_room ? NULL : line);
	snprintf(words, sizeof(words), "%s %s of %d", kinds[kind], when == SPILL_LOG_NOW ? "now" : "soon",
	         (int)spill_bytes_all(bytes));
	say(words, length);
}

void spill_ledger_holders(struct spill_record_oom *record)
{
	record->holders = 3;
	record->callers = 2;
}

void spill_postmortem_count(enum spill_reason reason, uint64_t bytes)
{
	say(spill_reason_name(reason), bytes);
}

bool spill_postmortem_due(enum spill_refused_by refused_by)
{
	say("due", refused_by);
	return postmortem_due;
}

void spill_postmortem_tell(const struct spill_record_oom *record, char buffer[SPILL_STDERR_BLOCK])
{
	assert_ptr_equal(buffer, line);
	say("tell", 10 * record->holders + record->callers);
}

const char *spill_engine_api(const struct spill_request *request)
{
	return "cuTest";
}

const void *spill_engine_site(const struct spill_request *request)
{
	return request->caller;
}

const char *spill_engine_caller(const struct spill_request *request)
{
	return "caller";
}

const char *spill_engine_requester(const struct spill_request *request)
{
	return "requester";
}

uint64_t spill_device_limit(const struct spill_backend *of, int device)
{
	return of == &backend ? 1000u + (unsigned)device : 0;
}

uint64_t spill_account_device_held(int device)
{
	return 2000u + (unsigned)device;
}

uint64_t spill_reserve_size(int device)
{
	return 3000u + (unsigned)device;
}

uint64_t spill_rules_held(const struct spill_request *request)
{
	return 4000;
}

static struct spill_request request;
static struct spill_allocation allocation;
static struct spill_placement placement;

static int setup(void **state)
{
	with_log = loud = true;
	no_room = postmortem_due = false;
	policy = (struct spill_policy){.mode = SPILL_MODE_SPILL, .log_level = SPILL_LOG_ALL};
	spill_process_use_policy(&policy);
	spill_metrics_state = SPILL_METRICS_OFF;
	fallback = (struct spill_fallback){0};
	request = (struct spill_request){
	    .bytes = ASKED, .device = DEVICE, .start_us = BEGAN, .admission.decision.rule = "the rule"};
	allocation = (struct spill_allocation){.backend = &backend,
	                                       .ptr = PTR,
	                                       .bytes = ASKED,
	                                       .device = DEVICE,
	                                       .seq = 8,
	                                       .held.device = ASKED,
	                                       .api = "cuMem",
	                                       .caller = "its caller"};
	fitting = 10;
	memset(&alloc, 0, sizeof(alloc));
	memset(&freed, 0, sizeof(freed));
	loud_text[0] = '\0';
	what_was_said();
	return 0;
}

/* Memory on the host in libspill's care. */
static void spilled(uint64_t host)
{
	allocation.placement = &placement;
	allocation.place = SPILL_PLACE_HOST;
	allocation.held = (struct spill_bytes){.device = ASKED - host, .host = host};
}

/* -- sums ------------------------------------------------------------------------------------------------------------ */

static bool is_summed(enum spill_reason reason)
{
	allocation.sum_rule = NULL;
	spill_request_choose_line(&request, &allocation, reason);
	if (allocation.sum_rule)
		assert_string_equal(allocation.sum_rule, "the rule");
	return allocation.sum_rule;
}

TEST(small_memory_that_fits_is_summed)
{
	assert_true(is_summed(SPILL_REASON_FITS));
	assert_false(is_summed(SPILL_REASON_LIMIT));
	allocation.place = SPILL_PLACE_MOVABLE;
	assert_false(is_summed(SPILL_REASON_FITS));
	allocation.place = SPILL_PLACE_DEVICE;
	allocation.placement = &placement;
	assert_false(is_summed(SPILL_REASON_FITS));
	allocation.placement = NULL;
	request.admission.attempts = 1;
	assert_false(is_summed(SPILL_REASON_FITS));
	request.admission.attempts = 0;
	with_log = false;
	assert_false(is_summed(SPILL_REASON_FITS));
	with_log = true;
	policy.log_level = SPILL_LOG_EACH;
	assert_false(is_summed(SPILL_REASON_FITS));
}

TEST(large_memory_is_summed_in_stream_order)
{
	allocation.bytes = (1 << 20) - 1;
	assert_true(is_summed(SPILL_REASON_FITS));
	allocation.bytes++;
	assert_false(is_summed(SPILL_REASON_FITS));
	allocation.ordered = true;
	assert_true(is_summed(SPILL_REASON_FITS));
}

TEST(what_would_spill_is_not_summed)
{
	policy.mode = SPILL_MODE_OBSERVE;
	assert_true(is_summed(SPILL_REASON_FITS));
	request.admission.decision.would = SPILL_VERDICT_REFUSE;
	assert_false(is_summed(SPILL_REASON_FITS));
}

/* -- allocations ------------------------------------------------------------------------------------------------------- */

#define BEFORE "due sums:420 activity:420"

static const char *told(enum spill_reason reason)
{
	spill_request_log_alloc(&request, &allocation, reason);
	return what_was_said();
}

TEST(memory_that_fits)
{
	assert_string_equal(told(SPILL_REASON_FITS), BEFORE " alloc soon of 100:33 back:0");
	assert_true(alloc.time_us == NOW && alloc.took_us == NOW - BEGAN && alloc.seq == 8 &&
	            alloc.ptr == PTR);
	assert_true(alloc.seen.total == 0 && !alloc.would && alloc.tid == 11 && alloc.bytes == ASKED);
	assert_string_equal(alloc.reason, "fits");
	assert_string_equal(alloc.rule, "the rule");
	/* A line that tells what was tried to make room is written at once. */
	request.admission.attempts = 1;
	request.admission.tried[0].place = "device";
	assert_string_equal(told(SPILL_REASON_OOM), BEFORE " alloc now of 100:33 back:0");
	assert_int_equal(alloc.seen.total, 6);
	assert_string_equal(alloc.tried[0].place, "device");
	request.admission.attempts = 0;
	no_room = true;
	assert_string_equal(told(SPILL_REASON_FITS), BEFORE " alloc soon of 100:0 back:0");
}

TEST(memory_with_a_sum_or_in_a_segment)
{
	allocation.sum = 1;
	assert_string_equal(told(SPILL_REASON_FITS), BEFORE);
	allocation.sum = 0;
	allocation.part = true;
	assert_string_equal(told(SPILL_REASON_FITS), BEFORE);
	spill_metrics_state = SPILL_METRICS_CHANGED;
	assert_string_equal(told(SPILL_REASON_FITS), "metrics:0 " BEFORE);
	with_log = false;
	assert_string_equal(told(SPILL_REASON_FITS), "metrics:0");
}

TEST(memory_that_spills)
{
	spilled(30);
	assert_string_equal(told(SPILL_REASON_OOM),
	                    BEFORE " spill now of 100:33 back:0 spill/host/oom/the rule/cuMem/its caller:30 "
	                           "oom:30 loud:30");
	assert_int_equal(alloc.seen.total, 6);
	assert_string_equal(loud_text, " placed in host memory (full, rule the rule");
	allocation.requester = "behind it";
	with_log = false;
	assert_string_equal(told(SPILL_REASON_OOM),
	                    "spill/host/oom/the rule/cuMem/behind it:30 oom:30 loud:30");
}

TEST(chunks_on_the_device)
{
	spilled(0);
	assert_string_equal(told(SPILL_REASON_FITS), BEFORE " alloc now of 100:33 back:0");
	allocation.place = SPILL_PLACE_MOVABLE;
	assert_string_equal(told(SPILL_REASON_FITS), BEFORE " alloc soon of 100:33 back:0");
	policy.log_level = SPILL_LOG_SPILLS;
	assert_string_equal(told(SPILL_REASON_FITS), BEFORE);
	spilled(30);
	allocation.place = SPILL_PLACE_MOVABLE;
	assert_true(strncmp(told(SPILL_REASON_OOM), BEFORE " spill now", strlen(BEFORE " spill now")) == 0);
	allocation.placement = NULL;
	assert_string_equal(told(SPILL_REASON_FITS), BEFORE);
}

TEST(the_loud_line)
{
	spilled(30);
	request.admission.over_limit = true;
	told(SPILL_REASON_LIMIT);
	assert_string_equal(loud_text, " placed in host memory (limit, rule the rule");
	request.admission.capped = true;
	told(SPILL_REASON_OOM);
	assert_string_equal(loud_text, " placed in host memory (rule the rule at its cap");
	request.admission.capped = false;
	allocation.held = (struct spill_bytes){.managed = ASKED};
	told(SPILL_REASON_RULE);
	assert_string_equal(loud_text, " placed in managed memory (rule the rule");
	loud = false;
	loud_text[0] = '\0';
	told(SPILL_REASON_RULE);
	assert_string_equal(loud_text, "");
}

/* -- mode=observe ------------------------------------------------------------------------------------------------------ */

/* What would be, in the log; and on the live page. */
static void would(const char *log, const char *page)
{
	char words[256];
	told(SPILL_REASON_FITS);
	assert_true(log ? alloc.would && strcmp(alloc.would, log) == 0 : !alloc.would);
	with_log = false;
	snprintf(words, sizeof(words), page ? "%s/fits/the rule/cuMem/its caller:100" : "", page);
	assert_string_equal(told(SPILL_REASON_FITS), words);
	with_log = true;
}

TEST(what_would_have_been)
{
	policy.mode = SPILL_MODE_OBSERVE;
	would(NULL, NULL);
	request.admission.decision.would = SPILL_VERDICT_PLACE;
	request.admission.decision.place = SPILL_PLACE_MANAGED;
	would("managed", "would spill/managed");
	request.admission.decision.would = SPILL_VERDICT_REFUSE;
	would("refuse", "would refuse/refuse");
	request.admission.decision.would = SPILL_VERDICT_FULL;
	would(NULL, NULL);
	request.admission.attempts = 1;
	would("refuse", "would refuse/refuse");
	assert_true(view.supposed && !view.capped && view.capabilities == DEVICE + 40);
	fallback = (struct spill_fallback){2, {SPILL_STEP_TRIM, SPILL_STEP_HOST}};
	would("host", "would spill/host");
	fallback.count = 1;
	would("refuse", "would refuse/refuse");
	policy.mode = SPILL_MODE_SPILL;
	would(NULL, NULL);
}

/* -- frees --------------------------------------------------------------------------------------------------------------- */

static const char *told_of_free(void)
{
	spill_request_log_free(&request, &allocation, SPILL_REASON_FREE);
	return what_was_said();
}

TEST(a_free)
{
	assert_string_equal(told_of_free(), BEFORE " free soon of 100:44 back:0");
	assert_true(freed.time_us == NOW && freed.took_us == NOW - BEGAN && freed.seq == 8 &&
	            freed.ptr == PTR);
	assert_string_equal(freed.reason, "free");
	assert_null(freed.caller);
	request.caller = &request;
	told_of_free();
	assert_string_equal(freed.caller, "caller");
	no_room = true;
	assert_string_equal(told_of_free(), BEFORE " free soon of 100:0 back:0");
	allocation.sum = 1;
	assert_string_equal(told_of_free(), BEFORE);
	allocation.sum = 0;
	allocation.part = true;
	assert_string_equal(told_of_free(), BEFORE);
	allocation.part = false;
	policy.log_level = SPILL_LOG_SPILLS;
	assert_string_equal(told_of_free(), BEFORE);
	with_log = false;
	assert_string_equal(told_of_free(), "");
}

/* -- out of memory --------------------------------------------------------------------------------------------------- */

static const char *told_of_oom(void)
{
	spill_request_log_oom(&request, &backend, 70, 80);
	return what_was_said();
}

#define OOM "sums:0 oom/-/the word/the rule/cuTest/requester:100 due:0"

TEST(an_out_of_memory)
{
	request.admission.refused_word = "the word";
	request.admission.attempts = 1;
	request.admission.tried[0].place = "device";
	assert_string_equal(told_of_oom(), OOM " write now:55 back:0");
	assert_true(oom.free == 70 && oom.total == 80 && oom.ours == 2002 && oom.holders == 3 && !oom.would);
	assert_string_equal(oom.tried[0].place, "device");
	postmortem_due = true;
	assert_string_equal(told_of_oom(), OOM " write now:55 tell:32 back:0");
	with_log = false;
	assert_string_equal(told_of_oom(), OOM " tell:32 back:0");
	no_room = true;
	assert_string_equal(told_of_oom(), OOM " back:0");
	with_log = true;
	assert_string_equal(told_of_oom(), OOM " write now:0 back:0");
	with_log = postmortem_due = no_room = false;
	spill_metrics_state = SPILL_METRICS_CHANGED;
	assert_string_equal(told_of_oom(),
	                    "sums:0 oom/-/the word/the rule/cuTest/requester:100 metrics:0 due:0");
}

/* Holders are left out first. The report on stderr has all. */
TEST(a_line_that_is_too_long)
{
	request.admission.refused_word = "the word";
	postmortem_due = true;
	for (fitting = 5; fitting > 0; fitting--) {
		assert_string_equal(told_of_oom(), OOM " write now:55 tell:32 back:0");
		assert_int_equal(oom.holders, fitting > 2 ? fitting - 2 : 0);
		assert_int_equal(oom.callers, fitting > 2 ? 2 : fitting);
	}
	assert_string_equal(told_of_oom(), OOM " write now:55 tell:32 back:0");
	assert_int_equal(oom.holders + oom.callers, 0);
}

static struct spill_refusal figures(enum spill_refused_by refused_by)
{
	request.admission.refused_by = refused_by;
	told_of_oom();
	return oom.refusal;
}

TEST(figures_of_what_refused)
{
	static const struct spill_rule capped = {.cap = 5000};
	struct spill_refusal found;
	request.admission.applied = &capped;
	request.admission.weight = ASKED + 7;
	request.admission.refusal = (struct spill_refusal){1, 2, 3, 4};
	found = figures(SPILL_REFUSED_BY_HOST_LIMIT);
	assert_true(found.limit == 1 && found.room == 4);
	found = figures(SPILL_REFUSED_BY_HOST_RESERVE);
	assert_true(found.limit == 1 && found.room == 4);
	found = figures(SPILL_REFUSED_BY_DEVICE_LIMIT);
	assert_true(found.limit == 1002 && found.held == 2002 && found.asked == ASKED + 7 &&
	            found.room == 70);
	found = figures(SPILL_REFUSED_BY_DEVICE_RESERVE);
	assert_true(found.limit == 3002 && found.held == 70 && found.asked == ASKED + 7 && found.room == 70);
	found = figures(SPILL_REFUSED_BY_RULE_CAP);
	assert_true(found.limit == 5000 && found.held == 4000 && found.asked == ASKED && found.room == 70);
	found = figures(SPILL_REFUSED_BY_CAPTURE);
	assert_true(found.limit == 0 && found.held == 0 && found.asked == 0 && found.room == 0);
}
