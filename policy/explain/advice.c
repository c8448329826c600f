#include "oom_report.h"

#include <string.h>

#include "amount.h"
#include "minmax.h"

#define MIB ((uint64_t)1 << 20)

static bool is(const char *text, const char *word)
{
	return text && strcmp(text, word) == 0;
}

bool spill_oom_is_final(const char *refused_by)
{
	return !is(refused_by, "oom.honest_first");
}

uint64_t spill_oom_elsewhere(const struct spill_record_oom *oom)
{
	/* The first logs told no places, but of what was held the largest. */
	uint64_t rest = oom->places || !oom->holders ? oom->live.device : 0;

	for (unsigned i = 0; i < oom->places; i++)
		rest = spill_minus(rest, oom->by_place[i].held.device);
	return rest;
}

bool spill_oom_is_beyond(uint64_t bytes, uint64_t total)
{
	return bytes / SPILL_BEYOND > total;
}

/* As it can be written in a policy file, up to the next MiB. */
static void add_amount(struct spill_text *text, uint64_t bytes)
{
	char amount[32];
	uint64_t whole = bytes > UINT64_MAX - MIB ? bytes : (bytes + MIB - 1) / MIB * MIB;

	spill_amount_format((struct spill_amount){SPILL_AMOUNT_BYTES, whole}, amount, sizeof(amount));
	spill_text_add(text, amount);
}

/* "host.limit = 12GiB (it is 10.00 GiB)". False if that would not do: the memory itself is not there. */
static bool advise_raise(struct spill_text *text, const struct spill_record_oom *oom, const char *option)
{
	const struct spill_refusal *refusal = &oom->refusal;

	if (!refusal->asked) {
		spill_text_add(text, "a larger ");
		spill_text_add(text, option);
		return true;
	}
	if (refusal->asked > refusal->room || refusal->held > UINT64_MAX - refusal->asked)
		return false;
	spill_text_add(text, option);
	spill_text_add(text, " = ");
	add_amount(text, refusal->held + refusal->asked);
	spill_text_add(text, " (it is ");
	spill_text_size(text, refusal->limit);
	spill_text_add(text, ")");
	return true;
}

static void of_rule(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (!oom->rule)
		return;
	spill_text_add(text, " (rule ");
	spill_text_add(text, oom->rule);
	spill_text_add(text, ")");
}

static void advise_device_limit(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (advise_raise(text, oom, "device.limit"))
		spill_text_add(text, ", or ");
	spill_text_add(text, "a place for what is above it (oom.chain)");
}

static void advise_host_limit(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (advise_raise(text, oom, "host.limit"))
		return;
	spill_text_size(text, oom->refusal.asked - oom->refusal.room);
	spill_text_add(text, " more free memory of the host: a larger host.limit alone is not enough");
}

static void advise_host_reserve(struct spill_text *text, const struct spill_record_oom *oom)
{
	const struct spill_refusal *refusal = &oom->refusal;
	uint64_t room = spill_minus(refusal->held, refusal->limit);

	if (!refusal->asked) {
		spill_text_add(text, "more free memory of the host, or a smaller host.reserve");
		return;
	}
	/* What is short of the reserve already, and what was asked on top of it. */
	spill_text_size(text, room ? spill_minus(refusal->asked, room)
	                           : spill_minus(refusal->limit, refusal->held) + refusal->asked);
	spill_text_add(text, " more free memory of the host");
	if (refusal->held >= refusal->asked) {
		spill_text_add(text, ", or host.reserve = ");
		/* Down to a MiB: what is kept free is to be less. */
		add_amount(text, (refusal->held - refusal->asked) / MIB * MIB);
	}
}

static bool was_tried(const struct spill_record_oom *oom, const char *place)
{
	for (unsigned i = 0; i < oom->attempts; i++) {
		if (is(oom->tried[i].place, place))
			return true;
	}
	return false;
}

/* This kind of memory is on the device or nowhere, whatever the options say (chain.c). */
static bool is_nowhere_else(const struct spill_record_oom *oom)
{
	for (unsigned i = 0; i < oom->attempts; i++) {
		if (is(oom->tried[i].error, "this kind of memory cannot be elsewhere"))
			return true;
	}
	return false;
}

/* Code that finds no room when it is loaded ends the program: a smaller reserve is the last resort. */
static void advise_device_reserve(struct spill_text *text, const struct spill_record_oom *oom)
{
	const struct spill_refusal *refusal = &oom->refusal;

	if (is_nowhere_else(oom))
		spill_text_add(text, "room on the device, as this kind of memory cannot be elsewhere");
	else
		spill_text_add(text, "a place for what does not fit (oom.chain)");
	spill_text_add(text, refusal->asked ? ", or device.reserve = " : ", or a smaller device.reserve");
	/* Down to a MiB: what is kept free is to be less. */
	if (refusal->asked)
		add_amount(text, spill_minus(refusal->held, refusal->asked) / MIB * MIB);
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
	of_rule(text, oom);
}

static void advise_rule_over(struct spill_text *text, const struct spill_record_oom *oom)
{
	spill_text_add(text, "another over in the rule: it says refuse");
	of_rule(text, oom);
}

