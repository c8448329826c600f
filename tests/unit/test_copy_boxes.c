/* The two sides of a copy, and a set, as boxes of memory (descriptors.h). */
#include "unit.h"
#include "descriptors.h"

TEST(sides_of_boxes)
{
	CUDA_MEMCPY3D deep = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .srcDevice = 1000000,
	                      .srcXInBytes = 3,
	                      .srcY = 5,
	                      .srcZ = 7,
	                      .srcPitch = 100,
	                      .srcHeight = 10,
	                      .dstMemoryType = CU_MEMORYTYPE_HOST,
	                      .dstHost = (void *)2000000,
	                      .dstDevice = 5,
	                      .WidthInBytes = 20,
	                      .Height = 4,
	                      .Depth = 2};
	struct spill_boxes boxes = spill_boxes_3d(&deep);
	assert_true(boxes.from.va == 1000000 + 7 * 1000 + 5 * 100 + 3 && boxes.from.bytes == 1000 + 300 + 20);
	assert_true(boxes.to.va == 2000000 && boxes.to.bytes == 20 * 4 * 2);
	deep.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	assert_true(spill_boxes_3d(&deep).to.bytes == 0 && spill_boxes_3d(&deep).from.bytes);
	deep.Depth = 0;
	assert_true(spill_boxes_3d(&deep).from.bytes == 0);
	CUDA_MEMCPY2D flat = {.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
	                      .dstDevice = 1000,
	                      .dstXInBytes = 1,
	                      .dstY = 2,
	                      .dstPitch = 64,
	                      .srcMemoryType = CU_MEMORYTYPE_ARRAY,
	                      .WidthInBytes = 8,
	                      .Height = 3};
	boxes = spill_boxes_2d(&flat);
	assert_true(boxes.to.va == 1000 + 128 + 1 && boxes.to.bytes == 128 + 8 && !boxes.from.bytes);
	CUDA_MEMCPY3D_PEER peer = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                           .srcDevice = 64,
	                           .srcZ = 1,
	                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                           .dstDevice = 4096,
	                           .dstY = 1,
	                           .WidthInBytes = 16,
	                           .Height = 2,
	                           .Depth = 1};
	boxes = spill_boxes_peer(&peer);
	assert_true(boxes.from.va == 64 + 32 && boxes.from.bytes == 32 && boxes.to.va == 4096 + 16);
	struct spill_box set = spill_box_set(4096, 256, 12, 3);
	assert_true(set.va == 4096 && set.bytes == 512 + 12);
	assert_true(spill_box_set(4096, 0, 12, 1).bytes == 12 && !spill_box_set(4096, 256, 12, 0).bytes);
}
