/* Prints a record as a line for people; a start line has more. Skips unknown kinds. */
#include <inttypes.h>
#include <string.h>

#include "log_reader.h"
#include "put.h"

/* "  device 0  cudaMalloc  libfoo.so+0x1a2b" */
static void put_origin(FILE *out, int device, const char *api, const char *caller)
{
	if (device >= 0)
		fprintf(out, "  device %d", device);
	fputs("  ", out);
	cli_put(out, api);
	if (caller) {
		fputs("  ", out);
		cli_put(out, caller);
	}
}

static void put_duration(FILE *out, uint64_t us)
{
	if (us < 1000)
		fprintf(out, "  %" PRIu64 " us\n", us);
	else
		fprintf(out, "  %.1f ms\n", (double)us / 1000);
}

/* The process's rank in its job, with the variable that tells it. */
static void put_rank(FILE *out, const char *variable, const char *rank)
{
	if (!rank)
		return;
	cli_fprintf(out, ", %s=", variable);
	cli_put(out, rank);
}

static void print_start(FILE *out, const struct spill_record_start *start)
{
	cli_put(out, start->program);
	fprintf(out, " (pid %d) on ", start->pid);
	cli_put(out, start->host);
	fputs(", ", out);
	cli_put(out, start->time);
	fputs(", libspill ", out);
	cli_put(out, start->version);
	fputs(", ", out);
	cli_put(out, start->backend);
	fprintf(out, " driver %d", start->driver);
#define X(id, name, text) put_rank(out, name, start->ranks.of[SPILL_RANK_##id]);
	SPILL_RANKS(X)
#undef X
	if (start->continues)
		fprintf(out, ", goes on behind %" PRIu64 " lines in other files", start->continues);
	fputc('\n', out);
	for (unsigned i = 0; i < start->device_count; i++) {
		fprintf(out, "  device %d: ", start->devices[i].device);
		cli_put(out, start->devices[i].name);
		fputs(", ", out);
		cli_put_size(out, start->devices[i].bytes);
		fputc('\n', out);
	}
	for (unsigned i = 0; i < start->option_count; i++) {
		const struct spill_record_option *option = &start->policy[i];

		if (!strcmp(option->source, "default"))
			continue;
		fputs("  policy: ", out);
		cli_put(out, option->name);
		fputs(" = ", out);
		cli_put(out, option->value);
		fputs(" (", out);
		cli_put(out, option->source);
		fputs(")\n", out);
	}
}

/* ", rule experts"; nothing if no rule matched. */
static void put_rule(FILE *out, const char *rule)
{
	if (!rule || !strcmp(rule, "default"))
		return;
	fputs(", rule ", out);
	cli_put(out, rule);
}

/* For mode = observe: "; would be split". */
static void put_would(FILE *out, const char *would)
{
	if (!would)
		return;
	fputs("; would be ", out);
	cli_put(out, strcmp(would, "refuse") ? would : "refused");
}

static void print_alloc(FILE *out, const struct spill_record_alloc *alloc)
{
	fprintf(out, "alloc #%-6" PRIu64 " ", alloc->seq);
	cli_put_size(out, alloc->bytes);
	cli_fprintf(out, "  %s", spill_place_name(alloc->place));
	if (alloc->place != SPILL_PLACE_DEVICE) {
		fputs(" (", out);
		cli_put_sums(out, &alloc->held);
		fputs(")", out);
	}
	put_origin(out, alloc->device, alloc->api, alloc->caller);
	fputs("  ", out);
	cli_put(out, alloc->reason);
	put_rule(out, alloc->rule);
	put_would(out, alloc->would);
	cli_put_tried(out, alloc->tried, alloc->attempts);
	put_duration(out, alloc->took_us);
}

static void print_free(FILE *out, const struct spill_record_free *record)
{
	fprintf(out, "free  #%-6" PRIu64 " ", record->seq);
	cli_put_size(out, record->bytes);
	cli_fprintf(out, "  %s", spill_place_name(record->place));
	put_origin(out, record->device, record->api, record->caller);
	fputs("  ", out);
	cli_put(out, record->reason);
	put_duration(out, record->took_us);
}

static void print_move(FILE *out, const struct spill_record_move *move)
{
	fprintf(out, "move  #%-6" PRIu64 " ", move->seq);
	cli_put_size(out, move->bytes);
	fputs(strcmp(move->what, "demote") ? " back to the device" : " to host memory", out);
	fputs(", now ", out);
	cli_put_sums(out, &move->held);
	if (move->api)
		put_origin(out, move->device, move->api, move->caller);
	else
		fprintf(out, "  device %d", move->device);
	fputs("  ", out);
	cli_put(out, move->reason);
	put_duration(out, move->took_us);
}

