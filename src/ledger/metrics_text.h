/*
 * The text of log.metrics: the figures of a process in Prometheus' text format (version 0.0.4), with
 * its conventions for names and units. Pure: no file and no clock.
 */
#ifndef SPILL_METRICS_TEXT_H
#define SPILL_METRICS_TEXT_H

#include "ledger_totals.h"
#include "live_page.h"
#include "text.h"

struct spill_metrics {
	char program[256];
	const char *mode, *backend;
	uint64_t pid;
	uint64_t start_us; /* wall-clock, since 1970 */
	bool running;
	unsigned devices;
	struct spill_live_page_device device[SPILL_DEVICES];
	struct spill_device_totals totals[SPILL_DEVICES];
};

/* The longest sample, with the lines about its family. */
#define SPILL_METRICS_SAMPLE 2048

struct spill_metrics_output {
	struct spill_text text; /* of at least 2 * SPILL_METRICS_SAMPLE bytes */
	/* Called when `text` has little room left. Empties it. */
	void (*full)(struct spill_metrics_output *output);
};

/* Adds all families. The end of them is in output->text. */
void spill_metrics_compose(const struct spill_metrics *metrics, struct spill_metrics_output *output);

#endif
