/*
 * A program on the CUDA driver API. Each argument is a word for one call, and the program prints
 * `WORD RESULT` for each, without addresses. The tests of contexts, failures and small allocations
 * are lists of words.
 *
 *	script KERNELS WORD…
 *
 *	retain:DEV release:DEV reset:DEV      the device's primary context; retain makes it current
 *	create:C:DEV destroy:C use:C          context C, a letter; p means the primary context last retained
 *	peer:C unpeer:C                       the current context may use C's memory, or no more
 *	own:A:C                               from now on A is taken to be context C's: whose kernel freeheld starts
 *	alloc:A:SIZE[:COUNT]                  allocations A, a letter, each of SIZE (4k, 20m); stops at the first failure
 *	fill:A verify:A free:A                by kernels and copies in the current context; each allocation has its own data
 *	freeheld:A                            frees A while a kernel of A's context still writes to it
 *	freethread:A                          frees A from a new thread, which makes A's context current
 *	again:A                               frees A's addresses once more
 *	async                                 from now on frees are in the order of the default stream
 *	sync info host granules:A             info: free device bytes; host: bytes of host memory that the simulated driver
 *	                                      holds; granules: how many 2 MiB granules A's addresses touch
 *	rows:WIDTH                            1000 rows of so many bytes by cuMemAllocPitch, used and freed; prints the pitch
 *	stderr:FILE                           closes fd 2 and opens FILE, which gets the same number
 *	locale:NAME                           setlocale
 *	child:PROGRAM tasks                   runs a program; tasks: how many descriptors and threads this process has
 *	--                                    the last word: arguments of any kind may follow
 *
 * Exit status: 0; 1 data wrong; 64 usage. A call that fails is printed, and the script goes on.
 */
#include "script.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct group groups[26];
static CUcontext contexts[26];

static const char *name_of(CUresult result)
{
	const char *name = "?";

	cuGetErrorName(result, &name);
	return name;
}

/*
 * Host memory that the simulated driver holds, mapped or not: the pages of its home that are in the
 * page cache (tests/sim/core/device.c). The home is the largest mapping. Used pages are at its start.
 */
#define LOOKED_AT ((size_t)1 << 30)
static unsigned long long host(void)
{
	static unsigned char resident[LOOKED_AT / 4096];
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char line[512];
	unsigned long long start, end, pages = 0, home = 0, largest = LOOKED_AT;
	FILE *file = fopen("/proc/self/maps", "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx-%llx", &start, &end) != 2 || !strstr(line, "/memfd:sim-home") ||
		    end - start < largest)
			continue;
		home = start;
		largest = end - start;
	}
	if (file)
		fclose(file);
	if (!home || mincore((void *)(uintptr_t)home, LOOKED_AT, resident))
		exit(64);
	for (size_t i = 0; i < LOOKED_AT / page; i++)
		pages += resident[i] & 1;
	return pages * page;
}

