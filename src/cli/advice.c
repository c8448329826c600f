/* What would have helped: the last question of who reads about an out of memory or a spill, and the first to be asked again. */
#include <string.h>

#include "report.h"
#include "text.h"

/* By what refused last; NULL: by nothing that is known here, so the driver. */
static const struct {
	const char *refused_by, *advice;
} by_refusal[] = {
    {"device.limit", "a larger device.limit, or a place for what is above it (oom.chain)"},
    {"host.limit", "a larger host.limit"},
    {"host.reserve", "more free memory of the host, or a smaller host.reserve"},
    {"host.pressure", "more free memory of the host: other programs lack it, too"},
    {"rule.place", "another place in the rule: it says refuse"},
    {"rule.over", "another over in the rule: it says refuse"},
    {"rule.cap", "a larger cap of the rule, or an over = PLACE for what is above it"},
    {"stream capture",
     "the allocation before the capture begins: within one nothing can be placed elsewhere"},
    {"oom.honest_first", "nothing: it surfaces once, so that the program frees its caches and asks again"},
};

static void advise_by_refusal(struct spill_text *text, const struct cli_oom *oom)
{
	for (size_t i = 0; oom->refused_by && i < sizeof(by_refusal) / sizeof(by_refusal[0]); i++) {
		if (strcmp(oom->refused_by->text, by_refusal[i].refused_by))
			continue;
		spill_text_add(text, by_refusal[i].advice);
		if (!strncmp(by_refusal[i].refused_by, "rule.", 5) && oom->rule) {
			spill_text_add(text, " (rule ");
			spill_text_add(text, oom->rule->text);
			spill_text_add(text, ")");
		}
		return;
	}
	for (unsigned i = 0; i < oom->attempts; i++) {
		const char *place = cli_text_of(oom->tried[i].place);

		if (!strcmp(place, "split") || !strcmp(place, "managed") || !strcmp(place, "host")) {
			spill_text_add(text, "other places (oom.chain): those that were tried refused");
			return;
		}
	}
	spill_text_add(text, "a place for what does not fit: none was tried (oom.chain, over in a rule)");
}

/* "; or 2.00 GiB less in use on device 0, where libfoo.so+0x1 has the largest, 5.00 GiB" */
static void advise_less(struct spill_text *text, const struct cli_oom *oom)
{
	if (oom->bytes > oom->free) {
		spill_text_add(text, "; or ");
		spill_text_size(text, oom->bytes - oom->free);
		spill_text_add(text, " less in use on the device");
	}
	if (!oom->holders)
		return;
	spill_text_add(text, oom->bytes > oom->free ? ": " : "; or less, for example ");
	spill_text_add(text, cli_text_of(oom->top[0].caller ? oom->top[0].caller : oom->top[0].api));
	spill_text_add(text, " holds ");
	spill_text_size(text, oom->top[0].bytes);
	spill_text_add(text, " in one piece");
}

void cli_advice_oom(const struct cli_oom *oom, char buffer[CLI_ADVICE])
{
	struct spill_text text = spill_text_begin(buffer, CLI_ADVICE);

	if (oom->would && strcmp(oom->would->text, "refuse")) {
		spill_text_add(&text, "spill.mode = spill: it would have been tried as ");
		spill_text_add(&text, oom->would->text);
		return;
	}
	advise_by_refusal(&text, oom);
	if (!oom->refused_by || strcmp(oom->refused_by->text, "oom.honest_first"))
		advise_less(&text, oom);
}

/* "4.04 GiB less on device 0, of which most wanted was 8.04 GiB of 4.00 GiB" */
static void advise_device(struct spill_text *text, const struct cli_device *device)
{
	struct cli_fit_row row = cli_fit_row(device, 0);

	if (!device->bytes || row.surplus >= 0)
		return;
	spill_text_add(text, text->length ? ", " : "a smaller context, batch or model: ");
	spill_text_size(text, 0 - (uint64_t)row.surplus);
	spill_text_add(text, " less on device ");
	spill_text_number(text, (uint64_t)device->device);
	spill_text_add(text, ", of which most wanted was ");
	spill_text_size(text, device->fit.wanted);
	spill_text_add(text, " of ");
	spill_text_size(text, row.usable);
	if (device->limit >= device->bytes || device->fit.wanted > device->bytes)
		return;
	spill_text_add(text, " (or device.limit = ");
	spill_text_number(text, device->fit.wanted);
	spill_text_add(text, ")");
}

void cli_advice_run(const struct cli_summary *summary, char buffer[CLI_ADVICE])
{
	struct spill_text text = spill_text_begin(buffer, CLI_ADVICE);
	const struct cli_table *reasons = &summary->views[CLI_BY_REASON];

	if (!summary->totals.spills && !summary->totals.demotions && !cli_summary_surfaced(summary))
		return;
	for (size_t i = 0; i < summary->device_count; i++)
		advise_device(&text, &summary->devices[i]);
	for (size_t i = 0; i < reasons->count; i++) {
		if (reasons->rows[i].spilled && !strcmp(cli_text_of(reasons->rows[i].name), "rule")) {
			spill_text_add(&text, text.length ? "; " : "");
			spill_text_add(&text, "another place in the rules that say where");
		}
	}
	for (size_t i = 0; i < summary->device_count; i++) {
		if (summary->devices[i].device >= 0 && !summary->devices[i].bytes)
			return; /* whether it would have fitted is not known */
	}
	if (!text.length)
		spill_text_add(
		    &text, "less of other programs, contexts and libraries on the device: what was wanted "
		           "would have fitted");
}
