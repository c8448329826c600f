/* Prints each out of memory of a run: the request, the refusal, the holders, and advice. */
#include <inttypes.h>
#include <stdio.h>

#include "minmax.h"
#include "oom_report.h"
#include "put.h"
#include "report.h"

/* "    this process held 7.00 GiB device (1.00 GiB on other devices); by place: split 5.04 GiB in 2" */
static void put_held(const struct spill_record_oom *oom)
{
	uint64_t elsewhere = spill_oom_elsewhere(oom);

	cli_printf("    this process held %s", spill_sums(&oom->live).text);
	if (elsewhere)
		cli_printf(" (%s on other devices)", spill_size(elsewhere).text);
	for (unsigned i = 0; i < oom->places; i++) {
		const struct spill_group *place = &oom->by_place[i];

		cli_printf("%s%s %s in %" PRIu64, i ? ", " : "; by place: ", place->name,
		           spill_size(spill_bytes_all(&place->held)).text, place->count);
	}
	putchar('\n');
}

static void put_callers(const struct cli_summary *summary, const struct spill_record_oom *oom)
{
	if (oom->callers)
		puts("    by caller:");
	for (unsigned i = 0; i < oom->callers; i++) {
		const struct spill_group *caller = &oom->by_caller[i];

		cli_printf(
		    "      %s  %s  in %" PRIu64 " allocation%s: %s\n",
		    spill_size(spill_bytes_all(&caller->held)).text,
		    cli_caller_text(&summary->files, spill_who_asked(caller->name, caller->requester)).text,
		    caller->count, caller->count == 1 ? "" : "s", spill_sums(&caller->held).text);
	}
}

static void put_holders(const struct cli_summary *summary, const struct spill_record_oom *oom)
{
	if (oom->holders)
		puts("    the largest:");
	for (unsigned i = 0; i < oom->holders; i++) {
		const struct spill_holder *holder = &oom->top[i];

		cli_printf(
		    "      %s  #%" PRIu64 "  %s  %s  %s\n", spill_size(holder->bytes).text, holder->seq,
		    spill_place_name(holder->place), holder->api,
		    cli_caller_text(&summary->files, spill_who_asked(holder->caller, holder->requester))
		        .text);
	}
}

static void put_device(const struct spill_record_oom *oom)
{
	uint64_t used = spill_minus(oom->total, oom->free);

	cli_printf("    device: %s free of %s", spill_size(oom->free).text, spill_size(oom->total).text);
	if (oom->ours) /* missing in the first logs */
		cli_printf("; %s held by this process; %s " SPILL_HELD_BY_OTHERS, spill_size(oom->ours).text,
		           spill_size(spill_minus(used, oom->ours)).text);
	putchar('\n');
}

/* The remedy, in the words of stderr. */
static void get_advice(const struct cli_summary *summary, const struct spill_record_oom *oom,
                       char buffer[CLI_ADVICE])
{
	struct spill_text advice = spill_text_begin(buffer, CLI_ADVICE);

	spill_advice_oom(&advice, oom, summary->program, summary->problem);
}

static void get_refused(const struct spill_record_oom *oom, char buffer[CLI_ADVICE])
{
	struct spill_text refused = spill_text_begin(buffer, CLI_ADVICE);

	spill_oom_refused(&refused, oom);
}

static void put_oom(const struct cli_summary *summary, const struct spill_record_oom *oom)
{
	char buffer[CLI_ADVICE];

	cli_printf(
	    "  at %s s: %s asked by %s with %s", cli_seconds(oom->time_us).text, spill_size(oom->bytes).text,
	    cli_caller_text(&summary->files, spill_who_asked(oom->caller, oom->requester)).text, oom->api);
	if (oom->device >= 0)
		printf(", device %d", oom->device);
	get_refused(oom, buffer);
	cli_printf("\n    refused by %s", buffer);
	cli_put_tried(stdout, oom->tried, oom->attempts);
	putchar('\n');
	put_device(oom);
	put_held(oom);
	put_callers(summary, oom);
	put_holders(summary, oom);
	get_advice(summary, oom, buffer);
	cli_printf("    what would have helped: %s\n", buffer);
}

void cli_report_cause(const struct cli_summary *summary)
{
	const struct spill_record_oom *oom = cli_summary_cause(summary);
	char buffer[CLI_ADVICE];

	if (!oom)
		return;
	get_refused(oom, buffer);
	cli_report_label("refused by");
	cli_printf("%s; %s asked by %s with %s\n", buffer, spill_size(oom->bytes).text,
	           cli_caller_text(&summary->files, spill_who_asked(oom->caller, oom->requester)).text,
	           oom->api);
	get_advice(summary, oom, buffer);
	cli_report_label("would help");
	cli_printf("%s\n", buffer);
}

/* "  and 6 refused once on purpose (oom.honest_first), from 0.29 s to 0.59 s: …" */
static void put_honest(const struct cli_ooms *ooms)
{
	fputs(ooms->count ? "  and " : "\n  out of memory: ", stdout);
	cli_printf("%" PRIu64 " refused once on purpose (oom.honest_first), ", ooms->honest);
	if (ooms->honest > 1)
		cli_printf("from %s s to ", cli_seconds(ooms->honest_first_us).text);
	else
		cli_printf("at ");
	cli_printf("%s s: spill log --kind oom lists them\n", cli_seconds(ooms->honest_last_us).text);
}

void cli_report_ooms(const struct cli_summary *summary)
{
	const struct cli_ooms *ooms = &summary->ooms;
	uint64_t kept = cli_ooms_kept(ooms);

	if (ooms->count)
		printf("\n  out of memory: %" PRIu64 "\n", ooms->count);
	for (uint64_t i = 0; i < kept; i++) {
		if (i == CLI_OOMS_EACH && ooms->count > kept)
			printf("  … %" PRIu64 " between these\n", ooms->count - kept);
		put_oom(summary, &ooms->list[i]);
	}
	if (ooms->honest)
		put_honest(ooms);
}
