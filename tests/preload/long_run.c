/*
 * Very many allocations of all usual kinds and sizes, with random lives, on a device that is sometimes too small. At quiet moments all
 * are freed. Then it prints `quiet ALLOCATIONS RESIDENT_KIB ALLOCATED_KIB DESCRIPTORS`; allocated: by malloc.
 *
 * usage: long_run ALLOCATIONS LOOKS SEED
 */
#include <dirent.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda_api.h"

#define SLOTS 64
#define KIB 1024u

struct slot {
	CUdeviceptr address;
	int ordered;
};

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static void must(const char *what, CUresult result)
{
	if (!result)
		return;
	printf("%s: error %d\n", what, (int)result);
	exit(1);
}

static void give(struct slot *slot)
{
	if (slot->address)
		must("free",
		     slot->ordered ? cuMemFreeAsync(slot->address, NULL) : cuMemFree_v2(slot->address));
	slot->address = 0;
}

/* Of 1,000: 700 of less than 64 KiB and 250 of less than 1 MiB, most of them in stream order; 49 of 2 MiB; one of 4 to 20. */
static void take(struct slot *slot)
{
	uint64_t kind = draw(1000);
	size_t bytes = kind < 700   ? 256 + draw(64 * KIB)
	               : kind < 950 ? 64 * KIB + draw(960 * KIB)
	                            : 2048 * KIB;

	slot->ordered = kind < 950 && kind % 3 != 0;
	if (kind == 999)
		bytes = (4 + draw(17)) << 20;
	if (slot->ordered)
		must("cuMemAllocAsync", cuMemAllocAsync(&slot->address, bytes, NULL));
	else
		must("cuMemAlloc", cuMemAlloc_v2(&slot->address, bytes));
}

static unsigned descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

static unsigned long resident_kib(void)
{
	unsigned long pages = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%lu %lu", &pages, &resident) != 2)
		exit(64);
	fclose(file);
	return resident * ((unsigned long)sysconf(_SC_PAGESIZE) / KIB);
}

int main(int argc, char **argv)
{
	struct slot slots[SLOTS] = {{0}};
	uint64_t count = argc == 4 ? strtoull(argv[1], NULL, 10) : 0,
	         looks = count ? strtoull(argv[2], NULL, 10) : 0;
	CUcontext context;

	if (!looks)
		return 64;
	state = 88172645463325252u + strtoull(argv[3], NULL, 10);
	must("cuInit", cuInit(0));
	must("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0));
	must("cuCtxSetCurrent", cuCtxSetCurrent(context));
	for (uint64_t look = 1, done = 0; look <= looks; look++) {
		for (; done < count / looks * look; done++) {
			struct slot *slot = &slots[draw(SLOTS)];

			give(slot);
			take(slot);
		}
		for (unsigned i = 0; i < SLOTS; i++)
			give(&slots[i]);
		must("cuCtxSynchronize", cuCtxSynchronize());
		struct mallinfo2 info = mallinfo2();
		printf("quiet %llu %lu %zu %u\n", (unsigned long long)done, resident_kib(),
		       (info.uordblks + info.hblkhd) / KIB, descriptors());
	}
	return 0;
}
