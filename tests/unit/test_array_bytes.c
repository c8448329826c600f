/* The bytes of arrays: channels, dimensions, layers, levels, and arrays that no device can hold. */
#include "unit.h"
#include "descriptors.h"

static uint64_t cuda(size_t width, size_t height, size_t depth, int format, unsigned channels, unsigned flags,
                     unsigned levels)
{
	return spill_array_bytes_cuda_3d(
	    &(CUDA_ARRAY3D_DESCRIPTOR){width, height, depth, (CUarray_format)format, channels, flags},
	    levels);
}

TEST(one_dimension_and_more)
{
	assert_int_equal(cuda(100, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 1), 100);
	assert_int_equal(cuda(100, 10, 0, CU_AD_FORMAT_HALF, 2, 0, 1), 4000);
	assert_int_equal(cuda(100, 10, 3, CU_AD_FORMAT_FLOAT, 4, 0, 1), 48000);
	assert_int_equal(cuda(100, 0, 3, CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_LAYERED, 1), 1200);
	assert_int_equal(spill_array_bytes_cuda(&(CUDA_ARRAY_DESCRIPTOR){8, 4, CU_AD_FORMAT_SIGNED_INT16, 2}),
	                 128);
	assert_int_equal(cuda(64, 64, 0, 0xc2 /* CU_AD_FORMAT_UNORM_INT8X4 */, 4, 0, 1), 16384);
}

TEST(levels_halve_what_is_no_layer)
{
	/* 8x8x8, 4x4x4, 2x2x2, 1x1x1 */
	assert_int_equal(cuda(8, 8, 8, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 4), 512 + 64 + 8 + 1);
	assert_int_equal(cuda(8, 8, 8, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED, 2), 512 + 128);
	assert_int_equal(cuda(8, 8, 6, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_CUBEMAP, 2), 384 + 96);
	assert_int_equal(cuda(8, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 4), 8 + 4 + 2 + 1);
	/* The driver has no more than 32 of them. */
	assert_int_equal(cuda(8, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 40), 8 + 4 + 2 + 29);
}

TEST(nothing)
{
	assert_int_equal(spill_array_bytes_cuda(NULL), 0);
	assert_int_equal(spill_array_bytes_cuda_3d(NULL, 3), 0);
	assert_int_equal(spill_array_bytes_hip(NULL), 0);
	assert_int_equal(spill_array_bytes_hip_3d(NULL, 3), 0);
	assert_int_equal(spill_array_bytes_hip_channels(NULL, (hipExtent){8, 8, 8}, 0, 1), 0);
	assert_int_equal(cuda(0, 8, 8, CU_AD_FORMAT_FLOAT, 4, 0, 1), 0);
	assert_int_equal(cuda(8, 8, 8, CU_AD_FORMAT_FLOAT, 4, 0, 0), 0);
	assert_int_equal(cuda(8, 8, 8, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE, 1), 0);
	assert_int_equal(cuda(8, 8, 8, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING, 1), 0);
}

TEST(more_than_there_is)
{
	assert_true(cuda(SIZE_MAX, SIZE_MAX, SIZE_MAX, CU_AD_FORMAT_FLOAT, 4, 0, UINT32_MAX) >=
	            UINT64_MAX / 8);
	assert_true(cuda(SIZE_MAX / 2, 1, 1, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_LAYERED, 2) >=
	            UINT64_MAX / 8);
}

TEST(hip)
{
	hipChannelFormatDesc channels = {16, 16, 0, 0, hipChannelFormatKindFloat};
	HIP_ARRAY3D_DESCRIPTOR volume = {8, 8, 8, HIP_AD_FORMAT_FLOAT, 2, hipArraySurfaceLoadStore};
	assert_int_equal(spill_array_bytes_hip(&(HIP_ARRAY_DESCRIPTOR){8, 4, HIP_AD_FORMAT_HALF, 4}), 256);
	assert_int_equal(spill_array_bytes_hip_3d(&volume, 1), 4096);
	assert_int_equal(spill_array_bytes_hip_3d(&volume, 2), 4096 + 512);
	assert_int_equal(spill_array_bytes_hip_channels(&channels, (hipExtent){10, 10, 0}, 0, 1), 400);
	assert_int_equal(spill_array_bytes_hip_channels(&channels, (hipExtent){8, 8, 4}, hipArrayLayered, 2),
	                 1024 + 256);
	channels = (hipChannelFormatDesc){8, 16, 32, 8, hipChannelFormatKindFloat};
	assert_int_equal(spill_array_bytes_hip_channels(&channels, (hipExtent){10, 10, 0}, 0, 1), 800);
	channels.x = -64;
	assert_int_equal(spill_array_bytes_hip_channels(&channels, (hipExtent){10, 10, 0}, 0, 1), 0);
}
