/* Prints the tables of spill report. Sizes are rounded; --json has the bytes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "minmax.h"
#include "put.h"
#include "report.h"

#define ROWS 10

static void put_device(int device)
{
	if (device < 0)
		cli_printf("  %-8s", "none");
	else
		printf("  %-8d", device);
}

void cli_report_devices(const struct cli_summary *summary)
{
	if (!summary->device_count)
		return;
	cli_printf("\n  %-8s%12s%12s%12s%14s%12s%12s%13s  %s\n", "device", "total", "peak device",
	           "peak host", "peak managed", "end device", "end host", "end managed", "name");
	for (size_t i = 0; i < summary->device_count; i++) {
		const struct cli_device *device = &summary->devices[i];

		put_device(device->device);
		cli_printf(
		    "%12s%12s%12s%14s%12s%12s%13s  %s\n", cli_size_or_dash(device->bytes).text,
		    cli_size_or_dash(device->peak.device).text, cli_size_or_dash(device->peak.host).text,
		    cli_size_or_dash(device->peak.managed).text, cli_size_or_dash(device->live.device).text,
		    cli_size_or_dash(device->live.host).text, cli_size_or_dash(device->live.managed).text,
		    device->name ? device->name : "");
	}
}

struct cli_fit_row cli_fit_row(const struct cli_device *device, uint64_t margin)
{
	const struct cli_shortage *shortage = &device->shortage;
	uint64_t usable = spill_minus(device->bytes, spill_max(margin, shortage->others));
	int64_t surplus;
	bool fits;

	usable = spill_min(usable, device->limit);
	surplus = (int64_t)(usable - device->fit.wanted);
	fits = shortage->count && surplus >= 0;
	return (struct cli_fit_row){
	    .usable = usable,
	    .free = spill_minus(spill_minus(device->bytes, device->fit.device), shortage->others),
	    .others = shortage->others,
	    .surplus = surplus,
	    .unknown = fits && !shortage->bytes,
	    .reserved = fits && shortage->bytes,
	};
}

/* The last columns: what would have been left or lacked. `reserve`: device.reserve, if it counts. */
static void put_surplus(const struct cli_fit_row *row, uint64_t reserve)
{
	uint64_t size = row->surplus < 0 ? 0 - (uint64_t)row->surplus : (uint64_t)row->surplus;

	if (row->unknown)
		printf("  not known: memory lacked, and the log does not tell what others held");
	else if (row->reserved)
		cli_printf("  %s left, too little for device.reserve", spill_size(size).text);
	else
		cli_printf("  %s: %s %s", row->surplus < 0 ? "no" : "yes", spill_size(size).text,
		           row->surplus < 0 ? "missing" : "left");
	if (row->surplus < 0 && reserve)
		cli_printf(", and %s for device.reserve", spill_size(reserve).text);
}

static void put_fit(const struct cli_summary *summary, const struct cli_device *device, uint64_t margin)
{
	/* a deficit of the whole demand says nothing */
	bool too_much = margin && margin >= device->bytes;
	struct cli_fit_row row = cli_fit_row(device, too_much ? 0 : margin);

	put_device(device->device);
	cli_printf("%12s%12s%12s%12s%12s%12s%12s%12s", cli_size_or_dash(device->bytes).text,
	           cli_size_or_dash(device->fit.wanted).text, cli_size_or_dash(device->fit.device).text,
	           cli_size_or_dash(device->fit.host).text, cli_size_or_dash(device->fit.managed).text,
	           cli_size_or_dash(device->fit.refused).text, cli_size_or_dash(row.others).text,
	           cli_size_or_dash(row.free).text);
	put_surplus(&row, cli_report_reserve(summary, device));
	if (device->limit == row.usable)
		cli_printf(" (device.limit %s)", spill_size(device->limit).text);
	puts(too_much ? ", without the margin, which takes the whole device" : "");
}

void cli_report_fit(const struct cli_summary *summary, uint64_t margin)
{
	bool any = false;

	for (size_t i = 0; i < summary->device_count; i++) {
		if (!summary->devices[i].bytes)
			continue;
		if (!any) {
			cli_printf("\n  would it have fitted when it needed most, with %s of the card, or "
			           "what others held, kept free?\n",
			           spill_size(margin).text);
			cli_printf("  %-8s%12s%12s%12s%12s%12s%12s%12s%12s\n", "device", "total", "needed",
			           "on device", "on host", "managed", "refused", "others", "free");
		}
		any = true;
		put_fit(summary, &summary->devices[i], margin);
	}
}

/*
 * files: of callers; NULL for other names. nameless: shown for a row without a name; NULL: it is not
 * known. words: of a name, or NULL.
 */
