/* Writes the lines by the table of members (record.def). */
#include "record.h"

#include "json.h"
#include "record_shape.h"

static void write_object(struct spill_json *json, const struct spill_shape *shape, const char *from);

/* An ARRAY of the record, or a LIST that it points to. */
static void write_objects(struct spill_json *json, const struct spill_member *member, const char *from)
{
	unsigned count = *(const unsigned *)(const void *)(from + member->count);
	const char *element = from + member->offset;

	if (member->type == SPILL_MEMBER_LIST)
		element = *(const char *const *)(const void *)element;
	else if (count > member->most)
		count = member->most;
	spill_json_array(json);
	for (; count; count--, element += member->of->size) {
		spill_json_object(json);
		write_object(json, member->of, element);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

/* Is the member left out? docs/log-format.md names these members. */
static bool is_left_out(const struct spill_member *member, const char *from)
{
	const void *field = from + member->offset;

	switch ((enum spill_member_type)member->type) {
	case SPILL_MEMBER_KNOWN:
		return true;
	case SPILL_MEMBER_TEXT:
		return !*(const char *const *)field;
	case SPILL_MEMBER_DEVICE:
		return *(const int *)field < 0;
	case SPILL_MEMBER_BYTES:
		return *(const uint64_t *)field == 0;
	case SPILL_MEMBER_FIGURES:
		return *(const uint64_t *)(const void *)(from + member->count) == 0;
	case SPILL_MEMBER_ARRAY:
		return *(const unsigned *)(const void *)(from + member->count) == 0;
	default:
		return false;
	}
}

static void write_value(struct spill_json *json, const struct spill_member *member, const char *from)
{
	const void *field = from + member->offset;

	switch ((enum spill_member_type)member->type) {
	case SPILL_MEMBER_KNOWN:
		return;
	case SPILL_MEMBER_U64:
	case SPILL_MEMBER_BYTES:
		spill_json_u64(json, *(const uint64_t *)field);
		return;
	case SPILL_MEMBER_INT:
	case SPILL_MEMBER_DEVICE:
		spill_json_i64(json, *(const int *)field);
		return;
	case SPILL_MEMBER_COUNT:
		spill_json_u64(json, *(const unsigned *)field);
		return;
	case SPILL_MEMBER_SECONDS:
		spill_json_seconds(json, *(const uint64_t *)field);
		return;
	case SPILL_MEMBER_TRUTH:
		spill_json_bool(json, *(const bool *)field);
		return;
	case SPILL_MEMBER_TEXT:
		spill_json_string(json, *(const char *const *)field);
		return;
	case SPILL_MEMBER_ADDRESS:
		spill_json_pointer(json, *(const uint64_t *)field);
		return;
	case SPILL_MEMBER_PLACE:
		spill_json_string(json, spill_place_name(*(const enum spill_place *)field));
		return;
	case SPILL_MEMBER_OBJECT:
	case SPILL_MEMBER_FIGURES:
		spill_json_object(json);
		write_object(json, member->of, field);
		spill_json_object_end(json);
		return;
	case SPILL_MEMBER_ARRAY:
	case SPILL_MEMBER_LIST:
		write_objects(json, member, from);
	}
}

/* Writes the members. Recursive, as deep as the tables of shapes: twice. */
static void write_object(struct spill_json *json, const struct spill_shape *shape, const char *from)
{
	for (unsigned row = 0; row < shape->count; row++) {
		const struct spill_member *member = &shape->members[row];

		if (!is_left_out(member, from))
			write_value(spill_json_key(json, member->name), member, from);
	}
}

static size_t write_line(enum spill_kind kind, const void *record, char *buffer, size_t size)
{
	struct spill_json json;

	spill_json_begin(&json, buffer, size);
	spill_json_object(&json);
	spill_json_u64(spill_json_key(&json, "v"), SPILL_RECORD_VERSION);
	spill_json_string(spill_json_key(&json, "kind"), spill_kind_name(kind));
	write_object(&json, spill_record_shape(kind), record);
	spill_json_object_end(&json);
	return spill_json_end_line(&json);
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
	return write_line(SPILL_KIND_ALLOC, record, buffer, size);
}

size_t spill_record_free(const struct spill_record_free *record, char *buffer, size_t size)
{
	return write_line(SPILL_KIND_FREE, record, buffer, size);
}

size_t spill_record_move(const struct spill_record_move *record, char *buffer, size_t size)
{
	return write_line(SPILL_KIND_MOVE, record, buffer, size);
}

size_t spill_record_oom(const struct spill_record_oom *record, char *buffer, size_t size)
{
	return write_line(SPILL_KIND_OOM, record, buffer, size);
}

size_t spill_record_sum(const struct spill_record_sum *record, char *buffer, size_t size)
{
	return write_line(SPILL_KIND_SUM, record, buffer, size);
}

size_t spill_record_file(const struct spill_record_file *record, char *buffer, size_t size)
{
	return write_line(SPILL_KIND_FILE, record, buffer, size);
}

size_t spill_record_note(uint64_t time_us, int tid, const char *code, const char *text, char *buffer,
                         size_t size)
{
	const struct spill_record_note record = {time_us, tid, code, text};

	return write_line(SPILL_KIND_NOTE, &record, buffer, size);
}

size_t spill_record_drop(const struct spill_record_drop *record, char *buffer, size_t size)
{
	return write_line(SPILL_KIND_DROP, record, buffer, size);
}

size_t spill_record_use(const struct spill_record_use *record, char *buffer, size_t size)
{
	return write_line(SPILL_KIND_USE, record, buffer, size);
}

size_t spill_record_exit(uint64_t time_us, const char *how, const struct spill_totals *totals,
                         const struct spill_hits *hits, unsigned count, char *buffer, size_t size)
{
	const struct spill_record_exit record = {time_us, how, *totals, count, hits};

	return write_line(SPILL_KIND_EXIT, &record, buffer, size);
}

void spill_record_refusal(struct spill_json *json, const struct spill_refusal *refusal)
{
	if (refusal->asked == 0)
		return;
	spill_json_object(spill_json_key(json, "refusal"));
	write_object(json, spill_refusal_shape(), (const char *)refusal);
	spill_json_object_end(json);
}
