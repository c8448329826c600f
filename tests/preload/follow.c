/*
 * A program that uses more memory than the device has, again and again. It carries out its
 * arguments one after the other, and prints `WORD RESULT` for each. It knows the right value of
 * every word of its memory.
 *
 *	follow KERNELS WORD…
 *
 *	make:COUNT:MIB      so many buffers by cuMemAlloc, each filled by a kernel; behind those that there are
 *	sweep:STEPS         so often each buffer in turn, a kernel each, that adds 1 to every word
 *	use:N               that for the buffer of that number alone
 *	parts:N:STEPS       that for it, so often, the first 64 MiB part after part of 4 MiB, a kernel each
 *	read:N              a kernel that reads it
 *	reread:STEPS:TIMES  so often each buffer in turn, a kernel each, that reads every word so many times
 *	peek:N:MS           for so long small kernels, one behind the other, that read 4 KiB of the newest buffer, and one of 4,096 of buffer N
 *	extra:N             use by a launch whose parameters are one block of memory
 *	views:N views:N:1   four buffers from N on are filled by one kernel that takes a structure with their addresses by value; in
 *	                    such a block
 *	array:N:COUNT       so often 1 is added to each of the buffers from N on by a kernel that finds their addresses in device
 *	                    memory, on a stream of its own, and nobody waits
 *	capture:MODE:N      begins a capture that uses all buffers from N on, and ends it; buffers below N are used on another stream
 *	                    while it goes on
 *	nodes:N:M           makes a graph of a kernel for each of the buffers from N to before M, one behind the other
 *	barely:N            from now on kernels of graphs only read the first 4 KiB of that buffer
 *	again:TIMES         from now on graphs read each buffer so often before its kernel, by another kernel
 *	enable:I:YES        the Ith of those nodes runs from now on; with 0 it does not
 *	child:N:M           the same within a graph within a graph
 *	within:N:M          the same as nodes, while another stream captures
 *	copies:N:M          makes a graph that copies buffer N to buffer M, to be launched once
 *	mixed:N:M           the same, and behind it a kernel for buffer M
 *	update:N:M          nodes, but what was made before becomes that
 *	set:I:N             the Ith of those nodes uses buffer N instead
 *	drop                ends what was made
 *	other               makes a context and ends it
 *	graph:STEPS         launches so often what was captured or made
 *	wait                for all streams
 *	check               every word, by a copy to the host and by a kernel
 *	where:N             where the driver has each 2 MiB of the buffer: `where N ddhh`
 *	time                `time MS`: of the device, since this word was last said
 *	mark                a small allocation, which the log has a line for
 *
 * Exit status: 0; 1 data wrong; 64 usage.
 */
#include "movable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUFFERS 64
#define VIEWS 4 /* of the structure that fill_views takes, tests/sim/test/kernels.c */

/* The word at `i` is the word of fill with `seed`, plus `added`. */
static struct buffer {
	struct block block;
	uint64_t added;
	bool barely;
} buffers[BUFFERS];

CUcontext movable_context; /* movable_ask.c looks at it */
static unsigned count;
static CUstream main_stream, other_stream;
static CUfunction fill, add, checksum, reread, add_all, fill_views, verify;
static uint64_t *pinned;  /* words that kernels write to, and addresses on their way to the device */
static CUdeviceptr array; /* BUFFERS addresses on the device */
static CUevent timed;     /* the last `time` */
static CUgraphExec exec;
static CUgraphNode nodes[BUFFERS]; /* kernel nodes of the graph that `nodes` made last */
static unsigned runs[BUFFERS];     /* how often each buffer is used by a launch of the graph */
static uint64_t again;             /* how often graphs read each buffer before its kernel */
static bool wrong;

static CUresult launch(CUfunction function, CUstream stream, void **parameters, void **extra)
{
	return cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, stream, parameters, extra);
}

static CUresult then_wait(CUresult result)
{
	return result ? result : cuStreamSynchronize(main_stream);
}

static CUresult make(unsigned more, uint64_t bytes)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned i = 0; i < more && !result && count < BUFFERS; i++) {
		struct block *block = &buffers[count].block;
		uint64_t words = bytes / 8;
		void *parameters[] = {&block->address, &words, &block->seed};

		block->bytes = bytes;
		block->seed = 1000 * ++count;
		result = cuMemAlloc_v2(&block->address, bytes);
		if (!result)
			result = then_wait(launch(fill, main_stream, parameters, NULL));
	}
	return result;
}

