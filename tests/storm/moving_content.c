/* The contents of pieces, and their checks: by kernels that count wrong words, and by copies. */
#include "moving.h"

#include <stdio.h>
#include <string.h>

/* fill writes mix(index + seed * ODD). So a later piece equals a fill with another seed. */
#define ODD 0x9e3779b97f4a7c15ull
#define PER_WORD 0xf1de83e19937733dull /* of ODD, the inverse modulo 2^64 */

uint64_t moving_word(const struct moving_content *content, uint64_t index)
{
	uint64_t x = index + content->seed * ODD;
	if (content->constant)
		return content->seed;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
	return x ^ (x >> 29);
}

void moving_expect(struct moving_block *block, uint64_t first, uint64_t count, uint64_t seed)
{
	for (uint64_t i = 0; i < count; i++)
		block->content[first + i] =
		    (struct moving_content){seed + i * MOVING_WORDS * PER_WORD, false};
}

static void check_run(struct moving_worker *worker, struct moving_block *block, uint64_t first,
                      uint64_t count)
{
	if (worker->checks == MOVING_CHECKS)
		moving_sync(worker);
	unsigned index = worker->checks++;
	struct moving_check *check = &worker->check[index];
	uint64_t counter = (uintptr_t)&worker->counters[index];

	worker->counters[index] = 0;
	*check = (struct moving_check){moving_at(block, first), moving_span(block, first, count) / 8,
	                               block->content[first].seed, worker->step};
	void *parameters[] = {&check->address, &check->words, &check->seed, &counter};
	moving_launch(worker, moving_code(worker, block->stream)->verify, block->stream, parameters);
}

static struct moving_readback *expected(struct moving_worker *worker, const struct moving_block *block,
                                        uint64_t first, uint64_t count)
{
	if (worker->readbacks == MOVING_READBACKS)
		moving_sync(worker);
	struct moving_readback *readback = &worker->readback[worker->readbacks];
	readback->bytes = moving_span(block, first, count);
	readback->step = worker->step;
	memcpy(readback->content, &block->content[first], count * sizeof(*readback->content));
	return readback;
}

static void read_later(struct moving_worker *worker, struct moving_block *block, uint64_t first,
                       uint64_t count)
{
	const struct moving_readback *readback = expected(worker, block, first, count);

	worker->readbacks++;
	moving_must(
	    worker, "cuMemcpyDtoHAsync",
	    (moving_random(worker, 2) ? cuMemcpyDtoHAsync_v2 : cuMemcpyDtoHAsync_v2_ptsz)(
	        readback->host, moving_at(block, first), readback->bytes, worker->streams[block->stream]));
}

void moving_read_back(struct moving_worker *worker, struct moving_block *block, uint64_t first,
                      uint64_t count)
{
	if (moving_random(worker, 4)) {
		read_later(worker, block, first, count);
		return;
	}
	struct moving_readback now = *expected(worker, block, first, count);
	now.host = worker->pageable;
	moving_alone(worker, block);
	if (moving_must(worker, "cuMemcpyDtoH",
	                cuMemcpyDtoH_v2(now.host, moving_at(block, first), now.bytes)) &&
	    !moving_compare(worker, &now))
		moving_must(worker, "compare", CUDA_ERROR_UNKNOWN);
}

void moving_read_on(struct moving_worker *worker, struct moving_block *block)
{
	for (unsigned i = 0; i < 100 && !worker->failed; i++)
		read_later(worker, block, moving_random(worker, moving_pieces(block)), 1);
}

bool moving_compare(struct moving_worker *worker, const struct moving_readback *readback)
{
	for (uint64_t i = 0; i < readback->bytes / 8; i++) {
		uint64_t word;
		memcpy(&word, readback->host + i * 8, 8);
		uint64_t want = moving_word(&readback->content[i / MOVING_WORDS], i % MOVING_WORDS);
		if (word == want)
			continue;
		fprintf(
		    stderr, "thread %u, step %llu: word %llu of what step %llu read is %#llx, not %#llx\n",
		    worker->index, (unsigned long long)worker->step, (unsigned long long)i,
		    (unsigned long long)readback->step, (unsigned long long)word, (unsigned long long)want);
		return false;
	}
	return true;
}

/* Pieces from `first` on that one call of verify can look at, or constant ones that one copy takes. */
static uint64_t run_of(const struct moving_block *block, uint64_t first)
{
	const struct moving_content *content = &block->content[first];
	uint64_t count = 1, left = moving_pieces(block) - first;

	while (count < left && content[count].constant == content->constant &&
	       (content->constant ? count < 4
	                          : content[count].seed == content->seed + count * MOVING_WORDS * PER_WORD))
		count++;
	return count;
}

void moving_verify(struct moving_worker *worker, struct moving_block *block)
{
	for (uint64_t first = 0, count; first < moving_pieces(block); first += count) {
		count = run_of(block, first);
		if (block->content[first].constant)
			moving_read_back(worker, block, first, count);
		else
			check_run(worker, block, first, count);
	}
}
