#include "device_memory.h"

#include <string.h>

#include "account.h"
#include "clock.h"
#include "minmax.h"
#include "policy.h"
#include "seqlock.h"

enum { FREE, TOTAL, OURS, ASKED_NS, FIGURES };

static struct answer {
	spill_seqlock lock;
	_Atomic uint64_t figure[FIGURES];
} answers[SPILL_DEVICES];

static __thread struct {
	int device;
	uint64_t bytes;
} unserved __attribute__((tls_model("initial-exec")));

void spill_device_memory_unserved(int device, uint64_t bytes)
{
	unserved.device = device;
	unserved.bytes = bytes;
}

uint64_t spill_device_memory_held(int device)
{
	uint64_t held = spill_account_device_held(device);
	return unserved.bytes && unserved.device == device ? spill_minus(held, unserved.bytes) : held;
}

static struct answer *answer_of(int device)
{
	return device >= 0 && device < SPILL_DEVICES ? &answers[device] : NULL;
}

int spill_device_memory(const struct spill_backend *backend, int device, uint64_t *free, uint64_t *total)
{
	int result = backend->devices->memory(device, free, total);
	struct answer *answer = answer_of(device);
	if (result || !answer || !spill_seq_write_begin(&answer->lock))
		return result;
	/* 0 free bytes: the driver may not have known (backend.h). An older answer would be wrong. */
	const uint64_t figures[FIGURES] = {*free, *free ? *total : 0, spill_device_memory_held(device),
	                                   spill_clock_ns()};
	spill_seq_put(answer->figure, figures, FIGURES);
	spill_seq_write_end(&answer->lock);
	return result;
}

struct spill_seen spill_device_seen(int device)
{
	struct answer *answer = answer_of(device);
	uint64_t figures[FIGURES];
	if (!answer)
		return (struct spill_seen){0};
	uint32_t version = spill_seq_read_begin(&answer->lock);
	spill_seq_take(figures, answer->figure, FIGURES);
	if (!spill_seq_read_end(&answer->lock, version))
		return (struct spill_seen){0};
	uint64_t now_ns = spill_clock_ns();
	return (struct spill_seen){
	    .free = figures[FREE],
	    .total = figures[TOTAL],
	    .ours = figures[OURS],
	    .ago_us = now_ns > figures[ASKED_NS] ? (now_ns - figures[ASKED_NS]) / 1000 : 0,
	};
}

void spill_device_memory_reset(void)
{
	memset(answers, 0, sizeof(answers));
}
