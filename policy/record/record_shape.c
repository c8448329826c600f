/*
 * The members of each kind of line (record.def), in the writer's order: the next member is the next
 * row.
 */
#include "record_shape.h"

#define NAMED(key, how) .name = (key), .length = sizeof(key) - 1, .type = SPILL_MEMBER_##how
#define AT(must, field) .needed = (must), .offset = offsetof(SHAPE, field)

// clang-format off
#define OBJECT(object) static const struct spill_member object##_rows[] = {
#define HEAD(key, how, text) {NAMED(key, KNOWN)},
#define NEEDED(key, how, field, words, text) {NAMED(key, how), AT(true, field)},
#define OPTIONAL(key, how, field, words, text) {NAMED(key, how), AT(false, field)},
#define INNER(key, must, field, object, text) {NAMED(key, OBJECT), AT(must, field), .of = (object)},
#define FIGURES(key, field, number, object, text) \
	{NAMED(key, FIGURES), AT(false, field), .count = offsetof(SHAPE, number), .of = (object)},
#define SEVERAL(key, how, field, counted, room, object, text) \
	{NAMED(key, how), AT(false, field), .count = offsetof(SHAPE, counted), .most = (room), .of = (object)},
#define END(object) \
	}; \
	static const struct spill_shape object = {object##_rows, sizeof(object##_rows) / sizeof(object##_rows[0]), sizeof(SHAPE)};
#define KINDS_BEGIN static const struct spill_shape *const shapes[SPILL_KINDS_COUNT + 1] = {
#define KIND(id, object) [SPILL_KIND_##id] = &(object),
#define KINDS_END [SPILL_KINDS_COUNT] = &unknown};
#include "record.def"
// clang-format on

const struct spill_shape *spill_record_shape(enum spill_kind kind)
{
	return shapes[kind];
}

const struct spill_shape *spill_refusal_shape(void)
{
	return &refusal;
}