/* -- uses ------------------------------------------------------------------------------------------------ */

static CUresult use(struct buffer *buffer, CUstream stream)
{
	uint64_t words = buffer->block.bytes / 8, one = 1;
	void *parameters[] = {&buffer->block.address, &words, &one};

	buffer->added++;
	return launch(add, stream, parameters, NULL);
}

static CUresult sweep(uint64_t steps)
{
	CUresult result = CUDA_SUCCESS;

	for (uint64_t i = 0; i < steps && !result; i++)
		for (unsigned n = 0; n < count && !result; n++)
			result = use(&buffers[n], main_stream);
	return then_wait(result);
}

#define PART ((uint64_t)4 << 20)

static CUresult use_part(const struct buffer *buffer, uint64_t at, uint64_t bytes)
{
	uint64_t address = buffer->block.address + at, words = bytes / 8, one = 1;
	void *parameters[] = {&address, &words, &one};

	return launch(add, main_stream, parameters, NULL);
}

/* The first 64 MiB part after part; behind them, where the end of the allocation is near, all at once. */
static CUresult use_parts(struct buffer *buffer, uint64_t steps)
{
	const uint64_t bytes = buffer->block.bytes, parts = bytes < 16 * PART ? bytes : 16 * PART;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t i = 0; i < steps && !result; i++, buffer->added++) {
		for (uint64_t at = 0; at < parts && !result; at += PART)
			result = use_part(buffer, at, PART);
		if (parts < bytes && !result)
			result = use_part(buffer, parts, bytes - parts);
	}
	return then_wait(result);
}

static CUresult read_one(struct buffer *buffer)
{
	uint64_t words = buffer->block.bytes / 8, out = (uintptr_t)pinned;
	void *parameters[] = {&buffer->block.address, &words, &out};

	return then_wait(launch(checksum, main_stream, parameters, NULL));
}

static CUresult read_again(uint64_t steps, uint64_t times)
{
	uint64_t out = (uintptr_t)pinned;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t i = 0; i < steps && !result; i++)
		for (unsigned n = 0; n < count && !result; n++) {
			uint64_t words = buffers[n].block.bytes / 8;
			void *parameters[] = {&buffers[n].block.address, &words, &times, &out};

			result = launch(reread, main_stream, parameters, NULL);
		}
	return then_wait(result);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static CUresult peek(const struct buffer *buffer, uint64_t ms)
{
	const uint64_t end = now_ms() + ms;
	CUresult result = CUDA_SUCCESS;

	while (!result && now_ms() < end) {
		for (unsigned i = 0; i < 4096 && !result; i++) {
			uint64_t words = 512, out = (uintptr_t)pinned,
			         address = (i ? &buffers[count - 1] : buffer)->block.address;
			void *parameters[] = {&address, &words, &out};

			result = launch(checksum, main_stream, parameters, NULL);
		}
		result = then_wait(result);
	}
	return result;
}

static CUresult use_by_extra(struct buffer *buffer)
{
	uint64_t values[] = {buffer->block.address, buffer->block.bytes / 8, 1};
	size_t bytes = sizeof(values);
	void *extra[] = {(void *)1 /* CU_LAUNCH_PARAM_BUFFER_POINTER */, values,
	                 (void *)2 /* CU_LAUNCH_PARAM_BUFFER_SIZE */, &bytes, NULL};

	buffer->added++;
	return then_wait(launch(add, main_stream, NULL, extra));
}

static void filled(unsigned first, unsigned number, uint64_t seed)
{
	for (unsigned i = 0; i < number; i++) {
		buffers[first + i].block.seed = seed + i;
		buffers[first + i].added = 0;
	}
}

static CUresult fill_by_views(unsigned first, bool in_block)
{
	static uint64_t times;
	struct {
		struct {
			uint64_t count;
			struct {
				uint32_t dimensions, stride;
				uint64_t address;
			} view[VIEWS];
		} v;
		uint64_t words, seed;
	} all = {
	    .v = {.count = VIEWS}, .words = buffers[first].block.bytes / 8, .seed = 500000 + 100 * times++};
	size_t bytes = sizeof(all);
	void *parameters[] = {&all.v, &all.words, &all.seed};
	void *extra[] = {(void *)1, &all, (void *)2, &bytes, NULL};

	for (unsigned i = 0; i < VIEWS; i++)
		all.v.view[i].address = buffers[first + i].block.address;
	filled(first, VIEWS, all.seed);
	return then_wait(in_block ? launch(fill_views, main_stream, NULL, extra)
	                          : launch(fill_views, main_stream, parameters, NULL));
}

