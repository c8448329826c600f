#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lines.h"
#include "policy.h"
#include "put.h"

/* Lines reported one by one for each file. */
#define COMPLAINTS 5

static void deliver_event(void *data, const struct cli_event *event)
{
	struct cli_trace *trace = data;

	trace->visitor->event(trace->data, event);
}

/* `last`: no other run follows in its file. */
static void end_run(struct cli_trace *trace, bool last)
{
	if (!trace->running)
		return;
	trace->end.last = last;
	cli_sorter_flush(&trace->sorter);
	trace->end.late = trace->sorter.late;
	trace->visitor->end(trace->data, &trace->end);
	cli_sorter_reset(&trace->sorter);
	trace->running = false;
}

/* True if the start line continues the current run, in another file or after a cut. */
static bool continues_run(struct cli_trace *trace, const struct spill_record_start *start)
{
	const char *identity[] = {start->host, start->boot, start->time};
	bool same = trace->running && start->continues >= trace->lines && start->pid == trace->pid;

	for (unsigned i = 0; i < 3; i++) {
		const struct cli_name *name = cli_names_get(&trace->names, identity[i]);

		same = same && name == trace->identity[i];
		trace->identity[i] = name;
	}
	return same && start->continues;
}

static void begin_run(struct cli_trace *trace, const struct cli_lines *lines,
                      const struct spill_record_start *start)
{
	uint64_t before = start ? start->continues : 0;

	if (start && continues_run(trace, start)) {
		trace->end.missing += before - trace->lines;
		trace->lines = before;
		return;
	}
	end_run(trace, trace->end.path != lines->path);
	trace->end = (struct cli_trace_end){.path = lines->path, .missing = before};
	trace->lines = before;
	trace->pid = start ? start->pid : -1;
	trace->running = true;
	trace->visitor->begin(trace->data, lines->path, lines->number, start);
}

/* Devices beyond SPILL_DEVICES share the number -1, so that tables stay short. */
static int device_of(int device)
{
	return device >= 0 && device < SPILL_DEVICES ? device : -1;
}

static struct cli_event alloc_event(struct cli_names *names, const struct spill_record_alloc *alloc)
{
	return (struct cli_event){
	    .kind = CLI_EVENT_ALLOC,
	    .device = device_of(alloc->device),
	    .place = alloc->place,
	    .time_us = alloc->time_us,
	    .seq = alloc->seq,
	    .order = alloc->order,
	    .level = alloc->level,
	    .bytes = alloc->bytes,
	    .held = alloc->held,
	    .seen = alloc->seen,
	    .api = cli_names_get(names, alloc->api),
	    .caller = cli_names_get(names, alloc->caller),
	    .who = alloc->requester ? cli_names_get(names, alloc->requester) : NULL,
	    .rule = cli_names_get(names, alloc->rule),
	    .reason = cli_names_get(names, alloc->reason),
	};
}

static struct cli_event free_event(struct cli_names *names, const struct spill_record_free *freed)
{
	return (struct cli_event){
	    .kind = CLI_EVENT_FREE,
	    .device = device_of(freed->device),
	    .place = freed->place,
	    .time_us = freed->time_us,
	    .seq = freed->seq,
	    .order = freed->order,
	    .level = freed->level,
	    .bytes = freed->bytes,
	    .api = cli_names_get(names, freed->api),
	    .caller = cli_names_get(names, freed->caller),
	    .reason = cli_names_get(names, freed->reason),
	};
}

static struct cli_event move_event(struct cli_names *names, const struct spill_record_move *move)
{
	return (struct cli_event){
	    .kind = move->what && !strcmp(move->what, "promote") ? CLI_EVENT_PROMOTE : CLI_EVENT_DEMOTE,
	    .device = device_of(move->device),
	    .place = SPILL_PLACES,
	    .time_us = move->time_us,
	    .seq = move->seq,
	    .order = move->order,
	    .level = move->level,
	    .bytes = move->bytes,
	    .held = move->held,
	    .seen = move->seen,
	    .took_us = move->took_us,
	    .api = cli_names_get(names, move->api),
	    .caller = cli_names_get(names, move->caller),
	    .reason = cli_names_get(names, move->reason),
	};
}

static struct cli_event sum_event(struct cli_names *names, const struct spill_record_sum *sum)
{
	return (struct cli_event){
	    .kind = CLI_EVENT_SUM,
	    .device = device_of(sum->device),
	    .place = SPILL_PLACE_DEVICE,
	    .time_us = sum->time_us,
	    .order = sum->order,
	    .level = sum->level,
	    .sum = {sum->allocs.count, sum->allocs.bytes.device, sum->frees.count, sum->frees.bytes.device,
	            sum->live, sum->peak, sum->largest},
	    .api = cli_names_get(names, sum->api),
	    .caller = cli_names_get(names, sum->caller),
	    .rule = cli_names_get(names, sum->rule),
	    .reason = cli_names_get(names, spill_reason_name(SPILL_REASON_FITS)),
	};
}

/* In the first logs the bytes of this process are missing. */
static struct spill_seen seen_at(const struct spill_record_oom *oom)
{
	if (!oom->ours && oom->live.device)
		return (struct spill_seen){0};
	return (struct spill_seen){.free = oom->free, .total = oom->total, .ours = oom->ours};
}