static void advise_rule_cap(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (advise_raise(text, oom, oom->refusal.asked ? "cap" : "cap of the rule"))
		spill_text_add(text, ", or ");
	spill_text_add(text, "an over = PLACE for what is above it");
	of_rule(text, oom);
}

static void advise_capture(struct spill_text *text, const struct spill_record_oom *oom)
{
	(void)oom;
	spill_text_add(
	    text, "the allocation before the capture begins: within one nothing can be placed elsewhere");
}

static void advise_honest(struct spill_text *text, const struct spill_record_oom *oom)
{
	(void)oom;
	spill_text_add(text,
	               "nothing: it surfaces once, so that the program frees its caches and asks again");
}

/* By what refused last. */
static const struct {
	const char *refused_by;
	void (*advise)(struct spill_text *text, const struct spill_record_oom *oom);
} by_refusal[] = {
    {"device.limit", advise_device_limit}, {"host.limit", advise_host_limit},
    {"host.reserve", advise_host_reserve}, {"host.pressure", advise_host_pressure},
    {"rule.place", advise_rule_place},     {"rule.over", advise_rule_over},
    {"rule.cap", advise_rule_cap},         {"stream capture", advise_capture},
    {"oom.honest_first", advise_honest},   {"device.reserve", advise_device_reserve},
};

/* By nothing of ours: the driver had no room, and no step of the chain helped. */
static void advise_driver(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (is_nowhere_else(oom))
		spill_text_add(text, "room on the device: this kind of memory cannot be elsewhere");
	else if (was_tried(oom, "split") || was_tried(oom, "managed") || was_tried(oom, "host"))
		spill_text_add(text, "other places (oom.chain): those that were tried refused");
	else
		spill_text_add(text,
		               "a place for what does not fit: none was tried (oom.chain, over in a rule)");
}

static void add_held(struct spill_text *text, const char *name, uint64_t bytes, uint64_t count)
{
	spill_text_add(text, name);
	spill_text_add(text, " holds ");
	spill_text_size(text, bytes);
	if (count == 1) {
		spill_text_add(text, " in one piece");
		return;
	}
	spill_text_add(text, " in ");
	spill_text_number(text, count);
	spill_text_add(text, " allocations");
}

/* "libfoo.so+0x1 holds 5.00 GiB in 12 allocations" */
static bool add_holder(struct spill_text *text, const struct spill_record_oom *oom)
{
	const struct spill_group *most = &oom->by_caller[0];
	const struct spill_holder *top = &oom->top[0];

	if (oom->callers && (most->name || most->count > 1))
		add_held(text, most->name ? most->name : "?", spill_bytes_all(&most->held), most->count);
	else if (oom->holders) /* the first logs did not tell callers */
		add_held(text, top->caller ? top->caller : top->api ? top->api : "?", top->bytes, 1);
	else
		return false;
	return true;
}

/* What of the device itself was missing, or below device.limit. */
static uint64_t missing(const struct spill_record_oom *oom)
{
	const struct spill_refusal *refusal = &oom->refusal;

	if (is(oom->refused_by, "device.limit") && refusal->asked)
		return spill_minus(refusal->asked, spill_minus(refusal->limit, refusal->held));
	if (is(oom->refused_by, "device.reserve") && refusal->asked)
		return spill_minus(refusal->asked, spill_minus(refusal->held, refusal->limit));
	return spill_minus(oom->bytes, oom->free);
}

static void advise_less(struct spill_text *text, const struct spill_record_oom *oom)
{
	uint64_t bytes = missing(oom);
	size_t before;

	if (oom->total && oom->bytes > oom->total) { /* were all else free, it would not fit */
		spill_text_add(text, "; or less asked at once: all of the device is ");
		spill_text_size(text, oom->total);
		return;
	}
	if (bytes) {
		spill_text_add(text, "; or ");
		spill_text_size(text, bytes);
		spill_text_add(text, " less in use on the device (a smaller context, batch or -ngl)");
	}
	before = text->length;
	spill_text_add(text, bytes ? ": " : "; or less, for example ");
	if (!add_holder(text, oom)) {
		text->length = before;
		text->buffer[before] = '\0';
	}
}

static void advise_beyond(struct spill_text *text)
{
	spill_text_add(text, "nothing: it is more than ");
	spill_text_number(text, SPILL_BEYOND);
	spill_text_add(text, " times what the device has; fine if the program tries out how much there "
	                     "is, else a size is wrong");
}

void spill_advice_oom(struct spill_text *text, const struct spill_record_oom *oom)
{
	if (oom->total && spill_oom_is_beyond(oom->bytes, oom->total)) {
		advise_beyond(text);
		return;
	}
	if (oom->would && strcmp(oom->would, "refuse") != 0) {
		spill_text_add(text, "spill.mode = spill: it would have been tried as ");
		spill_text_add(text, oom->would);
		return;
	}
	for (size_t i = 0; i < sizeof(by_refusal) / sizeof(by_refusal[0]); i++) {
		if (!is(oom->refused_by, by_refusal[i].refused_by))
			continue;
		by_refusal[i].advise(text, oom);
		if (spill_oom_is_final(oom->refused_by))
			advise_less(text, oom);
		return;
	}
	advise_driver(text, oom);
	advise_less(text, oom);
}
