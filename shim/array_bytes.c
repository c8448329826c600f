#include "array_bytes.h"

struct shape {
	uint64_t width, height, depth; /* 0: the array has fewer dimensions */
	uint64_t texel_bits;
	unsigned flags; /* CUDA_ARRAY3D_…; HIP's hipArray… have the same numbers */
	unsigned levels;
};

_Static_assert(CUDA_ARRAY3D_LAYERED == hipArrayLayered && CUDA_ARRAY3D_CUBEMAP == hipArrayCubemap,
               "both vendors number the flags of arrays alike");

static uint64_t at_least_one(uint64_t extent)
{
	return extent ? extent : 1;
}

/* A size beyond what a number holds is the vendor's to refuse. */
static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t all;
	return __builtin_mul_overflow(a, b, &all) ? UINT64_MAX : all;
}

/* CUDA Driver API, cuMipmappedArrayCreate: each level halves every dimension but the count of layers and faces. */
static uint64_t bytes_of(const struct shape *shape)
{
	bool layers = shape->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	uint64_t bytes = 0;
	if (!shape->width || shape->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return 0; /* memory is mapped to those later, from cuMemCreate */
	for (unsigned level = 0; level < shape->levels && level < 32; level++) {
		uint64_t depth = layers ? shape->depth : shape->depth >> level;
		uint64_t plane =
		    product(at_least_one(shape->width >> level), at_least_one(shape->height >> level));
		uint64_t bits = product(product(plane, at_least_one(depth)), shape->texel_bits);
		if (__builtin_add_overflow(bytes, bits / 8, &bytes))
			return UINT64_MAX;
	}
	return bytes;
}

/* HIP's formats are the first of CUDA's, with the same numbers. */
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
		return 32; /* normalised, compressed and video formats: about that */
	}
}

/* Of a descriptor's members, which both vendors name alike in structures of their own. */
static uint64_t described(uint64_t width, uint64_t height, uint64_t depth, unsigned format, unsigned channels,
                          unsigned flags, unsigned levels)
{
	return bytes_of(&(struct shape){width, height, depth, texel_bits(format, channels), flags, levels});
}

#define FLAT(array) described((array)->Width, (array)->Height, 0, (array)->Format, (array)->NumChannels, 0, 1)
#define DEEP(array, flags, levels) \
	described((array)->Width, (array)->Height, (array)->Depth, (array)->Format, (array)->NumChannels, \
	          flags, levels)

uint64_t spill_array_bytes_cuda(const CUDA_ARRAY_DESCRIPTOR *array)
{
	return array ? FLAT(array) : 0;
}

uint64_t spill_array_bytes_cuda_3d(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels)
{
	return array ? DEEP(array, array->Flags, levels) : 0;
}

uint64_t spill_array_bytes_hip(const HIP_ARRAY_DESCRIPTOR *array)
{
	return array ? FLAT(array) : 0;
}

uint64_t spill_array_bytes_hip_3d(const HIP_ARRAY3D_DESCRIPTOR *array, unsigned levels)
{
	return array ? DEEP(array, array->Flags & (hipArrayLayered | hipArrayCubemap), levels) : 0;
}

uint64_t spill_array_bytes_hip_channels(const hipChannelFormatDesc *channels, hipExtent extent,
                                        unsigned flags, unsigned levels)
{
	if (!channels)
		return 0;
	int bits = channels->x + channels->y + channels->z + channels->w;
	return bytes_of(&(struct shape){
	    .width = extent.width,
	    .height = extent.height,
	    .depth = extent.depth,
	    .texel_bits = bits > 0 ? (unsigned)bits : 0,
	    .flags = flags & (hipArrayLayered | hipArrayCubemap),
	    .levels = levels,
	});
}
