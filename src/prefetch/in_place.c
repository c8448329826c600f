#include "in_place.h"

#include <stdatomic.h>

#include "access_model.h"
#include "ledger.h"
#include "log.h"
#include "metrics.h"
#include "minmax.h"
#include "process.h"
#include "registry.h"
#include "scratch.h"

/*
 * The log gets a line after this time, and then each time that an eighth of the run's time has passed.
 * A run of a day has about a hundred.
 */
#define LINE_US 1000000
#define LINE_SHARE 8

static _Atomic int told_device; /* of the last launch that told */
static _Atomic uint64_t line_due_us, line_bytes;

/*
 * The device of this launch. The sums of devices are so only about right if launches of several devices
 * take turns: all since the last time counts for one of them.
 */
static int device_of_launch(bool last)
{
	const struct spill_backend *backend = spill_backend_for(SPILL_CUDA_DRIVER);
	int device;
	void *context;
	if (!last && backend && backend->devices->current(&device, &context))
		atomic_store(&told_device, device);
	return atomic_load(&told_device);
}

/* Without this line a run that is killed would tell nothing. */
static void write_line(void)
{
	struct spill_record_use record = {.time_us = spill_log_now_us()};
	struct spill_totals totals;
	char *line = spill_scratch_take();
	spill_ledger_totals(&totals);
	record.away = totals.away;
	if (line)
		spill_log_write(line, spill_record_use(&record, line, SPILL_LOG_LINE), SPILL_LOG_NOW);
	spill_scratch_give_back(line);
}

static bool line_is_due(uint64_t bytes)
{
	uint64_t now_us = spill_log_now_us(), due = atomic_load(&line_due_us);
	uint64_t next = now_us + spill_max(now_us / LINE_SHARE, LINE_US);
	return now_us >= spill_max(due, LINE_US) && bytes > atomic_load(&line_bytes) &&
	       atomic_compare_exchange_strong(&line_due_us, &due, next);
}

void spill_in_place_tell(bool last)
{
	struct spill_in_place_sums sums;
	if (!spill_access_model_in_place(&sums, last))
		return;
	const struct spill_in_place now = {
	    .bytes = sums.bytes,
	    .us = sums.ns / 1000,
	    .most_us = sums.most_ns / 1000 + (sums.most_ns % 1000 != 0),
	};
	spill_ledger_in_place(device_of_launch(last), &now);
	if (last || !spill_log_active() || !line_is_due(now.bytes))
		return;
	atomic_store(&line_bytes, now.bytes);
	write_line();
	spill_metrics_look();
}

void spill_in_place_reset(void)
{
	atomic_store(&told_device, 0);
	atomic_store(&line_due_us, 0);
	atomic_store(&line_bytes, 0);
}
