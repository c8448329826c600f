#include "oom_report.h"

#include <inttypes.h>
#include <string.h>

#include "amount.h"
#include "minmax.h"

#define MIB ((uint64_t)1 << 20)
/* What contexts and code take on a device at most. */
#define CONTEXTS ((uint64_t)1 << 30)

bool spill_oom_is_final(const char *refused_by)
{
	return spill_refused_by_of(refused_by) != SPILL_REFUSED_BY_HONEST_FIRST;
}

uint64_t spill_oom_elsewhere(const struct spill_record_oom *oom)
{
	/* The first logs had the largest holders, but no places. */
	uint64_t rest = oom->places || !oom->holders ? oom->live.device : 0;

	for (unsigned i = 0; i < oom->places; i++)
		rest = spill_minus(rest, oom->by_place[i].held.device);
	return rest;
}

bool spill_oom_others_have(uint64_t others, uint64_t missing)
{
	return spill_minus(others, missing) > CONTEXTS;
}

bool spill_oom_is_beyond(uint64_t bytes, uint64_t total)
{
	return bytes / SPILL_BEYOND > total;
}

/* Rounded up to a MiB, as a policy file has it. */
static struct spill_word amount_of(uint64_t bytes)
{
	uint64_t whole = spill_round_up(bytes, MIB);
	struct spill_word word;

	spill_amount_format((struct spill_amount){SPILL_AMOUNT_BYTES, whole}, word.text, sizeof(word.text));
	return word;
}

/*
 * "host.limit = 12GiB at least (it is 10.00 GiB; more if …)". False: a larger limit is not enough,
 * memory is missing.
 */
static bool advise_raise(struct spill_text *text, const struct spill_record_oom *oom, const char *option)
{
	const struct spill_refusal *refusal = &oom->refusal;

	if (!refusal->asked) {
		spill_text_format(text, "a larger %s", option);
		return true;
	}
	if (refusal->asked > refusal->room || refusal->held >= UINT64_MAX - refusal->asked)
		return false;
	/* Enough for this one request. */
	spill_text_format(text, "%s = %s at least (it is %s; more if the program goes on to ask)", option,
	                  amount_of(refusal->held + refusal->asked).text, spill_size(refusal->limit).text);
	return true;
}

static void add_rule(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (oom->rule)
		spill_text_format(text, " (rule %s)", oom->rule);
}

static void advise_device_limit(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (advise_raise(text, oom, "device.limit"))
		spill_text_add(text, ", or ");
	spill_text_add(text, "a place for memory above it (oom.chain)");
}

static void advise_host_limit(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (!advise_raise(text, oom, "host.limit"))
		spill_text_format(text,
		                  "%s more free memory of the host: a larger host.limit alone is not enough",
		                  spill_size(oom->refusal.asked - oom->refusal.room).text);
}

static void advise_host_reserve(struct spill_text *text, const struct spill_record_oom *oom)
{
	const struct spill_refusal *refusal = &oom->refusal;
	uint64_t room = spill_minus(refusal->held, refusal->limit), missing;

	if (!refusal->asked) {
		spill_text_add(text, "more free memory of the host, or a smaller host.reserve");
		return;
	}
	/* The missing part of the reserve, and the request on top of it. */
	missing = room ? spill_minus(refusal->asked, room)
	               : spill_minus(refusal->limit, refusal->held) + refusal->asked;
	spill_text_format(text, "%s more free memory of the host", spill_size(missing).text);
	/* Rounded down to a MiB: a reserve that is too large would refuse again. */
	if (refusal->held >= refusal->asked)
		spill_text_format(text, ", or host.reserve = %s",
		                  amount_of((refusal->held - refusal->asked) / MIB * MIB).text);
}

/* Was a step tried that puts memory off the device? */
static bool was_placement_tried(const struct spill_record_oom *oom)
{
	for (unsigned i = 0; i < oom->attempts; i++) {
		enum spill_step step = spill_step_of(oom->tried[i].place);

		if (step < SPILL_STEPS && spill_step_place(step) != SPILL_PLACE_DEVICE)
			return true;
	}
	return false;
}

/* This kind of memory must be on the device, whatever the options are (fallback_chain.c). */
static bool is_device_only(const struct spill_record_oom *oom)
{
	for (unsigned i = 0; i < oom->attempts; i++) {
		if (spill_refused_by_of(oom->tried[i].error) == SPILL_REFUSED_BY_KIND)
			return true;
	}
	return false;
}

