/* Work on blocks: kernels, sets and copies of every kind. */
#include "moving.h"

#include <string.h>

bool moving_launch(struct moving_worker *worker, CUfunction function, unsigned stream, void **parameters)
{
	CUstream on = worker->streams[stream];
	CUlaunchConfig config = {4, 1, 1, 64, 1, 1, 0, on, NULL, 0};

	switch (moving_random(worker, 4)) {
	case 0:
		return moving_must(worker, "cuLaunchKernel",
		                   cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, on, parameters, NULL));
	case 1:
		return moving_must(worker, "cuLaunchKernel_ptsz",
		                   cuLaunchKernel_ptsz(function, 4, 1, 1, 64, 1, 1, 0, on, parameters, NULL));
	case 2:
		return moving_must(worker, "cuLaunchCooperativeKernel",
		                   cuLaunchCooperativeKernel(function, 4, 1, 1, 64, 1, 1, 0, on, parameters));
	default:
		return moving_must(worker, "cuLaunchKernelEx",
		                   cuLaunchKernelEx(&config, function, parameters, NULL));
	}
}

void moving_use(struct moving_worker *worker, struct moving_block *block, unsigned stream)
{
	CUevent event = worker->event[moving_device_of(worker, block->stream)];

	if (block->stream != stream) {
		moving_must(worker, "cuEventRecord", cuEventRecord(event, worker->streams[block->stream]));
		moving_must(worker, "cuStreamWaitEvent",
		            cuStreamWaitEvent(worker->streams[stream], event, 0));
	}
	block->stream = stream;
}

void moving_use_on(struct moving_worker *worker, struct moving_block *block, int device)
{
	if (moving_device_of(worker, block->stream) != device)
		moving_use(worker, block, moving_stream_on(worker, device));
}

void moving_alone(struct moving_worker *worker, struct moving_block *block)
{
	moving_let_go(worker);
	moving_must(worker, "cuStreamSynchronize", cuStreamSynchronize(worker->streams[block->stream]));
}

void moving_fill(struct moving_worker *worker, struct moving_block *block, uint64_t first, uint64_t count)
{
	uint64_t address = moving_at(block, first), words = moving_span(block, first, count) / 8;
	uint64_t seed = moving_random(worker, (uint64_t)1 << 32);
	void *parameters[] = {&address, &words, &seed};

	moving_expect(block, first, count, seed);
	moving_launch(worker, moving_code(worker, block->stream)->fill, block->stream, parameters);
}

/* Some pieces of the block, at most `most`. */
static uint64_t some_pieces(struct moving_worker *worker, const struct moving_block *block, uint64_t most,
                            uint64_t *count)
{
	uint64_t pieces = moving_pieces(block), first = moving_random(worker, pieces);
	*count = 1 + moving_random(worker, pieces - first < most ? pieces - first : most);
	return first;
}

static void set(struct moving_worker *worker, struct moving_block *block)
{
	uint64_t count, first = some_pieces(worker, block, 8, &count);
	uint64_t bytes = moving_span(block, first, count), byte = moving_random(worker, 256);
	uint64_t word = byte * 0x0101010101010101ull, two = moving_random(worker, 65536);
	CUdeviceptr to = moving_at(block, first);
	CUstream stream = worker->streams[block->stream];
	CUresult result;

	/* Those without a stream are work of the current context. */
	switch (moving_random(worker, moving_reaches(block, worker->device) ? 7 : 4)) {
	case 0:
		result = cuMemsetD8Async(to, (unsigned char)byte, bytes, stream);
		break;
	case 1:
		word = two * 0x0001000100010001ull;
		result = cuMemsetD16Async(to, (unsigned short)two, bytes / 2, stream);
		break;
	case 2:
		result = cuMemsetD32Async(to, (unsigned)word, bytes / 4, stream);
		break;
	case 3:
		result = cuMemsetD32Async_ptsz(to, (unsigned)word, bytes / 4, stream);
		break;
	case 4:
		moving_alone(worker, block);
		result = cuMemsetD8_v2(to, (unsigned char)byte, bytes);
		result = result ? result : cuStreamSynchronize(NULL);
		break;
	case 5:
		moving_alone(worker, block);
		result = cuMemsetD32_v2_ptds(to, (unsigned)word, bytes / 4);
		result = result ? result : cuStreamSynchronize((CUstream)2); /* the thread's */
		break;
	default:
		result = cuMemsetD2D32Async(to, 8, (unsigned)word, 2, bytes / 8, stream);
		break;
	}
	for (uint64_t i = 0; i < count; i++)
		block->content[first + i] = (struct moving_content){word, true};
	moving_must(worker, "cuMemset", result);
}

