/* What would have helped against an out of memory: one text for whoever tells of it, at once or from the log. Pure. */
#ifndef SPILL_ADVICE_H
#define SPILL_ADVICE_H

#include "record.h"
#include "text.h"

/* An end of a sentence: "host.limit = 12GiB (it is 10.00 GiB); or 1.04 GiB less in use on the device …". */
void spill_advice_oom(struct spill_text *text, const struct spill_record_oom *oom);

/* Bytes of `live` on other devices than the one that is full, of which nothing is in `places`, `callers` and `holders`. */
uint64_t spill_oom_elsewhere(const struct spill_record_oom *oom);

/* False for those of oom.honest_first: they surface on purpose, and are asked again. `refused_by` may be NULL. */
bool spill_oom_is_final(const char *refused_by);

/*
 * A request that nothing can be done about: of more than so many times all that its device has. Programs ask so to see how much
 * there is, or by a size that overflowed; a model that does not fit is not that much too large. pre: total != 0
 */
#define SPILL_BEYOND 16
bool spill_oom_is_beyond(uint64_t bytes, uint64_t total);

#endif