/* A smaller reserve is the last resort: if loaded code finds no room, the program ends. */
static void advise_device_reserve(struct spill_text *text, const struct spill_record_oom *oom)
{
	const struct spill_refusal *refusal = &oom->refusal;

	if (is_device_only(oom))
		spill_text_add(text, "room on the device, because this kind of memory cannot be elsewhere");
	else
		spill_text_add(text, "a place for memory that does not fit (oom.chain)");
	/* Rounded down to a MiB: a reserve that is too large would refuse again. */
	if (refusal->asked)
		spill_text_format(text, ", or device.reserve = %s",
		                  amount_of(spill_minus(refusal->held, refusal->asked) / MIB * MIB).text);
	else
		spill_text_add(text, ", or a smaller device.reserve");
	spill_text_add(text, ", but code that is loaded later may then find no room");
}

static void advise_host_pressure(struct spill_text *text, const struct spill_record_oom *oom)
{
	(void)oom;
	spill_text_add(text, "more free memory of the host: other programs lack it, too");
}

static void advise_rule_place(struct spill_text *text, const struct spill_record_oom *oom)
{
	spill_text_add(text, "another place in the rule: it says refuse");
	add_rule(text, oom);
}

static void advise_rule_over(struct spill_text *text, const struct spill_record_oom *oom)
{
	spill_text_add(text, "another over in the rule: it says refuse");
	add_rule(text, oom);
}

static void advise_rule_cap(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (advise_raise(text, oom, oom->refusal.asked ? "cap" : "cap of the rule"))
		spill_text_add(text, ", or ");
	spill_text_add(text, "an over = PLACE for memory above it");
	add_rule(text, oom);
}

static void advise_capture(struct spill_text *text, const struct spill_record_oom *oom)
{
	(void)oom;
	spill_text_add(
	    text,
	    "the allocation before the capture begins, or a relaxed capture mode: the driver forbids this "
	    "thread to allocate now");
}

static void advise_honest(struct spill_text *text, const struct spill_record_oom *oom)
{
	(void)oom;
	spill_text_add(text,
	               "nothing: it surfaces once, so that the program frees its caches and asks again");
}

/* The driver had no room, and no step of the chain helped. */
static void advise_driver(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (is_device_only(oom))
		spill_text_add(text, "room on the device: this kind of memory cannot be elsewhere");
	else if (was_placement_tried(oom))
		spill_text_add(text, "other places (oom.chain): each place that was tried refused");
	else
		spill_text_add(
		    text, "a place for memory that does not fit: none was tried (oom.chain, over in a rule)");
}

static void add_held(struct spill_text *text, const char *name, uint64_t bytes, uint64_t count)
{
	spill_text_format(text, "%s holds %s in ", name, spill_size(bytes).text);
	if (count == 1)
		spill_text_add(text, "one piece");
	else
		spill_text_format(text, "%" PRIu64 " allocations", count);
}

/* "libfoo.so+0x1 holds 5.00 GiB in 12 allocations". False: no holder is known. */
static bool add_holder(struct spill_text *text, const struct spill_record_oom *oom)
{
	const struct spill_group *most = &oom->by_caller[0];
	const struct spill_holder *top = &oom->top[0];
	const char *group = spill_who_asked(most->name, most->requester);
	const char *holder = spill_who_asked(top->caller, top->requester);

	if (oom->callers && (group || most->count > 1))
		add_held(text, group ? group : "?", spill_bytes_all(&most->held), most->count);
	else if (oom->holders) /* the first logs had no callers */
		add_held(text, holder ? holder : top->api ? top->api : "?", top->bytes, 1);
	else
		return false;
	return true;
}

/* Missing device bytes: on the device, or below device.limit or device.reserve. */
static uint64_t missing_bytes(const struct spill_record_oom *oom)
{
	const struct spill_refusal *refusal = &oom->refusal;

	enum spill_refused_by by = spill_refused_by_of(oom->refused_by);

	if (by == SPILL_REFUSED_BY_DEVICE_LIMIT && refusal->asked)
		return spill_minus(refusal->asked, spill_minus(refusal->limit, refusal->held));
	if (by == SPILL_REFUSED_BY_DEVICE_RESERVE && refusal->asked)
		return spill_minus(refusal->asked, spill_minus(refusal->held, refusal->limit));
	return spill_minus(oom->bytes, oom->free);
}