static void put_view(const struct cli_table *table, const struct cli_run_files *files, const char *heading,
                     const char *nameless, const char *(*words)(const char *name))
{
	if (!table->count)
		return;
	cli_printf("\n  %12s%12s%12s%12s%12s  %s\n", "allocations", "bytes", "peak", "at end", "spilled",
	           heading);
	for (size_t i = 0; i < table->count && i < ROWS; i++) {
		const struct cli_row *row = &table->rows[i];

		cli_printf("  %12" PRIu64 "%12s%12s%12s%12s  %s\n", row->count,
		           cli_size_or_dash(row->bytes).text, cli_size_or_dash(row->peak).text,
		           cli_size_or_dash(row->live).text, cli_size_or_dash(row->away_peak).text,
		           row->name && words       ? words(row->name->text)
		           : !row->name && nameless ? nameless
		                                    : cli_report_caller(files, row->name).text);
	}
	if (table->count > ROWS)
		cli_printf("  %12s  %zu more, in --json\n", "", table->count - ROWS);
}

void cli_report_views(const struct cli_summary *summary)
{
	put_view(&summary->views[CLI_BY_CALLER], &summary->files, "by caller", NULL, NULL);
	put_view(&summary->views[CLI_BY_PLACE], NULL, "by place", NULL, NULL);
	put_view(&summary->views[CLI_BY_RULE], NULL, "by rule", "no rule: the program named the place itself",
	         NULL);
	put_view(&summary->views[CLI_BY_REASON], NULL, "by reason", NULL, spill_reason_words);
}

void cli_report_largest(const struct cli_summary *summary)
{
	if (!summary->largest.count)
		return;
	puts("\n  the largest allocations");
	for (unsigned i = 0; i < summary->largest.count; i++) {
		const struct cli_large *large = &summary->largest.list[i];

		cli_printf("  %12s  #%-8" PRIu64 "%-8s  %s  %s  at %" PRIu64 ".%03" PRIu64 " s%s\n",
		           cli_size_or_dash(large->bytes).text, large->seq, spill_place_name(large->place),
		           cli_text_of(large->api), cli_report_caller(&summary->files, large->caller).text,
		           large->time_us / 1000000, large->time_us / 1000 % 1000,
		           large->summed  ? ", in a sum"
		           : large->freed ? ""
		                          : ", held at the end");
	}
}

void cli_report_moved(const struct cli_summary *summary)
{
	const struct cli_moved_list *moved = &summary->moved;

	if (!moved->count)
		return;
	cli_printf("\n  %12s%12s%12s%12s  %s\n", "moves", "moved", "size", "host at end",
	           "moved to the host most");
	for (unsigned i = 0; i < moved->count; i++) {
		const struct cli_moved *entry = &moved->list[i];

		cli_printf("  %12" PRIu64 "%12s%12s%12s  #%-8" PRIu64 "%s\n", entry->moves,
		           cli_size_or_dash(entry->moved).text, cli_size_or_dash(entry->bytes).text,
		           cli_size_or_dash(entry->host).text, entry->seq,
		           cli_report_caller(&summary->files, entry->caller).text);
	}
}

/*
 * away: of the story of the run, which may know more than the lines. final: out of memory, without
 * those of oom.honest_first.
 */
static void put_run(const char *rank, const char *ended, const struct spill_totals *totals,
                    const struct spill_away *away, uint64_t final)
{
	char held_up[32] = "-";

	if (away->moves_us) {
		uint64_t hundredths = (away->moves_us + 5000) / 10000; /* rounded, as in the story */

		snprintf(held_up, sizeof(held_up), "%" PRIu64 ".%02" PRIu64 " s", hundredths / 100,
		         hundredths % 100);
	}
	cli_printf("  %-5s %-9s %12" PRIu64 "%14" PRIu64 "%12s%12s%12s%12s%12s%12s%8" PRIu64 "  ", rank,
	           ended, totals->allocs, totals->spills, cli_size_or_dash(away->peak).text, held_up,
	           cli_size_or_dash(totals->demoted).text, cli_size_or_dash(totals->peak.device).text,
	           cli_size_or_dash(totals->peak.host).text, cli_size_or_dash(totals->peak.managed).text,
	           final);
}

void cli_report_runs(const struct cli_report *report)
{
	const struct cli_summaries *summaries = &report->summaries;
	const struct spill_totals sum = cli_report_sum(report);
	uint64_t final = 0;
	char hosts[32] = "";

	if (report->job.host_count > 1)
		snprintf(hosts, sizeof(hosts), " on %zu hosts", report->job.host_count);
	if (summaries->count == 1)
		puts("1 run");
	else
		cli_printf("%zu runs%s; their sum as if all had their peaks at once\n", summaries->count,
		           hosts);
	cli_report_ranks(report);
	cli_printf("  %-6s%-10s%12s%14s%12s%12s%12s%12s%12s%12s%8s  %-16s  %-12s  %s\n", "rank", "ended",
	           "allocations", "placed off", "spilled", "held up", "moved", "peak device", "peak host",
	           "managed", "oom", "program", "host", "log");
	for (size_t i = 0; i < summaries->count; i++) {
		const struct cli_summary *run = &summaries->runs[i];

		put_run(run->rank ? run->rank : "-", cli_report_ending(run), &run->totals, &run->story.away,
		        run->ooms.count);
		final += run->ooms.count;
		cli_printf("%-16s  %-12s  ", run->program, run->host);
		cli_report_log(run);
		putchar('\n');
	}
	if (summaries->count > 1) {
		put_run("sum", "", &sum, &sum.away, final);
		puts("");
	}
}
