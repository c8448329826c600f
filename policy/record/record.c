#include "record.h"

#include "json.h"

/* A member that is left out if it is NULL (OPTIONAL in record.def). */
static void text_member(struct spill_json *json, const char *key, const char *text)
{
	if (text)
		spill_json_string(spill_json_key(json, key), text);
}

static void u64_member(struct spill_json *json, const char *key, uint64_t value)
{
	spill_json_u64(spill_json_key(json, key), value);
}

static void bytes_member(struct spill_json *json, const char *key, uint64_t bytes)
{
	if (bytes != 0)
		u64_member(json, key, bytes);
}

static void begin(struct spill_json *json, enum spill_kind kind, uint64_t time_us, char *buffer, size_t size)
{
	spill_json_begin(json, buffer, size);
	spill_json_object(json);
	u64_member(json, "v", SPILL_RECORD_VERSION);
	spill_json_string(spill_json_key(json, "kind"), spill_kind_name(kind));
	spill_json_seconds(spill_json_key(json, "t"), time_us);
}

static size_t finish(struct spill_json *json)
{
	spill_json_object_end(json);
	return spill_json_end_line(json);
}

/* The members about the call, which several kinds share. device < 0: unknown. */
static void origin(struct spill_json *json, int tid, int device, const char *api, const char *caller)
{
	spill_json_i64(spill_json_key(json, "tid"), tid);
	if (device >= 0)
		spill_json_i64(spill_json_key(json, "dev"), device);
	text_member(json, "api", api);
	text_member(json, "caller", caller);
}

static void place_member(struct spill_json *json, enum spill_place place)
{
	text_member(json, "place", spill_place_name(place));
}