static void print_oom(FILE *out, const struct spill_record_oom *oom)
{
	fputs("OUT OF MEMORY  ", out);
	cli_put_size(out, oom->bytes);
	fputs(" asked", out);
	put_origin(out, oom->device, oom->api, oom->caller);
	fputs("  refused by ", out);
	cli_put(out, oom->refused_by);
	put_rule(out, oom->rule);
	put_would(out, oom->would);
	fputs("; free ", out);
	cli_put_size(out, oom->free);
	fputs(" of ", out);
	cli_put_size(out, oom->total);
	fputs("; live ", out);
	cli_put_sums(out, &oom->live);
	cli_put_tried(out, oom->tried, oom->attempts);
	for (unsigned i = 0; i < oom->holders; i++) {
		fputs(i ? ", " : "; largest: ", out);
		cli_put_size(out, oom->top[i].bytes);
		fprintf(out, " #%" PRIu64 " ", oom->top[i].seq);
		cli_put(out, oom->top[i].caller ? oom->top[i].caller : oom->top[i].api);
	}
	fputc('\n', out);
}

static void print_note(FILE *out, const struct spill_record_note *note)
{
	fputs("note  ", out);
	cli_put(out, note->code);
	fputs(": ", out);
	cli_put(out, note->text);
	fputc('\n', out);
}

/* "drop  12 alloc (3.00 GiB device), 4 free (1.00 GiB device)" */
static void print_drop(FILE *out, const struct spill_record_drop *drop)
{
	const char *before = "drop  ";

#define X(id, name, text) \
	if (drop->sums[SPILL_DROP_##id].count) { \
		cli_fprintf(out, "%s%" PRIu64 " " name " (", before, drop->sums[SPILL_DROP_##id].count); \
		cli_put_sums(out, &drop->sums[SPILL_DROP_##id].bytes); \
		fputs(")", out); \
		before = ", "; \
	}
	SPILL_DROPS(X)
#undef X
	fputs(" not written: log.max\n", out);
}

/* "; moved 2.04 GiB to host memory in 3 moves, 1.00 GiB back in 1" */
static void print_moves(FILE *out, const struct spill_totals *totals)
{
	if (totals->demotions == 0 && totals->promotions == 0)
		return;
	fputs("; moved ", out);
	cli_put_size(out, totals->demoted);
	cli_fprintf(out, " to host memory in %" PRIu64 " move%s, ", totals->demotions,
	            totals->demotions == 1 ? "" : "s");
	cli_put_size(out, totals->promoted);
	fprintf(out, " back in %" PRIu64, totals->promotions);
}

static void print_exit(FILE *out, const struct spill_record_exit *end)
{
	const struct spill_totals *totals = &end->totals;

	fputs("end (", out);
	cli_put(out, end->how);
	fprintf(out, "): %" PRIu64 " of %" PRIu64 " allocations spilled", totals->spills, totals->allocs);
	if (totals->spills) {
		fputs(", in all ", out);
		cli_put_sums(out, &totals->spilled);
	}
	fprintf(out, "; %" PRIu64 " out of memory; peak ", totals->ooms);
	cli_put_sums(out, &totals->peak);
	print_moves(out, totals);
	fputs("; still held ", out);
	cli_put_sums(out, &totals->live);
	fputc('\n', out);
}

void cli_print_record(FILE *out, const struct spill_record *record)
{
	if (record->kind != SPILL_KIND_START && record->kind != SPILL_KINDS_COUNT)
		fprintf(out, "%5" PRIu64 ".%06" PRIu64 "  ", record->time_us / 1000000,
		        record->time_us % 1000000);
	switch (record->kind) {
	case SPILL_KIND_START:
		return print_start(out, &record->start);
	case SPILL_KIND_ALLOC:
		return print_alloc(out, &record->alloc);
	case SPILL_KIND_FREE:
		return print_free(out, &record->free);
	case SPILL_KIND_MOVE:
		return print_move(out, &record->move);
	case SPILL_KIND_OOM:
		return print_oom(out, &record->oom);
	case SPILL_KIND_NOTE:
		return print_note(out, &record->note);
	case SPILL_KIND_DROP:
		return print_drop(out, &record->drop);
	case SPILL_KIND_EXIT:
		return print_exit(out, &record->exit);
	case SPILL_KINDS_COUNT:
		return;
	}
}
