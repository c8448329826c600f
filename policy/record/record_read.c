#include "record_read.h"

#include <limits.h>
#include <stdalign.h>
#include <string.h>

#include "json_read.h"
#include "record_shape.h"

/* Lists grow from the front of the scratch, texts from its back. */
struct reading {
	struct spill_json_reader json;
	char *front, *back;
};

static bool take_room(struct reading *reading, size_t count)
{
	return count <= (size_t)(reading->back - reading->front) ||
	       spill_json_refuse(&reading->json, "too little scratch for it");
}

static bool read_text(struct reading *reading, const char **field)
{
	struct spill_json_text text;

	if (!spill_json_read_text(&reading->json, &text) || !take_room(reading, text.length + 1))
		return false;
	reading->back -= text.length + 1;
	reading->back[spill_json_decode(&text, reading->back)] = '\0';
	*field = reading->back;
	return true;
}

/* Refuses an escape in a word of ours: no writer needs one. */
static bool check_plain(struct reading *reading, const struct spill_json_text *text)
{
	return !text->escaped || spill_json_refuse(&reading->json, "an escape within a word of the format");
}

static bool is_word(const struct spill_json_text *text, const char *word)
{
	return text->length && *text->bytes == *word && strncmp(text->bytes, word, text->length) == 0 &&
	       word[text->length] == '\0';
}

static bool read_place(struct reading *reading, enum spill_place *place)
{
	struct spill_json_text text;

	if (!spill_json_read_text(&reading->json, &text) || !check_plain(reading, &text))
		return false;
	*place = SPILL_PLACE_DEVICE;
	while (*place < SPILL_PLACES && !is_word(&text, spill_place_name(*place)))
		(*place)++;
	return true;
}

/* An int that is not negative has the same form. */
static bool read_natural(struct reading *reading, uint64_t most, unsigned *natural)
{
	uint64_t value;

	if (!spill_json_read_u64(&reading->json, &value))
		return false;
	*natural = (unsigned)value;
	return value <= most || spill_json_refuse(&reading->json, "a number out of range");
}

static bool read_object(struct reading *reading, const struct spill_shape *shape, char *into);

/* pre: the bracket was taken */
static bool read_array(struct reading *reading, const struct spill_member *member, char *into)
{
	unsigned *count = (unsigned *)(void *)(into + member->count);
	char *element = into + member->offset;

	if (spill_json_take(&reading->json, ']'))
		return true;
	do {
		if (*count == member->most) {
			if (!spill_json_skip(&reading->json))
				return false;
			continue;
		}
		if (!read_object(reading, member->of, element))
			return false;
		element += member->of->size;
		(*count)++;
	} while (spill_json_more(&reading->json, ']'));
	return !reading->json.reason;
}

/* Reads one element at the front of the scratch. */
static bool read_element(struct reading *reading, const struct spill_shape *of)
{
	size_t size = of ? of->size : sizeof(char *);
	char *element = reading->front;

	if (!take_room(reading, size))
		return false;
	memset(element, 0, size);
	reading->front += size;
	if (of)
		return read_object(reading, of, element);
	return read_text(reading, (const char **)(void *)element);
}

/* pre: the bracket was taken */
static bool read_list(struct reading *reading, const struct spill_member *member, char *into)
{
	unsigned *count = (unsigned *)(void *)(into + member->count);

	memcpy(into + member->offset, &reading->front, sizeof(reading->front));
	if (spill_json_take(&reading->json, ']'))
		return true;
	do {
		if (!read_element(reading, member->of))
			return false;
		(*count)++;
	} while (spill_json_more(&reading->json, ']'));
	return !reading->json.reason;
}

static bool read_several(struct reading *reading, const struct spill_member *member, char *into)
{
	if (!spill_json_take(&reading->json, '['))
		return spill_json_unexpected(&reading->json, "not a list");
	return member->type == SPILL_MEMBER_ARRAY ? read_array(reading, member, into)
	                                          : read_list(reading, member, into);
}

static bool read_value(struct reading *reading, const struct spill_member *member, char *into)
{
	struct spill_json_reader *json = &reading->json;
	void *field = into + member->offset;

	switch ((enum spill_member_type)member->type) {
	case SPILL_MEMBER_KNOWN:
		return spill_json_skip(json);
	case SPILL_MEMBER_U64:
	case SPILL_MEMBER_BYTES:
		return spill_json_read_u64(json, field);
	case SPILL_MEMBER_INT:
		return spill_json_read_int(json, field);
	case SPILL_MEMBER_DEVICE:
		return read_natural(reading, INT_MAX, field);
	case SPILL_MEMBER_COUNT:
		return read_natural(reading, UINT_MAX, field);
	case SPILL_MEMBER_SECONDS:
		return spill_json_read_seconds(json, field);
	case SPILL_MEMBER_TRUTH:
		return spill_json_read_bool(json, field);
	case SPILL_MEMBER_TEXT:
		return read_text(reading, field);
	case SPILL_MEMBER_ADDRESS:
		return spill_json_read_pointer(json, field);
	case SPILL_MEMBER_PLACE:
		return read_place(reading, field);
	case SPILL_MEMBER_OBJECT:
	case SPILL_MEMBER_FIGURES:
		return read_object(reading, member->of, field);
	case SPILL_MEMBER_ARRAY:
	case SPILL_MEMBER_LIST:
		break;
	}
	return read_several(reading, member, into);
}

