/* Writes a record that was read: what the writers make of it is what must be read the same once more. */
#ifndef RECORD_AGAIN_H
#define RECORD_AGAIN_H

#include "json.h"
#include "record_read.h"

/* What stands in a start line, as start_line.c writes it from the process itself. */
static inline void again_text(struct spill_json *json, const char *key, const char *text)
{
	if (text)
		spill_json_string(spill_json_key(json, key), text);
}

static inline void again_lists(struct spill_json *json, const struct spill_record_start *start)
{
	spill_json_array(spill_json_key(json, "devices"));
	for (unsigned i = 0; i < start->device_count; i++) {
		spill_json_object(json);
		spill_json_i64(spill_json_key(json, "dev"), start->devices[i].device);
		again_text(json, "name", start->devices[i].name);
		again_text(json, "uuid", start->devices[i].uuid);
		again_text(json, "pci", start->devices[i].pci);
		spill_json_u64(spill_json_key(json, "bytes"), start->devices[i].bytes);
		again_text(json, "memory", start->devices[i].memory);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
	spill_json_array(spill_json_key(json, "policy"));
	for (unsigned i = 0; i < start->option_count; i++) {
		spill_json_object(json);
		again_text(json, "name", start->policy[i].name);
		again_text(json, "value", start->policy[i].value);
		again_text(json, "source", start->policy[i].source);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
	spill_json_array(spill_json_key(json, "args"));
	for (unsigned i = 0; i < start->arg_count; i++)
		spill_json_string(json, start->args[i]);
	spill_json_array_end(json);
	if (start->cut)
		spill_json_bool(spill_json_key(json, "cut"), true);
	if (start->continues)
		spill_json_u64(spill_json_key(json, "continues"), start->continues);
}

static inline void again_ranks(struct spill_json *json, const struct spill_record_ranks *ranks)
{
	bool any = false;

	for (unsigned i = 0; i < SPILL_RANKS_COUNT; i++)
		any = any || ranks->of[i];
	if (!any)
		return;
	spill_json_object(spill_json_key(json, "rank"));
#define X(id, name, text) again_text(json, name, ranks->of[SPILL_RANK_##id]);
	SPILL_RANKS(X)
#undef X
	spill_json_object_end(json);
}

static inline size_t again_start(const struct spill_record_start *start, char *buffer, size_t size)
{
	struct spill_json json;

	spill_json_begin(&json, buffer, size);
	spill_json_object(&json);
	spill_json_u64(spill_json_key(&json, "v"), SPILL_RECORD_VERSION);
	again_text(&json, "kind", "start");
	spill_json_seconds(spill_json_key(&json, "t"), start->time_us);
	again_text(&json, "time", start->time);
	again_text(&json, "boot", start->boot);
	again_text(&json, "host", start->host);
	spill_json_i64(spill_json_key(&json, "pid"), start->pid);
	spill_json_i64(spill_json_key(&json, "ppid"), start->ppid);
	again_text(&json, "program", start->program);
	again_text(&json, "exe", start->exe);
	again_ranks(&json, &start->ranks);
	again_text(&json, "version", start->version);
	again_text(&json, "backend", start->backend);
	spill_json_i64(spill_json_key(&json, "driver"), start->driver);
	again_lists(&json, start);
	spill_json_object_end(&json);
	return spill_json_end_line(&json);
}

/* Returns as the writers of record.h do; 0 too for a kind that we do not know. */
static inline size_t write_again(const struct spill_record *record, char *buffer, size_t size)
{
	switch (record->kind) {
	case SPILL_KIND_START:
		return again_start(&record->start, buffer, size);
	case SPILL_KIND_ALLOC:
		return spill_record_alloc(&record->alloc, buffer, size);
	case SPILL_KIND_FREE:
		return spill_record_free(&record->free, buffer, size);
	case SPILL_KIND_MOVE:
		return spill_record_move(&record->move, buffer, size);
	case SPILL_KIND_SUM:
		return spill_record_sum(&record->sum, buffer, size);
	case SPILL_KIND_OOM:
		return spill_record_oom(&record->oom, buffer, size);
	case SPILL_KIND_FILE:
		return spill_record_file(&record->file, buffer, size);
	case SPILL_KIND_NOTE:
		return spill_record_note(record->note.time_us, record->note.tid, record->note.code,
		                         record->note.text, buffer, size);
	case SPILL_KIND_DROP:
		return spill_record_drop(&record->drop, buffer, size);
	case SPILL_KIND_USE:
		return spill_record_use(&record->use, buffer, size);
	case SPILL_KIND_EXIT:
		return spill_record_exit(record->exit.time_us, record->exit.how, &record->exit.totals,
		                         record->exit.hits, record->exit.hit_count, buffer, size);
	case SPILL_KINDS_COUNT:
		break;
	}
	return 0;
}

#endif
