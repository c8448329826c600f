#include "descriptors.h"

/* -- arrays ----------------------------------------------------------------------------------- */

struct array_shape {
	uint64_t width, height, depth; /* 0: the array has fewer dimensions */
	uint64_t texel_bits;
	unsigned flags; /* CUDA_ARRAY3D_…; HIP's hipArray… flags have the same values */
	unsigned levels;
};

_Static_assert(CUDA_ARRAY3D_LAYERED == hipArrayLayered && CUDA_ARRAY3D_CUBEMAP == hipArrayCubemap,
               "both vendors number the flags of arrays alike");

static uint64_t at_least_one(uint64_t extent)
{
	return extent ? extent : 1;
}

/* The vendor refuses such a size itself. */
static uint64_t multiply_saturated(uint64_t a, uint64_t b)
{
	uint64_t result;
	return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

/* Mipmap levels halve each dimension, but not layers and faces (cuMipmappedArrayCreate). */
static uint64_t bytes_of_shape(const struct array_shape *shape)
{
	bool layers = shape->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	uint64_t bytes = 0;
	if (!shape->width || shape->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return 0; /* the program maps memory from cuMemCreate to these later */
	for (unsigned level = 0; level < shape->levels && level < 32; level++) {
		uint64_t depth = layers ? shape->depth : shape->depth >> level;
		uint64_t plane = multiply_saturated(at_least_one(shape->width >> level),
		                                    at_least_one(shape->height >> level));
		uint64_t bits =
		    multiply_saturated(multiply_saturated(plane, at_least_one(depth)), shape->texel_bits);
		if (__builtin_add_overflow(bytes, bits / 8, &bytes))
			return UINT64_MAX;
	}
	return bytes;
}

/* HIP numbers its formats as CUDA does. */
static uint64_t texel_bits(unsigned format, unsigned channels)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 8ull * channels;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 16ull * channels;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 32ull * channels;
	default:
		return 32; /* normalised, compressed and video formats: an estimate */
	}
}

/* Both vendors' descriptors name these members alike. */
static uint64_t bytes_of_descriptor(uint64_t width, uint64_t height, uint64_t depth, unsigned format,
                                    unsigned channels, unsigned flags, unsigned levels)
{
	return bytes_of_shape(
	    &(struct array_shape){width, height, depth, texel_bits(format, channels), flags, levels});
}

#define ARRAY_BYTES_2D(array) \
	bytes_of_descriptor((array)->Width, (array)->Height, 0, (array)->Format, (array)->NumChannels, 0, 1)
#define ARRAY_BYTES_3D(array, flags, levels) \
	bytes_of_descriptor((array)->Width, (array)->Height, (array)->Depth, (array)->Format, \
	                    (array)->NumChannels, flags, levels)

uint64_t spill_array_bytes_cuda(const CUDA_ARRAY_DESCRIPTOR *array)
{
	return array ? ARRAY_BYTES_2D(array) : 0;
}

uint64_t spill_array_bytes_cuda_3d(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels)
{
	return array ? ARRAY_BYTES_3D(array, array->Flags, levels) : 0;
}

uint64_t spill_array_bytes_hip(const HIP_ARRAY_DESCRIPTOR *array)
{
	return array ? ARRAY_BYTES_2D(array) : 0;
}

uint64_t spill_array_bytes_hip_3d(const HIP_ARRAY3D_DESCRIPTOR *array, unsigned levels)
{
	return array ? ARRAY_BYTES_3D(array, array->Flags & (hipArrayLayered | hipArrayCubemap), levels) : 0;
}

uint64_t spill_array_bytes_hip_channels(const hipChannelFormatDesc *channels, hipExtent extent,
                                        unsigned flags, unsigned levels)
{
	if (!channels)
		return 0;
	int bits = channels->x + channels->y + channels->z + channels->w;
	return bytes_of_shape(&(struct array_shape){
	    .width = extent.width,
	    .height = extent.height,
	    .depth = extent.depth,
	    .texel_bits = bits > 0 ? (unsigned)bits : 0,
	    .flags = flags & (hipArrayLayered | hipArrayCubemap),
	    .levels = levels,
	});
}

