/*
 * Arrays (hipamd's hip_memory.cpp, ihipArrayCreate). The handle is the vendor's struct, which ROCm
 * 5 programs may read. Its `data` is the core's array. ROCm on Linux refuses all mipmapped arrays.
 */
#include <pthread.h>
#include <stdlib.h>

#include "hip_entry.h"

struct made {
	struct made *next;
	struct hipArray array; /* the handle is its address */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct made *all;

/* Takes it from the list. NULL: not an array of ours, or destroyed. */
static struct made *take_array(const struct hipArray *array)
{
	struct made *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct made **link = &all; *link && !found; link = *link ? &(*link)->next : link) {
		if (&(*link)->array != array)
			continue;
		found = *link;
		*link = found->next;
		break;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static unsigned element_bytes(enum hipArray_Format format)
{
	switch (format) {
	case HIP_AD_FORMAT_UNSIGNED_INT8:
	case HIP_AD_FORMAT_SIGNED_INT8:
		return 1;
	case HIP_AD_FORMAT_UNSIGNED_INT16:
	case HIP_AD_FORMAT_SIGNED_INT16:
	case HIP_AD_FORMAT_HALF:
		return 2;
	case HIP_AD_FORMAT_UNSIGNED_INT32:
	case HIP_AD_FORMAT_SIGNED_INT32:
	case HIP_AD_FORMAT_FLOAT:
		return 4;
	}
	return 0;
}

static enum hipChannelFormatKind kind_of(enum hipArray_Format format)
{
	if (format == HIP_AD_FORMAT_HALF || format == HIP_AD_FORMAT_FLOAT)
		return hipChannelFormatKindFloat;
	return format >= HIP_AD_FORMAT_SIGNED_INT8 ? hipChannelFormatKindSigned
	                                           : hipChannelFormatKindUnsigned;
}

static struct hipChannelFormatDesc channels_of(const HIP_ARRAY3D_DESCRIPTOR *what)
{
	int bits = (int)element_bytes(what->Format) * 8;

