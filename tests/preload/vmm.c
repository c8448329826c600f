/*
 * A program that makes, maps and releases its physical memory itself. It carries out one call or
 * pool for each word, and prints `WORD RESULT` for each, without addresses.
 *
 *	vmm KERNELS WORD…
 *
 *	device:N            the device of the next memory
 *	context:N           a context beside device 0's, which stays current
 *	create:A:SIZE       memory A, a letter, of SIZE (4m)
 *	map:A unmap:A       each letter has addresses of its own; map gives access, too
 *	release:A
 *	pool:A:SIZE:COUNT   COUNT times create, map and release, back to back, until one fails
 *	retain:A            one more handle, from an inner address
 *	fill:A verify:A     by kernels and copies
 *	share:A:N:FLAGS     gives device N that access to A (3: read and write)
 *	there:A             as verify, by device 1
 *	same:A              the answers about A: properties, attributes, range, access
 *	exports:TYPES       handle types of the next memory
 *	export:A free:A     exports the handle; gives the handle to cuMemFree
 *	multicast:A         binds it to a multicast object, which no device here has
 *	bind:A              the same by its address
 *	multicast2:A bind2:A endpoint:A endpointat:A    the same by later functions, and to a logical endpoint
 *	twice:A             maps it a second time, behind the first
 *	second:A            the same without access
 *	half:A              unmaps the first half
 *	back:A              does small work until all of A is on the device, some seconds at most
 *	side:A              the driver's location of each 2 MiB, asked past libspill: `side A ddhh`
 *	brief:SIZE          cuMemAlloc and cuMemFree
 *	plain:SIZE          cuMemAlloc, and a handle from an inner address
 *	info
 *
 * Exit status: 0; 1 data wrong; 64 usage.
 */
#include "movable.h"
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As llama.cpp's pool reserves; each letter has its share. */
#define ADDRESSES (3ull << 30)
#define SHARE (ADDRESSES / 32)

static struct one {
	CUmemGenericAllocationHandle handle;
	uint64_t bytes;
	CUdeviceptr address;
	struct group group;
} ones[26];

CUcontext movable_context; /* of movable_ask.c, which is linked for movable_side */

static CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static const char *name_of(CUresult result)
{
	const char *name = "?";

	cuGetErrorName(result, &name);
	return name;
}

static uint64_t size_of(const char *text)
{
	char *end;

	if (!text)
		exit(64);
	uint64_t value = strtoull(text, &end, 10);
	return value << (*end == 'm' ? 20 : 0);
}

static CUresult map(CUmemGenericAllocationHandle handle, CUdeviceptr address, uint64_t bytes)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUresult result = cuMemMap(address, bytes, 0, handle, 0);

	return result ? result : cuMemSetAccess(address, bytes, &access, 1);
}

static CUresult pool(struct one *one, uint64_t bytes, uint64_t count)
{
	one->bytes = 0;
	for (uint64_t i = 0; i < count; i++) {
		CUmemGenericAllocationHandle handle;
		CUresult result = cuMemCreate(&handle, bytes, &properties, 0);

		if (!result)
			result = map(handle, one->address + one->bytes, bytes);
		if (!result)
			result = cuMemRelease(handle);
		if (result) {
			printf("failed after %llu\n", (unsigned long long)i);
			return result;
		}
		one->bytes += bytes;
	}
	return CUDA_SUCCESS;
}

/* The group of script_work.c: one allocation, all that is mapped. */
static struct group *group_of(struct one *one)
{
	one->group.address = &one->address;
	one->group.bytes = one->bytes;
	one->group.count = 1;
	return &one->group;
}

/*
 * Except for questions about the place, host memory must give the same answers as the device memory
 * that it stands for.
 */
