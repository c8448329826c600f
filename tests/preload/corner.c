/*
 * Corners of the CUDA driver API in which a library in between is easily seen: the loader's lock, another thread's
 * request, a cancellation, an id. Prints one line a result, without addresses. The device has room for three of 4 MiB.
 *
 *	corner constructor PLUGIN            a thread is in its first allocation while PLUGIN's constructor allocates
 *	corner race HUGE ROUNDS              ROUNDS of 4 KiB while a thread asks for HUGE
 *	corner beside HUGE                   4 MiB at every moment that a thread, asking for HUGE, opens a file
 *	corner cancel-first | cancel-plain | cancel-spill | cancel-free
 *	corner ids                           ids of what is spilled, before and after it is freed
 *	corner clock                         the least readings of the clock that a pair of 4 KiB takes, of many
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "corner.h"

CUcontext corner_context;

/* -- constructor: the thread stops where libspill asks the loader, until the constructor runs --------------------- */

enum { CALLING, ASKING, CONSTRUCTING }; /* the last is set by the plug-in's constructor */
atomic_int corner_moment;
static __thread bool in_first_call;

int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

	*(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	if (in_first_call) {
		in_first_call = false;
		puts("inside the library");
		atomic_store(&corner_moment, ASKING);
		wait_until(&corner_moment, CONSTRUCTING);
	}
	return real(visit, data);
}

static void *first_call(void *unused)
{
	CUdeviceptr address;

	cuCtxSetCurrent(corner_context);
	in_first_call = true;
	say("thread", cuMemAlloc_v2(&address, BYTES));
	atomic_store(&corner_moment, CONSTRUCTING); /* also if it never asked: nobody shall wait for that */
	return NULL;
}

static int constructor(const char *plugin)
{
	pthread_t thread;

	alarm(10);
	if (pthread_create(&thread, NULL, first_call, NULL))
		return 64;
	wait_until(&corner_moment, ASKING);
	if (!dlopen(plugin, RTLD_NOW))
		return 64;
	pthread_join(thread, NULL);
	return 0;
}

/* -- too much: one thread's request fails, beside another one's request that fits ---------------- */

static atomic_int asked, stop;

static void *ask_again_and_again(void *bytes)
{
	CUdeviceptr address;

	cuCtxSetCurrent(corner_context);
	while (!atomic_load(&stop)) {
		if (cuMemAlloc_v2(&address, *(size_t *)bytes) != CUDA_ERROR_OUT_OF_MEMORY)
			exit(1);
		atomic_fetch_add(&asked, 1);
	}
	return NULL;
}

/* Small ones, because they are quick: chance decides when the two meet. */
static int race(size_t huge, int rounds)
{
	int failed = 0;
	pthread_t thread;
	CUdeviceptr first, address;

	say("first", cuMemAlloc_v2(&first, 4096));
	if (pthread_create(&thread, NULL, ask_again_and_again, &huge))
		return 64;
	wait_until(&asked, 1);
	for (int i = 0; i < rounds && !failed; i++)
		failed = cuMemAlloc_v2(&address, 4096) || cuMemFree_v2(address);
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	puts(failed ? "a request that fits failed" : "all were served");
	return 0;
}

static atomic_int opened, gone_on, answered;
static __thread bool stops_at_open;

/* The thread stops wherever libspill looks how much host memory there is, until the other's request is done. */
int open64(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...);
	va_list rest;

	*(void **)&real = dlsym(RTLD_NEXT, "open64");
	va_start(rest, flags);
	int mode = va_arg(rest, int);
	va_end(rest);
	if (stops_at_open)
		wait_until(&gone_on, atomic_fetch_add(&opened, 1) + 1);
	return real(path, flags, mode);
}

static void *ask_and_stop(void *bytes)
{
	CUdeviceptr address;

	cuCtxSetCurrent(corner_context);
	stops_at_open = true;
	say("huge", cuMemAlloc_v2(&address, *(size_t *)bytes));
	stops_at_open = false;
	atomic_store(&answered, 1);
	return NULL;
}

static int beside(size_t huge)
{
	pthread_t thread;
	CUdeviceptr address;

	fill(3);
	if (pthread_create(&thread, NULL, ask_and_stop, &huge))
		return 64;
	while (!atomic_load(&answered)) {
		if (atomic_load(&opened) == atomic_load(&gone_on)) {
			sched_yield();
			continue;
		}
		if (!say("beside", cuMemAlloc_v2(&address, BYTES)))
			say("free", cuMemFree_v2(address));
		atomic_fetch_add(&gone_on, 1);
	}
	pthread_join(thread, NULL);
	return 0;
}

