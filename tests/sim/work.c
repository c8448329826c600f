/* Copies, sets, host functions and launches: what is checked when they are submitted, and what runs later. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* -- host functions -------------------------------------------------------------------------------------- */

struct host_call {
	void (*function)(void *);
	void *data;
};

static void host_call(void *data)
{
	const struct host_call *call = data;

	guard_off();
	call->function(call->data);
}

enum sim_status sim_host_function(struct sim_stream *stream, void (*function)(void *), void *data)
{
	struct host_call *call = malloc(sizeof(*call));

	if (!call)
		return SIM_NO_HOST_MEMORY;
	*call = (struct host_call){function, data};
	return stream_submit(stream, SIM_NODE_HOST, host_call, call, false, false);
}

/* -- copies ---------------------------------------------------------------------------------------------- */

struct side {
	char *at; /* where the copy engine reaches it */
	enum { SIDE_DEVICE, SIDE_PINNED, SIDE_PAGEABLE } what;
};

/* SIM_INVALID: a device address that is not all allocated, or not reachable. */
static enum sim_status side_of(uint64_t address, uint64_t bytes, struct sim_stream *stream, struct side *out)
{
	const struct sim_context *context = sim_stream_context(stream);
	struct sim_pointer about;

	*out = (struct side){(char *)address, SIDE_PAGEABLE};
	/* A graph's memory is there when the graph runs, not when its nodes are made. */
	if (graph_memory_contains(address, bytes) && capture_records(stream)) {
		*out = (struct side){va_alias(address, context->device), SIDE_DEVICE};
		return SIM_OK;
	}
	if (!sim_pointer(address, &about))
		return va_contains(address) ? SIM_INVALID : SIM_OK;
	if (about.kind == SIM_REGISTERED) {
		out->what = SIDE_PINNED;
		return SIM_OK;
	}
	if (!sim_range_valid(address, bytes))
		return SIM_INVALID;
	out->what = about.kind == SIM_HOST ? SIDE_PINNED : SIDE_DEVICE;
	/* Memory of a pool on the host is not the device's before sim_pool_set_access. */
	if (about.pool && about.kind == SIM_HOST && !(about.access & 1u << context->device))
		return SIM_INVALID;
	if (about.kind == SIM_DEVICE) {
		out->at = va_alias(address, about.device);
	} else if (about.kind == SIM_VMM) {
		if (!about.access)
			return SIM_INVALID;
		out->at =
		    va_alias(address, about.access & 1u << context->device ? context->device
		                                                           : __builtin_ctz(about.access));
	}
	return SIM_OK;
}

struct copy {
	char *to;
	const char *from;
	uint64_t to_pitch, from_pitch, width, rows;
	char staged[]; /* a pageable source, as it was when the call was made */
};

static void copy_now(void *data)
{
	const struct copy *copy = data;

	if (copy->to_pitch == copy->width && copy->from_pitch == copy->width) {
		memmove(copy->to, copy->from, copy->width * copy->rows);
		return;
	}
	for (uint64_t row = 0; row < copy->rows; row++)
		memmove(copy->to + row * copy->to_pitch, copy->from + row * copy->from_pitch, copy->width);
}

static enum sim_status kind_fits(enum sim_copy_kind kind, const struct side *to, const struct side *from)
{
	bool device_to = kind == SIM_COPY_TO_DEVICE || kind == SIM_COPY_ON_DEVICE;
	bool device_from = kind == SIM_COPY_TO_HOST || kind == SIM_COPY_ON_DEVICE;

	return (device_to && to->what == SIDE_PAGEABLE) || (device_from && from->what == SIDE_PAGEABLE)
	           ? SIM_INVALID
	           : SIM_OK;
}