/* The row of a name; `count` if there is none. */
static unsigned find_member(const struct spill_shape *shape, const struct spill_json_text *name)
{
	unsigned row = 0;

	while (row < shape->count && (shape->members[row].length != name->length ||
	                              memcmp(shape->members[row].name, name->bytes, name->length) != 0))
		row++;
	return row;
}

/* Refuses the object if a needed member is missing, and sets the defaults of the others. */
static bool complete_object(struct reading *reading, const struct spill_shape *shape, uint32_t seen,
                            char *into)
{
	for (unsigned row = 0; row < shape->count; row++) {
		const struct spill_member *member = &shape->members[row];

		if (seen >> row & 1)
			continue;
		if (member->needed)
			return spill_json_refuse(&reading->json, "a member is missing");
		if (member->type == SPILL_MEMBER_DEVICE)
			*(int *)(void *)(into + member->offset) = -1;
	}
	return true;
}

/*
 * Takes the next name if it is one of the rows from `from` on, in the form of our writer, who
 * leaves out some members. Returns the row, or `count`: then the name is not read yet.
 */
static unsigned take_member(struct reading *reading, const struct spill_shape *shape, unsigned from)
{
	while (from < shape->count &&
	       !spill_json_take_key(&reading->json, shape->members[from].name, shape->members[from].length))
		from++;
	return from;
}

static bool read_member(struct reading *reading, const struct spill_shape *shape, char *into, uint32_t *seen,
                        unsigned *row)
{
	struct spill_json_text name;
	unsigned found = take_member(reading, shape, *row);

	if (found == shape->count) {
		if (!spill_json_read_key(&reading->json, &name) || !check_plain(reading, &name))
			return false;
		found = find_member(shape, &name);
		if (found == shape->count)
			return spill_json_skip(&reading->json);
	}
	if (*seen >> found & 1)
		return spill_json_refuse(&reading->json, "a member twice");
	*seen |= (uint32_t)1 << found;
	*row = found + 1;
	return read_value(reading, &shape->members[found], into);
}

/* Recursive, as deep as the tables of shapes: twice. */
static bool read_object(struct reading *reading, const struct spill_shape *shape, char *into)
{
	uint32_t seen = 0;
	unsigned row = 0;

	if (!spill_json_take(&reading->json, '{'))
		return spill_json_unexpected(&reading->json, "not an object");
	if (!spill_json_take(&reading->json, '}')) {
		do {
			if (!read_member(reading, shape, into, &seen, &row))
				return false;
		} while (spill_json_more(&reading->json, '}'));
	}
	return !reading->json.reason && complete_object(reading, shape, seen, into);
}

static enum spill_kind kind_of(const struct spill_json_text *name)
{
	enum spill_kind kind = SPILL_KIND_START;

	while (kind < SPILL_KINDS_COUNT && !is_word(name, spill_kind_name(kind)))
		kind++;
	return kind;
}

/* Reads version and kind, which decide the rest. Our writer puts them first. */
static bool read_head(struct reading *reading, struct spill_record *record)
{
	struct spill_json_reader *json = &reading->json;
	struct spill_json_text name, kind = {.bytes = NULL};
	bool version = false;

	if (!spill_json_take(json, '{'))
		return spill_json_unexpected(json, "not an object");
	do {
		if (!spill_json_read_key(json, &name))
			return false;
		if (is_word(&name, "v"))
			version = spill_json_read_u64(json, &record->version);
		else if (is_word(&name, "kind"))
			(void)(spill_json_read_text(json, &kind) && check_plain(reading, &kind));
		else
			spill_json_skip(json);
	} while (!(version && kind.bytes) && spill_json_more(json, '}'));
	if (json->reason)
		return false;
	if (!version || !kind.bytes)
		return spill_json_refuse(json, version ? "no kind" : "no version");
	record->kind = record->version == SPILL_RECORD_VERSION ? kind_of(&kind) : SPILL_KINDS_COUNT;
	return true;
}

static bool read_record(struct reading *reading, struct spill_record *record)
{
	const char *line = reading->json.at;
	const struct spill_shape *shape;

	if (!read_head(reading, record))
		return false;
	reading->json.at = line;
	shape = spill_record_shape(record->kind);
	memset(&record->time_us, 0, shape->size);
	if (!read_object(reading, shape, (char *)&record->time_us))
		return false;
	spill_json_take(&reading->json, '\n');
	return reading->json.at == reading->json.end ||
	       spill_json_refuse(&reading->json, "something behind the record");
}

const char *spill_record_read(const char *line, size_t length, char *scratch, size_t size,
                              struct spill_record *record, size_t *at)
{
	struct reading reading = {.json = spill_json_read(line, length), .back = scratch + size};
	size_t misaligned = (uintptr_t)scratch % alignof(struct spill_record_device);

	reading.front = scratch;
	if (misaligned != 0 && take_room(&reading, alignof(struct spill_record_device) - misaligned))
		reading.front += alignof(struct spill_record_device) - misaligned;
	if (!read_record(&reading, record))
		*at = (size_t)(reading.json.at - line);
	return reading.json.reason;
}