/* -- copies and sets -------------------------------------------------------------------------- */

/* One side of a copy. x, pitch and width are bytes; y and height are rows; z is slices. */
struct copy_side {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	size_t x, y, z, pitch, height;
};

/* A pitch or height of 0 means that rows or slices follow each other without a gap. */
static struct spill_box box_of(const struct copy_side *side, size_t width, size_t rows, size_t slices)
{
	uint64_t pitch = side->pitch ? side->pitch : width;
	uint64_t slice = pitch * (side->height ? side->height : rows);
	uint64_t va = side->type == CU_MEMORYTYPE_HOST ? (uintptr_t)side->host : side->device;
	if (side->type == CU_MEMORYTYPE_ARRAY || !width || !rows || !slices)
		return (struct spill_box){0};
	return (struct spill_box){.va = va + side->z * slice + side->y * pitch + side->x,
	                          .bytes = (slices - 1) * slice + (rows - 1) * pitch + width};
}

/* Both structures name these members alike. */
#define COPY_SIDE_2D(copy, side) \
	.type = copy->side##MemoryType, .host = copy->side##Host, .device = copy->side##Device, \
	.x = copy->side##XInBytes, .y = copy->side##Y, .pitch = copy->side##Pitch
#define COPY_SIDE_3D(copy, side) COPY_SIDE_2D(copy, side), .z = copy->side##Z, .height = copy->side##Height

static struct spill_boxes boxes_of(const struct copy_side *to, const struct copy_side *from, size_t width,
                                   size_t rows, size_t slices)
{
	return (struct spill_boxes){.to = box_of(to, width, rows, slices),
	                            .from = box_of(from, width, rows, slices)};
}

struct spill_boxes spill_boxes_2d(const CUDA_MEMCPY2D *copy)
{
	struct copy_side to = {COPY_SIDE_2D(copy, dst)}, from = {COPY_SIDE_2D(copy, src)};
	return boxes_of(&to, &from, copy->WidthInBytes, copy->Height, 1);
}

struct spill_boxes spill_boxes_3d(const CUDA_MEMCPY3D *copy)
{
	struct copy_side to = {COPY_SIDE_3D(copy, dst)}, from = {COPY_SIDE_3D(copy, src)};
	return boxes_of(&to, &from, copy->WidthInBytes, copy->Height, copy->Depth);
}

struct spill_boxes spill_boxes_peer(const CUDA_MEMCPY3D_PEER *copy)
{
	struct copy_side to = {COPY_SIDE_3D(copy, dst)}, from = {COPY_SIDE_3D(copy, src)};
	return boxes_of(&to, &from, copy->WidthInBytes, copy->Height, copy->Depth);
}

static struct copy_side side_of_operand(const CUmemcpy3DOperand *operand)
{
	return (struct copy_side){.type = CU_MEMORYTYPE_UNIFIED,
	                          .device = operand->op.ptr.ptr,
	                          .pitch = operand->op.ptr.rowLength,
	                          .height = operand->op.ptr.layerHeight};
}

struct spill_boxes spill_boxes_of_batch(const CUDA_MEMCPY3D_BATCH_OP *copy)
{
	struct copy_side to = side_of_operand(&copy->dst), from = side_of_operand(&copy->src);
	if (copy->dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
	    copy->src.type != CU_MEMCPY_OPERAND_TYPE_POINTER)
		return (struct spill_boxes){0};
	return boxes_of(&to, &from, copy->extent.width, copy->extent.height, copy->extent.depth);
}

struct spill_box spill_box_set(CUdeviceptr to, size_t pitch, size_t bytes, size_t height)
{
	struct copy_side side = {.type = CU_MEMORYTYPE_DEVICE, .device = to, .pitch = pitch};
	return box_of(&side, bytes, height, 1);
}