enum sim_status sim_copy_rows(struct sim_stream *stream, uint64_t to, uint64_t to_pitch, uint64_t from,
                              uint64_t from_pitch, uint64_t width, uint64_t rows, enum sim_copy_kind kind,
                              bool wait)
{
	struct side target, source;

	if (!sim_stream_alive(stream))
		return SIM_BAD_CONTEXT;
	if (!width || !rows)
		return SIM_OK;
	if (rows > 1 && (to_pitch < width || from_pitch < width))
		return SIM_INVALID;
	if (rows == 1)
		to_pitch = from_pitch = width;
	enum sim_status status = side_of(to, to_pitch * (rows - 1) + width, stream, &target);
	if (!status)
		status = side_of(from, from_pitch * (rows - 1) + width, stream, &source);
	if (!status)
		status = kind_fits(kind, &target, &source);
	if (status)
		return status;
	/* A node reads its source whenever it runs. */
	bool stage =
	    !wait && source.what == SIDE_PAGEABLE && target.what != SIDE_PAGEABLE && !capture_records(stream);
	struct copy *copy = malloc(sizeof(*copy) + (stage ? width * rows : 0));
	if (!copy)
		return SIM_NO_HOST_MEMORY;
	*copy = (struct copy){target.at, source.at, to_pitch, from_pitch, width, rows};
	if (stage) {
		for (uint64_t row = 0; row < rows; row++)
			memcpy(copy->staged + row * width, source.at + row * from_pitch, width);
		copy->from = copy->staged;
		copy->from_pitch = width;
	}
	/* Within the device even the synchronous call only submits; to pageable memory even the other waits. */
	if (target.what == SIDE_PAGEABLE)
		wait = true;
	else if (target.what == SIDE_DEVICE && source.what == SIDE_DEVICE)
		wait = false;
	return stream_submit(stream, SIM_NODE_COPY, copy_now, copy, wait, false);
}

enum sim_status sim_copy(struct sim_stream *stream, uint64_t to, uint64_t from, uint64_t bytes,
                         enum sim_copy_kind kind, bool wait)
{
	return sim_copy_rows(stream, to, bytes, from, bytes, bytes, 1, kind, wait);
}

/* -- sets ------------------------------------------------------------------------------------------------ */

struct set {
	char *to;
	uint64_t pitch, width, rows;
	uint32_t value;
	unsigned element;
};

static void set_row(void *to, uint32_t value, unsigned element, uint64_t width)
{
	if (element == 1) {
		memset(to, (int)(value & 0xff), width);
	} else if (element == 2) {
		for (uint64_t i = 0; i < width; i++)
			((uint16_t *)to)[i] = (uint16_t)value;
	} else {
		for (uint64_t i = 0; i < width; i++)
			((uint32_t *)to)[i] = value;
	}
}

static void set_now(void *data)
{
	const struct set *set = data;

	for (uint64_t row = 0; row < set->rows; row++)
		set_row(set->to + row * set->pitch, set->value, set->element, set->width);
}

enum sim_status sim_set(struct sim_stream *stream, uint64_t to, uint64_t pitch, uint32_t value,
                        unsigned element, uint64_t width, uint64_t rows, bool wait)
{
	struct side side;

	if (!sim_stream_alive(stream))
		return SIM_BAD_CONTEXT;
	if (!width || !rows)
		return SIM_OK;
	if (to % element || (rows > 1 && (pitch < width * element || pitch % element)))
		return SIM_INVALID;
	if (rows == 1)
		pitch = width * element;
	enum sim_status status = side_of(to, pitch * (rows - 1) + width * element, stream, &side);
	if (!status && side.what == SIDE_PAGEABLE)
		status = SIM_INVALID;
	if (status)
		return status;
	struct set *set = malloc(sizeof(*set));
	if (!set)
		return SIM_NO_HOST_MEMORY;
	*set = (struct set){side.at, pitch, width, rows, value, element};
	return stream_submit(stream, SIM_NODE_SET, set_now, set, wait && side.what == SIDE_PINNED, false);
}
