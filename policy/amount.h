/*
 * Amounts and times as people write them: 4.5GiB, 512MiB, 75%, plain bytes. Units are binary and exact: KiB is
 * 1024 bytes, then MiB, GiB, TiB; GB and G are refused, because half the world reads them as 10^9.
 */
#ifndef SPILL_AMOUNT_H
#define SPILL_AMOUNT_H

#include "policy.h"

/* Which spellings an option takes beside a size. */
enum spill_amount_allow {
	SPILL_ALLOW_PERCENT = 1u << 0, /* 0% to 100%, at most three decimals */
	SPILL_ALLOW_NONE = 1u << 1, /* "none": BYTES with SPILL_UNLIMITED, so that it can override a limit */
};

/*
 * Reads the whole of `text`. Returns NULL, or why not (static text, a sentence's end: "…: no unit"); *at
 * is then the offset of the byte that is wrong.
 */
const char *spill_amount_parse(const char *text, unsigned allow, struct spill_amount *amount, size_t *at);

/* Shortest exact spelling, one that spill_amount_parse reads back; returns its length (pre: size >= 24). */
size_t spill_amount_format(struct spill_amount amount, char *buffer, size_t size);

/*
 * Times as people write them: 250ms, 60s, 1.5min. The units are us, ms, s, min and h, and there is no default one. Reads the
 * whole of `text` into microseconds; returns as spill_amount_parse.
 */
const char *spill_time_parse(const char *text, uint64_t *us, size_t *at);

/* In seconds, ms or us: the largest that is exact; returns its length (pre: size >= 24). */
size_t spill_time_format(uint64_t us, char *buffer, size_t size);

#endif
