/*
 * How much of a device is in use, without asking the driver at every request: what was seen at the last look, and what this
 * process has taken since. A new look is due when that could matter. Pure; times are the caller's.
 */
#ifndef SPILL_USAGE_ESTIMATE_H
#define SPILL_USAGE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

struct spill_usage_estimate {
	bool seen;
	uint64_t used;  /* bytes in use by anyone, as the driver said */
	uint64_t total; /* of the device */
	uint64_t own;   /* held by this process at that moment */
	uint64_t at_us;
};

enum spill_usage_answer {
	SPILL_USAGE_BELOW, /* with the request, no more than the share is in use */
	SPILL_USAGE_ABOVE,
	SPILL_USAGE_STALE, /* the driver has to be asked */
};

/* A look is true for so long: others take and give device memory, too. */
#define SPILL_USAGE_VALID_US 100000

/*
 * Would more than `share` of the device (thousandths of a percent) be in use with a request of `bytes` more than the `own`
 * that this process holds? Below the share, the last look stands until half of what was left has been taken, the request
 * included; above it, as long as what was seen still holds. Right after a look the answer is never AGAIN.
 */
enum spill_usage_answer spill_usage_estimate(const struct spill_usage_estimate *look, uint32_t share,
                                             uint64_t own, uint64_t bytes, uint64_t now_us);

#endif