static void tried(struct spill_json *json, const struct spill_attempt *attempts, unsigned count)
{
	if (count == 0)
		return;
	spill_json_array(spill_json_key(json, "tried"));
	for (unsigned i = 0; i < count && i < SPILL_ATTEMPTS; i++) {
		spill_json_object(json);
		text_member(json, "place", attempts[i].place);
		text_member(json, "error", attempts[i].error);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void all_bytes(struct spill_json *json, const struct spill_bytes *bytes)
{
	u64_member(json, "device_bytes", bytes->device);
	u64_member(json, "host_bytes", bytes->host);
	u64_member(json, "managed_bytes", bytes->managed);
}

/* Sums have all members, also those that are 0. */
static void sums(struct spill_json *json, const char *key, const struct spill_bytes *bytes)
{
	spill_json_object(spill_json_key(json, key));
	all_bytes(json, bytes);
	spill_json_object_end(json);
}

const char *spill_kind_name(enum spill_kind kind)
{
	static const char *const names[] = {
#define X(id, name, text) [SPILL_KIND_##id] = name,
	    SPILL_KINDS(X)
#undef X
	};

	return (unsigned)kind < SPILL_KINDS_COUNT ? names[kind] : NULL;
}

size_t spill_record_alloc(const struct spill_record_alloc *record, char *buffer, size_t size)
{
	struct spill_json json;

	begin(&json, SPILL_KIND_ALLOC, record->time_us, buffer, size);
	u64_member(&json, "seq", record->seq);
	u64_member(&json, "order", record->order);
	origin(&json, record->tid, record->device, record->api, record->caller);
	u64_member(&json, "bytes", record->bytes);
	spill_json_pointer(spill_json_key(&json, "ptr"), record->ptr);
	place_member(&json, record->place);
	bytes_member(&json, "device_bytes", record->held.device);
	bytes_member(&json, "host_bytes", record->held.host);
	bytes_member(&json, "managed_bytes", record->held.managed);
	text_member(&json, "reason", record->reason);
	text_member(&json, "rule", record->rule);
	text_member(&json, "would", record->would);
	tried(&json, record->tried, record->attempts);
	u64_member(&json, "us", record->took_us);
	return finish(&json);
}

size_t spill_record_free(const struct spill_record_free *record, char *buffer, size_t size)
{
	struct spill_json json;

	begin(&json, SPILL_KIND_FREE, record->time_us, buffer, size);
	u64_member(&json, "seq", record->seq);
	u64_member(&json, "order", record->order);
	origin(&json, record->tid, record->device, record->api, record->caller);
	u64_member(&json, "bytes", record->bytes);
	spill_json_pointer(spill_json_key(&json, "ptr"), record->ptr);
	place_member(&json, record->place);
	text_member(&json, "reason", record->reason);
	u64_member(&json, "us", record->took_us);
	return finish(&json);
}

size_t spill_record_move(const struct spill_record_move *record, char *buffer, size_t size)
{
	struct spill_json json;

	begin(&json, SPILL_KIND_MOVE, record->time_us, buffer, size);
	u64_member(&json, "seq", record->seq);
	u64_member(&json, "order", record->order);
	text_member(&json, "what", record->what);
	origin(&json, record->tid, record->device, record->api, record->caller);
	u64_member(&json, "bytes", record->bytes);
	u64_member(&json, "chunks", record->chunks);
	/* Both sides, also if one of them is 0. */
	u64_member(&json, "device_bytes", record->held.device);
	u64_member(&json, "host_bytes", record->held.host);
	bytes_member(&json, "managed_bytes", record->held.managed);
	text_member(&json, "reason", record->reason);
	u64_member(&json, "us", record->took_us);
	return finish(&json);
}

static void holders(struct spill_json *json, const struct spill_holder *top, unsigned count)
{
	if (count == 0)
		return;
	spill_json_array(spill_json_key(json, "holders"));
	for (unsigned i = 0; i < count && i < SPILL_HOLDERS; i++) {
		spill_json_object(json);
		u64_member(json, "seq", top[i].seq);
		u64_member(json, "bytes", top[i].bytes);
		place_member(json, top[i].place);
		text_member(json, "api", top[i].api);
		text_member(json, "caller", top[i].caller);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

void spill_record_refusal(struct spill_json *json, const struct spill_refusal *refusal)
{
	if (refusal->asked == 0)
		return;
	spill_json_object(spill_json_key(json, "refusal"));
	u64_member(json, "limit", refusal->limit);
	u64_member(json, "held", refusal->held);
	u64_member(json, "asked", refusal->asked);
	u64_member(json, "room", refusal->room);
	spill_json_object_end(json);
}

static void groups(struct spill_json *json, const char *key, const char *name_key,
                   const struct spill_group *list, unsigned count, unsigned most)
{
	if (count == 0)
		return;
	spill_json_array(spill_json_key(json, key));
	for (unsigned i = 0; i < count && i < most; i++) {
		spill_json_object(json);
		text_member(json, name_key, list[i].name);
		u64_member(json, "count", list[i].count);
		all_bytes(json, &list[i].held);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

size_t spill_record_oom(const struct spill_record_oom *record, char *buffer, size_t size)
{
	struct spill_json json;

	begin(&json, SPILL_KIND_OOM, record->time_us, buffer, size);
	origin(&json, record->tid, record->device, record->api, record->caller);
	u64_member(&json, "bytes", record->bytes);
	u64_member(&json, "free", record->free);
	u64_member(&json, "total", record->total);
	u64_member(&json, "ours", record->ours);
	sums(&json, "live", &record->live);
	text_member(&json, "rule", record->rule);
	text_member(&json, "refused_by", record->refused_by);
	spill_record_refusal(&json, &record->refusal);
	text_member(&json, "would", record->would);
	tried(&json, record->tried, record->attempts);
	groups(&json, "places", "place", record->by_place, record->places, SPILL_PLACES);
	groups(&json, "callers", "caller", record->by_caller, record->callers, SPILL_CALLERS);
	holders(&json, record->top, record->holders);
	return finish(&json);
}

size_t spill_record_note(uint64_t time_us, int tid, const char *code, const char *text, char *buffer,
                         size_t size)
{
	struct spill_json json;

	begin(&json, SPILL_KIND_NOTE, time_us, buffer, size);
	spill_json_i64(spill_json_key(&json, "tid"), tid);
	text_member(&json, "code", code);
	text_member(&json, "text", text);
	return finish(&json);
}

static void counted_sums(struct spill_json *json, const char *key, const struct spill_sum *sum)
{
	if (sum->count == 0)
		return;
	spill_json_object(spill_json_key(json, key));
	u64_member(json, "count", sum->count);
	all_bytes(json, &sum->bytes);
	spill_json_object_end(json);
}

size_t spill_record_drop(const struct spill_record_drop *record, char *buffer, size_t size)
{
	struct spill_json json;

	begin(&json, SPILL_KIND_DROP, record->time_us, buffer, size);
#define X(id, name, text) counted_sums(&json, name, &record->sums[SPILL_DROP_##id]);
	SPILL_DROPS(X)
#undef X
	sums(&json, "peak", &record->peak);
	return finish(&json);
}

size_t spill_record_exit(uint64_t time_us, const char *how, const struct spill_totals *totals,
                         const struct spill_hits *hits, unsigned count, char *buffer, size_t size)
{
	struct spill_json json;

	begin(&json, SPILL_KIND_EXIT, time_us, buffer, size);
	text_member(&json, "how", how);
	u64_member(&json, "allocs", totals->allocs);
	u64_member(&json, "frees", totals->frees);
	u64_member(&json, "spills", totals->spills);
	u64_member(&json, "ooms", totals->ooms);
	u64_member(&json, "demotions", totals->demotions);
	u64_member(&json, "promotions", totals->promotions);
	u64_member(&json, "demoted_bytes", totals->demoted);
	u64_member(&json, "promoted_bytes", totals->promoted);
	sums(&json, "live", &totals->live);
	sums(&json, "peak", &totals->peak);
	sums(&json, "spilled", &totals->spilled);
	spill_json_array(spill_json_key(&json, "hits"));
	for (unsigned i = 0; i < count; i++) {
		spill_json_object(&json);
		text_member(&json, "symbol", hits[i].symbol);
		text_member(&json, "way", hits[i].way);
		u64_member(&json, "count", hits[i].count);
		spill_json_object_end(&json);
	}
	spill_json_array_end(&json);
	return finish(&json);
}
