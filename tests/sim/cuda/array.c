/* Shapes of arrays. The core has the memory. */
#include "cuda_entry.h"

struct face { /* in sim_array_face */
	CUDA_ARRAY3D_DESCRIPTOR shape;
	bool level; /* part of a mipmapped array, and destroyed with it */
	struct sim_array *next_level;
};

static struct face *face_of(struct sim_array *array)
{
	_Static_assert(sizeof(struct face) <= SIM_FACE, "the core keeps that much");
	return sim_array_face(array);
}

struct sim_array *driver_array(CUarray array)
{
	return sim_array_alive((struct sim_array *)array) ? (struct sim_array *)array : NULL;
}

/* Bytes of one element. 0: no such format. */
static unsigned element_bytes(CUarray_format format, unsigned channels)
{
	unsigned bytes = 0;

	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		bytes = 1;
		break;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		bytes = 2;
		break;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		bytes = 4;
		break;
	}
	return channels == 1 || channels == 2 || channels == 4 ? bytes * channels : 0;
}

/* Block-compressed, planar, sparse and deferred arrays are not simulated. */
static CUresult create_array(const CUDA_ARRAY3D_DESCRIPTOR *shape, struct sim_array **out)
{
	unsigned element = element_bytes(shape->Format, shape->NumChannels);
	uint64_t row, rows;

	if (shape->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!shape->Width || !element ||
	    (shape->Depth && !shape->Height && !(shape->Flags & CUDA_ARRAY3D_LAYERED)))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(shape->Width, element, &row) ||
	    __builtin_mul_overflow(shape->Height ? shape->Height : 1, shape->Depth ? shape->Depth : 1, &rows))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_result(sim_array_create(driver_current(), row, rows, out));
	if (!result)
		face_of(*out)->shape = *shape;
	return result;
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	struct sim_array *array;

	ENTER(cuArray3DCreate_v2, CONTEXT);
	if (!pHandle || !pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = create_array(pAllocateArray, &array);
	if (!result)
		*pHandle = (CUarray)array;
	return result;
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	struct sim_array *array;

	ENTER(cuArrayCreate_v2, CONTEXT);
	if (!pHandle || !pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = pAllocateArray->Width,
	                                 .Height = pAllocateArray->Height,
	                                 .Format = pAllocateArray->Format,
	                                 .NumChannels = pAllocateArray->NumChannels};
	CUresult result = create_array(&shape, &array);
	if (!result)
		*pHandle = (CUarray)array;
	return result;
}

CUresult cuArrayDestroy(CUarray hArray)
{
	ENTER(cuArrayDestroy, CONTEXT);
	struct sim_array *array = driver_array(hArray);
	if (!array || face_of(array)->level)
		return CUDA_ERROR_INVALID_HANDLE;
	return driver_result(sim_array_destroy(array));
}

unsigned driver_array_element(CUarray array)
{
	const CUDA_ARRAY3D_DESCRIPTOR *shape =
	    driver_array(array) ? &face_of(driver_array(array))->shape : NULL;

	return shape ? element_bytes(shape->Format, shape->NumChannels) : 0;
}

CUresult driver_array_box(CUarray array, size_t x, size_t y, size_t z, size_t width, size_t rows,
                          size_t slices, struct sim_box *out)
{
	if (!driver_array(array))
		return CUDA_ERROR_INVALID_HANDLE;
	const CUDA_ARRAY3D_DESCRIPTOR *shape = &face_of(driver_array(array))->shape;
	size_t row = shape->Width * element_bytes(shape->Format, shape->NumChannels);
	size_t height = shape->Height ? shape->Height : 1, depth = shape->Depth ? shape->Depth : 1;

	if (x > row || width > row - x || y > height || rows > height - y || z > depth || slices > depth - z)
		return CUDA_ERROR_INVALID_VALUE;
	out->address = sim_array_address(driver_array(array), &out->pitch);
	out->slice = out->pitch * height;
	out->address += z * out->slice + y * out->pitch + x;
	return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	ENTER(cuArray3DGetDescriptor_v2, CONTEXT);
	if (!driver_array(hArray))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pArrayDescriptor)
		return CUDA_ERROR_INVALID_VALUE;
	*pArrayDescriptor = face_of(driver_array(hArray))->shape;
	return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	ENTER(cuArrayGetDescriptor_v2, CONTEXT);
	if (!driver_array(hArray))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pArrayDescriptor)
		return CUDA_ERROR_INVALID_VALUE;
	const CUDA_ARRAY3D_DESCRIPTOR *shape = &face_of(driver_array(hArray))->shape;
	*pArrayDescriptor =
	    (CUDA_ARRAY_DESCRIPTOR){shape->Width, shape->Height, shape->Format, shape->NumChannels};
	return CUDA_SUCCESS;
}

/* -- mipmapped arrays: a chain, each half of the one before; the first is the handle ----------- */

static CUmipmappedArray tagged_handle(struct sim_array *first)
{
	return (CUmipmappedArray)((uintptr_t)first | 1);
}

static struct sim_array *first_of(CUmipmappedArray mipmap)
{
	CUarray first = (CUarray)((uintptr_t)mipmap & ~(uintptr_t)1);

	return (uintptr_t)mipmap & 1 ? driver_array(first) : NULL;
}

static void destroy_levels(struct sim_array *level)
{
	while (level) {
		struct sim_array *next = face_of(level)->next_level;

		sim_array_destroy(level);
		level = next;
	}
}

static size_t half_extent(size_t extent)
{
	return extent > 1 ? extent / 2 : extent;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                unsigned int numMipmapLevels)
{
	struct sim_array *first = NULL, **link = &first;
	CUresult result = CUDA_SUCCESS;

	ENTER(cuMipmappedArrayCreate, CONTEXT);
	if (!pHandle || !pMipmappedArrayDesc)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR shape = *pMipmappedArrayDesc;
	bool layers = shape.Flags & CUDA_ARRAY3D_LAYERED;
	/* At most as many levels as the extent can be halved. */
	unsigned levels = numMipmapLevels ? numMipmapLevels : 1;
	for (unsigned i = 0; i < levels && !result; i++) {
		result = create_array(&shape, link);
		if (result)
			break;
		face_of(*link)->level = true;
		link = &face_of(*link)->next_level;
		if (shape.Width <= 1 && shape.Height <= 1 && (layers || shape.Depth <= 1))
			break;
		shape.Width = half_extent(shape.Width);
		shape.Height = half_extent(shape.Height);
		shape.Depth = layers ? shape.Depth : half_extent(shape.Depth);
	}
	if (result)
		destroy_levels(first);
	else
		*pHandle = tagged_handle(first);
	return result;
}

CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
	ENTER(cuMipmappedArrayGetLevel, CONTEXT);
	struct sim_array *array = first_of(hMipmappedArray);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	while (array && level--)
		array = face_of(array)->next_level;
	if (!pLevelArray || !array)
		return CUDA_ERROR_INVALID_VALUE;
	*pLevelArray = (CUarray)array;
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	ENTER(cuMipmappedArrayDestroy, CONTEXT);
	if (!first_of(hMipmappedArray))
		return CUDA_ERROR_INVALID_HANDLE;
	destroy_levels(first_of(hMipmappedArray));
	return CUDA_SUCCESS;
}
