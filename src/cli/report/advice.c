/* Advice: what would have kept a run on the device. */
#include <inttypes.h>
#include <string.h>

#include "minmax.h"
#include "report.h"
#include "text.h"

/* True if the log lacks allocations. The known demand is then a lower bound. */
static bool is_partial(const struct cli_summary *summary)
{
	return !summary->all_told || summary->lost || summary->end.missing ||
	       summary->left_out[SPILL_DROP_ALLOC].count || summary->left_out[SPILL_DROP_SPILL].count;
}

/* "a smaller batch or model, …, so that …: ", or the comma behind another device's part. */
static void begin_smaller(struct spill_text *text, const struct cli_summary *summary)
{
	if (text->length) {
		spill_text_add(text, ", ");
		return;
	}
	spill_advice_smaller(text, summary->program);
	spill_text_format(text, ", so that no %s is needed: ", spill_story_where(&summary->story));
}

uint64_t cli_report_reserve(const struct cli_summary *summary, const struct cli_device *device)
{
	return cli_table_find(&summary->demoted, "reserve") ? device->reserve : 0;
}

/*
 * "less memory of other programs on device 0, which held 134.42 GiB of 139.80 GiB with contexts and code:
 * 1.73 GiB less is enough". It comes first, because they are to blame. The demand fits beside the contexts.
 */
static void advise_others(struct spill_text *text, const struct cli_device *device, uint64_t less)
{
	spill_text_format(text,
	                  "%sless memory of other programs on device %u: they held %s of %s, with contexts "
	                  "and code, and %s less is enough (nvidia-smi or rocm-smi shows whose)",
	                  text->length ? "; " : "", (unsigned)device->device,
	                  spill_size(cli_fit_row(device, 0).others).text, spill_size(device->bytes).text,
	                  spill_size(less).text);
}

/* So much less in other programs, and all would have fitted. 0: that was not the reason. */
static uint64_t less_of_others(const struct cli_summary *summary, const struct cli_device *device)
{
	struct cli_fit_row row = cli_fit_row(device, 0);
	uint64_t reserve = cli_report_reserve(summary, device), less = 0 - (uint64_t)row.surplus + reserve;
	bool to_blame = device->bytes && row.surplus < 0 &&
	                device->fit.wanted + reserve <= spill_min(device->bytes, device->limit) &&
	                spill_oom_others_have(row.others, less);

	return to_blame ? less : 0;
}

/* "1.73 GiB less on device 0 (7.08 GiB needed + 64.00 MiB device.reserve - 5.42 GiB room = …)" */
static void advise_device(struct spill_text *text, const struct cli_summary *summary,
                          const struct cli_device *device, bool partial)
{
	struct cli_fit_row row = cli_fit_row(device, 0);
	uint64_t reserve = cli_report_reserve(summary, device);
	struct spill_word less;

	if (!device->bytes || row.surplus >= 0)
		return;
	less = spill_size(0 - (uint64_t)row.surplus + reserve);
	begin_smaller(text, summary);
	spill_text_format(text, "%s%s less on device %u (%s needed", partial ? "at least " : "", less.text,
	                  (unsigned)device->device, spill_size(device->fit.wanted).text);
	if (reserve)
		spill_text_format(text, " + %s device.reserve", spill_size(reserve).text);
	spill_text_format(text, " - %s room = %s)", spill_size(row.usable).text, less.text);
	if (row.others && !less_of_others(summary, device) &&
	    device->fit.wanted + reserve <= spill_min(device->bytes, device->limit))
		spill_text_format(text, ", or as much less of other programs, contexts and libraries there");
	if (partial || device->limit >= device->bytes || device->fit.wanted > device->bytes)
		return;
	/* device.limit counts the driver's whole blocks, which only a replay's model has. */
	spill_text_format(
	    text, ", or device.limit = %" PRIu64 " or a little more (spill replay has the exact value)",
	    device->fit.wanted);
}

/* "; 2 requests of more than 16 times device 0 are left out: …" */
static void advise_beyond(struct spill_text *text, const struct cli_device *device)
{
	if (device->beyond)
		spill_text_format(text,
		                  "%s%" PRIu64
		                  " request%s of more than %u times device %u would fit nowhere: "
		                  "either the program probes for memory, or a size is wrong",
		                  text->length ? "; " : "nothing: ", device->beyond,
		                  device->beyond == 1 ? "" : "s", SPILL_BEYOND, (unsigned)device->device);
}

static uint64_t count_beyond(const struct cli_summary *summary)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < summary->device_count; i++)
		sum += summary->devices[i].beyond;
	return sum;
}

/* True if mode=observe kept an out of memory from another place (spill_advice_oom). */
static bool only_observed(const struct cli_summary *summary)
{
	const struct cli_ooms *ooms = &summary->ooms;

	for (uint64_t i = 0; i < cli_ooms_kept(ooms); i++) {
		if (ooms->list[i].would && strcmp(ooms->list[i].would, "refuse") != 0)
			return true;
	}
	return false;
}

/* True if memory left the device, or a request was refused that could fit. */
static bool device_was_short(const struct cli_summary *summary)
{
	return summary->totals.spills || summary->totals.demotions ||
	       summary->ooms.count > count_beyond(summary);
}