static CUresult same(struct one *one)
{
	CUmemAllocationProp told = {0};
	CUdeviceptr base = 0, inside = one->address + one->bytes / 2 + 1;
	unsigned long long access = 0;
	size_t bytes = 0;
	void *host = &host, *hosts = &host;
	int type = 0, ordinal = -1, type_again = 0;
	CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_HOST_POINTER,
	                                    CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
	void *values[] = {&hosts, &type_again};

	if (one->handle) {
		CUresult result = cuMemGetAllocationPropertiesFromHandle(&told, one->handle);

		printf("properties %d type %d location %d %d handles %d\n", result, told.type,
		       told.location.type, told.location.id, told.requestedHandleTypes);
	}
	CUresult first = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside);
	cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside);
	CUresult second = cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, inside);
	CUresult third = cuPointerGetAttributes(2, attributes, values, inside);
	CUresult range = cuMemGetAddressRange_v2(&base, &bytes, inside);
	CUresult allowed = cuMemGetAccess(&access, &properties.location, inside);
	printf("type %d %d ordinal %d host %d several %d: %d %d range %d: %d %llu access %d %llu\n", first,
	       type, ordinal, second, third, hosts == NULL, type_again, range, base == one->address,
	       (unsigned long long)bytes, allowed, access);
	return CUDA_SUCCESS;
}

/* Plain memory has no handle. */
static CUresult plain(uint64_t bytes)
{
	CUmemGenericAllocationHandle handle = 77;
	CUdeviceptr address;
	CUresult result = cuMemAlloc_v2(&address, bytes);

	if (result)
		return result;
	result = cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)(address + bytes / 2));
	printf("handle %d\n", handle == 77);
	return result;
}

static CUresult brief(uint64_t bytes)
{
	CUdeviceptr address;
	CUresult result = cuMemAlloc_v2(&address, bytes);

	return result ? result : cuMemFree_v2(address);
}

/* The simulator's own function: libspill does not see the question. */
static CUresult side(const char *letter, const struct one *one)
{
	printf("side %s ", letter);
	for (uint64_t at = 0; at < one->bytes; at += 2 << 20)
		putchar(movable_side(one->address + at));
	putchar('\n');
	return CUDA_SUCCESS;
}

static CUresult back(struct one *one)
{
	CUresult result = CUDA_SUCCESS;
	bool away = true;

	for (int tries = 0; tries < 1000 && away && !result; tries++) {
		result = script_verify(group_of(one));
		away = false;
		for (uint64_t at = 0; at < one->bytes; at += 2 << 20)
			away |= movable_side(one->address + at) != 'd';
		usleep(10000);
	}
	return result;
}

static CUresult share(const struct one *one, int device, CUmemAccess_flags flags)
{
	const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};

	return cuMemSetAccess(one->address, one->bytes, &access, 1);
}

static CUresult there(struct one *one)
{
	CUcontext here, other;

	if (cuCtxGetCurrent(&here) || cuDevicePrimaryCtxRetain(&other, 1) || cuCtxSetCurrent(other))
		exit(64);
	CUresult result = script_verify(group_of(one));
	return cuCtxSetCurrent(here) ? CUDA_ERROR_INVALID_CONTEXT : result;
}

static CUresult info(void)
{
	size_t free = 0, total = 0;
	CUresult result = cuMemGetInfo_v2(&free, &total);

	printf("free %llu\n", (unsigned long long)free);
	return result;
}

/* A function that the headers of CUDA 13.0 lack. */
static void *later(const char *name, int version)
{
	void *function = NULL;

	if (cuGetProcAddress_v2(name, &function, version, 0, NULL) || !function)
		exit(64);
	return function;
}

/* What binds a handle or an address to something that keeps the memory, also by functions of CUDA 13.1 and 13.3. */
static bool binding_word(const char *word, const struct one *one, CUresult *result)
{
	typedef CUresult (*bind_fn)(uint64_t, CUdevice, uint64_t, uint64_t, uint64_t, uint64_t,
	                            unsigned long long);
	typedef CUresult (*bind_at_fn)(uint64_t, CUdevice, uint64_t, CUdeviceptr, uint64_t,
	                               unsigned long long);

	if (!strcmp(word, "multicast"))
		*result = cuMulticastBindMem(0, 0, one->handle, 0, one->bytes, 0);
	else if (!strcmp(word, "bind"))
		*result = cuMulticastBindAddr(0, 0, one->address, one->bytes, 0);
	else if (!strcmp(word, "multicast2"))
		*result =
		    ((bind_fn)later("cuMulticastBindMem", 13010))(0, 0, 0, one->handle, 0, one->bytes, 0);
	else if (!strcmp(word, "bind2"))
		*result =
		    ((bind_at_fn)later("cuMulticastBindAddr", 13010))(0, 0, 0, one->address, one->bytes, 0);
	else if (!strcmp(word, "endpoint"))
		*result = ((bind_fn)later("cuLogicalEndpointBindMem", 13030))(0, 0, 0, one->handle, 0,
		                                                              one->bytes, 0);
	else if (!strcmp(word, "endpointat"))
		*result = ((bind_at_fn)later("cuLogicalEndpointBindAddr", 13030))(0, 0, 0, one->address,
		                                                                  one->bytes, 0);
	else
		return false;
	return true;
}