/* Waited for by `check`. */
static CUresult add_by_array(unsigned first, uint64_t times)
{
	uint64_t number = count - first, words = buffers[first].block.bytes / 8, one = 1;
	void *parameters[] = {&array, &number, &words, &one};
	CUresult result = cuStreamSynchronize(other_stream); /* `pinned` may be on its way yet */

	for (unsigned i = 0; i < number; i++)
		pinned[8 + i] = buffers[first + i].block.address;
	if (!result)
		result = cuMemcpyHtoDAsync_v2(array, pinned + 8, number * 8, other_stream);
	for (uint64_t i = 0; i < times && !result; i++) {
		for (unsigned n = first; n < count; n++)
			buffers[n].added++;
		result = launch(add_all, other_stream, parameters, NULL);
	}
	return result;
}

/* -- capture --------------------------------------------------------------------------------------------- */

static CUresult capture(int mode, unsigned from)
{
	CUgraph graph;
	CUresult result = cuStreamBeginCapture_v2(main_stream, (CUstreamCaptureMode)mode);

	memset(runs, 0, sizeof(runs));
	for (unsigned n = from; n < count && !result; n++) {
		runs[n] = 1;
		result = use(&buffers[n], main_stream);
		buffers[n].added--; /* not yet */
		if (!result && n - from < from)
			result = use(&buffers[n - from], other_stream);
	}
	CUresult ended = cuStreamEndCapture(main_stream, &graph);
	result = result ? result : ended;
	if (!result)
		result = cuStreamSynchronize(other_stream);
	return result ? result : cuGraphInstantiateWithFlags(&exec, graph, 0);
}

/* -- graphs that are built ------------------------------------------------------------------------------- */

static CUresult kernel_node(CUgraph graph, const CUgraphNode *after, unsigned n, CUgraphNode *node,
                            CUgraphExec changes)
{
	const bool barely = buffers[n].barely;
	uint64_t words = barely ? 512 : buffers[n].block.bytes / 8, one = 1, out = (uintptr_t)pinned;
	void *parameters[] = {&buffers[n].block.address, &words, barely ? &out : &one};
	CUDA_KERNEL_NODE_PARAMS_v2 kernel = {
	    barely ? checksum : add, 4, 1, 1, 64, 1, 1, 0, parameters, NULL, NULL, NULL};

	runs[n] += !barely;
	return changes ? cuGraphExecKernelNodeSetParams_v2(changes, *node, &kernel)
	               : cuGraphAddKernelNode_v2(node, graph, after, after ? 1 : 0, &kernel);
}

static CUresult reading_node(CUgraph graph, const CUgraphNode *after, unsigned n, CUgraphNode *node)
{
	uint64_t words = buffers[n].block.bytes / 8, out = (uintptr_t)pinned;
	void *parameters[] = {&buffers[n].block.address, &words, &again, &out};
	CUDA_KERNEL_NODE_PARAMS_v2 kernel = {reread, 4, 1, 1, 64, 1, 1, 0, parameters, NULL, NULL, NULL};

	return cuGraphAddKernelNode_v2(node, graph, after, after ? 1 : 0, &kernel);
}

static CUresult kernel_nodes(CUgraph graph, unsigned first, unsigned end, CUgraphNode made[BUFFERS])
{
	CUgraphNode reads;
	CUresult result = CUDA_SUCCESS;

	memset(runs, 0, sizeof(runs));
	for (unsigned n = first; n < end && !result; n++) {
		const CUgraphNode *after = n > first ? &made[n - first - 1] : NULL;

		if (again) {
			result = reading_node(graph, after, n, &reads);
			after = &reads;
		}
		if (!result)
			result = kernel_node(graph, after, n, &made[n - first], NULL);
	}
	return result;
}

/* The node is that of buffer `node`. */
static CUresult enable(unsigned node, bool enabled)
{
	runs[node] = enabled;
	return cuGraphNodeSetEnabled(exec, nodes[node], enabled);
}

static CUresult put_into_another(CUgraph *graph)
{
	CUgraph outer = NULL;
	CUgraphNode node;
	CUresult result = cuGraphCreate(&outer, 0);

	if (!result)
		result = cuGraphAddChildGraphNode(&node, outer, NULL, 0, *graph);
	cuGraphDestroy(*graph);
	*graph = outer;
	return result;
}

