/*
 * Estimate of the device memory in use, without a query of the driver at each request. It is the
 * result of the last query plus the memory that this process has taken since. A new query is due
 * when the difference could matter.
 */
#ifndef SPILL_USAGE_ESTIMATE_H
#define SPILL_USAGE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

struct spill_usage_estimate {
	bool seen;
	uint64_t used;  /* bytes in use by all processes, from the driver */
	uint64_t total; /* of the device */
	uint64_t own;   /* held by this process at that moment */
	uint64_t at_us;
};

enum spill_usage_answer {
	SPILL_USAGE_BELOW, /* with the request, no more than the share is in use */
	SPILL_USAGE_ABOVE,
	SPILL_USAGE_STALE, /* the driver must be asked */
};

/* A query is valid so long: other processes use device memory, too. */
#define SPILL_USAGE_VALID_US 100000

/*
 * Would more than `share` of the device (thousandths of a percent) be in use with `bytes` more than
 * the `own` bytes of this process? Below the share, the last query counts until half of the rest is
 * taken, with this request. Above the share, it counts while its result was above. Right after a
 * query the answer is never STALE.
 */
enum spill_usage_answer spill_usage_estimate(const struct spill_usage_estimate *estimate, uint32_t share,
                                             uint64_t own, uint64_t bytes, uint64_t now_us);

#endif
