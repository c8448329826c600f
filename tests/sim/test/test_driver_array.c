/* Arrays: contract tests as test_driver.c. */
#include "driver_test.h"

DRIVER_TEST(arrays)
{
	CUDA_ARRAY_DESCRIPTOR shape = {1024, 512, CU_AD_FORMAT_FLOAT, 4}, told;
	CUDA_ARRAY3D_DESCRIPTOR deep = {256, 256, 16, CU_AD_FORMAT_HALF, 2, 0}, deep_told;
	CUarray array, volume;

	start();
	size_t before = free_memory();
	OK(d.cuArrayCreate_v2(&array, &shape));
	CHECK(before - free_memory() >= 8 * MIB && before - free_memory() <= 16 * MIB);
	OK(d.cuArrayGetDescriptor_v2(&told, array));
	CHECK(!memcmp(&told, &shape, sizeof(shape)));
	OK(d.cuArray3DCreate_v2(&volume, &deep));
	OK(d.cuArray3DGetDescriptor_v2(&deep_told, volume));
	CHECK(deep_told.Depth == 16 && deep_told.Format == CU_AD_FORMAT_HALF && deep_told.NumChannels == 2);
	OK(d.cuArrayDestroy(array));
	OK(d.cuArrayDestroy(volume));
	if (simulated)
		CHECK(free_memory() == before);
	need_simulator(); /* a real driver does not check handles */
	GIVES(CUDA_ERROR_INVALID_HANDLE, d.cuArrayDestroy(array));
	GIVES(CUDA_ERROR_INVALID_HANDLE, d.cuArrayGetDescriptor_v2(&told, array));
}

DRIVER_TEST(array_errors)
{
	CUDA_ARRAY_DESCRIPTOR shape = {0, 0, CU_AD_FORMAT_FLOAT, 1};
	CUarray array = (CUarray)77;

	start();
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuArrayCreate_v2(&array, &shape));
	shape.Width = 64;
	shape.NumChannels = 3;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuArrayCreate_v2(&array, &shape));
	CHECK(array == (CUarray)77);
	need_simulator();
	shape = (CUDA_ARRAY_DESCRIPTOR){65536, 65536, CU_AD_FORMAT_FLOAT, 4};
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuArrayCreate_v2(&array, &shape));
	CHECK(array == (CUarray)77);
}

DRIVER_TEST(array_copies)
{
	static unsigned char in[64][100], out[64][100];
	CUDA_ARRAY_DESCRIPTOR shape = {100, 64, CU_AD_FORMAT_UNSIGNED_INT8, 1};
	CUarray array;

	start();
	OK(d.cuArrayCreate_v2(&array, &shape));
	for (int row = 0; row < 64; row++)
		for (int x = 0; x < 100; x++)
			in[row][x] = (unsigned char)(row * 100 + x * 7);
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	                      .srcHost = in,
	                      .srcPitch = 100,
	                      .dstMemoryType = CU_MEMORYTYPE_ARRAY,
	                      .dstArray = array,
	                      .WidthInBytes = 100,
	                      .Height = 64};
	OK(d.cuMemcpy2D_v2(&copy));
	copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
	                       .srcArray = array,
	                       .srcXInBytes = 10,
	                       .srcY = 3,
	                       .dstMemoryType = CU_MEMORYTYPE_HOST,
	                       .dstHost = out,
	                       .dstPitch = 100,
	                       .WidthInBytes = 90,
	                       .Height = 61};
	OK(d.cuMemcpy2D_v2(&copy));
	for (int row = 0; row < 61; row++)
		CHECK(!memcmp(out[row], &in[row + 3][10], 90));
	OK(d.cuArrayDestroy(array));
}

DRIVER_TEST(mipmaps)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0}, told;
	CUmipmappedArray mipmap;
	CUarray level;

	start();
	size_t before = free_memory();
	OK(d.cuMipmappedArrayCreate(&mipmap, &shape, 5));
	CHECK(before - free_memory() >= 5 * MIB);
	OK(d.cuMipmappedArrayGetLevel(&level, mipmap, 4));
	OK(d.cuArray3DGetDescriptor_v2(&told, level));
	CHECK(told.Width == 64 && told.Height == 64);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMipmappedArrayGetLevel(&level, mipmap, 5));
	OK(d.cuMipmappedArrayDestroy(mipmap));
	if (simulated)
		CHECK(free_memory() == before);
	OK(d.cuMipmappedArrayCreate(&mipmap, &shape, 0)); /* measured: 0 levels are valid */
	OK(d.cuMipmappedArrayDestroy(mipmap));
}

DRIVER_TEST(arrays_end_with_context)
{
	CUDA_ARRAY_DESCRIPTOR shape = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
	CUcontext mine;
	CUarray array;

	start();
	need_simulator();
	size_t before = free_memory();
	OK(d.cuCtxCreate_v2(&mine, 0, 0));
	OK(d.cuArrayCreate_v2(&array, &shape));
	OK(d.cuCtxDestroy_v2(mine));
	OK(d.cuCtxSetCurrent(context));
	CHECK(free_memory() == before);
	GIVES(CUDA_ERROR_INVALID_HANDLE, d.cuArrayDestroy(array));
}
