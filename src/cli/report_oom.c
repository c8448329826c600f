/* The out of memory that a run surfaced: what was asked, by whom, what refused, who held what, what would have helped. */
#include <inttypes.h>
#include <stdio.h>

#include "put.h"
#include "report.h"

static void put_tried(const struct cli_oom *oom)
{
	struct spill_attempt tried[SPILL_ATTEMPTS];

	for (unsigned i = 0; i < oom->attempts; i++)
		tried[i] = (struct spill_attempt){cli_text_of(oom->tried[i].place),
		                                  cli_text_of(oom->tried[i].error)};
	cli_put_tried(stdout, tried, oom->attempts);
	putchar('\n');
}

static void put_holder(const struct cli_oom_holder *holder)
{
	fputs("      ", stdout);
	cli_put_size(stdout, holder->bytes);
	printf("  #%" PRIu64 "  %s  ", holder->seq, spill_place_name(holder->place));
	cli_put(stdout, cli_text_of(holder->api));
	fputs("  ", stdout);
	cli_put(stdout, cli_text_of(holder->caller));
	putchar('\n');
}

static void put_oom(const struct cli_oom *oom)
{
	char advice[CLI_ADVICE];

	printf("  at %" PRIu64 ".%06" PRIu64 " s: ", oom->time_us / 1000000, oom->time_us % 1000000);
	cli_put_size(stdout, oom->bytes);
	fputs(" asked by ", stdout);
	cli_put(stdout, cli_text_of(oom->caller));
	fputs(" of ", stdout);
	cli_put(stdout, cli_text_of(oom->api));
	if (oom->device >= 0)
		printf(", device %d", oom->device);
	fputs("\n    refused by ", stdout);
	cli_put(stdout, cli_text_of(oom->refused_by));
	fputs(", rule ", stdout);
	cli_put(stdout, cli_text_of(oom->rule));
	put_tried(oom);
	fputs("    free ", stdout);
	cli_put_size(stdout, oom->free);
	fputs(" of ", stdout);
	cli_put_size(stdout, oom->total);
	fputs("; this process held ", stdout);
	cli_put_sums(stdout, &oom->live);
	puts(oom->holders ? ", the largest:" : "");
	for (unsigned i = 0; i < oom->holders; i++)
		put_holder(&oom->top[i]);
	cli_advice_oom(oom, advice);
	fputs("    what would have helped: ", stdout);
	cli_put(stdout, advice);
	putchar('\n');
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
