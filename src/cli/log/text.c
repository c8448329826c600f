/* Prints a record as a line for people; a start line has more. Skips unknown kinds. */
#include <inttypes.h>
#include <string.h>

#include "oom_report.h"
#include "run_story.h"
#include "log_reader.h"
#include "put.h"

/* "  device 0  cudaMalloc  libfoo.so+0x1a2b for model.py:forward" */
static void put_origin(FILE *out, int device, const char *api, const char *caller, const char *requester,
                       const struct cli_run_files *files)
{
	if (device >= 0)
		fprintf(out, "  device %d", device);
	cli_fprintf(out, "  %s", api);
	if (caller)
		cli_fprintf(out, "  %s", cli_caller_text(files, caller).text);
	if (requester)
		cli_fprintf(out, " for %s", cli_caller_text(files, requester).text);
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
	if (rank)
		cli_fprintf(out, ", %s=%s", variable, rank);
}

static void print_start(FILE *out, const struct spill_record_start *start)
{
	cli_fprintf(out, "%s (pid %d) on %s, %s, libspill %s, %s driver %s", start->program, start->pid,
	            start->host, start->time, start->version, start->backend,
	            cli_driver_version(start->backend, start->driver).text);
#define X(id, name, text) put_rank(out, name, start->ranks.of[SPILL_RANK_##id]);
	SPILL_RANKS(X)
#undef X
	if (start->continues)
		cli_fprintf(out, ", goes on behind %s in other files",
		            cli_count(start->continues, "line").text);
	fputc('\n', out);
	for (unsigned i = 0; i < start->device_count; i++)
		cli_fprintf(out, "  device %d: %s, %s\n", start->devices[i].device, start->devices[i].name,
		            spill_size(start->devices[i].bytes).text);
	for (unsigned i = 0; i < start->option_count; i++) {
		const struct spill_record_option *option = &start->policy[i];

		if (strcmp(option->source, "default") != 0)
			cli_fprintf(out, "  policy: %s = %s (%s)\n", option->name, option->value,
			            option->source);
	}
}

/* ", rule experts"; nothing if no rule matched. */
static void put_rule(FILE *out, const char *rule)
{
	if (rule && strcmp(rule, "default") != 0)
		cli_fprintf(out, ", rule %s", rule);
}

/* For mode = observe: "; would be split". */
static void put_would(FILE *out, const char *would)
{
	if (would)
		cli_fprintf(out, "; would be %s", strcmp(would, "refuse") ? would : "refused");
}

static void print_alloc(FILE *out, const struct spill_record_alloc *alloc, const struct cli_run_files *files)
{
	cli_fprintf(out, "alloc #%-6" PRIu64 " %s  %s", alloc->seq, spill_size(alloc->bytes).text,
	            spill_place_name(alloc->place));
	if (alloc->place != SPILL_PLACE_DEVICE)
		cli_fprintf(out, " (%s)", spill_sums(&alloc->held).text);
	put_origin(out, alloc->device, alloc->api, alloc->caller, alloc->requester, files);
	cli_fprintf(out, "  %s", alloc->reason);
	put_rule(out, alloc->rule);
	put_would(out, alloc->would);
	cli_put_tried(out, alloc->tried, alloc->attempts);
	put_duration(out, alloc->took_us);
}

static void print_free(FILE *out, const struct spill_record_free *record, const struct cli_run_files *files)
{
	cli_fprintf(out, "free  #%-6" PRIu64 " %s  %s", record->seq, spill_size(record->bytes).text,
	            spill_place_name(record->place));
	put_origin(out, record->device, record->api, record->caller, NULL, files);
	cli_fprintf(out, "  %s", record->reason);
	put_duration(out, record->took_us);
}

static void print_move(FILE *out, const struct spill_record_move *move, const struct cli_run_files *files)
{
	cli_fprintf(out, "move  #%-6" PRIu64 " %s %s, now %s", move->seq, spill_size(move->bytes).text,
	            strcmp(move->what, "demote") ? "back to the device" : "to host memory",
	            spill_sums(&move->held).text);
	if (move->api)
		put_origin(out, move->device, move->api, move->caller, NULL, files);
	else
		fprintf(out, "  device %d", move->device);
	cli_fprintf(out, "  %s", move->reason);
	put_duration(out, move->took_us);
}

/* "sum   12 alloc (3.00 MiB device), 4 free (1.00 MiB device), held 2.00 MiB  device 0  …" */
static void print_sum(FILE *out, const struct spill_record_sum *sum, const struct cli_run_files *files)
{
	const char *before = "sum   ";

	if (sum->allocs.count) {
		cli_fprintf(out, "%s%" PRIu64 " alloc (%s)", before, sum->allocs.count,
		            spill_size(sum->allocs.bytes.device).text);
		before = ", ";
	}
	if (sum->frees.count)
		cli_fprintf(out, "%s%" PRIu64 " free (%s)", before, sum->frees.count,
		            spill_size(sum->frees.bytes.device).text);
	cli_fprintf(out, ", held %s, at most %s", spill_size(sum->live).text, spill_size(sum->peak).text);
	put_origin(out, sum->device, sum->api, sum->caller, NULL, files);
	put_rule(out, sum->rule);
	fputc('\n', out);
}

/* Without a name: the function that it called. */
static struct cli_caller_text holder_name(const struct spill_holder *holder,
                                          const struct cli_run_files *files)
{
	const char *name = spill_who_asked(holder->caller, holder->requester);

	return cli_caller_text(files, name ? name : holder->api);
}

