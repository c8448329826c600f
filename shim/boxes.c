#include "boxes.h"

/* One side of a copy; a row's length in bytes, the others in rows and slices. */
struct side {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	size_t x, y, z, pitch, height;
};

/* A pitch or height of 0 is that of what is copied. */
static struct spill_box box_of(const struct side *side, size_t width, size_t rows, size_t slices)
{
	uint64_t pitch = side->pitch ? side->pitch : width;
	uint64_t slice = pitch * (side->height ? side->height : rows);
	uint64_t va = side->type == CU_MEMORYTYPE_HOST ? (uintptr_t)side->host : side->device;
	if (side->type == CU_MEMORYTYPE_ARRAY || !width || !rows || !slices)
		return (struct spill_box){0};
	return (struct spill_box){.va = va + side->z * slice + side->y * pitch + side->x,
	                          .bytes = (slices - 1) * slice + (rows - 1) * pitch + width};
}

/* The vendor's structures have the same members by the same names. */
#define FLAT(copy, side) \
	.type = copy->side##MemoryType, .host = copy->side##Host, .device = copy->side##Device, \
	.x = copy->side##XInBytes, .y = copy->side##Y, .pitch = copy->side##Pitch
#define DEEP(copy, side) FLAT(copy, side), .z = copy->side##Z, .height = copy->side##Height

static struct spill_boxes boxes_of(const struct side *to, const struct side *from, size_t width, size_t rows,
                                   size_t slices)
{
	return (struct spill_boxes){.to = box_of(to, width, rows, slices),
	                            .from = box_of(from, width, rows, slices)};
}

struct spill_boxes spill_boxes_2d(const CUDA_MEMCPY2D *copy)
{
	struct side to = {FLAT(copy, dst)}, from = {FLAT(copy, src)};
	return boxes_of(&to, &from, copy->WidthInBytes, copy->Height, 1);
}

struct spill_boxes spill_boxes_3d(const CUDA_MEMCPY3D *copy)
{
	struct side to = {DEEP(copy, dst)}, from = {DEEP(copy, src)};
	return boxes_of(&to, &from, copy->WidthInBytes, copy->Height, copy->Depth);
}

struct spill_boxes spill_boxes_peer(const CUDA_MEMCPY3D_PEER *copy)
{
	struct side to = {DEEP(copy, dst)}, from = {DEEP(copy, src)};
	return boxes_of(&to, &from, copy->WidthInBytes, copy->Height, copy->Depth);
}

static struct side side_of(const CUmemcpy3DOperand *operand)
{
	return (struct side){.type = CU_MEMORYTYPE_UNIFIED,
	                     .device = operand->op.ptr.ptr,
	                     .pitch = operand->op.ptr.rowLength,
	                     .height = operand->op.ptr.layerHeight};
}

struct spill_boxes spill_boxes_of_batch(const CUDA_MEMCPY3D_BATCH_OP *copy)
{
	struct side to = side_of(&copy->dst), from = side_of(&copy->src);
	if (copy->dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
	    copy->src.type != CU_MEMCPY_OPERAND_TYPE_POINTER)
		return (struct spill_boxes){0};
	return boxes_of(&to, &from, copy->extent.width, copy->extent.height, copy->extent.depth);
}

struct spill_box spill_box_set(CUdeviceptr to, size_t pitch, size_t bytes, size_t height)
{
	struct side side = {.type = CU_MEMORYTYPE_DEVICE, .device = to, .pitch = height > 1 ? pitch : bytes};
	return box_of(&side, bytes, height, 1);
}
