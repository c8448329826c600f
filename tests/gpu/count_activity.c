/*
 * Counts what a process submits to the GPU, independently of libspill: the driver's calls by name, as NVIDIA's profiling
 * interface (CUPTI) reports them, and the kernels, copies and sets that the device then ran. The driver loads this library
 * itself (CUDA_INJECTION64_PATH); COUNT_LIBCUPTI is the path of CUPTI, COUNT_OUT the file that gets, at exit:
 *
 *	call NAME CALLS CAPTURED FAILED EMPTY   CAPTURED: made while the calling thread captured a stream, so they submitted
 *	                                    nothing; EMPTY: copies of no bytes, which do neither
 *	record CLASS RECORDS SUBMITTED      of CLASS kernel, copy, set, graph; SUBMITTED: by so many calls; a graph's launch is one
 *	dropped COUNT                       records that CUPTI lost
 *
 * Sources: the CUPTI documentation of callbacks, activities (correlation ids: those of the call that submitted), injection.
 */
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS CUPTI_DRIVER_TRACE_CBID_SIZE
#define BUFFER ((size_t)4 << 20)

static void *library;

/* A function of CUPTI's by its name; __typeof__ takes the prototype from the vendor's header. */
#define CUPTI(name) ((__typeof__(&(name)))dlsym(library, #name))

static struct function {
	const char *_Atomic name;
	atomic_ullong calls, captured, failed, empty;
} functions[FUNCTIONS];

static _Thread_local int capturing;

static int begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Parameters of all copies of so many bytes from one address to another (generated_cuda_meta.h). */
static int is_linear_copy(const char *name)
{
	static const char *const prefixes[] = {"cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD",
	                                       "cuMemcpyAsync"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (begins_with(name, prefixes[i]))
			return 1;
	return 0;
}

static int is_empty(const CUpti_CallbackData *data)
{
	const cuMemcpyDtoDAsync_v2_params *copy = data->functionParams;

	return is_linear_copy(data->functionName) && copy->ByteCount == 0;
}

static void called(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *details)
{
	const CUpti_CallbackData *data = details;
	struct function *function = &functions[id];

	if (domain != CUPTI_CB_DOMAIN_DRIVER_API || id >= FUNCTIONS)
		return;
	if (data->callbackSite == CUPTI_API_EXIT) {
		int failed = data->functionReturnValue && *(const CUresult *)data->functionReturnValue;

		function->failed += (unsigned)failed;
		function->empty += !failed && !capturing && is_empty(data);
		if (!failed && begins_with(data->functionName, "cuStreamBeginCapture"))
			capturing++;
		return;
	}
	if (capturing && begins_with(data->functionName, "cuStreamEndCapture"))
		capturing--;
	function->name = data->functionName;
	function->calls++;
	function->captured += capturing > 0;
}

enum class { KERNEL, COPY, SET, GRAPH, CLASSES };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list {
	uint32_t *ids;
	size_t count, room;
} lists[CLASSES]; /* correlation ids, under the lock */
static unsigned long long dropped;

static void add(enum class class, uint32_t id)
{
	struct list *list = &lists[class];

	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 1 << 16;
		list->ids = realloc(list->ids, list->room * sizeof(*list->ids));
		if (!list->ids)
			abort();
	}
	list->ids[list->count++] = id;
}

/* Newer versions of these records are the older ones, continued. */
static void classify(const CUpti_Activity *record)
{
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
		const CUpti_ActivityKernel10 *kernel = (const void *)record;
		add(kernel->graphId ? GRAPH : KERNEL, kernel->correlationId);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMCPY: {
		const CUpti_ActivityMemcpy6 *copy = (const void *)record;
		add(copy->graphId ? GRAPH : COPY, copy->correlationId);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMCPY2: {
		const CUpti_ActivityMemcpyPtoP4 *copy = (const void *)record;
		add(copy->graphId ? GRAPH : COPY, copy->correlationId);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMSET: {
		const CUpti_ActivityMemset4 *set = (const void *)record;
		add(set->graphId ? GRAPH : SET, set->correlationId);
		break;
	}
	default:
		break;
	}
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
	*buffer = aligned_alloc(8, BUFFER);
	*size = *buffer ? BUFFER : 0;
	*most = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
	CUpti_Activity *record = NULL;
	size_t lost = 0;

	pthread_mutex_lock(&lock);
	while (valid && CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == CUPTI_SUCCESS)
		classify(record);
	if (CUPTI(cuptiActivityGetNumDroppedRecords)(context, stream, &lost) == CUPTI_SUCCESS)
		dropped += lost;
	pthread_mutex_unlock(&lock);
	free(buffer);
}

static int compare(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static size_t distinct(struct list *list)
{
	size_t found = 0;

	if (list->count)
		qsort(list->ids, list->count, sizeof(*list->ids), compare);
	for (size_t i = 0; i < list->count; i++)
		found += i == 0 || list->ids[i] != list->ids[i - 1];
	return found;
}

static CUpti_SubscriberHandle subscriber;

static void print(void)
{
	static const char *const names[CLASSES] = {"kernel", "copy", "set", "graph"};
	const char *path = getenv("COUNT_OUT");
	FILE *file = path ? fopen(path, "w") : NULL;

	CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	CUPTI(cuptiUnsubscribe)(subscriber);
	if (!file)
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		if (functions[i].calls)
			fprintf(file, "call %s %llu %llu %llu %llu\n", functions[i].name, functions[i].calls,
			        functions[i].captured, functions[i].failed, functions[i].empty);
	for (int i = 0; i < CLASSES; i++)
		fprintf(file, "record %s %zu %zu\n", names[i], lists[i].count, distinct(&lists[i]));
	fprintf(file, "dropped %llu\n", dropped);
	pthread_mutex_unlock(&lock);
	fclose(file);
}

static void must(const char *what, CUptiResult result)
{
	if (result == CUPTI_SUCCESS)
		return;
	fprintf(stderr, "count_activity: %s: CUPTI's error %d\n", what, (int)result);
	abort();
}

/* The driver calls it at the first cuInit. */
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
	static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
	                                           CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
	                                           CUPTI_ACTIVITY_KIND_MEMSET};
	const char *path = getenv("COUNT_LIBCUPTI");

	/* The one that the program has loaded itself, as PyTorch does, or there would be two. */
	library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
	if (!library)
		library = dlopen(path ? path : "libcupti.so.13", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "count_activity: %s\n", dlerror());
		return 0;
	}
	must("subscribe", CUPTI(cuptiSubscribe)(&subscriber, called, NULL));
	must("driver calls", CUPTI(cuptiEnableDomain)(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
	must("buffers", CUPTI(cuptiActivityRegisterCallbacks)(give_buffer, take_buffer));
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		must("records", CUPTI(cuptiActivityEnable)(kinds[i]));
	atexit(print);
	return 1;
}
