/*
 * The protocols of test_memory_order.c between real threads, with plain memory behind them. On
 * x86-64 the processor orders most of it, so weakened orders show under ThreadSanitizer only
 * (scripts/check tsan), which reports the plain memory as a data race.
 */
#include <pthread.h>
#include <stdlib.h>

#include "unit.h"

#include "gate.h"
#include "publish_once.h"
#include "seqlock.h"

#define ROUNDS 2000
#define THREADS 3

static pthread_barrier_t start;
static atomic_uint wrong;

static void run_threads(void *(*body)(void *), void *(*other)(void *))
{
	pthread_t threads[THREADS];
	atomic_store(&wrong, 0);
	assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i ? body : other, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&start);
	assert_int_equal(atomic_load(&wrong), 0);
}

/* -- seqlock.h: each write names a page of plain memory that was filled before ------------------- */

static spill_seqlock lock;
static _Atomic uint64_t page, page_again;
static uint64_t pages[ROUNDS];

static void *write_pages(void *unused)
{
	pthread_barrier_wait(&start);
	for (uint64_t i = 1; i < ROUNDS; i++) {
		pages[i] = ~i;
		spill_seq_write_alone(&lock);
		spill_seq_set(page, i);
		spill_seq_set(page_again, i);
		spill_seq_write_end(&lock);
	}
	return NULL;
}

static void *read_pages(void *unused)
{
	uint64_t seen = 0;
	pthread_barrier_wait(&start);
	while (seen < ROUNDS - 1) {
		uint32_t version = spill_seq_read_begin(&lock);
		uint64_t first = spill_seq_get(page), second = spill_seq_get(page_again);
		if (!spill_seq_read_end(&lock, version))
			continue;
		atomic_fetch_add(&wrong, first != second || first < seen || pages[first] != ~first);
		seen = first;
	}
	return NULL;
}

TEST(readers_get_whole_figures_and_what_was_before_them)
{
	run_threads(read_pages, write_pages);
}

/* -- publish_once.h ---------------------------------------------------------------------------- */

static struct result {
	_Atomic int state;
	uint64_t words[4];
} results[ROUNDS];

static void *publish_results(void *unused)
{
	const uint64_t words[4] = {1, 2, 3, 4};
	pthread_barrier_wait(&start);
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (!spill_is_published(&results[i].state))
			spill_publish(&results[i].state, results[i].words, words, sizeof(words));
		atomic_fetch_add(&wrong, memcmp(results[i].words, words, sizeof(words)) != 0);
	}
	return NULL;
}

TEST(each_thread_gets_the_published_result)
{
	run_threads(publish_results, publish_results);
}

/* -- the gate ---------------------------------------------------------------------------------- */

static uint64_t chunk; /* even, unless it is in the middle of a move */
static atomic_bool ended;

static void *work(void *unused)
{
	spill_gate_join(1);
	pthread_barrier_wait(&start);
	while (!atomic_load(&ended)) {
		bool outer = spill_gate_enter(spill_gate_self);
		atomic_fetch_add(&wrong, chunk & 1);
		if (outer)
			spill_gate_leave(spill_gate_self);
	}
	return NULL;
}

static void *move(void *unused)
{
	pthread_barrier_wait(&start);
	for (unsigned moves = 0; moves < ROUNDS / 4;) {
		if (!spill_gate_close(UINT64_MAX))
			continue;
		chunk++;
		atomic_signal_fence(memory_order_seq_cst); /* so that the compiler keeps both */
		chunk++;
		moves++;
		spill_gate_open();
	}
	atomic_store(&ended, true);
	return NULL;
}

TEST(no_work_meets_a_move)
{
	spill_gate_use(1, NULL);
	run_threads(work, move);
	assert_int_equal(chunk, ROUNDS / 4 * 2);
}