/* llama.cpp's own programs are named llama-server, llama-bench and so on. */
static bool is_llama(const char *program)
{
	return program && !strncmp(program, "llama", 5);
}

void spill_advice_smaller(struct spill_text *text, const char *program)
{
	spill_text_format(text, "a smaller batch%s, or a shorter context length",
	                  is_llama(program) ? ", model or -ngl" : " or model");
}

/* "2.00 GiB less of other programs' memory on the device, which hold 134.42 GiB with contexts and code; or " */
static void advise_others(struct spill_text *text, const struct spill_record_oom *oom)
{
	uint64_t missing = missing_bytes(oom);
	uint64_t others = spill_minus(spill_minus(oom->total, oom->free), oom->ours);
	enum spill_refused_by by = spill_refused_by_of(oom->refused_by);
	bool of_driver = by != SPILL_REFUSED_BY_DEVICE_LIMIT && by != SPILL_REFUSED_BY_RULE_PLACE &&
	                 by != SPILL_REFUSED_BY_RULE_OVER && by != SPILL_REFUSED_BY_RULE_CAP &&
	                 by != SPILL_REFUSED_BY_HONEST_FIRST;

	if (of_driver && missing && (oom->ours || !oom->live.device) &&
	    spill_oom_others_have(others, missing))
		spill_text_format(text,
		                  "%s less of other programs' memory on the device, which hold %s of %s with "
		                  "contexts and code (nvidia-smi or rocm-smi shows whose); or ",
		                  spill_size(missing).text, spill_size(others).text,
		                  spill_size(oom->total).text);
}

static void advise_less(struct spill_text *text, const struct spill_record_oom *oom, const char *program)
{
	uint64_t bytes = missing_bytes(oom);
	size_t before;

	if (oom->total && oom->bytes > oom->total) { /* it does not fit on an empty device */
		spill_text_format(text, "; or less asked at once: all of the device is %s",
		                  spill_size(oom->total).text);
		return;
	}
	if (bytes) {
		spill_text_format(text, "; or %s less in use on the device, to get past this request (",
		                  spill_size(bytes).text);
		spill_advice_smaller(text, program);
		spill_text_add(text, ")");
	}
	before = text->length;
	spill_text_add(text, bytes ? ": " : "; or less, for example ");
	if (!add_holder(text, oom)) {
		text->length = before;
		text->buffer[before] = '\0';
	}
}

/* By the option or condition that refused last. */
static void (*const advise[])(struct spill_text *text, const struct spill_record_oom *oom) = {
    [SPILL_REFUSED_BY_DEVICE_LIMIT] = advise_device_limit,
    [SPILL_REFUSED_BY_DEVICE_RESERVE] = advise_device_reserve,
    [SPILL_REFUSED_BY_HOST_LIMIT] = advise_host_limit,
    [SPILL_REFUSED_BY_HOST_RESERVE] = advise_host_reserve,
    [SPILL_REFUSED_BY_HOST_PRESSURE] = advise_host_pressure,
    [SPILL_REFUSED_BY_RULE_PLACE] = advise_rule_place,
    [SPILL_REFUSED_BY_RULE_OVER] = advise_rule_over,
    [SPILL_REFUSED_BY_RULE_CAP] = advise_rule_cap,
    [SPILL_REFUSED_BY_CAPTURE] = advise_capture,
    [SPILL_REFUSED_BY_HONEST_FIRST] = advise_honest,
    [SPILL_REFUSED_BY_KIND] = advise_driver,
    [SPILL_REFUSED_BY_OTHER] = advise_driver,
};

void spill_advice_oom(struct spill_text *text, const struct spill_record_oom *oom, const char *program,
                      const char *problem)
{
	if (oom->total && spill_oom_is_beyond(oom->bytes, oom->total)) {
		spill_text_format(text,
		                  "nothing: it is more than %u times the memory of the device; fine if the "
		                  "program only tests how much there is, else a size is wrong",
		                  SPILL_BEYOND);
		return;
	}
	if (oom->would && strcmp(oom->would, "refuse") != 0) {
		if (problem)
			spill_text_format(text, "a policy without this error: %s; it", problem);
		else
			spill_text_add(text, "spill.mode = spill: it");
		spill_text_format(text, " would have been tried as %s", oom->would);
		return;
	}
	advise_others(text, oom);
	advise[spill_refused_by_of(oom->refused_by)](text, oom);
	if (spill_oom_is_final(oom->refused_by))
		advise_less(text, oom, program);
}