static void print_oom(FILE *out, const struct spill_record_oom *oom, const struct cli_run_files *files)
{
	cli_fprintf(out, "OUT OF MEMORY  %s asked", spill_size(oom->bytes).text);
	put_origin(out, oom->device, oom->api, oom->caller, oom->requester, files);
	cli_fprintf(out, "  refused by %s", oom->refused_by);
	put_rule(out, oom->rule);
	put_would(out, oom->would);
	cli_fprintf(out, "; free %s of %s; live %s", spill_size(oom->free).text, spill_size(oom->total).text,
	            spill_sums(&oom->live).text);
	cli_put_tried(out, oom->tried, oom->attempts);
	for (unsigned i = 0; i < oom->holders; i++)
		cli_fprintf(out, "%s%s #%" PRIu64 " %s",
		            i ? ", " : "; largest: ", spill_size(oom->top[i].bytes).text, oom->top[i].seq,
		            holder_name(&oom->top[i], files).text);
	fputc('\n', out);
}

/* "file  libfoo.so is /usr/lib/libfoo.so, build id 0123…" */
static void print_file(FILE *out, const struct spill_record_file *file)
{
	cli_fprintf(out, "file  %s is %s", file->name, file->path);
	if (file->build_id)
		cli_fprintf(out, ", build id %s", file->build_id);
	fputc('\n', out);
}

/* "drop  12 alloc (3.00 GiB device), 4 free (1.00 GiB device)" */
static void print_drop(FILE *out, const struct spill_record_drop *drop)
{
	const char *before = "drop  ";

#define X(id, name, about) \
	if (drop->sums[SPILL_DROP_##id].count) { \
		cli_fprintf(out, "%s%" PRIu64 " " name " (%s)", before, drop->sums[SPILL_DROP_##id].count, \
		            spill_sums(&drop->sums[SPILL_DROP_##id].bytes).text); \
		before = ", "; \
	}
	SPILL_DROPS(X)
#undef X
	fputs(" not written: log.max\n", out);
}

/* "; up to 1.28 GiB was in host memory (…); moves held the program up for 0.30 s, 2 %" */
static void put_story(FILE *out, const struct spill_totals *totals, uint64_t run_us, bool follow_off)
{
	struct spill_story story = spill_story_of(totals, run_us);
	char buffer[1024];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	story.follow_off = follow_off;
	spill_story_all(&text, &story);
	cli_fprintf(out, "; %s", buffer);
}

/* "use   kernels lost about 9.8 s, 81 % of the 12.1 s, by reading about 118.00 GiB of it over the link" */
static void print_use(FILE *out, const struct spill_record_use *use)
{
	const struct spill_story story = {.away = use->away, .run_us = use->time_us, .any = true};
	char buffer[512];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	spill_story_in_place(&text, &story);
	cli_fprintf(out, "use   of host memory so far: %s\n", buffer);
}

static void print_exit(FILE *out, const struct spill_record_exit *end, bool follow_off)
{
	const struct spill_totals *totals = &end->totals;

	cli_fprintf(out, "end (%s): %" PRIu64 " of %" PRIu64 " allocations placed off the card", end->how,
	            totals->spills, totals->allocs);
	if (totals->spills)
		cli_fprintf(out, ", in all %s", spill_sums(&totals->spilled).text);
	cli_fprintf(out, "; %" PRIu64 " refused as out of memory; peak %s", totals->ooms,
	            spill_sums(&totals->peak).text);
	if (totals->demotions || totals->promotions)
		cli_fprintf(out, "; moved %s to host memory in %" PRIu64 " move%s, %s back in %" PRIu64,
		            spill_size(totals->demoted).text, totals->demotions,
		            totals->demotions == 1 ? "" : "s", spill_size(totals->promoted).text,
		            totals->promotions);
	if (totals->away.peak)
		put_story(out, totals, end->time_us, follow_off);
	cli_fprintf(out, "; still held %s\n", spill_sums(&totals->live).text);
}

void cli_print_record(FILE *out, const struct spill_record *record, const struct cli_run_files *files,
                      bool follow_off)
{
	if (record->kind != SPILL_KIND_START && record->kind != SPILL_KINDS_COUNT)
		fprintf(out, "%5" PRIu64 ".%06" PRIu64 "  ", record->time_us / 1000000,
		        record->time_us % 1000000);
	switch (record->kind) {
	case SPILL_KIND_START:
		return print_start(out, &record->start);
	case SPILL_KIND_ALLOC:
		return print_alloc(out, &record->alloc, files);
	case SPILL_KIND_FREE:
		return print_free(out, &record->free, files);
	case SPILL_KIND_MOVE:
		return print_move(out, &record->move, files);
	case SPILL_KIND_SUM:
		return print_sum(out, &record->sum, files);
	case SPILL_KIND_OOM:
		return print_oom(out, &record->oom, files);
	case SPILL_KIND_FILE:
		return print_file(out, &record->file);
	case SPILL_KIND_NOTE:
		cli_fprintf(out, "note  %s: %s\n", record->note.code, record->note.text);
		return;
	case SPILL_KIND_DROP:
		return print_drop(out, &record->drop);
	case SPILL_KIND_USE:
		return print_use(out, &record->use);
	case SPILL_KIND_EXIT:
		return print_exit(out, &record->exit, follow_off);
	case SPILL_KINDS_COUNT:
		return;
	}
}