static struct cli_event oom_event(struct cli_names *names, const struct spill_record_oom *oom)
{
	return (struct cli_event){
	    .kind = CLI_EVENT_OOM,
	    .device = device_of(oom->device),
	    .place = SPILL_PLACES,
	    .time_us = oom->time_us,
	    .bytes = oom->bytes,
	    .seen = seen_at(oom),
	    .api = cli_names_get(names, oom->api),
	    .caller = cli_names_get(names, oom->caller),
	    .who = oom->requester ? cli_names_get(names, oom->requester) : NULL,
	    .rule = cli_names_get(names, oom->rule),
	    .reason = cli_names_get(names, oom->refused_by),
	};
}

static void sort_event(struct cli_trace *trace, struct cli_event event)
{
	if (!event.who)
		event.who = event.caller;
	trace->sorter.deliver = deliver_event;
	trace->sorter.data = trace;
	cli_sorter_put(&trace->sorter, &event);
}

static void add_record(struct cli_trace *trace, const struct spill_record *record)
{
	struct cli_names *names = &trace->names;

	switch (record->kind) {
	case SPILL_KIND_ALLOC:
		return sort_event(trace, alloc_event(names, &record->alloc));
	case SPILL_KIND_FREE:
		return sort_event(trace, free_event(names, &record->free));
	case SPILL_KIND_MOVE:
		return sort_event(trace, move_event(names, &record->move));
	case SPILL_KIND_SUM:
		return sort_event(trace, sum_event(names, &record->sum));
	case SPILL_KIND_OOM:
		trace->visitor->record(trace->data, record);
		return sort_event(trace, oom_event(names, &record->oom));
	case SPILL_KIND_DROP:
	case SPILL_KIND_EXIT:
		cli_sorter_flush(&trace->sorter);
		return trace->visitor->record(trace->data, record);
	case SPILL_KIND_FILE:
	case SPILL_KIND_NOTE:
	case SPILL_KIND_USE:
		return trace->visitor->record(trace->data, record);
	case SPILL_KIND_START:
	case SPILL_KINDS_COUNT:
		trace->end.later += record->version > SPILL_RECORD_VERSION;
		return;
	}
}

static void report_line(struct cli_trace *trace, const struct cli_lines *lines, enum cli_line line)
{
	trace->end.bad += line == CLI_LINE_BAD;
	trace->end.cut |= line == CLI_LINE_CUT;
	trace->broken |= line == CLI_LINE_BAD;
	if (trace->complaints++ < COMPLAINTS)
		cli_lines_complain(trace->command, lines, line);
}

static bool read_lines(struct cli_trace *trace, struct cli_lines *lines)
{
	struct spill_record record;
	enum cli_line line;
	bool any = false;

	while ((line = cli_lines_next(lines, &record)) != CLI_LINE_END) {
		any |= line != CLI_LINE_CUT;
		if (line == CLI_LINE_RECORD && record.kind == SPILL_KIND_START)
			begin_run(trace, lines, &record.start);
		else if (line == CLI_LINE_RECORD && (!trace->running || trace->fresh))
			begin_run(trace, lines, NULL);
		trace->fresh = trace->fresh && line != CLI_LINE_RECORD;
		trace->lines += line == CLI_LINE_RECORD;
		trace->end.path = lines->path;
		trace->end.line = lines->number;
		if (line == CLI_LINE_RECORD)
			add_record(trace, &record);
		else
			report_line(trace, lines, line);
	}
	return any;
}

static bool read_file(struct cli_trace *trace, const char *path, enum cli_files files)
{
	struct cli_lines lines;
	bool any;

	trace->complaints = 0;
	trace->broken = false;
	trace->fresh = true;
	cli_lines_open(&lines, path, files);
	any = read_lines(trace, &lines);
	if (lines.error)
		cli_complain(trace->command, path, cli_open_text(lines.error));
	else if (!any)
		cli_complain(trace->command, path, "no records");
	if (trace->complaints > COMPLAINTS)
		cli_fprintf(stderr, "spill %s: %s: and %s of this kind\n", trace->command, path,
		            cli_count(trace->complaints - COMPLAINTS, "more line").text);
	cli_lines_close(&lines);
	return any && !lines.error && !trace->broken;
}

static bool read_folder(struct cli_trace *trace, const char *path)
{
	struct cli_pieces pieces = cli_pieces_find(path);
	const char *problem = cli_pieces_problem(&pieces);
	bool good = !problem || cli_complain(trace->command, path, problem);

	cli_pieces_complain(trace->command, path, &pieces);

	for (size_t i = 0; i < pieces.count; i++)
		good = read_file(trace, pieces.paths[i], CLI_REGULAR) && good;
	end_run(trace, true); /* it has a path of the pieces */
	cli_pieces_free(&pieces);
	return good;
}

bool cli_trace_read(struct cli_trace *trace, const char *path)
{
	struct stat status;
	bool folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
	bool good = folder ? read_folder(trace, path) : read_file(trace, path, CLI_REGULAR_OR_PIPE);

	end_run(trace, true);
	return good;
}

void cli_trace_free(struct cli_trace *trace)
{
	cli_sorter_reset(&trace->sorter);
	cli_names_free(&trace->names);
}