/* Whole pieces of one block to another. */
static void copy(struct moving_worker *worker, struct moving_block *from)
{
	struct moving_block *block = moving_some(worker);
	uint64_t whole_from = from->bytes / MOVING_PIECE, whole_to = block->bytes / MOVING_PIECE;
	if (block == from || !whole_from || !whole_to)
		return;
	uint64_t first = moving_random(worker, whole_from), to = moving_random(worker, whole_to);
	uint64_t most = whole_from - first < whole_to - to ? whole_from - first : whole_to - to;
	uint64_t count = 1 + moving_random(worker, most < 32 ? most : 32), bytes = count * MOVING_PIECE;
	uint64_t source = moving_at(from, first), target = moving_at(block, to), words = bytes / 8;
	void *parameters[] = {&target, &source, &words};

	bool reaches = moving_reaches(from, moving_device_of(worker, block->stream));
	moving_use(worker, from, block->stream);
	CUstream stream = worker->streams[block->stream];
	CUresult result = CUDA_SUCCESS;
	switch (reaches ? moving_random(worker, 7) : 3) { /* only that copy needs no access */
	case 0:
		moving_launch(worker, moving_code(worker, block->stream)->copy, block->stream, parameters);
		break;
	case 1:
		result = cuMemcpyAsync(target, source, bytes, stream);
		break;
	case 2:
		result = cuMemcpyDtoDAsync_v2_ptsz(target, source, bytes, stream);
		break;
	case 3:
		result = cuMemcpyPeerAsync(target, moving_context[block->device], source,
		                           moving_context[from->device], bytes, stream);
		break;
	case 4:
		moving_alone(worker, block);
		result = moving_random(worker, 2) ? cuMemcpy(target, source, bytes)
		                                  : cuMemcpyDtoD_v2(target, source, bytes);
		result = result ? result : cuStreamSynchronize(NULL);
		break;
	default:
		result = cuMemcpyDtoDAsync_v2(target, source, bytes, stream);
		break;
	}
	memcpy(&block->content[to], &from->content[first], count * sizeof(*block->content));
	moving_must(worker, "a copy on the device", result);
	if (!reaches)
		moving_use_on(worker, from, from->device);
}

/* From the program's own memory, pinned or not. */
static void bring(struct moving_worker *worker, struct moving_block *block)
{
	uint64_t count, first = some_pieces(worker, block, 4, &count),
	                bytes = moving_span(block, first, count);
	bool pinned = moving_random(worker, 3) == 0;
	char *host = pinned ? worker->staging : worker->pageable;

	if (pinned)
		moving_sync(worker); /* what was copied from it last may not be done */
	moving_expect(block, first, count, moving_random(worker, (uint64_t)1 << 32));
	for (uint64_t i = 0; i < bytes / 8; i++) {
		uint64_t word = moving_word(&block->content[first + i / MOVING_WORDS], i % MOVING_WORDS);
		memcpy(host + i * 8, &word, 8);
	}
	if (moving_random(worker, 4) == 0) {
		moving_alone(worker, block);
		moving_must(worker, "cuMemcpyHtoD", cuMemcpyHtoD_v2(moving_at(block, first), host, bytes));
		moving_must(worker, "cuStreamSynchronize", cuStreamSynchronize(NULL));
		return;
	}
	if (!pinned && worker->held)
		moving_let_go(worker); /* it may wait for what is before it on the stream */
	moving_must(
	    worker, "cuMemcpyHtoDAsync",
	    cuMemcpyHtoDAsync_v2(moving_at(block, first), host, bytes, worker->streams[block->stream]));
}

/* Two pieces, by a kernel that finds their addresses in memory: nothing that it is given tells what it writes. */
static void scatter(struct moving_worker *worker, struct moving_block *block)
{
	struct moving_block *of[2] = {block, moving_some(worker)};
	uint64_t count = 2, words = MOVING_WORDS, seed = moving_random(worker, (uint64_t)1 << 32), piece[2];

	if (moving_all_named || of[0]->bytes < MOVING_PIECE || of[1]->bytes < MOVING_PIECE ||
	    !moving_reaches(of[1], moving_device_of(worker, block->stream)))
		return;
	for (unsigned i = 0; i < 2; i++)
		piece[i] = moving_random(worker, of[i]->bytes / MOVING_PIECE);
	if (of[0] == of[1] && piece[0] == piece[1])
		return;
	if (worker->arrays == MOVING_ARRAYS)
		moving_sync(worker);
	uint64_t *array = worker->array[worker->arrays++], address = (uintptr_t)array;
	void *parameters[] = {&address, &count, &words, &seed};
	moving_use(worker, of[1], block->stream);
	for (unsigned i = 0; i < 2; i++) {
		array[i] = moving_at(of[i], piece[i]);
		of[i]->content[piece[i]] = (struct moving_content){seed + i, false};
	}
	moving_launch(worker, moving_code(worker, block->stream)->fill_all, block->stream, parameters);
}

void moving_work(struct moving_worker *worker, struct moving_block *block)
{
	uint64_t count, first = some_pieces(worker, block, 64, &count);

	switch (moving_random(worker, 10)) {
	case 8:
	case 9:
		scatter(worker, block);
		break;
	case 0:
	case 1:
		moving_use(worker, block, moving_stream_for(worker, block));
		moving_fill(worker, block, first, count);
		break;
	case 2:
		set(worker, block);
		break;
	case 3:
	case 4:
		copy(worker, block);
		break;
	case 5:
		bring(worker, block);
		break;
	case 6:
		moving_read_back(worker, block, first, count < 4 ? count : 4);
		break;
	default: {
		uint64_t address = moving_at(block, first), words = moving_span(block, first, count) / 8,
		         times = 4, sum = (uintptr_t)worker->sum;
		void *parameters[] = {&address, &words, &times, &sum};
		moving_launch(worker, moving_code(worker, block->stream)->read_loop, block->stream,
		              parameters);
	}
	}
}