/* -- cancel ------------------------------------------------------------------------------------------------------- */

static CUdeviceptr cancel_frees;
static bool returned;

static void *cancelled(void *unused)
{
	CUdeviceptr address;

	cuCtxSetCurrent(corner_context);
	pthread_cancel(pthread_self());
	CUresult result = cancel_frees ? cuMemFree_v2(cancel_frees) : cuMemAlloc_v2(&address, BYTES);
	returned = true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* printing would be a cancellation point */
	say("returned", result);
	return NULL;
}

static int cancel(const char *how)
{
	pthread_t thread;

	fill(!strcmp(how, "first") ? 0 : !strcmp(how, "plain") ? 1 : 4);
	if (!strcmp(how, "free"))
		cancel_frees = filled[3];
	if (pthread_create(&thread, NULL, cancelled, NULL))
		return 64;
	pthread_join(thread, NULL);
	if (!returned)
		puts("the call did not return");
	return 0;
}

/* -- ids ---------------------------------------------------------------------------------------------------------- */

static unsigned long long ids[8];
static unsigned id_count;

static void add_id(CUdeviceptr address)
{
	unsigned long long alone = 0, among = 0;
	unsigned type = 0;
	CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID};
	void *values[] = {&type, &among};

	if (cuPointerGetAttribute(&alone, CU_POINTER_ATTRIBUTE_BUFFER_ID, address) ||
	    cuPointerGetAttributes(2, attributes, values, address) || alone != among)
		puts("the two ways to ask differ");
	ids[id_count++] = alone;
}

/* Two are there at once; then the first is freed and made again, at the same address if the library can. */
static void add_ids(size_t bytes)
{
	CUdeviceptr first, second, again;

	say("first", cuMemAlloc_v2(&first, bytes));
	say("second", cuMemAlloc_v2(&second, bytes));
	add_id(first);
	add_id(second);
	say("free", cuMemFree_v2(first));
	say("again", cuMemAlloc_v2(&again, bytes));
	add_id(again);
	printf("%s address\n", again == first ? "the same" : "another");
}

static int distinct_ids(void)
{
	unsigned same = 0;

	fill(3);
	add_id(filled[0]);
	add_ids((size_t)1 << 20);
	add_ids(BYTES);
	for (unsigned i = 0; i < id_count; i++)
		for (unsigned j = 0; j < i; j++)
			same += ids[i] == ids[j];
	printf("%u ids, %u pairs the same\n", id_count, same);
	return 0;
}

/* -- clock: readings by this thread, of the library and the driver alike ------------------------------------------ */

static __thread unsigned readings;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static _Atomic(int (*)(clockid_t, struct timespec *)) real;

	readings++;
	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	return real(clock, time);
}

/* Some pairs read it more often: those that look at the device's free memory, which happens by the clock. */
static int count_readings(void)
{
	unsigned least[] = {UINT32_MAX, UINT32_MAX};
	CUdeviceptr neighbour, address;

	say("neighbour", cuMemAlloc_v2(&neighbour, 4096));
	for (int pair = 0; pair < 1000; pair++) {
		unsigned before = readings;
		if (cuMemAlloc_v2(&address, 4096))
			return 1;
		unsigned between = readings;
		if (cuMemFree_v2(address))
			return 1;
		least[0] = between - before < least[0] ? between - before : least[0];
		least[1] = readings - between < least[1] ? readings - between : least[1];
	}
	printf("readings %u %u\n", least[0], least[1]);
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (!start())
		return 1;
	if (!strcmp(how, "constructor") && argc == 3)
		return constructor(argv[2]);
	if (!strcmp(how, "race") && argc == 4)
		return race(strtoull(argv[2], NULL, 10), atoi(argv[3]));
	if (!strcmp(how, "beside") && argc == 3)
		return beside(strtoull(argv[2], NULL, 10));
	if (!strncmp(how, "cancel-", 7))
		return cancel(how + 7);
	if (!strcmp(how, "ids"))
		return distinct_ids();
	if (!strcmp(how, "clock"))
		return count_readings();
	return 64;
}