/* Afterwards buffer `to` has the present contents of `from`. */
static CUresult copy_node(CUgraph graph, unsigned from, unsigned to, CUgraphNode *node)
{
	const CUDA_MEMCPY3D_v2 copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                               .srcDevice = buffers[from].block.address,
	                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                               .dstDevice = buffers[to].block.address,
	                               .WidthInBytes = buffers[from].block.bytes,
	                               .Height = 1,
	                               .Depth = 1};

	memset(runs, 0, sizeof(runs));
	buffers[to].block.seed = buffers[from].block.seed;
	buffers[to].added = buffers[from].added;
	return cuGraphAddMemcpyNode(node, graph, NULL, 0, &copy, movable_context);
}

static CUresult build(const char *verb, unsigned first, unsigned second)
{
	bool copies = !strcmp(verb, "copies") || !strcmp(verb, "mixed"), within = !strcmp(verb, "within");
	bool update = !strcmp(verb, "update");
	CUgraph graph = NULL, captured;
	CUgraphNode node, others[BUFFERS];
	CUgraphExecUpdateResultInfo info;
	CUresult result = cuGraphCreate(&graph, 0);

	if (!result)
		result = copies ? copy_node(graph, first, second, &node)
		                : kernel_nodes(graph, first, second, update ? others : nodes);
	if (!result && !strcmp(verb, "mixed"))
		result = kernel_node(graph, &node, second, &nodes[0], NULL);
	if (!result && !strcmp(verb, "child"))
		result = put_into_another(&graph);
	if (!result && !strcmp(verb, "child"))
		result = put_into_another(&graph);
	if (!result && within)
		result = cuStreamBeginCapture_v2(other_stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	if (!result && update)
		result = cuGraphExecUpdate_v2(exec, graph, &info);
	else if (!result)
		result = cuGraphInstantiateWithFlags(&exec, graph, 0);
	if (!result && within)
		result = cuStreamEndCapture(other_stream, &captured);
	/* The graph stays: `set` names its nodes. */
	return result;
}

static bool builds(const char *word)
{
	static const char *const words[] = {"nodes", "child", "within", "copies", "mixed", "update"};
	bool is = false;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		is |= !strcmp(word, words[i]);
	return is;
}

static CUresult change_node(unsigned node, unsigned n)
{
	for (unsigned i = 0, at = 0; i < count; i++)
		if (runs[i] && at++ == node) {
			runs[i]--;
			break;
		}
	return kernel_node(NULL, NULL, n, &nodes[node], exec);
}

static CUresult run_graph(uint64_t steps)
{
	CUresult result = CUDA_SUCCESS;

	for (uint64_t i = 0; i < steps && !result; i++) {
		result = cuGraphLaunch(exec, main_stream);
		for (unsigned n = 0; n < count; n++)
			buffers[n].added += runs[n];
	}
	return then_wait(result);
}

static CUresult other_context(void)
{
	CUcontext context;
	CUresult result = cuCtxCreate_v2(&context, 0, 0);

	if (!result)
		result = cuCtxDestroy_v2(context);
	return result ? result : cuCtxSetCurrent(movable_context);
}

/* -- contents ------------------------------------------------------------------------------------ */

static uint64_t wrong_words(const struct buffer *buffer, const uint64_t *copy)
{
	uint64_t words = 0;

	for (uint64_t i = 0; i < buffer->block.bytes / 8; i++)
		words += copy[i] != pattern(i, buffer->block.seed) + buffer->added;
	return words;
}

/* By a copy; also by a kernel if nothing was added, because it knows the words of fill only. */
static CUresult check_one(const struct buffer *buffer)
{
	uint64_t words = buffer->block.bytes / 8, out = (uintptr_t)(pinned + 1), seed = buffer->block.seed;
	CUdeviceptr address = buffer->block.address;
	void *parameters[] = {&address, &words, &seed, &out};
	uint64_t *copy = malloc(buffer->block.bytes);

	CUresult result = cuMemcpyDtoH_v2(copy, address, buffer->block.bytes);
	pinned[1] = 0;
	if (!result && !buffer->added)
		result = then_wait(launch(verify, main_stream, parameters, NULL));
	uint64_t bad = result ? 0 : wrong_words(buffer, copy) + pinned[1];
	free(copy);
	if (bad) {
		printf("wrong words: %llu of buffer %td\n", (unsigned long long)bad, buffer - buffers);
		wrong = true;
	}
	return result;
}

static CUresult check(void)
{
	CUresult result = cuCtxSynchronize();

	for (unsigned n = 0; n < count && !result; n++)
		result = check_one(&buffers[n]);
	return result;
}

static CUresult tell_time(void)
{
	CUevent now;
	float ms = 0;
	CUresult result = cuEventCreate(&now, 0);

	if (!result)
		result = cuEventRecord(now, main_stream);
	if (!result)
		result = cuEventSynchronize(now);
	if (!result && timed)
		result = cuEventElapsedTime(&ms, timed, now);
	printf("time %.3f\n", (double)ms);
	timed = now;
	return result;
}

/* -- words ----------------------------------------------------------------------------------------------- */

static CUresult word(const char *word, const char *first, uint64_t number, uint64_t second)
{
	struct buffer *buffer = &buffers[number % BUFFERS];
	CUdeviceptr small;

	if (!strcmp(word, "make"))
		return make((unsigned)number, second << 20);
	if (!strcmp(word, "sweep"))
		return sweep(number);
	if (!strcmp(word, "use"))
		return then_wait(use(buffer, main_stream));
	if (!strcmp(word, "parts"))
		return use_parts(buffer, second);
	if (!strcmp(word, "read"))
		return read_one(buffer);
	if (!strcmp(word, "reread"))
		return read_again(number, second);
	if (!strcmp(word, "peek"))
		return peek(buffer, second);
	if (!strcmp(word, "extra"))
		return use_by_extra(buffer);
	if (!strcmp(word, "views"))
		return fill_by_views((unsigned)number, second);
	if (!strcmp(word, "array"))
		return add_by_array((unsigned)number, second);
	if (!strcmp(word, "capture"))
		return capture((int)number, (unsigned)second);
	if (!strcmp(word, "graph"))
		return run_graph(number);
	if (!strcmp(word, "set"))
		return change_node((unsigned)number, (unsigned)second);
	if (!strcmp(word, "again")) {
		again = number;
		return CUDA_SUCCESS;
	}
	if (!strcmp(word, "enable"))
		return enable((unsigned)number % BUFFERS, second);
	if (!strcmp(word, "drop"))
		return cuGraphExecDestroy(exec);
	if (!strcmp(word, "other"))
		return other_context();
	if (builds(word))
		return build(word, (unsigned)number, (unsigned)second);
	if (!strcmp(word, "wait"))
		return cuCtxSynchronize();
	if (!strcmp(word, "check"))
		return check();
	if (!strcmp(word, "time"))
		return tell_time();
	if (!strcmp(word, "barely")) {
		buffer->barely = true;
		return CUDA_SUCCESS;
	}
	if (!strcmp(word, "mark"))
		return cuMemAlloc_v2(&small, 512);
	if (strcmp(word, "where"))
		exit(64);
	movable_where(first, &buffer->block);
	return CUDA_SUCCESS;
}

static bool begin(const char *kernels)
{
	static const struct {
		const char *name;
		CUfunction *function;
	} functions[] = {{"fill", &fill},       {"add", &add},       {"checksum", &checksum},
	                 {"add_all", &add_all}, {"verify", &verify}, {"fill_views", &fill_views},
	                 {"reread", &reread}};
	CUmodule module;
	void *memory;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&movable_context, 0) || cuCtxSetCurrent(movable_context) ||
	    cuModuleLoad(&module, kernels) || cuStreamCreate(&main_stream, 1) ||
	    cuStreamCreate(&other_stream, 1) || cuMemAlloc_v2(&array, BUFFERS * sizeof(uint64_t)) ||
	    cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP))
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (cuModuleGetFunction(functions[i].function, module, functions[i].name))
			return false;
	pinned = memory;
	return true;
}

int main(int argc, char **argv)
{
	if (argc < 2 || !begin(argv[1]))
		return 64;
	for (int i = 2; i < argc; i++) {
		char copy[64], *place = NULL;
		const char *name = "?";

		snprintf(copy, sizeof(copy), "%s", argv[i]);
		char *verb = strtok_r(copy, ":", &place), *first = strtok_r(NULL, ":", &place);
		char *second = strtok_r(NULL, ":", &place);
		CUresult result = word(verb, first, first ? strtoull(first, NULL, 10) : 0,
		                       second ? strtoull(second, NULL, 10) : 0);

		cuGetErrorName(result, &name);
		printf("%s %s\n", argv[i], name);
		fflush(stdout);
	}
	return wrong;
}