static int compare(const void *left, const void *right)
{
	const CUdeviceptr *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static unsigned long long granules(struct group *group)
{
	unsigned long long count = 0;

	qsort(group->address, group->count, sizeof(CUdeviceptr), compare);
	for (uint64_t i = 0; i < group->count; i++)
		count += i == 0 || group->address[i] >> 21 != group->address[i - 1] >> 21;
	return count;
}

static CUresult context_word(const char *word, const char *first, const char *second)
{
	CUcontext *context =
	    first[0] >= 'a' && first[0] <= 'z' ? &contexts[first[0] - 'a'] : &contexts['p' - 'a'];
	int device = atoi(second ? second : first);
	CUcontext gone = *context;
	CUresult result;

	if (!strcmp(word, "retain")) {
		result = cuDevicePrimaryCtxRetain(context, device);
		return result ? result : cuCtxSetCurrent(*context);
	}
	if (!strcmp(word, "use"))
		return cuCtxSetCurrent(*context);
	if (!strcmp(word, "create"))
		return cuCtxCreate_v2(context, 0, device);
	if (!strcmp(word, "peer"))
		return cuCtxEnablePeerAccess(*context, 0);
	if (!strcmp(word, "unpeer"))
		return cuCtxDisablePeerAccess(*context);
	script_unload(gone);
	if (!strcmp(word, "release"))
		return cuDevicePrimaryCtxRelease_v2(device);
	if (!strcmp(word, "reset"))
		return cuDevicePrimaryCtxReset_v2(device);
	return cuCtxDestroy_v2(gone);
}

static uint64_t size_of(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	return value << (*end == 'm' ? 20 : *end == 'k' ? 10 : 0);
}

static CUresult group_word(const char *word, struct group *group, const char *second, const char *third)
{
	static const struct {
		const char *word;
		CUresult (*run)(struct group *group);
	} words[] = {
	    {"fill", script_fill},  {"verify", script_verify},      {"free", script_free},
	    {"again", script_free}, {"freeheld", script_free_held}, {"freethread", script_free_in_thread},
	};

	if (!strcmp(word, "alloc"))
		return script_alloc(group, size_of(second), third ? size_of(third) : 1);
	if (!strcmp(word, "own")) {
		group->context = contexts[second[0] - 'a'];
		return CUDA_SUCCESS;
	}
	if (!strcmp(word, "granules")) {
		printf("granules %llu\n", granules(group));
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(word, words[i].word))
			return words[i].run(group);
	exit(64);
}

static CUresult info(void)
{
	size_t free = 0, total = 0;
	CUresult result = cuMemGetInfo_v2(&free, &total);

	printf("free %llu\n", (unsigned long long)free);
	return result;
}

static unsigned entries(const char *folder)
{
	unsigned count = 0;
	DIR *opened = opendir(folder);

	while (opened && readdir(opened))
		count++;
	if (opened)
		closedir(opened);
	return count;
}

/* 1000 rows, filled to their last byte. */
static void rows(size_t width)
{
	CUdeviceptr address = 1;
	size_t pitch = 1;
	CUresult result = cuMemAllocPitch_v2(&address, &pitch, width, 1000, 4);

	printf("rows %s pitch %zu\n", name_of(result), pitch);
	if (!result)
		printf("set %s free %s\n", name_of(cuMemsetD8_v2(address, 7, pitch * 1000)),
		       name_of(cuMemFree_v2(address)));
}

static void other_word(const char *word, const char *first)
{
	if (!strcmp(word, "host")) {
		printf("host %llu\n", host());
	} else if (!strcmp(word, "async")) {
		script_async = true;
	} else if (!strcmp(word, "rows")) {
		rows((size_t)atoi(first));
	} else if (!strcmp(word, "tasks")) {
		printf("descriptors %u threads %u\n", entries("/proc/self/fd"), entries("/proc/self/task"));
	} else if (!strcmp(word, "child")) {
		fflush(stdout);
		printf("status %d\n", system(first));
	} else if (!strcmp(word, "stderr")) {
		close(STDERR_FILENO);
		if (open(first, O_WRONLY | O_CREAT | O_TRUNC, 0600) != STDERR_FILENO)
			exit(64);
	} else if (strcmp(word, "locale") || !setlocale(LC_ALL, first)) {
		exit(64);
	}
}

static void run(const char *text)
{
	char copy[4096], *place = NULL;
	CUresult result = CUDA_SUCCESS;

	snprintf(copy, sizeof(copy), "%s", text);
	char *word = strtok_r(copy, ":", &place), *first = strtok_r(NULL, ":", &place);
	char *second = strtok_r(NULL, ":", &place), *third = strtok_r(NULL, ":", &place);

	if (!word)
		exit(64);
	if (strstr("retain release reset create destroy use peer unpeer", word))
		result = context_word(word, first, second);
	else if (!strcmp(word, "sync"))
		result = cuCtxSynchronize();
	else if (!strcmp(word, "info"))
		result = info();
	else if (strstr("alloc fill verify free again freeheld freethread granules own", word))
		result = group_word(word, &groups[first[0] - 'a'], second, third);
	else
		other_word(word, first);
	printf("%s %s\n", text, name_of(result));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 64;
	script_kernels = argv[1];
	printf("cuInit %s\n", name_of(cuInit(0)));
	for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
		run(argv[i]);
	script_end();
	return script_wrong;
}
