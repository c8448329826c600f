/* Inside gen_log: the rows of record.def with their texts. */
#ifndef SPILL_GEN_LOG_H
#define SPILL_GEN_LOG_H

#include <stdbool.h>

#include "record_shape.h"

struct object;

struct member {
	const char *name, *words, *text;
	enum spill_member_type type;
	bool needed;
	const struct object *of;
};

struct object {
	const char *name;
	const struct member *members;
	unsigned count;
};

extern const struct object *const gen_log_kinds[SPILL_KINDS_COUNT];

/* Prints docs/log.schema.json. */
void gen_log_schema(void);

#endif
