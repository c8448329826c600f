/* Prints each out of memory of a run: the request, the refusal, the holders, and advice. */
#include <inttypes.h>
#include <stdio.h>

#include "oom_report.h"
#include "put.h"
#include "report.h"

/* "split 5.04 GiB in 2, device 4.00 GiB in 12" */
static void put_places(const struct spill_record_oom *oom)
{
	for (unsigned i = 0; i < oom->places; i++) {
		const struct spill_group *place = &oom->by_place[i];

		fputs(i ? ", " : "; by place: ", stdout);
		cli_put(stdout, place->name);
		putchar(' ');
		cli_put_size(stdout, spill_bytes_all(&place->held));
		printf(" in %" PRIu64, place->count);
	}
	putchar('\n');
}

static void put_elsewhere(uint64_t bytes)
{
	if (!bytes)
		return;
	fputs(" (", stdout);
	cli_put_size(stdout, bytes);
	fputs(" on other devices)", stdout);
}

static void put_caller(const struct spill_group *caller)
{
	fputs("      ", stdout);
	cli_put_size(stdout, spill_bytes_all(&caller->held));
	fputs("  ", stdout);
	cli_put(stdout, caller->name);
	cli_printf("  in %" PRIu64 " allocation%s: ", caller->count, caller->count == 1 ? "" : "s");
	cli_put_sums(stdout, &caller->held);
	putchar('\n');
}

static void put_holder(const struct spill_holder *holder)
{
	fputs("      ", stdout);
	cli_put_size(stdout, holder->bytes);
	cli_printf("  #%" PRIu64 "  %s  ", holder->seq, spill_place_name(holder->place));
	cli_put(stdout, holder->api);
	fputs("  ", stdout);
	cli_put(stdout, holder->caller);
	putchar('\n');
}

static void put_device(const struct spill_record_oom *oom)
{
	uint64_t used = oom->total > oom->free ? oom->total - oom->free : 0;

	fputs("    device: ", stdout);
	cli_put_size(stdout, oom->free);
	fputs(" free of ", stdout);
	cli_put_size(stdout, oom->total);
	if (oom->ours) { /* missing in the first logs */
		fputs("; ", stdout);
		cli_put_size(stdout, oom->ours);
		fputs(" held by this process, ", stdout);
		cli_put_size(stdout, used > oom->ours ? used - oom->ours : 0);
		fputs(" by others, contexts and code", stdout);
	}
	putchar('\n');
}

static void put_refused(const struct spill_record_oom *oom)
{
	fputs("    refused by ", stdout);
	cli_put(stdout, oom->refused_by);
	fputs(", rule ", stdout);
	cli_put(stdout, oom->rule);
	cli_put_tried(stdout, oom->tried, oom->attempts);
	putchar('\n');
}

static void put_help(const struct spill_record_oom *oom)
{
	char buffer[CLI_ADVICE];
	struct spill_text advice = spill_text_begin(buffer, sizeof(buffer));

	spill_advice_oom(&advice, oom);
	fputs("    what would have helped: ", stdout);
	cli_put(stdout, buffer);
	putchar('\n');
}

static void put_oom(const struct spill_record_oom *oom)
{
	fputs("  at ", stdout);
	cli_put_seconds(stdout, oom->time_us);
	fputs(" s: ", stdout);
	cli_put_size(stdout, oom->bytes);
	fputs(" asked by ", stdout);
	cli_put(stdout, oom->caller);
	fputs(" of ", stdout);
	cli_put(stdout, oom->api);
	if (oom->device >= 0)
		printf(", device %d", oom->device);
	putchar('\n');
	put_refused(oom);
	put_device(oom);
	fputs("    this process held ", stdout);
	cli_put_sums(stdout, &oom->live);
	put_elsewhere(spill_oom_elsewhere(oom));
	put_places(oom);
	if (oom->callers)
		puts("    by caller:");
	for (unsigned i = 0; i < oom->callers; i++)
		put_caller(&oom->by_caller[i]);
	if (oom->holders)
		puts("    the largest:");
	for (unsigned i = 0; i < oom->holders; i++)
		put_holder(&oom->top[i]);
	put_help(oom);
}

void cli_report_ooms(const struct cli_summary *summary)
{
	const struct cli_ooms *ooms = &summary->ooms;

	if (!ooms->count)
		return;
	printf("\n  out of memory: %" PRIu64 "\n", ooms->count);
	for (uint64_t i = 0; i < ooms->count && i < 2 * CLI_OOMS_EACH; i++) {
		if (i == CLI_OOMS_EACH && ooms->count > 2 * CLI_OOMS_EACH)
			printf("  … %" PRIu64 " between these\n", ooms->count - 2 * CLI_OOMS_EACH);
		put_oom(&ooms->list[i]);
	}
}