	return (struct hipChannelFormatDesc){.x = bits,
	                                     .y = what->NumChannels >= 2 ? bits : 0,
	                                     .z = what->NumChannels == 4 ? bits : 0,
	                                     .w = what->NumChannels == 4 ? bits : 0,
	                                     .f = kind_of(what->Format)};
}

static hipError_t check_shape(const HIP_ARRAY3D_DESCRIPTOR *what)
{
	const unsigned refused = hipArraySurfaceLoadStore | hipArrayCubemap | hipArrayTextureGather;

	if (what->NumChannels != 1 && what->NumChannels != 2 && what->NumChannels != 4)
		return hipErrorInvalidValue;
	if (HIP_RELEASE < 6 && what->Flags & refused)
		return hipErrorNotSupported;
	return element_bytes(what->Format) && what->Width ? hipSuccess : hipErrorInvalidValue;
}

/* A full device is an invalid value up to ROCm 5, which did not check the reason. pre: checked. */
static hipError_t create_array(hipArray_t *array, const HIP_ARRAY3D_DESCRIPTOR *what)
{
	uint64_t row, rows = what->Height ? what->Height : 1, depth = what->Depth ? what->Depth : 1;
	struct sim_context *context;
	struct sim_array *data;

	hipError_t error = hip_context(hip_device(), &context);
	if (error)
		return error;
	if (__builtin_mul_overflow(what->Width, element_bytes(what->Format) * what->NumChannels, &row) ||
	    __builtin_mul_overflow(rows, depth, &rows))
		return hipErrorInvalidValue;
	struct made *made = calloc(1, sizeof(*made));
	if (!made)
		return hipErrorOutOfMemory;
	error = hip_error(sim_array_create(context, row, rows, &data));
	if (error) {
		free(made);
		return error == hipErrorOutOfMemory && HIP_RELEASE < 6 ? hipErrorInvalidValue : error;
	}
	made->array = (struct hipArray){.data = data,
	                                .desc = channels_of(what),
	                                .width = (unsigned)what->Width,
	                                .height = (unsigned)what->Height,
	                                .depth = (unsigned)what->Depth,
	                                .Format = what->Format,
	                                .NumChannels = what->NumChannels};
	pthread_mutex_lock(&lock);
	made->next = all;
	all = made;
	pthread_mutex_unlock(&lock);
	*array = &made->array;
	return hipSuccess;
}

static hipError_t checked_create(hipArray_t *array, const HIP_ARRAY3D_DESCRIPTOR *what)
{
	hipError_t error = array ? check_shape(what) : hipErrorInvalidValue;

	return error ? error : create_array(array, what);
}

/* Format 0 and no channels if HIP does not know the description. No array may have these. */
static void read_channels(const hipChannelFormatDesc *desc, HIP_ARRAY3D_DESCRIPTOR *what)
{
	static const struct {
		int bits;
		enum hipChannelFormatKind kind;
		enum hipArray_Format format;
	} formats[] = {
	    {8, hipChannelFormatKindUnsigned, HIP_AD_FORMAT_UNSIGNED_INT8},
	    {16, hipChannelFormatKindUnsigned, HIP_AD_FORMAT_UNSIGNED_INT16},
	    {32, hipChannelFormatKindUnsigned, HIP_AD_FORMAT_UNSIGNED_INT32},
	    {8, hipChannelFormatKindSigned, HIP_AD_FORMAT_SIGNED_INT8},
	    {16, hipChannelFormatKindSigned, HIP_AD_FORMAT_SIGNED_INT16},
	    {32, hipChannelFormatKindSigned, HIP_AD_FORMAT_SIGNED_INT32},
	    {16, hipChannelFormatKindFloat, HIP_AD_FORMAT_HALF},
	    {32, hipChannelFormatKindFloat, HIP_AD_FORMAT_FLOAT},
	};

	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (desc->x == formats[i].bits && desc->f == formats[i].kind)
			what->Format = formats[i].format;
	what->NumChannels = (unsigned)(!!desc->x + !!desc->y + !!desc->z + !!desc->w);
}

hipError_t hipMallocArray(hipArray_t *array, const hipChannelFormatDesc *desc, size_t width, size_t height,
                          unsigned int flags)
{
	HIP_ARRAY3D_DESCRIPTOR what = {.Width = width, .Height = height, .Flags = flags};

	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	HIP_TRY(desc ? hipSuccess : hipErrorInvalidValue);
	read_channels(desc, &what);
	return hip_leave(checked_create(array, &what));
}

hipError_t hipMalloc3DArray(hipArray_t *array, const struct hipChannelFormatDesc *desc,
                            struct hipExtent extent, unsigned int flags)
{
	HIP_ARRAY3D_DESCRIPTOR what = {extent.width, extent.height, extent.depth, .Flags = flags};

	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	HIP_TRY(desc ? hipSuccess : hipErrorInvalidValue);
	read_channels(desc, &what);
	return hip_leave(checked_create(array, &what));
}

hipError_t hipArrayCreate(hipArray_t *pHandle, const HIP_ARRAY_DESCRIPTOR *pAllocateArray)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	HIP_TRY(pAllocateArray ? hipSuccess : hipErrorInvalidValue);
	const HIP_ARRAY3D_DESCRIPTOR what = {
	    pAllocateArray->Width,  pAllocateArray->Height,      0,
	    pAllocateArray->Format, pAllocateArray->NumChannels, hipArrayDefault};
	return hip_leave(checked_create(pHandle, &what));
}

hipError_t hipArray3DCreate(hipArray_t *array, const HIP_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(pAllocateArray ? checked_create(array, pAllocateArray) : hipErrorInvalidValue);
}

static hipError_t destroy_array(const struct hipArray *array)
{
	struct made *made = array ? take_array(array) : NULL;

	if (!made)
		return hipErrorInvalidValue;
	enum sim_status status = sim_array_destroy(made->array.data);
	free(made);
	return hip_error(status);
}

hipError_t hipFreeArray(hipArray_t array)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(destroy_array(array));
}

hipError_t hipArrayDestroy(hipArray_t array)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(destroy_array(array));
}

hipError_t hipMallocMipmappedArray(hipMipmappedArray_t *mipmappedArray,
                                   const struct hipChannelFormatDesc *desc, struct hipExtent extent,
                                   unsigned int numLevels, unsigned int flags)
{
	(void)mipmappedArray, (void)desc, (void)extent, (void)numLevels, (void)flags;
	HIP_ENTER();
	return hip_leave(hipErrorInvalidValue);
}

hipError_t hipMipmappedArrayCreate(hipMipmappedArray_t *pHandle, HIP_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                   unsigned int numMipmapLevels)
{
	(void)pHandle, (void)pMipmappedArrayDesc, (void)numMipmapLevels;
	HIP_ENTER();
	return hip_leave(hipErrorInvalidValue);
}

hipError_t hipFreeMipmappedArray(hipMipmappedArray_t mipmappedArray)
{
	(void)mipmappedArray;
	HIP_ENTER();
	return hip_leave(hipErrorInvalidValue);
}

hipError_t hipMipmappedArrayDestroy(hipMipmappedArray_t hMipmappedArray)
{
	(void)hMipmappedArray;
	HIP_ENTER();
	return hip_leave(hipErrorInvalidValue);
}
