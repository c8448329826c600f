/* Inside record/: the members of each kind of line, as tables for reader and writer. */
#ifndef SPILL_RECORD_SHAPE_H
#define SPILL_RECORD_SHAPE_H

#include "record_read.h"

enum spill_member_type {
	SPILL_MEMBER_KNOWN, /* v and kind: read before */
	SPILL_MEMBER_U64,
	SPILL_MEMBER_BYTES, /* uint64_t that is left out if it is 0 */
	SPILL_MEMBER_INT,
	SPILL_MEMBER_DEVICE, /* int; -1 if it is left out */
	SPILL_MEMBER_COUNT,  /* unsigned */
	SPILL_MEMBER_SECONDS,
	SPILL_MEMBER_TRUTH,
	SPILL_MEMBER_TEXT,
	SPILL_MEMBER_ADDRESS,
	SPILL_MEMBER_PLACE,
	SPILL_MEMBER_OBJECT,
	SPILL_MEMBER_FIGURES, /* an object that is left out if one of its numbers is 0 */
	SPILL_MEMBER_ARRAY,   /* objects, in an array of the record's: the first `most` */
	SPILL_MEMBER_LIST, /* objects or (without a shape) texts, in scratch; the field is a pointer to them */
};

struct spill_shape;

struct spill_member {
	const char *name;
	unsigned char length, type;
	bool needed; /* a line without it is refused */
	/* count: offset of the number of an ARRAY or LIST, or of the number of FIGURES. */
	unsigned short offset, count, most;
	const struct spill_shape *of;
};

/* At most 32 members. Offsets are within the struct of the object. */
struct spill_shape {
	const struct spill_member *members;
	unsigned count;
	size_t size;
};

/* SPILL_KINDS_COUNT is the shape of unknown kinds. pre: kind <= SPILL_KINDS_COUNT */
const struct spill_shape *spill_record_shape(enum spill_kind kind);

/* Of struct spill_refusal. */
const struct spill_shape *spill_refusal_shape(void);

#endif