static CUresult handle_word(const char *word, struct one *one, uint64_t bytes)
{
	int descriptor = -1;

	if (!strcmp(word, "create")) {
		one->bytes = bytes;
		return cuMemCreate(&one->handle, bytes, &properties, 0);
	}
	if (!strcmp(word, "release"))
		return cuMemRelease(one->handle);
	if (!strcmp(word, "retain"))
		return cuMemRetainAllocationHandle(&one->handle,
		                                   (void *)(uintptr_t)(one->address + one->bytes / 2));
	if (!strcmp(word, "export"))
		return cuMemExportToShareableHandle(&descriptor, one->handle,
		                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (!strcmp(word, "free"))
		return cuMemFree_v2(one->handle);
	CUresult result;
	if (binding_word(word, one, &result))
		return result;
	exit(64);
}

static CUresult word(const char *word, const char *first, const char *second, const char *third)
{
	if (!strcmp(word, "info"))
		return info();
	if (!first)
		exit(64);
	if (!strcmp(word, "exports")) {
		properties.requestedHandleTypes = atoi(first);
		return CUDA_SUCCESS;
	}
	if (!strcmp(word, "device")) {
		properties.location.id = atoi(first);
		return CUDA_SUCCESS;
	}
	if (!strcmp(word, "context")) {
		CUcontext other;

		return cuDevicePrimaryCtxRetain(&other, atoi(first));
	}
	if (!strcmp(word, "brief"))
		return brief(size_of(first));
	if (!strcmp(word, "plain"))
		return plain(size_of(first));
	struct one *one = &ones[(first[0] - 'a') % 26u];
	if (!strcmp(word, "pool"))
		return pool(one, size_of(second), size_of(third));
	if (!strcmp(word, "map"))
		return map(one->handle, one->address, one->bytes);
	if (!strcmp(word, "unmap"))
		return cuMemUnmap(one->address, one->bytes);
	if (!strcmp(word, "twice"))
		return map(one->handle, one->address + one->bytes, one->bytes);
	if (!strcmp(word, "second"))
		return cuMemMap(one->address + one->bytes, one->bytes, 0, one->handle, 0);
	if (!strcmp(word, "share") && second && third)
		return share(one, atoi(second), (CUmemAccess_flags)atoi(third));
	if (!strcmp(word, "there"))
		return there(one);
	if (!strcmp(word, "back"))
		return back(one);
	if (!strcmp(word, "half"))
		return cuMemUnmap(one->address, one->bytes / 2);
	if (!strcmp(word, "side"))
		return side(first, one);
	if (!strcmp(word, "fill"))
		return script_fill(group_of(one));
	if (!strcmp(word, "verify"))
		return script_verify(group_of(one));
	if (!strcmp(word, "same"))
		return same(one);
	return handle_word(word, one, second ? size_of(second) : 0);
}

int main(int argc, char **argv)
{
	CUcontext context;
	CUdeviceptr base;

	if (argc < 2)
		return 64;
	script_kernels = argv[1];
	printf("cuInit %s\n", name_of(cuInit(0)));
	if (cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	    cuMemAddressReserve(&base, ADDRESSES, 0, 0, 0))
		return 64;
	for (int i = 0; i < 26; i++)
		ones[i].address = base + (uint64_t)i * SHARE;
	for (int i = 2; i < argc; i++) {
		char copy[256], *place = NULL;

		snprintf(copy, sizeof(copy), "%s", argv[i]);
		char *name = strtok_r(copy, ":", &place), *first = strtok_r(NULL, ":", &place);
		char *second = strtok_r(NULL, ":", &place), *third = strtok_r(NULL, ":", &place);
		CUresult result = word(name, first, second, third);

		printf("%s %s\n", argv[i], name_of(result));
		fflush(stdout);
	}
	return script_wrong;
}
