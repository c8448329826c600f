/*
 * Words about device memory of every kind, as an allocator asks for it; and about other devices:
 *
 *	take:KIND:SIZE:COUNT  COUNT blocks more of SIZE: plain, pitched, ordered, array, created (and
 *	                      mapped). Prints their number, and stops at the first failure.
 *	give:KIND:COUNT       frees the COUNT oldest blocks of KIND; these are on the device
 *	device:N              device N's primary context becomes current; its default stream is used
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "movable.h"

#define MOST 4096

struct kind {
	const char *name;
	CUresult (*take)(uint64_t bytes, CUdeviceptr *address);
	CUresult (*give)(CUdeviceptr address, uint64_t bytes);
	unsigned first, count;
	CUdeviceptr address[MOST];
	uint64_t bytes[MOST];
};

static int device;

static CUresult take_plain(uint64_t bytes, CUdeviceptr *address)
{
	return cuMemAlloc_v2(address, bytes);
}

static CUresult give_plain(CUdeviceptr address, uint64_t bytes)
{
	(void)bytes;
	return cuMemFree_v2(address);
}

static CUresult take_pitched(uint64_t bytes, CUdeviceptr *address)
{
	size_t pitch;

	return cuMemAllocPitch_v2(address, &pitch, 4096, bytes / 4096, 4);
}

static CUresult take_ordered(uint64_t bytes, CUdeviceptr *address)
{
	return cuMemAllocAsync(address, bytes, NULL);
}

static CUresult give_ordered(CUdeviceptr address, uint64_t bytes)
{
	(void)bytes;
	return cuMemFreeAsync(address, NULL);
}

static CUresult take_created(uint64_t bytes, CUdeviceptr *address)
{
	return movable_create(device, bytes, address);
}

static CUresult take_array(uint64_t bytes, CUdeviceptr *address)
{
	const CUDA_ARRAY_DESCRIPTOR wanted = {bytes / 4096, 1024, 0x20, 1};
	CUarray array = NULL;
	CUresult result = cuArrayCreate_v2(&array, &wanted);

	*address = (uintptr_t)array;
	return result;
}

static CUresult give_array(CUdeviceptr address, uint64_t bytes)
{
	(void)bytes;
	return cuArrayDestroy((void *)(uintptr_t)address);
}

static struct kind kinds[] = {
    {.name = "plain", .take = take_plain, .give = give_plain},
    {.name = "pitched", .take = take_pitched, .give = give_plain},
    {.name = "ordered", .take = take_ordered, .give = give_ordered},
    {.name = "created", .take = take_created, .give = movable_uncreate},
    {.name = "array", .take = take_array, .give = give_array},
};

static CUresult take(struct kind *kind, uint64_t bytes, uint64_t count)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t taken = 0;

	for (; taken < count && kind->count < MOST; taken++) {
		result = kind->take(bytes, &kind->address[kind->count]);
		if (result)
			break;
		kind->bytes[kind->count++] = bytes;
	}
	printf("took %s %llu\n", kind->name, (unsigned long long)taken);
	return result;
}

static CUresult give(struct kind *kind, uint64_t count)
{
	CUresult result = CUDA_SUCCESS;

	for (; count && kind->first < kind->count && !result; count--, kind->first++)
		result = kind->give(kind->address[kind->first], kind->bytes[kind->first]);
	return result;
}

static CUresult use_device(int number)
{
	CUresult result = cuDevicePrimaryCtxRetain(&movable_context, number);

	device = number;
	movable_stream = NULL;
	return result ? result : cuCtxSetCurrent(movable_context);
}

static struct kind *find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	exit(64);
}

bool movable_kinds_word(const char *word, const char *first, uint64_t second, uint64_t third,
                        CUresult *result)
{
	if (!strcmp(word, "take") && first)
		*result = take(find(first), second, third);
	else if (!strcmp(word, "give") && first)
		*result = give(find(first), second);
	else if (!strcmp(word, "device") && first)
		*result = use_device(atoi(first));
	else
		return false;
	return true;
}
