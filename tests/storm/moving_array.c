/* Arrays: they cannot move, so room is made for them, and none is a good answer. */
#include "moving.h"

#include <string.h>

static void fill_array(struct moving_worker *worker)
{
	const struct moving_content content = {worker->whole_seed, false};

	for (uint64_t i = 0; i < MOVING_WORDS; i++) {
		uint64_t word = moving_word(&content, i);
		memcpy(worker->pageable + i * 8, &word, 8);
	}
	moving_must(worker, "cuMemcpyHtoA",
	            cuMemcpyHtoA_v2(worker->whole, 0, worker->pageable, MOVING_PIECE));
}

void moving_array(struct moving_worker *worker)
{
	CUDA_ARRAY_DESCRIPTOR wanted = {
	    .Width = MOVING_WORDS, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 2};

	moving_let_go(worker); /* the copies and the end wait for work */
	if (worker->whole) {
		moving_end_array(worker);
		return;
	}
	if (!moving_may(worker, "cuArrayCreate", cuArrayCreate_v2(&worker->whole, &wanted))) {
		worker->whole = NULL;
		return;
	}
	worker->whole_seed = moving_random(worker, (uint64_t)1 << 32);
	fill_array(worker);
}

void moving_end_array(struct moving_worker *worker)
{
	struct moving_readback now = {.bytes = MOVING_PIECE,
	                              .step = worker->step,
	                              .content = {{worker->whole_seed, false}},
	                              .host = worker->pageable};

	if (!worker->whole)
		return;
	if (moving_must(worker, "cuMemcpyAtoH", cuMemcpyAtoH_v2(now.host, worker->whole, 0, MOVING_PIECE)) &&
	    !moving_compare(worker, &now))
		moving_must(worker, "an array", CUDA_ERROR_UNKNOWN);
	moving_must(worker, "cuArrayDestroy", cuArrayDestroy(worker->whole));
	worker->whole = NULL;
}