/* True if memory moved only for device.reserve, and not more than that. */
static bool only_for_reserve(const struct cli_summary *summary)
{
	const struct cli_row *moved = cli_table_find(&summary->demoted, "reserve");
	uint64_t reserve = 0;

	for (size_t i = 0; i < summary->device_count; i++)
		reserve += summary->devices[i].reserve;
	return !summary->totals.spills && summary->demoted.count == 1 && moved && moved->bytes <= reserve;
}

static bool spilled_by(const struct cli_summary *summary, const char *reason)
{
	const struct cli_row *row = cli_table_find(&summary->views[CLI_BY_REASON], reason);

	return row && row->spilled;
}

/* True if a refusal begins with `word`, for a request that could fit. */
static bool refused_by(const struct cli_summary *summary, const char *word)
{
	const struct cli_ooms *ooms = &summary->ooms;

	for (uint64_t i = 0; i < cli_ooms_kept(ooms); i++) {
		const struct spill_record_oom *oom = &ooms->list[i];

		if (oom->refused_by && !strncmp(oom->refused_by, word, strlen(word)) &&
		    oom->bytes <= oom->total)
			return true;
	}
	return false;
}

static void add_advice(struct spill_text *text, const char *advice)
{
	spill_text_format(text, "%s%s", text->length ? "; " : "", advice);
}

#define A_CAP "a larger cap in the rules that have one"

/* There was room within the limit: a cap was met, or memory of the driver, which no log shows. */
static void advise_limits(struct spill_text *text, const struct cli_summary *summary)
{
	bool limit = spilled_by(summary, "limit") || cli_table_find(&summary->demoted, "limit");

	if ((limit && summary->capped) || refused_by(summary, "rule.cap"))
		add_advice(text, A_CAP);
	if ((limit && !summary->capped) || refused_by(summary, "device.limit"))
		add_advice(text,
		           "a larger device.limit, which counts the driver's whole blocks; spill replay has "
		           "the value");
}

/* True if a cap caused spills, and no device.limit could have. */
static bool met_cap(const struct cli_summary *summary)
{
	for (size_t i = 0; i < summary->device_count; i++) {
		if (summary->devices[i].limit < summary->devices[i].bytes)
			return false;
	}
	return summary->capped && spilled_by(summary, "limit");
}

static void advise_rules(struct spill_text *text, const struct cli_summary *summary, bool partial)
{
	bool fits = !text->length && !partial;

	if (spilled_by(summary, "rule"))
		add_advice(text, "another place in the rules that set one");
	if (fits)
		advise_limits(text, summary);
	else if (met_cap(summary))
		add_advice(text, A_CAP);
	if (!text->length && refused_by(summary, "rule."))
		add_advice(text, "another setting in the rule that refused");
}

/* True if the log tells what others held, and only the reserve was short. */
static bool any_reserved(const struct cli_summary *summary)
{
	for (size_t i = 0; i < summary->device_count; i++) {
		if (cli_fit_row(&summary->devices[i], 0).reserved)
			return true;
	}
	return false;
}

/* Advice for requests that could fit. */
static void advise(struct spill_text *text, const struct cli_summary *summary)
{
	bool partial = is_partial(summary);
	char less[CLI_ADVICE];
	struct spill_text own = spill_text_begin(less, sizeof(less));

	for (size_t i = 0; i < summary->device_count; i++) {
		const struct cli_device *device = &summary->devices[i];
		uint64_t less_others = less_of_others(summary, device);

		if (less_others)
			advise_others(text, device, less_others);
		advise_device(&own, summary, device, partial);
	}
	if (own.length)
		spill_text_format(text, "%s%s", text->length ? "; or " : "", less);
	advise_rules(text, summary, partial);
	for (size_t i = 0; i < summary->device_count; i++) {
		if (summary->devices[i].device >= 0 && !summary->devices[i].bytes)
			return; /* the device's size is not known */
	}
	if (text->length)
		return;
	if (partial) {
		spill_advice_smaller(text, summary->program);
		spill_text_add(text, "; this log does not show how much");
		return;
	}
	if (only_for_reserve(summary))
		spill_text_add(text, "a smaller device.reserve, or ");
	if (any_reserved(summary))
		spill_text_add(text, "a little less on the device: it was full up to device.reserve");
	else
		spill_text_add(text,
		               "less memory of other programs, contexts and libraries on the device: the "
		               "peak demand alone would have fitted, and the log does not tell what "
		               "others held");
}

void cli_advice_run(const struct cli_summary *summary, char buffer[CLI_ADVICE])
{
	struct spill_text text = spill_text_begin(buffer, CLI_ADVICE);

	if (device_was_short(summary))
		advise(&text, summary);
	if (only_observed(summary))
		spill_text_format(&text, "%s%s%s", text.length ? "; or " : "",
		                  summary->problem ? "a policy without this error: " : "spill.mode = spill",
		                  summary->problem ? summary->problem : "");
	for (size_t i = 0; i < summary->device_count; i++)
		advise_beyond(&text, &summary->devices[i]);
}
