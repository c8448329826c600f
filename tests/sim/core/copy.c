/* Copies: the checks at submission, the work, and when a call waits. */
#include <stdlib.h>
#include <string.h>

#include "core_internal.h"

enum sim_status side_of(uint64_t address, uint64_t bytes, struct sim_stream *stream, struct side *out)
{
	const struct sim_context *context = sim_stream_context(stream);
	struct sim_pointer about;

	*out = (struct side){(char *)address, SIDE_PAGEABLE};
	/* Memory of a graph exists when the graph runs, not when its nodes are made. */
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
	/* A device has no access to a host pool before sim_pool_set_access. */
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
	struct sim_box to, from; /* as this process reaches them */
	uint64_t width, rows, slices;
	struct sim_box_node about;
	char staged[]; /* a pageable source, copied at the call */
};

/* Bytes. On an H200 a copy of 1 MiB returns while its stream waits, and one of 32 MiB does not. */
#define STAGED ((uint64_t)8 << 20)

/* Number of bytes from the first to the last. */
static uint64_t box_extent(const struct sim_box *box, uint64_t width, uint64_t rows, uint64_t slices)
{
	return box->slice * (slices - 1) + box->pitch * (rows - 1) + width;
}

static void copy_box(const struct sim_box *to, const struct sim_box *from, uint64_t width, uint64_t rows,
                     uint64_t slices)
{
	const uint64_t whole = width * rows;

	for (uint64_t slice = 0; slice < slices; slice++) {
		char *t = (char *)to->address + slice * to->slice;
		const char *f = (const char *)from->address + slice * from->slice;

		if (to->pitch == width && from->pitch == width) {
			pages_ready(f, whole, false);
			pages_ready(t, whole, true);
			memmove(t, f, whole);
			continue;
		}
		for (uint64_t row = 0; row < rows; row++)
			memmove(t + row * to->pitch, f + row * from->pitch, width);
	}
}

static void copy_now(void *data)
{
	const struct copy *copy = data;

	time_copy(copy->about.to.address, copy->about.from.address, copy->width * copy->rows * copy->slices,
	          guard_device());
	copy_box(&copy->to, &copy->from, copy->width, copy->rows, copy->slices);
}

const struct sim_box_node *copy_about(const void *data)
{
	return &((const struct copy *)data)->about;
}

static enum sim_status kind_fits(enum sim_copy_kind kind, const struct side *to, const struct side *from)
{
	bool device_to = kind == SIM_COPY_TO_DEVICE || kind == SIM_COPY_ON_DEVICE;
	bool device_from = kind == SIM_COPY_TO_HOST || kind == SIM_COPY_ON_DEVICE;

	return (device_to && to->what == SIDE_PAGEABLE) || (device_from && from->what == SIDE_PAGEABLE)
	           ? SIM_INVALID
	           : SIM_OK;
}

/* Sets unused distances as for adjacent rows and slices. False: rows or slices overlap. */
static bool box_of(const struct sim_box *box, uint64_t width, uint64_t rows, uint64_t slices,
                   struct sim_box *out)
{
	*out = *box;
	if (rows == 1)
		out->pitch = width;
	if (slices == 1)
		out->slice = out->pitch * rows;
	return out->pitch >= width && out->slice >= out->pitch * (rows - 1) + width;
}

enum sim_status sim_copy_box(struct sim_stream *stream, const struct sim_box *to, const struct sim_box *from,
                             uint64_t width, uint64_t rows, uint64_t slices, enum sim_copy_kind kind,
                             bool wait)
{
	struct side target, source;
	struct sim_box there, here;

	if (!sim_stream_alive(stream))
		return SIM_BAD_CONTEXT;
	if (!width || !rows || !slices)
		return SIM_OK;
	if (!box_of(to, width, rows, slices, &there) || !box_of(from, width, rows, slices, &here))
		return SIM_INVALID;
	enum sim_status status =
	    side_of(to->address, box_extent(&there, width, rows, slices), stream, &target);
	if (!status)
		status = side_of(from->address, box_extent(&here, width, rows, slices), stream, &source);
	if (!status)
		status = kind_fits(kind, &target, &source);
	if (status)
		return status;
	/* A node reads its source at each run. */
	bool stage =
	    !wait && source.what == SIDE_PAGEABLE && target.what != SIDE_PAGEABLE && !capture_records(stream);
	struct copy *copy = malloc(sizeof(*copy) + (stage ? width * rows * slices : 0));
	if (!copy)
		return SIM_NO_HOST_MEMORY;
	const struct sim_box_node about = {.to = there,
	                                   .from = here,
	                                   .to_host = target.what != SIDE_DEVICE,
	                                   .from_host = source.what != SIDE_DEVICE,
	                                   .width = width,
	                                   .rows = rows,
	                                   .slices = slices};
	there.address = (uint64_t)target.at;
	here.address = (uint64_t)source.at;
	*copy = (struct copy){there, here, width, rows, slices, about};
	if (stage) {
		copy->from = (struct sim_box){(uint64_t)copy->staged, width, width * rows};
		copy_box(&copy->from, &here, width, rows, slices);
	}
	/* More does not fit into the driver's buffers: the call waits for its turn and the copy. */
	if (stage && width * rows * slices > STAGED)
		wait = true;
	/* Within the device all calls only submit. To pageable memory all calls wait. */
	if (target.what == SIDE_PAGEABLE)
		wait = true;
	else if (target.what == SIDE_DEVICE && source.what == SIDE_DEVICE)
		wait = false;
	return stream_submit(stream, SIM_NODE_COPY, copy_now, copy, wait, false);
}

enum sim_status sim_copy_rows(struct sim_stream *stream, uint64_t to, uint64_t to_pitch, uint64_t from,
                              uint64_t from_pitch, uint64_t width, uint64_t rows, enum sim_copy_kind kind,
                              bool wait)
{
	return sim_copy_box(stream, &(struct sim_box){to, to_pitch, 0},
	                    &(struct sim_box){from, from_pitch, 0}, width, rows, 1, kind, wait);
}

enum sim_status sim_copy(struct sim_stream *stream, uint64_t to, uint64_t from, uint64_t bytes,
                         enum sim_copy_kind kind, bool wait)
{
	return sim_copy_rows(stream, to, bytes, from, bytes, bytes, 1, kind, wait);
}
